"""gcd, lcm, ldexp, nextafter and frexp beside PyTorch: dtypes, special values, nodes, words."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "float32", "float64")
NUMBERS = [0.0, -0.0, 1.0, -1.5, 3.0, math.inf, -math.inf, math.nan, 1e-45, 2.0**-126, 65504.0]
NUMBERS += [2.0**-24, 2.0**-14, -(2.0**-14), 1e-320, 3e38, -1e308, 5e-324]


def shown(found: Any) -> Any:
    if isinstance(found, tuple):
        return [shown(each) for each in found]
    node = found.grad_fn.name() if found.grad_fn is not None else None
    return str(found.dtype), found.stride(), node, repr(found.detach().tolist())


def outcome(m: Any, line: str, **names: Any) -> Any:
    """Return what a call comes to, or its error."""
    try:
        return shown(eval(line, {"torch": m, **names}))
    except (RuntimeError, TypeError, IndexError, NotImplementedError) as error:
        return type(error).__name__, str(error).splitlines()[0]


@pytest.mark.usefixtures("traced")
def test_divisors_and_multiples_are_pytorchs(torch: Any) -> None:
    for dtype in INTEGERS:
        limits = np.iinfo(dtype)
        # Of the least number PyTorch's are negative, or it ends the process.
        some = [0, 1, 2, 6, 15, 35, 64, 100, limits.max, limits.max - 1]
        some += [-1, -6, -64, -100, limits.min + 1] if limits.min else []
        a, b = np.array(list(itertools.product(some, repeat=2)), dtype).T
        for name, traced in itertools.product(("gcd", "lcm"), (False, True)):
            function = ng.jit(getattr(ng, name)) if traced else getattr(ng, name)
            ours = function(ng.from_numpy(a), ng.from_numpy(b))
            theirs = getattr(torch, name)(torch.from_numpy(a), torch.from_numpy(b))
            assert shown(ours) == shown(theirs), (name, dtype)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63) + 1, 2**63 - 1))
def test_divisors_of_any_size_are_pythons(a: int, b: int) -> None:
    if b:
        assert ng.gcd(ng.tensor(a), ng.tensor(b)).item() == math.gcd(a, b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_two_are_rounded_once(torch: Any, dtype: str) -> None:
    exponents = [0, 1, -1, 5, -20, 24, -24, 127, -126, 149, -149, 200, -200, 1023, -1074, 2098]
    with np.errstate(all="ignore"):
        x = np.array(NUMBERS).astype(dtype)
        odd = (1 + np.arange(5) * 0.3).astype(dtype)
    pairs = list(itertools.product([*x, *odd], exponents))
    base = np.array([pair[0] for pair in pairs], dtype)
    for kind in ("int64", "int32"):
        powers = np.array([pair[1] for pair in pairs], kind)
        for function in [ng.ldexp] + [ng.jit(ng.ldexp)] * (dtype != "float16"):
            ours = function(ng.from_numpy(base), ng.from_numpy(powers)).numpy()
            theirs = torch.ldexp(torch.from_numpy(base), torch.from_numpy(powers)).numpy()
            np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))


@pytest.mark.parametrize("dtype", FLOATS)
def test_mantissas_exponents_and_neighbours_are_pytorchs(torch: Any, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = np.array(NUMBERS).astype(dtype)
    x = np.unique(np.concatenate([x, np.nextafter(x, x.dtype.type(0)), -x]))
    a, b = np.array(list(itertools.product(x, repeat=2)), dtype).T
    for function in [ng.nextafter] + [ng.jit(ng.nextafter)] * (dtype != "float16"):
        ours = function(ng.from_numpy(a), ng.from_numpy(b)).numpy()
        theirs = torch.nextafter(torch.from_numpy(a), torch.from_numpy(b)).numpy()
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))
    for m in (ng, torch):
        mantissa, exponent = m.frexp(m.from_numpy(x))
        expected, powers = (each.numpy() for each in torch.frexp(torch.from_numpy(x)))
        np.testing.assert_array_equal(mantissa.numpy(), expected)
        np.testing.assert_array_equal(exponent.numpy(), powers)


LINES = """
torch.gcd(i, 18)
torch.gcd(12, i)
torch.gcd(b, b)
torch.gcd(x, x)
torch.gcd(b, i)
torch.gcd(i, i.to(torch.int8))
torch.gcd(i, i, out=torch.zeros(2))
torch.gcd(i, i, out=torch.zeros(2, dtype=torch.int8))
torch.gcd(i, i, out=torch.zeros(2, dtype=torch.bool))
i.clone().gcd_(i + 3)
torch.lcm_(i.clone(), i + 3)
torch.lcm(i, i[:, None])
torch.lcm(x, i)
torch.ldexp(x, 3)
torch.ldexp(2.0, i)
torch.ldexp(i, i)
torch.ldexp(i, -i)
torch.ldexp(x, b)
torch.ldexp(b, i)
torch.ldexp(x, i.to(torch.int8))
torch.ldexp(x.double(), i)
torch.ldexp(x, i, out=torch.zeros(2))
torch.ldexp(x, i, out=torch.zeros(2, dtype=torch.int64))
torch.ldexp(w, i)
torch.ldexp(x, w)
torch.ldexp(i, w)
torch.ldexp(x * (1 + 0j), i)
x.clone().ldexp_(i)
torch.ldexp_(x.clone(), i)
torch.nextafter(x, 2.0)
torch.nextafter(i, i)
torch.nextafter(b, b)
torch.nextafter(x, x.double() + 1)
torch.nextafter(x, i)
torch.nextafter(w, x)
torch.nextafter(x, x + 1, out=torch.zeros(2, dtype=torch.int64))
x.clone().nextafter_(x + 1)
x.clone().nextafter_(x.double() + 1)
torch.frexp(i)
torch.frexp(b)
torch.frexp(1.0)
torch.frexp(w)
torch.frexp(x.half())
torch.frexp(x, out=(torch.zeros(2), torch.zeros(2, dtype=torch.int64)))
torch.frexp(x, out=(torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.int32)))
torch.frexp(x, out=(torch.zeros(2), torch.zeros(2, dtype=torch.int32)))
torch.frexp(x, out=torch.zeros(2))
torch.frexp(t.t())
torch.ldexp(t.t(), i[:, None])
torch.nextafter(t.t(), t.t() + 1)
""".strip().splitlines()


def test_results_nodes_and_words_are_pytorchs(torch: Any) -> None:
    for line in LINES:
        found = []
        for m in (ng, torch):
            names = {
                "x": m.tensor([1.0, 2.5]),
                "i": m.tensor([12, -5]),
                "b": m.tensor([True, False]),
                "w": m.tensor([0.5, -2.0], requires_grad=True),
                "t": m.arange(6.0).reshape(3, 2),
            }
            found.append(outcome(m, line, **names))
        assert found[0] == found[1], line


def test_gradients_are_pytorchs(torch: Any) -> None:
    """But for negative whole exponents, and great ones: PyTorch's powers are integers there."""
    for line in (
        "torch.ldexp(x, i)",
        "torch.ldexp(x, o)",
        "torch.ldexp(i, o)",
        "torch.nextafter(x, o)",
        "torch.frexp(x)[0]",
    ):
        found = []
        for m in (ng, torch):
            x = m.tensor([1.0, -2.5, 3.0, math.inf, 0.0, 1e-45], requires_grad=True)
            o = m.tensor([0.5, 2.0, 3.0, 1.0, math.nan, 1.0], requires_grad=True)
            i = m.tensor([1, 0, 2, 3, 7, 14])
            y = eval(line, {"torch": m, "x": x, "o": o, "i": i})
            weights = m.arange(1.0, 7.0)
            gradients = m.autograd.grad((y * weights).sum(), (x, o), allow_unused=True)
            found.append([None if g is None else g.numpy() for g in gradients])
        for ours, theirs in zip(*found, strict=True):
            assert (ours is None) == (theirs is None), line
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg=line)


def test_derivatives_of_powers_go_on() -> None:
    x = ng.tensor([1.5, -0.7], dtype=ng.float64, requires_grad=True)
    o = ng.tensor([0.5, 2.0], dtype=ng.float64, requires_grad=True)
    assert ng.autograd.gradcheck(lambda x: ng.ldexp(x, ng.tensor([-3, 70])), x)
    assert ng.autograd.gradgradcheck(ng.ldexp, (x, o))
    assert ng.autograd.gradgradcheck(lambda x: ng.ldexp(x, ng.tensor([3, -2])), x)
    assert ng.autograd.gradgradcheck(lambda x: ng.frexp(x).mantissa ** 2, x)
