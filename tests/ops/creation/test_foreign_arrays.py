"""Arrays of other libraries, taken by their protocols: one small class for each way to be one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import numgrad as ng

Array = np.ndarray[Any, Any]
DTYPES = ["f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "?"]


class HasArray:
    """What gives an array, and whose own sequence protocol leads astray, as that of a column."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.array if dtype is None else self.array.astype(dtype)
        return array.copy() if copy else array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, label: Any) -> Any:
        raise KeyError(label)


class Unsized(HasArray):
    """One without dims, whose length can't be asked for."""

    def __len__(self) -> int:
        raise TypeError("len() of unsized object")


class HasInterface:
    """One that describes its memory."""

    def __init__(self, array: Array) -> None:
        self.__array_interface__ = array.__array_interface__
        self.array = array

    __array_interface__: Any = None


class HasDLPack:
    """One that only exports its memory."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


KINDS = [HasArray, Unsized, HasInterface, HasDLPack]
COPIES: dict[str, Callable[[Any], ng.Tensor]] = {
    "tensor": ng.tensor,
    "asarray copying": lambda data: ng.asarray(data, copy=True),
    "new_tensor of the dtype": lambda data: ng.ones(1).new_tensor(
        data, dtype=ng.from_numpy(np.asarray(data.array)).dtype
    ),
}
SHARES: dict[str, Callable[[Any], ng.Tensor]] = {
    "as_tensor": ng.as_tensor,
    "asarray": ng.asarray,
    "asarray not copying": lambda data: ng.asarray(data, copy=False),
    "from_numpy": ng.from_numpy,
}
arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(
        np.dtype(dtype),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        elements={"allow_nan": False} if dtype[0] in "fc" else None,
    )
)


def bits(array: Any) -> tuple[Any, ...]:
    array = np.asarray(array)
    return array.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize("make", [*COPIES.values(), *SHARES.values()], ids=[*COPIES, *SHARES])
@given(kind=st.sampled_from(KINDS), array=arrays, turned=st.booleans())
def test_array_comes_in_as_it_is(make: Any, kind: Any, array: Array, turned: bool) -> None:
    given_array = array.T if turned else array
    made = make(kind(given_array))
    assert bits(made.numpy()) == bits(given_array)
    if make in SHARES.values() and array.size:
        assert np.shares_memory(made.numpy(), array)
    elif array.size:
        assert not np.shares_memory(made.numpy(), array)


@given(
    kinds=st.lists(st.sampled_from([np.asarray, *KINDS]), min_size=1, max_size=3),
    array=arrays.filter(lambda array: array.ndim and array.size),
)
def test_lists_of_arrays_are_stacked(kinds: list[Any], array: Array) -> None:
    assert bits(ng.tensor([kind(array) for kind in kinds])) == bits(np.stack([array] * len(kinds)))
    nested = ng.as_tensor([[kind(array)] for kind in kinds])
    assert bits(nested) == bits(np.stack([[array]] * len(kinds)))


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_arrays_without_dims_are_of_numbers(kind: Any) -> None:
    assert bits(ng.tensor([kind(np.array(1.5)), 2])) == bits(np.array([1.5, 2]))


@given(kind=st.sampled_from(KINDS), array=arrays)
def test_a_dtype_that_is_asked_for_is_made(kind: Any, array: Array) -> None:
    wanted = ng.complex128 if array.dtype.kind == "c" else ng.float64
    for make in (ng.tensor, ng.as_tensor, ng.asarray):
        made = make(kind(array), dtype=wanted)
        assert made.dtype is wanted
        assert np.array_equal(made.numpy(), array.astype(made.numpy().dtype))


@pytest.mark.parametrize("kind", KINDS)
def test_memory_that_may_not_be_written_to_is_copied(kind: Any) -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    for make in (ng.as_tensor, ng.asarray):
        made = make(kind(array))
        made += 1
        assert made.tolist() == [1, 2, 3]
        assert array.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="can't alias memory that may not be written to"):
        ng.asarray(kind(array), copy=False)


@pytest.mark.parametrize("kind", [HasArray, Unsized, HasInterface])
def test_what_tensors_do_not_hold_is_refused_in_pytorchs_words(kind: Any) -> None:
    for make in (ng.tensor, ng.as_tensor, ng.asarray, ng.from_numpy):
        with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy"):
            make(kind(np.array(["text"])))
        with pytest.raises(ValueError, match="byte order"):
            make(kind(np.arange(3, dtype=np.dtype("f8").newbyteorder())))


@given(array=arrays, turned=st.booleans())
def test_dlpack_goes_both_ways(array: Array, turned: bool) -> None:
    array = array.T if turned else array
    tensor = ng.from_dlpack(HasDLPack(array))
    out = np.from_dlpack(tensor)
    assert bits(out) == bits(array)
    assert tensor.__dlpack_device__() == (1, 0)
    again = ng.from_dlpack(tensor.__dlpack__(max_version=(1, 0)))
    assert bits(again) == bits(array)
    copied = ng.from_dlpack(array, copy=True)
    assert bits(copied) == bits(array)
    if array.size:
        assert np.shares_memory(out, array) and np.shares_memory(again.numpy(), array)
        assert not np.shares_memory(copied.numpy(), array)


def test_what_dlpack_refuses() -> None:
    x = ng.ones(2, requires_grad=True)
    for tensor in (x, x * 2):
        with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
            np.from_dlpack(tensor)
    assert np.from_dlpack((x * 2).detach()).tolist() == [2, 2]
    with pytest.raises(ValueError, match="can't be shared"):
        ng.from_dlpack(ng.ones(2).__dlpack__(), copy=False)  # of the protocol's first version
    with pytest.raises(AttributeError, match="__dlpack__"):
        ng.from_dlpack([1.0])
    with pytest.raises(ng.TraceError):
        ng.jit(lambda x: ng.from_dlpack(x) + 1)(ng.ones(2))


def test_legacy_constructor_takes_them() -> None:
    assert ng.Tensor(HasArray(np.arange(3.0))).dtype is ng.float32


def test_pytorchs_tensors(torch: Any) -> None:
    theirs = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).T
    ours = ng.from_dlpack(theirs)
    assert ours.stride() == theirs.stride() and ours.data_ptr() == theirs.data_ptr()
    assert torch.from_dlpack(ours).data_ptr() == theirs.data_ptr()
    assert ng.tensor(theirs).dtype is ng.float64
    assert ng.tensor([theirs[0, 0], theirs[1, 1]]).tolist() == [0.0, 4.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        ng.tensor(theirs.requires_grad_())
    with pytest.raises(BufferError, match="require gradient"):
        torch.from_dlpack(ng.ones(2, requires_grad=True))


def test_pandas_columns_and_tables() -> None:
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([0.1, 0.2, 0.3], index=[5, 6, 7])
    table = pandas.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    for make in (ng.tensor, ng.as_tensor, ng.asarray):
        assert bits(make(column)) == bits(column.to_numpy())
        assert bits(make(table)) == bits(table.to_numpy())
    assert ng.tensor([column, column]).shape == (2, 3)


def test_polars_columns_and_tables() -> None:
    polars = pytest.importorskip("polars")
    column = polars.Series([0.1, 0.2, 0.3])
    assert bits(ng.tensor(column)) == bits(column.to_numpy())
    assert ng.tensor(polars.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})).shape == (2, 2)


def test_jax_arrays() -> None:
    numpy = pytest.importorskip("jax.numpy")
    assert math.isclose(ng.tensor(numpy.float32(0.5)).item(), 0.5)
    assert ng.as_tensor(numpy.arange(3.0)).tolist() == [0.0, 1.0, 2.0]
    assert ng.from_dlpack(numpy.arange(3.0)).tolist() == [0.0, 1.0, 2.0]
    assert numpy.from_dlpack(ng.ones(2)).tolist() == [1.0, 1.0]
