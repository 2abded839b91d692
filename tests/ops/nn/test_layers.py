"""Layers, normalisation and dropout of nn.functional beside PyTorch's, and what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.nn import functional as F
from tests.ops.nn.calls import agree

LINES = """
F.linear(x, m)
F.linear(x, m, b)
F.linear(x[0], m, b)
F.linear(x[0, 0], m, b)
F.linear(x, m[0])
F.linear(x[0, 0], m[0])
F.linear(x, m.t())
F.bilinear(x, y, t, b)
F.bilinear(x[0, 0], y[0, 0], t)
F.bilinear(x, y[0], t)
F.bilinear(x, y[:1], t)
F.bilinear(y, x, t)
F.bilinear(x, y, t, b[:2])
F.embedding(i, m)
F.embedding(i[0, 0], m)
F.embedding(i.int(), m)
F.embedding(i, m, padding_idx=1)
F.embedding(i, m, padding_idx=-1)
F.embedding(i, m, padding_idx=9)
F.embedding(i, m, scale_grad_by_freq=True)
F.embedding(i, _m, max_norm=0.5)
F.embedding(i, _m, max_norm=0.5, norm_type=1.0) + _m.sum()
F.embedding(i + 9, m)
F.embedding(i - 9, m)
F.embedding(x, m)
F.embedding(i, x)
F.one_hot(i)
F.one_hot(i, 7)
F.one_hot(i[0, 0], 5)
F.one_hot(i, 1)
F.one_hot(i - 5)
F.one_hot(i.int())
F.one_hot(i[:0])
F.one_hot(i[:0], 3)
F.layer_norm(x, (4,))
F.layer_norm(x, [3, 4], w, v)
F.layer_norm(x, x.shape, eps=0.1)
F.layer_norm(x, (4,), w[0])
F.layer_norm(x, (4,), bias=v[0])
F.layer_norm(x, ())
F.layer_norm(x, (3,))
F.layer_norm(x, (4,), b)
F.layer_norm(i, (3,))
F.rms_norm(x, (4,))
F.rms_norm(x, (3, 4), w, 0.1)
F.rms_norm(x, (3,))
F.rms_norm(x, (4,), b)
F.batch_norm(x, None, None, training=True)
F.batch_norm(x, _r, _s, c, d)
F.batch_norm(x, _r, _s, c, d, eps=0.5)
F.batch_norm(x, _r, _s, c, d, True, 0.3)
F.batch_norm(x, _r, _s, training=True) * 0 + _r[0] + 2 * _s[1]
F.batch_norm(x[:, :, 0], _r, _s, training=True)
F.batch_norm(x[..., None], None, None, c, None, True)
F.batch_norm(x, None, None)
F.batch_norm(x, r, None)
F.batch_norm(x, b, s)
F.batch_norm(x, r, s, b)
F.batch_norm(x, r, s, eps=-1.0)
F.batch_norm(x, _r, _s, training=True, eps=0.0)
F.batch_norm(x[:1, :, :1], None, None, training=True)
F.group_norm(x, 3)
F.group_norm(x, 1, c, d)
F.group_norm(x[..., None], 3, c, None, 0.1)
F.group_norm(x, 2)
F.group_norm(x, 3, b)
F.group_norm(x[0, 0], 1)
F.group_norm(x[:1, :1, :1], 1)
F.instance_norm(x)
F.instance_norm(x, weight=c, bias=d, eps=0.1)
F.instance_norm(x, _r, _s, momentum=0.3)
F.instance_norm(x, _r, _s) * 0 + _r[0] + 2 * _s[1]
F.instance_norm(x, _r, _s, use_input_stats=False)
F.instance_norm(x, use_input_stats=False)
F.instance_norm(x[:, :, :1])
F.dropout(x, training=False)
F.dropout(x, 0.0)
F.dropout(x, 1.0)
F.dropout(x * 1, 1.0, True, True)
F.dropout(x, 1.5)
F.dropout(i)
F.alpha_dropout(x)
F.alpha_dropout(x, 1.0, True)
F.alpha_dropout(x, -0.5)
F.feature_alpha_dropout(x, 0.0, True)
F.dropout1d(x[0, 0])
F.dropout1d(x, 1.0)
F.dropout1d(x[0], 1.0)
F.dropout1d(x[0] * 1, 1.0, True, True)
F.dropout2d(x, 1.0)
F.dropout2d(x[0], 1.0)
F.dropout2d(x[..., None], 1.0)
F.dropout2d(x, 1.5)
F.dropout3d(x[..., None], 1.0)
F.dropout3d(x[..., None, None], 1.0)
F.dropout3d(x, 1.0)
""".strip().splitlines()


def operands(seed: int, dtype: str = "float64") -> dict[str, Any]:
    random = np.random.default_rng(seed)
    shapes = {
        **{"x": (2, 3, 4), "y": (2, 3, 5), "m": (5, 4), "_m": (5, 4), "t": (5, 4, 5), "b": (5,)},
        **{"w": (3, 4), "v": (3, 4), "c": (3,), "d": (3,), "r": (3,), "_r": (3,)},
    }
    found = {name: random.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
    for name in ("s", "_s"):
        found[name] = random.uniform(0.5, 2, size=3).astype(dtype)
    return {**found, "i": random.integers(0, 5, size=(2, 3))}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_gradients_warnings_and_refusals_are_pytorchs(torch, dtype):
    for line in LINES:
        agree(torch, line, operands(0, dtype), 1e-10)


def test_second_derivatives_are_those_of_finite_differences():
    for line in (
        "F.layer_norm(x, (3, 4), w, v)",
        "F.rms_norm(x, (4,))",
        "F.batch_norm(x, None, None, c, d, True)",
        "F.group_norm(x, 3, c, d)",
        "F.instance_norm(x, weight=c)",
        "F.bilinear(x, x.matmul(m.t()), t)",
        "F.linear(x, m * x.mean(), b)",
        "F.embedding(i, m * x.sum())",
    ):
        names = {name: ng.tensor(value) for name, value in operands(1).items()}

        def layer(x: Any, line: str = line, names: Any = names) -> Any:
            return eval(line, {"torch": ng, "F": F, **names, "x": x})

        x = names["x"].requires_grad_()
        assert ng.autograd.gradcheck(layer, (x,), fast_mode=True), line
        assert ng.autograd.gradgradcheck(layer, (x,), fast_mode=True), line


def test_what_dropout_keeps_has_the_mean_and_alpha_dropout_the_variance():
    ng.manual_seed(1)
    x = ng.ones(20000, requires_grad=True)
    y = F.dropout(x, 0.25)
    assert {round(each, 5) for each in y.tolist()} == {0.0, round(1 / 0.75, 5)}
    assert abs(y.detach().mean().item() - 1) < 0.02
    y.sum().backward()
    assert (x.grad == y).all()
    z = ng.randn(40000)
    kept = F.alpha_dropout(z, 0.3, training=True)
    assert abs(kept.mean().item()) < 0.03 and abs(kept.std().item() - 1) < 0.03


def test_whole_channels_are_dropped():
    ng.manual_seed(2)
    x = ng.ones(16, 16, 3, 2)
    for f in (F.dropout2d, lambda x: F.feature_alpha_dropout(x, training=True)):
        y = f(x).reshape(256, 6)
        assert (y == y[:, :1]).all() and len({*y[:, 0].tolist()}) == 2
    in_place = ng.ones(50, 2)
    assert F.dropout1d(in_place, inplace=True) is in_place
    assert (in_place[:, 0] == in_place[:, 1]).all()


@pytest.mark.usefixtures("traced")
def test_traced_layers_are_the_eager_ones_and_draw_anew():
    names = {name: ng.tensor(value) for name, value in operands(3).items()}
    for line in (
        "F.layer_norm(x, (4,), w[0], v[0])",
        "F.batch_norm(x, r, s, c, d)",
        "F.batch_norm(x, None, None, training=True)",
        "F.group_norm(x, 3)",
        "F.linear(x, m, b)",
        "F.embedding(i, m, 0)",
        "F.one_hot(i, 5)",
    ):
        f = eval(f"lambda {', '.join(names)}: {line}", {"F": F})
        np.testing.assert_allclose(
            ng.jit(f)(**names).numpy(), f(**names).numpy(), rtol=1e-11, atol=1e-12
        )
    f = ng.jit(lambda x: F.dropout(x, 0.5))
    first, second = f(ng.ones(100)), f(ng.ones(100))
    assert {*first.tolist()} == {0, 2} and not (first == second).all()
    with pytest.raises(ng.TraceError):
        ng.jit(F.one_hot)(names["i"])


def test_rows_to_which_no_gradient_flows_may_be_infinite():
    m = ng.tensor([[ng.inf], [1.0]], requires_grad=True)
    i = ng.tensor([0, 1, 1])
    F.embedding(i, m, padding_idx=0, scale_grad_by_freq=True).sum().backward()
    assert m.grad.tolist() == [[0], [1]]
    with pytest.raises(NotImplementedError, match="no sparse gradients"):
        F.embedding(i, m, sparse=True)


def test_great_numbers_of_float16_are_normalised(torch: Any) -> None:
    # Their squares are beyond float16.
    x = (np.random.default_rng(1).normal(size=(4, 3, 6)) * 3000).astype("float16")
    w = np.linspace(0.5, 2, 6).astype("float16")
    calls = {
        "rms_norm": lambda f, x, w: f.rms_norm(x, (6,), w, eps=0.5),
        "layer_norm": lambda f, x, w: f.layer_norm(x, (6,), w, w),
        "group_norm": lambda f, x, w: f.group_norm(x, 3, w[:3]),
        "instance_norm": lambda f, x, w: f.instance_norm(x),
        "batch_norm": lambda f, x, w: f.batch_norm(x, None, None, w[:3], training=True),
    }
    for name, call in calls.items():
        ours, theirs = (
            call(m.nn.functional, m.from_numpy(x.copy()), m.from_numpy(w.copy())).numpy()
            for m in (ng, torch)
        )
        assert ours.dtype == theirs.dtype == np.float16
        np.testing.assert_allclose(ours, theirs, rtol=5e-3, atol=5e-3, err_msg=name)
        assert np.abs(ours).max() > 1, name
