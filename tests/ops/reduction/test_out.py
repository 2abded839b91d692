"""Reductions and scans with ``out=``, and in place, compared with PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.torch_comparison import compare

# What is written to: one tensor, or values and indices.
ONE = {
    **{
        name: (lambda m, x, name=name, **k: getattr(m, name)(x, 1, **k))
        for name in ("sum", "mean", "prod", "nansum", "nanmean", "amax", "amin", "all", "any")
    },
    **{
        name: (lambda m, x, name=name, **k: getattr(m, name)(x, 0, **k))
        for name in ("var", "std", "logsumexp", "argmax", "argmin", "cumsum", "cumprod", "softmax")
    },
    "logcumsumexp": lambda m, x, **k: m.logcumsumexp(x, 0, **k),
    "log_softmax": lambda m, x, **k: m.log_softmax(x, 1, **k),
    "norm": lambda m, x, **k: m.norm(x, 2, 0, **k),
    "argsort": lambda m, x, **k: m.argsort(x, stable=True, **k),
    "max": lambda m, x, **k: m.max(x, **k),
    "min of two": lambda m, x, **k: m.min(x, x + 1, **k),
    "mean of all": lambda m, x, **k: m.mean(x, **k),
}
TWO = {
    "max": lambda m, x, **k: m.max(x, 1, **k),
    "min": lambda m, x, **k: m.min(x, 0, True, **k),
    "cummax": lambda m, x, **k: m.cummax(x, 0, **k),
    "cummin": lambda m, x, **k: m.cummin(x, 1, **k),
    "sort": lambda m, x, **k: m.sort(x, 1, True, **k),
    "aminmax": lambda m, x, **k: m.aminmax(x, dim=0, **k),
}
# Of some there is no gradient; PyTorch's softmax writes, and lets none flow.
NO_GRADIENT = {"all", "any", "argmax", "argmin", "argsort", "softmax", "log_softmax"}
VALUES = np.array([[3.0, 1.0, 2.0], [0.5, 1.0, 5.0]])


def outcome(module: Any, call: Any, requires_grad: bool, *, dtype: str | None) -> Any:
    """Return what a call with `out` makes of it, or the error."""
    x = module.from_numpy(VALUES.copy())
    results = call(module, x)
    several = isinstance(results, tuple)
    outs = [
        module.zeros_like(each, **({} if dtype is None else {"dtype": getattr(module, dtype)}))
        for each in (results if several else (results,))
    ]
    if requires_grad:
        x.requires_grad_()
    try:
        given = call(module, x, out=tuple(outs) if several else outs[0])
    except Exception as error:
        return type(error).__name__, str(error)
    assert all(a is b for a, b in zip(given if several else (given,), outs, strict=True))
    return [(str(each.dtype), each.tolist()) for each in outs]


def agree(ours: Any, theirs: Any) -> None:
    if isinstance(ours, list) and isinstance(theirs, list):
        assert [dtype for dtype, _ in ours] == [dtype for dtype, _ in theirs]
        for (_, a), (_, b) in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", [*ONE, *[f"two of {name}" for name in TWO]])
def test_results_are_written_where_asked(torch, name):
    call = TWO[name.removeprefix("two of ")] if name.startswith("two of ") else ONE[name]
    agree(outcome(ng, call, False, dtype=None), outcome(torch, call, False, dtype=None))


@pytest.mark.parametrize("name", sorted(ONE.keys() - NO_GRADIENT))
def test_gradients_do_not_flow_there(torch, name):
    for module in (ng, torch):
        kind, text = outcome(module, ONE[name], True, dtype=None)
        assert kind == "RuntimeError"
        assert "out=... arguments don't support automatic differentiation" in text


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128"])
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_what_takes_a_dtype_is_computed_in_that_of_out(torch, name, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = outcome(ng, ONE[name], False, dtype=dtype)
        theirs = outcome(torch, ONE[name], False, dtype=dtype)
    agree(ours, theirs)


@pytest.mark.parametrize("name", ["softmax", "norm", "argmax"])
def test_another_dtype_is_refused(torch, name):
    agree(
        outcome(ng, ONE[name], False, dtype="int32"),
        outcome(torch, ONE[name], False, dtype="int32"),
    )


def test_values_and_indices_are_two():
    x = ng.ones(2, 2)
    with pytest.raises(TypeError, match="expected tuple of 2 elements but got 1"):
        ng.max(x, 0, out=(ng.ones(2),))
    with pytest.raises(TypeError, match="invalid combination"):
        ng.max(x, 0, out=ng.ones(2))
    with pytest.raises(TypeError, match="argument 'out' must be Tensor"):
        ng.max(x, out=(ng.ones(2), ng.ones(2)))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 0)])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_scans_in_place_do_what_pytorchs_do(torch, name, shape, dtype):
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) - 1.5).astype(dtype)
    compare(torch, lambda m, x: getattr(x * 1, f"{name}_")(-1), values)
    compare(torch, lambda m, x: getattr((x * 1).detach(), f"{name}_")(0, dtype=x.dtype), values)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x, out: lib.add(x, 1, out=out),
        lambda lib, x, out: lib.exp(x, out=out),
        lambda lib, x, out: lib.where(x > 1, x, x, out=out),
        lambda lib, x, out: lib.clamp(x, 0, 1, out=out),
        lambda lib, x, out: lib.cumsum(x, 0, out=out),
        lambda lib, x, out: lib.softmax(x, 0, out=out),
        lambda lib, x, out: lib.mm(x[:, :2], x, out=out),
        lambda lib, x, out: lib.sort(x, out=(out, lib.zeros(2, 3, dtype=lib.long))),
    ],
)
def test_nothing_is_written_where_elements_share_memory(call: Any) -> None:
    out = ng.zeros(3).expand(2, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        call(ng, ng.ones(2, 3), out)
    assert out.tolist() == [[0.0] * 3] * 2
