"""Calls with Python's and NumPy's numbers after calls with others: none meets another's program.

A key of a remembered call tells a number's type, or the number; what neither tells is drawn here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.ops.core.catalogue import CATALOGUE
from tests.cases import examples

INTS = [0, 1, 2, 3, -1, -2, 7, 127, 128, 255, 256, -129, 2**31, -(2**31) - 1, 2**62, 2**63 - 1]
HUGE = [2**63, 2**63 + 5, 2**64 - 1, 2**64, 10**30, -(2**63), -(2**63) - 1, -(10**30)]
FLOATS = [0.0, -0.0, 0.5, -1.5, 3.0, 1e-30, 65504.0, 1e5, 3e38, 1e39, 1e300, math.inf, -math.inf]
OTHERS = [True, False, math.nan, 1j, 2 - 0.5j, complex(1, 0)]
NUMPYS = [
    np.float64(0.5),
    np.float32(0.1),
    np.float16(2),
    np.int64(3),
    np.int8(-3),
    np.uint8(200),
]
NUMBERS = [*INTS, *HUGE, *FLOATS, *OTHERS, *NUMPYS]

CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "x + k": lambda m, x, k: x + k,
    "k - x": lambda m, x, k: k - x,
    "x * k": lambda m, x, k: x * k,
    "x / k": lambda m, x, k: x / k,
    "k / x": lambda m, x, k: k / (x + 1),
    "k // x": lambda m, x, k: k // (x + 1),
    "k % x": lambda m, x, k: k % (x + 1),
    "k >> x": lambda m, x, k: k >> x,
    "k << x": lambda m, x, k: k << x,
    "x == k": lambda m, x, k: x == k,
    "x != k": lambda m, x, k: x != k,
    "x < k": lambda m, x, k: x < k,
    "k >= x": lambda m, x, k: k >= x,
    "x += k": lambda m, x, k: x.clone().add_(k),
    "x *= k": lambda m, x, k: x.clone().mul_(k),
    "sub": lambda m, x, k: m.sub(x, k),
    "add, scaled": lambda m, x, k: x.add(x, alpha=k),
    "where": lambda m, x, k: m.where(x > 0, x, k),
    "clamp": lambda m, x, k: x.clamp(min=k),
    "fill_": lambda m, x, k: x.clone().fill_(k),
    "masked_fill": lambda m, x, k: x.masked_fill(x > 0, k),
    "full_like": lambda m, x, k: m.full_like(x, k),
    "index_fill": lambda m, x, k: x.index_fill(0, m.tensor([0]), k),
    "scatter": lambda m, x, k: x.scatter(0, m.tensor([1]), k),
    "a write": lambda m, x, k: written(x.clone(), k),
    "maximum of a sum": lambda m, x, k: x.abs().sum() + k,
    "fmod": lambda m, x, k: x.fmod(k),
    "new_full": lambda m, x, k: x.new_full((2,), k),
}
LONG = np.dtype(np.int64)


def written(x: Any, k: Any) -> Any:
    x[0] = k
    return x


def outcome(m: Any, name: str, dtype: str, requires: bool, numbers: list[Any]) -> list[Any]:
    found: list[Any] = []
    for k in numbers:
        x = m.tensor([0, 5, 3], dtype=getattr(m, dtype))
        if requires and dtype in ("float32", "float64", "complex64"):
            x.requires_grad_()
        try:
            with np.errstate(all="ignore"):
                y = CALLS[name](m, x, k)
        except (RuntimeError, TypeError, OverflowError, ValueError) as error:
            found.append(type(error).__name__)
            continue
        found.append([str(y.dtype).rpartition(".")[2], repr(y.detach().tolist())])
    return found


@settings(max_examples=examples(600), deadline=None)
@given(
    st.sampled_from(sorted(CALLS)),
    st.sampled_from(["int64", "int32", "uint8", "bool", "float32", "float64", "complex64"]),
    st.booleans(),
    st.lists(st.sampled_from(range(len(NUMBERS))), min_size=1, max_size=8),
    st.sampled_from([None, 2, 3.0, True]),
)
def test_numbers_give_what_pytorchs_give(
    torch: Any, name: str, dtype: str, requires: bool, drawn: list[int], usual: Any
) -> None:
    numbers = [] if usual is None else [usual] * 4
    numbers += [NUMBERS[at] for at in drawn]
    if "/" in name:  # complex quotients are rounded another way
        if dtype == "complex64":
            return
        numbers = [k for k in numbers if not isinstance(k, (complex, np.complexfloating))]
    if dtype == "complex64":  # where PyTorch multiplies with 1 before it adds, and inf * 0 is nan
        numbers = [k for k in numbers if abs(complex(k)) < 3e38]
    # A write takes NumPy's numbers here, and these divide, where PyTorch takes the reciprocal.
    if name in ("a write", "k / x"):
        numbers = [k for k in numbers if not isinstance(k, np.generic)]
    if name == "clamp":
        numbers = [k for k in numbers if not isinstance(k, complex)]
    expected = outcome(torch, name, dtype, requires, numbers)
    got = outcome(numgrad, name, dtype, requires, numbers)
    assert list(zip(numbers, got, strict=True)) == list(zip(numbers, expected, strict=True))


def test_powers_by_bools_and_numbers_are_pytorchs(torch: Any) -> None:
    for dtype in ("bool", "uint8", "int64", "float32", "complex64"):
        for exponent in (True, False, 0, 1, 2, 3, 0.5, 2.0):
            found = []
            for m in (numgrad, torch):
                y = m.tensor([0, 1, 3], dtype=getattr(m, dtype)) ** exponent
                found.append([str(y.dtype).rpartition(".")[2], y[:2].tolist()])
            assert found[0] == found[1], (dtype, exponent)


def test_a_wide_int_may_be_the_first_number_that_a_kernel_meets() -> None:
    """Numba would compile one for unsigned numbers, which others than the first don't get."""
    for name in ("add", "mul", "lt", "fmod"):
        known = CATALOGUE[name].kernel
        for array in (np.array([True, False]), np.array([[3, -2]]), np.array(5, np.uint8)):
            for wide in (2**63, 2**64 - 1, -(2**63) - 1):
                kernel = Elementwise(known.name, known.inputs, known.formula)
                with pytest.raises(OverflowError):
                    kernel.function_for(array.shape, [array, wide], [LONG, LONG], [LONG])


