"""Where tensors lie in memory: spans, arrays within bytes, and casts of what is written there."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.autograd.forward_ad import dual_level
from numgrad.graph.storage import array_within, span_of

DTYPES = ("uint8", "int8", "int32", "int64", "float16", "float32", "float64", "complex64")
DTYPES += ("complex128", "bool")


@given(
    st.integers(0, 40),
    st.sampled_from([name for name in DTYPES if name != "float16"]),
    st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(lambda shape: 0 in shape),
    st.integers(-3, 60),
)
def test_views_without_elements_lie_where_they_say_and_be_it_outside(
    size: int, dtype: str, shape: list[int], offset: int
) -> None:
    memory = np.zeros(size, np.uint8)
    length = np.dtype(dtype).itemsize
    strides = tuple([2 * length] * len(shape))
    found = array_within(memory, np.dtype(dtype), tuple(shape), strides, offset)
    assert (found.shape, found.dtype, found.strides) == (tuple(shape), np.dtype(dtype), strides)
    start = found.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    assert start == max(offset, 0) // length * length


def test_the_span_of_a_field_is_that_of_its_copy() -> None:
    for length in (1, 4):
        records = np.zeros(length, np.dtype([("a", np.int16), ("b", np.float64)]))
        span = span_of(_of_array(records["b"]))
        first = span.array.__array_interface__["data"][0]
        assert span.start == first and span.stop == first + 8 * length


def _of_array(array: Any) -> Any:
    tensor = ng.zeros(0, dtype=ng.float64)
    tensor._array = array  # as what `from_numpy` does not share
    return tensor


SPECIAL = [0.0, 1.5, -1.0, 300.0, 1e10, 1e40, float("nan"), float("inf"), -float("inf")]


def test_values_of_any_dtype_are_written_without_a_warning_of_numpys() -> None:
    for given_dtype, own in product(DTYPES, repeat=2):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            numbers = np.array(SPECIAL).astype(given_dtype)
            expected = numbers.astype(own)
        values = ng.from_numpy(numbers)
        written = ng.zeros(len(SPECIAL) + 2, dtype=getattr(ng, own))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", UserWarning)  # of imaginary parts
            written[1:-1] = values
        if "f" in expected.dtype.kind or "int" in given_dtype or given_dtype == "bool":
            np.testing.assert_array_equal(written[1:-1].numpy(), expected)


@pytest.mark.parametrize("layout", ["x", "x[2:]", "x.t()", "x[1:][:2]"])
def test_data_in_inference_mode_lies_in_the_same_storage(torch: ModuleType, layout: str) -> None:
    found = []
    for library in (ng, torch):
        with library.inference_mode():
            x = library.arange(24.0).reshape(4, 6)
            data = eval(layout, {"x": x}).data
            of_data = eval("x.data" + layout[1:], {"x": x}).data
            found.append(
                [
                    (
                        each.untyped_storage().nbytes(),
                        each.storage_offset(),
                        each.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
                        each.is_inference(),
                    )
                    for each in (data, of_data)
                ]
            )
    assert found[0] == found[1]


@pytest.mark.parametrize(("batched", "dual"), [(False, False), (True, False), (False, True)])
def test_gradients_that_record_nothing_are_no_views(batched: bool, dual: bool) -> None:
    x = ng.arange(6.0).reshape(2, 3).requires_grad_()
    for program in (
        lambda x: x.t(),
        lambda x: x.reshape(-1),
        lambda x: x[1],
        lambda x: x.expand(2, 2, 3),
        lambda x: x * 2,
        lambda x: x.movedim(0, 1)[..., None],
    ):
        y = program(x)
        g = ng.ones(3, *y.shape) if batched else ng.ones(y.shape)
        with dual_level() if dual else nullcontext():  # then gradients travel as tensors
            (found,) = ng.autograd.grad(y, x, g, is_grads_batched=batched)
        assert found._base is None and found._is_view() is False and found.grad_fn is None
        version = g._version
        found.add_(1)
        assert g._version == version and bool((g == 1).all())
