"""Differences, integrals, covariances, quantiles and combinations beside PyTorch and NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.statistics.calls import differences, operands_of, outcome
from tests.ops.statistics.ways import assert_all_ways_agree


def arrays() -> dict[str, Any]:
    """Return matrices `x` and `y`, a block `c`, vectors `v`, `w`, a number `z` and others."""
    random = np.random.default_rng(7)
    return {
        "x": random.normal(size=(4, 5)) * 3,
        "y": random.normal(size=(4, 5)) + 2,
        "c": random.normal(size=(3, 4, 5)) * 2,
        "v": random.normal(size=5).cumsum() * 4,
        "w": random.uniform(0.5, 2, 5),
        "q": np.array([0.2, 0.5, 0.9]),
        "z": np.array(1.5),
        "e": np.zeros((3, 0)),
        "k": random.integers(0, 9, (4, 5)),
        "i": random.integers(0, 4, 5),
        "b": random.random((4, 5)) < 0.5,
    }


DIFFERENCES = [
    *(f"torch.diff({call})" for call in ("x", "x, 0", "x, 2, 0", "x, 9", "b", "b, 0", "k, 2", "e")),
    *(f"torch.diff({call})" for call in ("x, prepend=y", "x, 2, 0, x[:1], y[:2]", "c, 1, 1")),
    *(f"torch.diff({call})" for call in ("x, -1", "z", "x, prepend=v", "x, prepend=x[:1]")),
    *(f"torch.diff({call})" for call in ("x, dim=3", "k, append=x", "x.mT", "x, append=k")),
    *(f"torch.gradient({call})" for call in ("x", "c", "v", "k", "b", "z", "x[:1]", "k.byte()")),
    *(
        f"torch.gradient(x, {options}, edge_order={order})"
        for order in (1, 2)
        for options in (
            *("spacing=2.0", "spacing=3", "spacing=True", "spacing=(2.0, 3)", "spacing=[2.0]"),
            *("dim=1", "dim=-2", "dim=(1, 0)", "dim=()", "dim=(0, 0)", "dim=5", "spacing=()"),
            *("spacing=2.0, dim=1", "spacing=2.0, dim=(0, 1)", "spacing=(2.0,), dim=(0, 1)"),
            *("spacing=(v[:4], w.cumsum(0))", "spacing=[v], dim=1", "spacing=(x, v)"),
            *("spacing=['a']", "spacing=1j", "spacing=(2, 1j)"),
        )
    ),
    "torch.gradient(x, edge_order=3)",
    "torch.gradient(x, 2.0)",
    "torch.gradient(x, spacing=v)",
    "torch.gradient(x, spacing='a')",
    "torch.gradient(v, spacing=(i.cumsum(0) + torch.arange(5),))",
]
INTEGRALS = [
    f"torch.{name}({call})"
    for name in ("trapezoid", "cumulative_trapezoid", "trapz")
    for call in (
        *("x", "x, dim=0", "x, dx=2", "x, dx=True", "x, dx=1j", "x, y", "x, v", "x, v[:4], dim=0"),
        *("x, v[:4]", "c, y", "y, c", "x, z", "z", "k", "k, k", "b", "b, b", "e", "e, e", "x, 2.0"),
        *("x, dim=4", "x[:, :1]", "x, x[:, :1]", "k, v", "x, k", "c.mT, dim=1", "x[:1], c"),
    )
]
COVARIANCES = [
    *(f"torch.cov({call})" for call in ("x", "v", "z", "c", "b", "k", "e", "x[:, :1]", "x.mT")),
    *(
        f"torch.cov(x, {options})"
        for options in (
            *("correction=0", "correction=5", "correction=7", "fweights=i", "aweights=w"),
            *("fweights=i, aweights=w", "fweights=i, aweights=w, correction=0", "fweights=-i"),
            *("fweights=i * 0", "fweights=w", "aweights=i", "aweights=-w", "fweights=i[:4]"),
            *("fweights=k", "aweights=w[:2]", "aweights=x", "fweights=i, correction=90"),
        )
    ),
    "torch.cov(v, fweights=i)",
    "torch.cov(v, fweights=i, aweights=w)",
    *(f"torch.corrcoef({call})" for call in ("x", "v", "z", "c", "b", "k", "e", "x * 0", "x.mT")),
]
OF_ELEMENTS = [
    *(
        f"torch.combinations({call})"
        for call in ("v", "v, 0", "v, 3, True", "v, -1", "x", "v, 9", "i, r=1", "v[:0]", "v[:0], 2")
    ),
    *(
        f"torch.cartesian_prod({call})"
        for call in ("v", "v, w", "v, i", "v, x", "[v, w]", "", "1", "v, v[:0]", "v, w, q", "v, 1")
    ),
    *(
        f"torch.block_diag({call})"
        for call in ("v, x", "x", "", "c", "x, z, i", "x, v[:0]", "[x]", "1", "x, 1", "b, k", "z")
    ),
]
QUANTILES = [
    f"torch.{name}({call})"
    for name in ("quantile", "nanquantile")
    for call in (
        *("x, 0.5", "x, q", "x, q, 0", "x, 0.25, 1", "x, q, dim=0, keepdim=True", "c, q, 1"),
        *("x, q, keepdim=True", "x, 0.3, keepdim=True", "x, q[None]", "x, q + 1", "x, 1.2"),
        *("x, nan", "x, 0.5, 3", "e, 0.5", "x.half(), 0.5", "k, 0.5", "x, 1", "x, True"),
        *("x, q[:0]", "x, z - 1", "z, 0.5", "z, 0.5, dim=0, keepdim=True", "x, [0.5]", "z, q"),
        *("x, 0.5, interpolation='a'", "x, 0.0", "x, 1.0", "x, q.double(), 1", "c.mT, 0.4, 1"),
        *("torch.where(b, nan, x), 0.4, 1", "torch.where(b, nan, x), q", "x * nan, q, 0"),
    )
] + [
    f"torch.{name}(x, {q}, {dim}, interpolation='{mode}')"
    for name in ("quantile", "nanquantile")
    for q in ("q", "0.5", "0.35")
    for dim in (0, 1)
    for mode in ("lower", "higher", "midpoint", "nearest")
]


def compare(torch: Any, calls: list[str], dtype: str, tolerance: float = 1e-5) -> None:
    own, others = operands_of(ng, arrays(), dtype), operands_of(torch, arrays(), dtype)
    wrong = {}
    for call in calls:
        found = differences(outcome(ng, call, own), outcome(torch, call, others), tolerance)
        if found:
            wrong[call] = found[:3]
    assert not wrong


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
@pytest.mark.parametrize(
    "calls",
    [DIFFERENCES, INTEGRALS, COVARIANCES, OF_ELEMENTS, QUANTILES],
    ids=["differences", "integrals", "covariances", "of elements", "quantiles"],
)
def test_calls_are_as_in_pytorch(torch: Any, calls, dtype):
    if dtype == "float16":  # there are no complex halves
        calls = [call for call in calls if "1j" not in call]
    compare(torch, calls, dtype, 2e-2 if dtype == "float16" else 1e-5)


def test_cov_warns_where_nothing_is_left_to_divide_by():
    x = ng.ones(2, 3)
    for options in ({"correction": 3}, {"fweights": ng.tensor([1, 1, 1]), "correction": 4}):
        with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
            assert not ng.cov(x, **options).isfinite().any()


def test_weights_are_checked_in_every_call_of_a_compiled_function():
    weighted = ng.jit(lambda x, w: ng.cov(x, aweights=w))
    x = ng.from_numpy(np.random.default_rng(1).normal(size=(2, 4)))
    for weights in ([1.0, 2, 3, 4], [0.5, 0.5, 1, 2]):
        assert np.allclose(
            weighted(x, ng.tensor(weights, dtype=ng.float64)).numpy(),
            np.cov(x.numpy(), aweights=weights),
        )
    with pytest.raises(RuntimeError, match="aweights cannot be negative"):
        weighted(x, ng.tensor([1.0, -1, 1, 1], dtype=ng.float64))
    between = ng.jit(lambda x, q: ng.quantile(x, q, 1))
    for q in (0.25, 0.6):
        found = between(x, ng.tensor(q, dtype=ng.float64))
        assert np.allclose(found.numpy(), np.quantile(x.numpy(), q, 1))
    with pytest.raises(RuntimeError, match=r"must be in the range \[0, 1\]"):
        between(x, ng.tensor(1.5, dtype=ng.float64))


OF_ONE = {
    "diff": lambda x: ng.diff(x, 2, 0),
    "gradient": lambda x: ng.cat(ng.gradient(x, edge_order=2)),
    "gradient at points": lambda x: ng.gradient(x, spacing=(x[0].exp().cumsum(0),), dim=[1])[0],
    "trapezoid": lambda x: ng.trapezoid(x, x.exp().cumsum(1)),
    "cumulative_trapezoid": lambda x: ng.cumulative_trapezoid(x, dim=0),
    "cov": lambda x: ng.cov(x, aweights=x[0].exp()),
    "corrcoef": ng.corrcoef,
    "quantile": lambda x: ng.quantile(x, x[0, :2].sigmoid(), 1),
    "nanquantile": lambda x: ng.nanquantile(x, 0.3, interpolation="midpoint"),
    "combinations": lambda x: ng.combinations(x[0]),
    "cartesian_prod": lambda x: ng.cartesian_prod(x[0], x[1]),
    "block_diag": lambda x: ng.block_diag(x, x[0]),
}


@pytest.mark.sampled(0.5)
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", OF_ONE)
def test_derivatives_batches_and_compiled_functions_agree(name):
    assert_all_ways_agree(OF_ONE[name], (4, 4))


def test_numpy_says_the_same():
    random = np.random.default_rng(11)
    a, x = random.normal(size=(3, 7)), np.sort(random.normal(size=7))
    t, p = ng.from_numpy(a), ng.from_numpy(x)
    for order in (1, 2):
        found = ng.gradient(t, spacing=(p,), dim=(1,), edge_order=order)[0]
        assert np.allclose(found.numpy(), np.gradient(a, x, axis=1, edge_order=order))
    assert np.allclose(ng.cov(t).numpy(), np.cov(a))
    assert np.allclose(ng.corrcoef(t).numpy(), np.corrcoef(a))
    for mode in ("linear", "lower", "higher", "midpoint", "nearest"):
        found = ng.quantile(t, 0.37, 1, interpolation=mode)
        assert np.allclose(found.numpy(), np.quantile(a, 0.37, 1, method=mode))
    for r, again in itertools.product(range(1, 5), (False, True)):
        choose = itertools.combinations_with_replacement if again else itertools.combinations
        rows = np.array(list(choose(x[:4], r))).reshape(-1, r)
        assert (ng.combinations(p[:4], r, again).numpy() == rows).all()
