"""Memory that tensors share: spans, arrays within bytes, and what is left of an array's gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import numgrad as ng
from numgrad.graph.recorder import address_of, distance
from numgrad.graph.storage import Span, array_within, compact, offset_of, span_of, tensor_within
from numgrad.graph.tensor import wrap
from numgrad.kernels.move.strides import repeats_elements

WHOLE = np.arange(60.0).reshape(3, 4, 5)
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "whole": WHOLE,
    "transposed": WHOLE.T,
    "rows between": WHOLE[::2, 1:3],
    "columns between": WHOLE[:, :, 1::3].transpose(1, 2, 0),
    "backwards": WHOLE[::-1, :, ::-2],
    "one number": np.broadcast_to(np.float64(3.0), (2, 3)),
    "a row again": np.broadcast_to(WHOLE[0, 0], (3, 5)),
    "a column again": np.broadcast_to(WHOLE[:, :1, 0], (3, 4)),
    "one element": WHOLE[1:2, 2:3, 3:4],
    "none": WHOLE[:, :0],
    "no dims": WHOLE[1, 2, 3, ...],
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.complex128])
def test_compact_leaves_out_what_nobody_sees(name: str, dtype: Any) -> None:
    array = ARRAYS[name]
    if dtype is not np.float64:
        shape, steps = array.shape, tuple(s // 8 * np.dtype(dtype).itemsize for s in array.strides)
        memory = np.arange(200).astype(dtype)
        array = as_strided(memory[70 if name == "backwards" else 0 :], shape, steps)
    flat, strides = compact(array)
    assert flat.ndim == 1 and flat.flags.c_contiguous and not np.may_share_memory(flat, array)
    np.testing.assert_array_equal(as_strided(flat, array.shape, strides), array)
    seen = [1 if step == 0 else n for n, step in zip(array.shape, array.strides, strict=True)]
    assert flat.size == np.prod(seen, dtype=int)
    order = sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))
    kept = [strides[dim] for dim in order if strides[dim] and array.shape[dim] > 1]
    assert kept == sorted(kept, reverse=True)
    assert array.size == 0 or repeats_elements(as_strided(flat, array.shape, strides)) == (
        repeats_elements(array)
    )


@pytest.mark.parametrize("name", ARRAYS)
def test_a_span_is_from_the_first_to_the_last_byte(name: str) -> None:
    array = ARRAYS[name]
    span = span_of(wrap(array))
    if array.size:
        low = min(each.__array_interface__["data"][0] for each in _elements(array))
        high = max(each.__array_interface__["data"][0] for each in _elements(array)) + 8
        assert (span.start, span.stop) == (low, high)
        copy = span.copy()
        assert copy.dtype == np.uint8 and copy.size == high - low
        start = address_of(array) - low
        again = array_within(copy, np.float64, array.shape, array.strides, start)
        np.testing.assert_array_equal(again, array)
        tensor = tensor_within(again, copy)
        assert tensor.storage_offset() == offset_of(tensor) == start // 8
        assert tensor.untyped_storage().nbytes() == copy.size
    else:
        assert span.start == span.stop


def _elements(array: Any) -> list[Any]:
    return [array[(*at, ...)] for at in np.ndindex(*array.shape)]


def test_spans_contain_what_lies_in_them() -> None:
    spans = {(a, b): Span(a, b, WHOLE) for a in range(4) for b in range(a, 4)}
    for (a, b), outer in spans.items():
        for (c, d), inner in spans.items():
            assert outer.contains(inner) == (a <= c and d <= b)


def test_arrays_lie_within_their_memory_or_are_refused() -> None:
    memory = np.arange(5.0).view(np.uint8)
    for offset, shape, strides in [(-8, (2,), (8,)), (16, (4,), (8,)), (0, (2, 3), (24, 16))]:
        with pytest.raises((ValueError, TypeError)):
            array_within(memory, np.float64, shape, strides, offset)
    for offset in (-8, 0, 13, 39, 40, 1000):  # of nothing any place will do
        assert array_within(memory, np.float64, (2, 0), (8, 8), offset).shape == (2, 0)
    assert array_within(memory[:-3], np.float64, (0,), (8,), 1000).shape == (0,)
    odd = tensor_within(array_within(memory[:-3], np.float32, (2,), (8,), 4), memory)
    assert odd.tolist() == np.arange(5.0).view(np.float32)[1:5:2].tolist()
    assert odd.storage_offset() == 0  # of memory that is not the array's own


def test_distances_are_bytes_of_either_sign() -> None:
    memory = np.arange(100.0)
    for first, second in [(0, 0), (0, 7), (7, 0), (3, 90), (90, 3)]:
        found = distance(memory[first:], memory[second:])
        assert found == 8 * (second - first)
        assert found == address_of(memory[second:]) - address_of(memory[first:])
    x = ng.arange(10.0, requires_grad=True) * 1
    tail, head = x[5:], x[:5]
    for view, other in [(tail, head), (head, tail)]:  # the second is found from the first
        view.mul_(2)
        assert other.grad_fn.name() == "AsStridedBackward0"


def test_offsets_count_from_the_lowest_element_of_the_memory() -> None:
    """Of arrays that go back, too, of any part of them, and of complex numbers' parts."""
    memory = np.arange(12.0)
    for given in (memory, memory[::-1], memory[2:9][::-1], memory.reshape(3, 4)[::-1, ::2]):
        x = ng.from_numpy(given)
        lowest = x.untyped_storage().data_ptr()
        for view in (x, x[1:], x[2], x[-1:], x.detach()):
            assert view.storage_offset() * 8 == view.data_ptr() - lowest
            found = view.as_strided((), (), view.storage_offset())
            assert found.item() == view.reshape(-1)[0].item()
        assert x.as_strided((2,), (1,), 0).tolist() == [given.min(), given.min() + 1]
    z = ng.from_numpy((memory + 1j)[::-1])
    assert [z.storage_offset(), z[3:].storage_offset(), z[3:].real.storage_offset()] == [11, 8, 16]


def test_dims_of_one_element_have_steps_of_their_own_where_nothing_lies_between() -> None:
    one = as_strided(np.arange(6.0), (2, 1, 3), (24, 0, 8))
    flat, strides = compact(one)
    assert flat.tolist() == one.reshape(-1).tolist() and strides == (24, 8, 8)
    repeated = as_strided(np.arange(6.0), (2, 4, 3), (24, 0, 8))
    assert compact(repeated)[1] == (24, 0, 8)
