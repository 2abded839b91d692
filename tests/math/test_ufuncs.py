"""Each elementwise operation as a ufunc: layouts, casts, ``out=``, ``where=``, `reduce`, names."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import math
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.math.functions import FORMULAS, OTHER_NAMES
from numgrad.ops.core.primitive import CATALOGUE
from tests.cases import thinned

ENTERED = {*FORMULAS, *(name for name in FORMULAS.later if name in CATALOGUE)}
NAMES = sorted(name for name in ENTERED if name.isidentifier())
LOGICAL = ["logical_and", "logical_or", "logical_xor"]


def loops_of(ufunc: Any) -> list[str]:
    """Return the dtypes of operands for which a ufunc has loops, as characters."""
    return [types[0] for types in ufunc.types]


def drawn(name: str, code: str, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Return operands from an operation's domains, each of a shape, in some dtype."""
    random = np.random.default_rng(len(name))
    dtype = np.dtype(code)
    primitive, arrays = CATALOGUE[name], []
    for position, (domain, shape) in enumerate(zip(primitive.domains, shapes, strict=True)):
        if dtype.kind in "iu":
            numbers: Any = random.integers(1, 5, shape)
        elif dtype.kind == "b" or position in primitive.masks:
            numbers = random.integers(0, 2, shape).astype(bool)
        else:
            numbers = domain.draw(shape, random, is_complex=dtype.kind == "c")
        arrays.append(np.asarray(numbers).astype(dtype))
    return arrays


def bits_of_operation(name: str, arrays: list[np.ndarray]) -> np.ndarray:
    """Return what the operation gives on tensors; its numbers are those of 0-d arrays."""
    primitive = CATALOGUE[name]
    count = primitive.tensor_count
    tensors = [
        ng.tensor(array.astype(bool) if position in primitive.masks else array)
        for position, array in enumerate(arrays[:count])
    ]
    found: np.ndarray = primitive(*tensors, *[array.item() for array in arrays[count:]]).numpy()
    return found


def same(one: Any, other: Any) -> bool:
    """Whether arrays have the same bits, or nan in the same places."""
    one, other = np.asarray(one), np.asarray(other)
    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and bool(np.all((one == other) | ((one != one) & (other != other))))
    )


def shapes_for(name: str) -> list[tuple[int, ...]]:
    """Return shapes that broadcast to (3, 4); of numbers, that of none."""
    shapes = [(3, 4), (4,), (3, 1)]
    count = CATALOGUE[name].tensor_count
    of_numbers = [()] * (len(CATALOGUE[name].inputs) - count)
    return [shapes[k % 3] for k in range(count)] + of_numbers


