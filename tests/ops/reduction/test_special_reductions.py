"""Reductions and scans at special values: zeros, infinities, nan, and what overflows on the way."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

INF, NAN = float("inf"), float("nan")
ROWS = [
    [0.0, 2, 3], [0.0, 0, 3], [-0.0, 2, -3], [2.0, 0, INF], [INF, 2, 3], [INF, INF, 2],
    [NAN, 2, 3], [NAN, 0, 3], [NAN, 0, INF], [NAN, NAN, NAN], [0.0, 0, 0], [2.0, 2, 2],
    [2.0, 2, 1], [1e200, 1e200, 1e-200], [1e-200, 1e-200, 1e300], [1e200, 1e200, 0],
    [5e-324, 2, 3], [-INF, INF, 1], [-INF, -INF, -INF], [-INF, 1, 2], [0.5, INF, 1],
    [1.0, 0.5, -INF], [INF, -INF, 1], [1000.0, 0, -1000], [3.0, 4, 0], [1e160, 1e160, 1],
]  # fmt: skip
COTANGENTS = [1.0, -2.5, 0.0, INF, NAN]

Reduction = Callable[[Any, Any], Any]
ALONG_A_DIM = ("sum", "mean", "prod", "nansum", "nanmean", "amax", "amin", "logsumexp")
ALONG_A_DIM = (*ALONG_A_DIM, "cumsum", "cumprod", "logcumsumexp", "softmax", "log_softmax")
REDUCTIONS: dict[str, Reduction] = {
    **{name: (lambda m, x, name=name: getattr(x, name)(-1)) for name in ALONG_A_DIM},
    **{
        f"{name} along a dim": (lambda m, x, name=name: getattr(x, name)(-1)[0])
        for name in ("max", "min", "cummax", "cummin", "sort")
    },
    "var": lambda m, x: x.var(-1),
    "std": lambda m, x: x.std(-1),
    "var without correction": lambda m, x: x.var(-1, correction=0),
    "std without correction": lambda m, x: x.std(-1, correction=0),
    **{
        f"norm {p}": (lambda m, x, p=p: x.norm(p, -1))
        for p in (0, 0.5, 1, 1.5, 2, 2.5, 3, 4, -1, -2, INF, -INF)
    },
}
OF_ALL: dict[str, Reduction] = {
    name: (lambda m, x, name=name: getattr(x, name)())
    for name in ("sum", "mean", "prod", "nansum", "nanmean", "max", "min", "norm", "var", "std")
}


def _leaves_the_range(x: Any) -> bool:
    with np.errstate(all="ignore"):
        sizes = np.abs(np.cumprod(x))
    return not ((sizes > np.finfo(float).tiny) & (sizes < INF)).all()


# Where gradients may differ from PyTorch's, and why.
DIFFER: dict[str, tuple[Callable[[Any], bool], str]] = {
    "cumprod": (
        _leaves_the_range,
        "without a 0 PyTorch divides by elements, here nothing is divided",
    ),
    "logcumsumexp": (
        lambda x: bool((np.abs(x[np.isfinite(x)]) > 1e15).any()),
        "the sum of such numbers has lost what the gradient depends on, in both",
    ),
}
# Where they may differ for a cotangent that is no number.
DIFFER_ABOVE = {
    "logcumsumexp": "PyTorch takes the logarithm of the cotangent, in which nan gets lost",
    "prod of all": "with two zeros PyTorch's is 0, whatever comes from above",
}


def outcome(module: Any, function: Reduction, row: Any, cotangent: float) -> list[Any]:
    x = module.from_numpy(np.array(row, float)).requires_grad_()
    y = function(module, x)
    (slope,) = module.autograd.grad(y, x, module.full_like(y, cotangent), allow_unused=True)
    return [y.numpy(force=True), None if slope is None else slope.numpy(force=True)]


@pytest.mark.sampled(0.18, by="name")
@pytest.mark.parametrize("cotangent", COTANGENTS)
@pytest.mark.parametrize("name", [*REDUCTIONS, *(f"{name} of all" for name in OF_ALL)])
def test_values_and_gradients_are_pytorchs(torch: Any, name: str, cotangent: float) -> None:
    of_all = name.endswith(" of all")
    function = OF_ALL[name.removesuffix(" of all")] if of_all else REDUCTIONS[name]
    for row in ROWS:
        (ours, slope), (theirs, reference) = (
            outcome(module, function, row, cotangent) for module in (ng, torch)
        )
        factors = [each for each in row if np.isfinite(each) and each]
        if name.startswith("prod") and _leaves_the_range(np.array(factors)):
            continue  # on the way: in which order they are multiplied decides
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, equal_nan=True, err_msg=str(row))
        differs = DIFFER.get(name)
        if differs is not None and differs[0](np.array(row)):
            continue
        if name in DIFFER_ABOVE and not math.isfinite(cotangent):
            continue
        assert (slope is None) == (reference is None)
        if slope is not None:
            np.testing.assert_allclose(
                slope, reference, rtol=1e-12, atol=1e-15, equal_nan=True, err_msg=str(row)
            )


# What has looked at numbers, or chosen other formulas, in a trace.
TRACED = ("prod", "cumprod", "logcumsumexp", "nanmean", "amax", "norm 2", "norm inf", "norm 0.5")


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("name", [*TRACED, "max of all", "min of all", "prod of all"])
def test_gradients_under_jit_are_those_of_eager_mode(name: str) -> None:
    of_all = name.endswith(" of all")
    function = OF_ALL[name.removesuffix(" of all")] if of_all else REDUCTIONS[name]

    def both(x: Any, g: Any) -> Any:
        y = function(ng, x)
        return y, ng.autograd.grad(y, x, g.expand(y.shape))[0]

    compiled = ng.jit(both)
    for row in ROWS:
        for cotangent in COTANGENTS:
            arguments = ng.tensor(row, dtype=ng.float64), ng.tensor(cotangent, dtype=ng.float64)
            arguments[0].requires_grad_()
            for ours, eager in zip(compiled(*arguments), both(*arguments), strict=True):
                np.testing.assert_allclose(
                    ours.numpy(force=True),
                    eager.numpy(force=True),
                    rtol=1e-13,
                    equal_nan=True,
                    err_msg=str((row, cotangent)),
                )


PARTS = [0.0, -0.0, 1.5, -2.0, INF, -INF, NAN]


@given(
    parts=st.lists(
        st.tuples(st.sampled_from(PARTS), st.sampled_from(PARTS)), min_size=2, max_size=2
    )
)
@settings(max_examples=examples(60))
def test_a_complex_mean_is_the_sum_over_a_complex_number(parts: list[Any]) -> None:
    """As in PyTorch, an infinite part makes the other one nan, eagerly and compiled."""
    x = ng.tensor([complex(*each) for each in parts], dtype=ng.complex128)
    expected = (x.sum() / ng.tensor(complex(2, 0), dtype=ng.complex128)).numpy()
    for found in (x.mean(), x.mean(0), x.reshape(1, 2).mean(1)[0], _COMPLEX_MEAN(x)):
        np.testing.assert_array_equal(found.numpy(), expected)


_COMPLEX_MEAN = ng.jit(lambda x: x.mean())


# --- against exact arithmetic ---------------------------------------------------------------------


@given(
    factors=st.lists(st.integers(-6, 6), min_size=1, max_size=100),
    zeros=st.lists(st.integers(0, 99), max_size=2),
    scale=st.sampled_from([1.0, 2.0**-3, 2.0**-60]),
)
def test_gradients_of_products_are_exact_quotients(
    factors: list[int], zeros: list[int], scale: float
) -> None:
    for place in zeros:
        factors[place % len(factors)] = 0
    numbers = [Fraction(factor or (0 if zeros else 1)) * Fraction(scale) for factor in factors]
    x = ng.tensor([float(number) for number in numbers], dtype=ng.float64, requires_grad=True)
    present = math.prod(number for number in numbers if number)
    missing = [k for k, number in enumerate(numbers) if not number]
    expected = []
    for k, number in enumerate(numbers):
        if not missing:
            expected.append(float(present / number))
        else:
            expected.append(float(present) if missing == [k] else 0.0)
    for y in (x.prod(), x.prod(0), x.reshape(1, -1).prod(1)):
        (slope,) = ng.autograd.grad(y, x, ng.ones_like(y))
        np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-13, atol=1e-290)


@given(numbers=st.lists(st.floats(-30, 30), min_size=1, max_size=20))
def test_gradients_of_logcumsumexp_are_sums_of_weights(numbers: list[float]) -> None:
    x = ng.tensor(numbers, dtype=ng.float64, requires_grad=True)
    (slope,) = ng.autograd.grad(x.logcumsumexp(0).sum(), x)
    with mpmath.mp.workdps(50):
        powers = [mpmath.exp(number) for number in numbers]
        totals = [mpmath.fsum(powers[: k + 1]) for k in range(len(powers))]
        expected = [
            float(power * mpmath.fsum(1 / total for total in totals[k:]))
            for k, power in enumerate(powers)
        ]
    np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("row", ROWS)
def test_an_infinite_element_spoils_the_gradient_of_itself_alone(row: list[float]) -> None:
    """Under logcumsumexp; as in PyTorch, and unlike a weight computed from distances."""
    if any(map(math.isnan, row)):
        return
    x = ng.tensor(row, dtype=ng.float64, requires_grad=True)
    (slope,) = ng.autograd.grad(x.logcumsumexp(0).sum(), x)
    for number, found in zip(row, slope.tolist(), strict=True):
        assert math.isfinite(found) or math.isinf(number)


@pytest.mark.parametrize("p", [INF, -INF])
@pytest.mark.parametrize("row", [[NAN, 1.0], [1.0, NAN, 3.0], [NAN, INF], [NAN]])
def test_an_infinite_norm_with_nan_is_nan(p: float, row: list[float]) -> None:
    x = ng.tensor(row, requires_grad=True)
    for y in (x.norm(p), x.norm(p, 0), ng.jit(lambda x: x.norm(p))(x.detach())):
        assert math.isnan(y.item())
    x.norm(p).backward()
    share = 1 / sum(map(math.isnan, row))
    for number, slope in zip(row, x.grad.tolist(), strict=True):
        assert slope == 0 or (math.isnan(number) and (math.isnan(slope) or slope == share))


@pytest.mark.parametrize("p", [INF, -INF])
@pytest.mark.parametrize("count", [7, 4_097, 300_000])
def test_an_infinite_norm_finds_what_stands_anywhere(p: float, count: int) -> None:
    """In any of the parts that many numbers are divided into."""
    for at in (0, count // 2, count - 1):
        numbers = np.linspace(2, 3, count)
        numbers[at] = -5.0 if p > 0 else 0.25
        x = ng.from_numpy(numbers).requires_grad_()
        for y in (x.norm(p), x.reshape(1, -1).norm(p, 1)[0], ng.jit(lambda x: x.norm(p))(x)):
            assert y.item() == abs(numbers[at])
        x.norm(p).backward()
        assert x.grad.nonzero().tolist() == [[at]] and x.grad[at].abs() == 1
        numbers[at] = NAN
        assert x.detach().norm(p).isnan()


def shares_of_an_infinite_norm(row: list[complex], p: float, g: float) -> list[complex]:
    """Return the gradient by its words: g, in equal parts, to those of that magnitude."""
    sizes = [abs(number) for number in row]
    found = [size for size in sizes if math.isnan(size)] or [(max if p > 0 else min)(sizes)]
    chosen = [size == found[0] or math.isnan(size) for size in sizes]
    return [
        ng.sgn(ng.tensor(number)).item() * (g / sum(chosen)) if each else 0
        for number, each in zip(row, chosen, strict=True)
    ]


@given(
    rows=st.lists(
        st.lists(st.sampled_from([0.0, 1, -1, 2, -2, 2j, -1j, NAN]), min_size=3, max_size=3),
        min_size=1,
        max_size=4,
    ),
    p=st.sampled_from([INF, -INF]),
    g=st.sampled_from([1.0, -3.0]),
    keepdim=st.booleans(),
)
@settings(max_examples=examples(200))
def test_an_infinite_norm_shares_its_gradient_between_equals(
    rows: list[list[complex]], p: float, g: float, keepdim: bool
) -> None:
    """Whatever their signs are; beside nan, that alone has one, and only if it is complex."""
    is_complex = any(isinstance(number, complex) for row in rows for number in row)
    x = ng.tensor(rows, dtype=ng.complex128 if is_complex else ng.float64, requires_grad=True)
    flat = x.flatten().tolist()
    whole = [shares_of_an_infinite_norm(flat[k : k + 3], p, g) for k in range(0, len(flat), 3)]
    for norm in (ng.norm, ng.linalg.vector_norm):
        y = norm(x, p, 1, keepdim)
        (slope,) = ng.autograd.grad(y, x, ng.full_like(y, g))
        np.testing.assert_array_equal(slope.numpy(), np.array(whole))
        (slope,) = ng.autograd.grad(norm(x, p), x, ng.tensor(g, dtype=ng.float64))
        expected = np.array(shares_of_an_infinite_norm(flat, p, g)).reshape(x.shape)
        np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-15)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 2.5, 3, INF])
def test_the_gradient_of_a_norm_at_0_is_0_and_what_comes_from_above_nan_stays(p: float) -> None:
    x = ng.zeros(3, dtype=ng.float64, requires_grad=True)
    (slope,) = ng.autograd.grad(x.norm(p), x)
    expected = [0.0, 0.0, 0.0]
    assert slope.tolist() == expected
    x = ng.zeros(3, dtype=ng.float64, requires_grad=True)
    (x / x.norm()).sum().backward()
    assert x.grad.isnan().all()


def test_the_mean_of_nothing_but_nan_has_no_gradient() -> None:
    x = ng.tensor([NAN, NAN], requires_grad=True)
    y = x.nanmean()
    y.backward()
    assert y.isnan() and x.grad.isnan().all()
    x = ng.tensor([NAN, 2.0, 4.0], requires_grad=True)
    x.nanmean().backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5]
