"""Calls of elementwise functions: what is remembered of them, numbers that do not fit, layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng


def test_a_remembered_call_leaves_modes_to_the_next_one() -> None:
    row, x = ng.ones(3), ng.ones(2, 3, requires_grad=True)
    for _ in range(2):
        assert (x + row).requires_grad
        with ng.no_grad():
            assert not (x + row).requires_grad
        with ng.inference_mode():
            assert (x + row).is_inference()
        assert not (x.detach() + row).requires_grad
        assert not (x + row).is_inference()
        with ng.autograd.forward_ad.dual_level():
            dual = ng.autograd.forward_ad.make_dual(row, ng.ones(3))
            tangent = ng.autograd.forward_ad.unpack_dual(x.detach() + dual).tangent
            assert tangent.tolist() == [[1.0] * 3] * 2


def test_a_remembered_call_follows_the_default_dtype() -> None:
    x = ng.tensor([[1], [2]])
    for dtype in (ng.float32, ng.float64, ng.float32):
        ng.set_default_dtype(dtype)
        assert (x * 0.5).dtype == dtype
        assert (x / ng.tensor([1, 2])).dtype == dtype


def test_calls_are_told_apart_by_strides_and_kinds_of_numbers() -> None:
    x = ng.arange(6.0).reshape(2, 3)
    square = ng.arange(4.0).reshape(2, 2)
    for _ in range(2):
        assert (square + square).tolist() == [[0.0, 2.0], [4.0, 6.0]]
        assert (square.t() + square).tolist() == [[0.0, 3.0], [3.0, 6.0]]
        assert (square.t() + square.t()).stride() == (1, 2)
        assert (x[:, 1].expand(3, 2) + x.t()).tolist() == [[1.0, 7.0], [2.0, 8.0], [3.0, 9.0]]
        assert (ng.tensor([2]) * True).dtype == ng.int64
        assert (ng.tensor([2]) * 1.5).tolist() == [3.0]
        assert (ng.tensor([2]) * 1j).dtype == ng.complex64


def test_few_elements_are_written_in_place_and_counted() -> None:
    x = ng.zeros(2, 3)
    transposed = x.t()
    transposed.add_(ng.ones(3, 1)).mul_(2)
    assert x.tolist() == [[2.0] * 3] * 2
    assert x._version == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: ng.tensor([200], dtype=ng.uint8).clamp(max=256),
        lambda: ng.tensor([5], dtype=ng.int32).clamp(max=2**31),
        lambda: ng.tensor([7], dtype=ng.int8).clamp(-300, 300),
        lambda: ng.tensor([7], dtype=ng.int8).clamp_(-300, 300),
        lambda: ng.ones(2).clamp(1e300),
        lambda: ng.ones(2).clamp_max(1e300),
    ],
)
def test_bounds_that_the_dtype_cannot_hold_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"value cannot be converted to type \w+ without overf"):
        call()


def test_bounds_of_any_size_limit_numbers_that_can_hold_them() -> None:
    inf = float("inf")
    assert ng.ones(1).clamp(-inf, inf).tolist() == [1.0]
    assert ng.ones(1, dtype=ng.float64).clamp(-1e300, 1e300).tolist() == [1.0]
    assert ng.tensor([3, 5]).clamp(3.5, 4.5).tolist() == [3.5, 4.5]


def test_the_least_integer_by_minus_one_wraps_around() -> None:
    for dtype in (ng.int8, ng.int16, ng.int32, ng.int64):
        least = ng.iinfo(dtype).min
        x = ng.tensor([least, 7, -7], dtype=dtype)
        assert (x // -1).tolist() == [least, -7, 7]
        assert ng.div(x, -1, rounding_mode="trunc").tolist() == [least, -7, 7]
    assert (ng.tensor([7, 250], dtype=ng.uint8) // 3).tolist() == [2, 83]


def test_nothing_is_subtracted_from_truth_values() -> None:
    mask = ng.tensor([True, False])
    for call in (lambda: mask - 2.5, lambda: mask - 1, lambda: ng.sub(mask, 2.5)):
        with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
            call()


def test_comparisons_of_what_requires_grad_take_an_out() -> None:
    out = ng.empty(2, dtype=ng.bool)
    ng.le(ng.ones(2, requires_grad=True), 1.0, out=out)
    assert out.tolist() == [True, True]


def test_parts_of_complex_numbers_are_assigned() -> None:
    x = ng.tensor([1 + 1j])
    x.real = ng.tensor([5.0])
    x.imag += 2
    assert x.tolist() == [5 + 3j]


@pytest.mark.parametrize(
    ("call", "stride"),
    [
        (lambda: ng.ones(1, 3, dtype=ng.int64).expand(2, 3) * 2.5, (3, 1)),
        (lambda: ng.tensor([1, 0]).bool().expand(3, 2).reciprocal(), (2, 1)),
        (lambda: ng.ones(2, 3, dtype=ng.int64).t() * 2.5, (1, 3)),
    ],
)
def test_results_of_what_is_cast_have_pytorchs_strides(
    call: Callable[[], Any], stride: tuple[int, ...]
) -> None:
    assert call().stride() == stride