def layouts(arrays: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yield the same operands as they are, transposed in memory, and by steps backwards."""
    yield arrays
    yield [np.asfortranarray(array) for array in arrays]
    stepped = []
    for array in arrays:
        room = np.zeros((*array.shape[:-1], 2 * array.shape[-1]) if array.ndim else (), array.dtype)
        view = room[..., ::-2] if array.ndim else room
        view[...] = array
        stepped.append(view)
    yield stepped


@pytest.mark.sampled(0.01)
@pytest.mark.parametrize("name", NAMES)
def test_a_ufunc_is_the_operation_whichever_way_it_is_called(name: str) -> None:
    ufunc = math.ufunc(name)
    loops = loops_of(ufunc)
    for code in dict.fromkeys((*[each for each in "fdD" if each in loops], loops[-1])):
        arrays = drawn(name, code, shapes_for(name))
        expected = bits_of_operation(name, arrays)
        for laid in layouts(arrays):
            assert same(ufunc(*laid), expected), (code, arrays)
        out = np.zeros((2 * len(expected), *expected.shape[1:]), expected.dtype)[::2]
        assert ufunc(*arrays, out=out) is out
        assert same(out, expected)
        mask = np.arange(expected.shape[-1]) % 2 > 0
        out = np.full(expected.shape, 1, expected.dtype)
        assert ufunc(*arrays, out=out, where=mask) is out
        assert same(out, np.where(mask, expected, np.ones_like(expected)))
    check_casts(name, ufunc, loops)
    check_reductions(name, ufunc, loops)


def check_casts(name: str, ufunc: Any, loops: list[str]) -> None:
    """Operands of a dtype without a loop are cast to the first that holds them all."""
    for code in "?bBhHiIlLefdFD":
        arrays = [array.astype(code) for array in drawn(name, "h", shapes_for(name))]
        taken = next((loop for loop in loops if np.can_cast(code, loop)), None)
        if taken is None:
            with pytest.raises(TypeError):
                ufunc(*arrays)
        elif code != taken:
            with np.errstate(all="ignore"):
                assert same(ufunc(*arrays), ufunc(*[array.astype(taken) for array in arrays])), code


def check_reductions(name: str, ufunc: Any, loops: list[str]) -> None:
    """What combines two numbers reduces along an axis, one element after the other."""
    code = "d" if "d" in loops else loops[-1]
    rows = drawn(name, code, [(3, 4)] * ufunc.nin)[0]
    if ufunc.nin != 2:
        with pytest.raises(ValueError, match="binary"):
            ufunc.reduce(rows)
        return
    if name in LOGICAL:
        return
    gives_truth = np.dtype(ufunc.types[-1][-1]).kind == "b" and code != "?"
    if gives_truth or ufunc.types[loops.index(code)][-1] != code:
        with pytest.raises(TypeError):
            ufunc.reduce(rows)
        return
    with np.errstate(all="ignore"):
        expected = functools.reduce(ufunc, list(rows))
        assert same(ufunc.reduce(rows), expected)
        assert same(ufunc.reduce(rows.T, axis=1), expected)
        assert same(ufunc.accumulate(rows)[-1], expected)
        assert same(ufunc.outer(rows[0], rows[1]), ufunc(rows[0][:, None], rows[1]))


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("name", LOGICAL)
def test_logical_operations_reduce_numbers_as_numpys_do(name: str) -> None:
    ours, numpys = math.ufunc(name), getattr(np, name)
    for code in thinned("?bBhdilfDF", 4):
        rows = np.array([[1, 0, 3], [2, 0, 0]]).astype(code)
        for options in ({}, {"axis": 1}, {"axis": None}, {"axis": -1, "keepdims": True}):
            assert same(ours.reduce(rows, **options), numpys.reduce(rows, **options))
        assert same(ours.reduce(rows, 1, bool), numpys.reduce(rows, 1, bool))
        assert same(ours.accumulate(rows, 1), numpys.accumulate(rows, 1))
        assert same(ours.reduceat(rows, [0, 1], 1), numpys.reduceat(rows, [0, 1], 1))
        mask = rows[0] == 0
        assert same(ours.reduce(rows, 1, where=mask), numpys.reduce(rows, 1, where=mask))
    for out in (np.zeros(3), np.zeros(3, bool)):
        assert same(ours.reduce(rows, out=out), numpys.reduce(rows, out=out.copy()))
    assert SCALAR_OPS[name].identity == ours.identity


def test_an_operation_has_its_public_names_before_its_family_is_loaded() -> None:
    assert math.ufunc("gammainc") is math.ufunc("igamma")
    assert math.gammainc_vjp is math.igamma_vjp
    for other, name in OTHER_NAMES.items():
        assert other not in FORMULAS
        assert name in FORMULAS
        assert getattr(math, other) is getattr(math, name)
    assert {"absolute", "multiply", "subtract", "divide", "expit"} <= {*OTHER_NAMES} & {*dir(math)}
    with pytest.raises(AttributeError, match="no elementwise operation 'gammaincs'"):
        math.ufunc("gammaincs")
    for name in FORMULAS:  # those of one exponent have none that can be written
        if not name.isidentifier():
            with pytest.raises(AttributeError, match="no elementwise operation"):
                math.ufunc(name)