def test_ints_beyond_64_bits_meet_dtypes_that_hold_none(torch: Any) -> None:
    for name in sorted(CALLS):
        for dtype in ("int64", "uint8", "bool", "float32"):
            expected = outcome(torch, name, dtype, False, HUGE)
            assert outcome(numgrad, name, dtype, False, HUGE) == expected, (name, dtype)


# Ints that are dims, lengths, counts and positions are int64 everywhere.
WHOLE = """
x.roll(n) | x.roll((n,)) | x.sum(n) | x.sum((n,)) | x.cumsum(n) | x.transpose(0, n) | x.permute(n)
x.unsqueeze(n) | x.flip(n) | x.narrow(0, n, 1) | x.select(0, n) | x.chunk(n)
x.split(n) | x.diff(n)
x.repeat_interleave(n) | x.unfold(0, n, 1) | x.topk(n) | x.view(n) | x.reshape(n, 1)
x[n] | x[0, n]
x.clone().__setitem__(n, 1.0) | x.size(n) | x.stride(n) | x.expand(n, 3)
x.triu(n) | x.movedim(n, 0)
torch.zeros(n) | torch.ones((n, 2)) | torch.full((n,), 1.0) | torch.eye(n) | torch.linspace(0, 1, n)
torch.randperm(n) | torch.cat([x, x], n) | torch.stack([x, x], n) | torch.polygamma(n, x)
torch.randint(0, n, (2,)) | x.new_zeros(n) | torch.empty(2, n) | torch.rand(n) | torch.arange(n)
torch.arange(n, n + 2) | torch.arange(0, 5, n)
"""
# Of so many elements there is no memory: those that say it in other words are left out.
LENGTHS = """
torch.zeros(n) | torch.ones(n) | torch.full((n,), 1.0) | x.new_zeros(n)
torch.rand(n) | torch.eye(n)
torch.linspace(0, 1, n) | torch.randperm(n) | torch.arange(n)
torch.empty(2, n) | torch.arange(-n, 0)
"""


def lines(table: str) -> list[str]:
    return [line for row in table.strip().splitlines() for line in row.split(" | ")]


def error_of(m: Any, line: str, n: int) -> tuple[str, str]:
    """Return the class and the first words of the error of a line; none is an error, too."""
    try:
        eval(line, {"torch": m, "x": m.tensor([[1.0, 2.0, 3.0]] * 3), "n": n})
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0].rstrip('"')
    return "", ""


def test_ints_beyond_int64_are_no_dims_lengths_or_positions(torch: Any) -> None:
    for line in lines(WHOLE):
        for n in (2**63, 2**64 - 1, 2**64, 10**30, -(2**63) - 1, -(2**70)):
            assert error_of(numgrad, line, n) == error_of(torch, line, n), (line, n)


def test_more_elements_than_there_is_memory_for_are_refused(torch: Any) -> None:
    for line in lines(LENGTHS):
        for n in (2**61, 2**62, 2**62 + 1):
            if "eye" not in line or n == 2**61:
                expected = error_of(torch, line, n)
                assert error_of(numgrad, line, n)[0] == expected[0] == "RuntimeError", (line, n)


def test_ranges_at_the_ends_of_int64_have_their_numbers() -> None:
    """PyTorch's count of them overflows, so that some are empty there."""
    top, bottom = 2**63 - 1, -(2**63)
    for start, end, step in [
        (top - 2, top, 1), (bottom, bottom + 3, 1), (0, top, 2**62), (top, 0, -(2**62)),
        (bottom, top, 2**62), (bottom, top, top), (top, bottom, bottom), (0, 5, top),
        (0, -5, bottom),
    ]:  # fmt: skip
        assert numgrad.arange(start, end, step).tolist() == list(range(start, end, step))
    assert numgrad.arange(2**63, 2**63 + 4096, 2048, dtype=numgrad.float64).tolist() == [
        2.0**63,
        2.0**63 + 2048,
    ]


def test_a_number_that_is_a_float_may_be_any_int(torch: Any) -> None:
    for n in (2**63, 2**64, 2**70, -(2**80), 10**400):
        for line in ("torch.nan_to_num(x, n)", "torch.isclose(x, x, n)"):
            assert error_of(numgrad, line, n) == error_of(torch, line, n), (line, n)
