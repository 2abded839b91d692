"""Entries of kernels that keep nothing of what they are given."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.codegen.compile.borrowed_arguments import raise_failure
from numgrad.codegen.compile.compile import compile_functions
from numgrad.codegen.compile.entries import entry_of
from numgrad.codegen.loops import (
    Assign,
    Attribute,
    Call,
    For,
    Function,
    If,
    Infix,
    Load,
    Name,
    Number,
    Raise,
    Store,
    Tuple,
)
from numgrad.codegen.numba_private import HAS_PIPELINES
from tests.cases import examples

pytestmark = pytest.mark.skipif(not HAS_PIPELINES, reason="kernels are compiled as by njit")

A, OUT = map(Name, ("a", "out"))
INDEX = Tuple((Name("i"), Name("j")))


def size(array: Name, dim: int) -> Load:
    return Load(Attribute(array, "shape"), Number(dim), True)


#: Writes 2 a to out, both of two dims, whatever their layout.
DOUBLE = Function(
    "double",
    ("a", "out"),
    (
        For("i", Number(0), size(A, 0), (
            For("j", Number(0), size(A, 1), (
                Store(OUT, INDEX, Infix("+", *[Load(A, INDEX, True)] * 2), "", True),
            )),
        )),
    ),
)  # fmt: skip
#: Raises if a number is below nought, else writes it to the one element of out.
ROOT = Function(
    "root",
    ("number", "out"),
    (
        If(Infix("<", Name("number"), Number(0)), (Raise("ValueError", "below nought"),)),
        Store(OUT, Number(0), Call(Name("sqrt", "math"), (Name("number"),))),
    ),
)
#: Knows the sizes: it asks for none.
SWAP = Function(
    "swap",
    ("a", "out"),
    (
        Assign("first", Load(A, Number(0))),
        Store(OUT, Number(1), Name("first")),
        Store(OUT, Number(0), Load(A, Number(1))),
    ),
)


@settings(max_examples=examples(30))
@given(data=st.data())
def test_arrays_of_every_layout_are_read_as_they_lie(data):
    double = compile_functions([DOUBLE], alone=True)
    base = np.arange(360.0).reshape(3, 4, 5, 6).astype(data.draw(st.sampled_from(["f4", "f8"])))
    moved = base.transpose(data.draw(st.permutations(range(4))))
    steps = data.draw(st.lists(st.sampled_from([1, 2, 3, -1, -2]), min_size=2, max_size=2))
    a = moved[data.draw(st.integers(0, 2)), :: steps[0], 1, :: steps[1]]
    if data.draw(st.booleans()):
        a.flags.writeable = False
    counts = sys.getrefcount(a), sys.getrefcount(base)
    out = np.empty(a.shape, a.dtype, order=data.draw(st.sampled_from("CF")))
    double(a, out)
    assert np.array_equal(out, 2 * a)
    assert (sys.getrefcount(a), sys.getrefcount(base)) == counts


def test_a_kernel_that_asks_for_no_sizes_is_told_none():
    swap = compile_functions([SWAP], alone=True)
    out = np.empty(2)
    swap(np.array([1.0, 2.0]), out)
    assert out.tolist() == [2, 1]


def test_errors_are_raised_and_nothing_of_them_stays():
    root, out = compile_functions([ROOT], alone=True), np.zeros(1)
    for _ in range(2):
        with pytest.raises(ValueError, match="^below nought$"):
            root(-1.0, out)
        root(4.0, out)
        assert out == 2
    gc.collect()
    before = sys.getrefcount(out), len(gc.get_objects())
    for _ in range(50):
        with pytest.raises(ValueError, match="below"):
            root(-1.0, out)
    gc.collect()
    assert sys.getrefcount(out) == before[0]
    assert len(gc.get_objects()) < before[1] + 40


def test_errors_among_other_errors_keep_them_as_their_context():
    root, out = compile_functions([ROOT], alone=True), np.zeros(1)
    try:
        raise KeyError("first")
    except KeyError:
        with pytest.raises(ValueError, match="below") as caught:
            root(-1.0, out)
    assert isinstance(caught.value.__context__, KeyError)


def test_what_a_kernel_ended_with_and_nobody_knows_is_an_error():
    with pytest.raises(SystemError, match="unknown error"):
        raise_failure(-7, 0)


class Own(np.ndarray):
    """A kind of array that compiled code sees as one."""


WRONG: dict[str, tuple[Any, ...]] = {
    "no array": (1.5,),
    "nothing": (None,),
    "another size of elements": (np.ones((2, 2), np.int8),),
    "another number of dims": (np.ones(4),),
}


@pytest.mark.parametrize("given", WRONG.values(), ids=WRONG)
def test_what_the_entry_was_not_made_for_is_refused(given):
    double = compile_functions([DOUBLE], alone=True)
    a = np.ones((2, 2))
    double(a, a.copy())
    entry = double.overloads[(double.typeof_pyval(a),) * 2].entry_point
    with pytest.raises(TypeError, match="something else than the array"):
        entry(*given, a)
    with pytest.raises(TypeError, match="2"):
        entry(a)
    out = np.empty((2, 2))
    entry(a.view(Own), out)
    assert (out == 2).all()


def test_arrays_of_nothing_may_lie_nowhere():
    double = compile_functions([DOUBLE], alone=True)
    nowhere = np.lib.stride_tricks.as_strided(np.empty(0), (0, 3), (24, 8))
    double(nowhere, np.empty((0, 3)))


def test_numbers_and_bools_are_read_beside_arrays():
    body = (Store(OUT, Number(0), Infix("+", Name("x"), Infix("*", Name("k"), Name("yes")))),)
    function = Function("mixed", ("x", "k", "yes", "out"), body)
    out = np.empty(1)
    entry = entry_of(compile_functions([function], alone=True), float, int, int, out.dtype)
    entry(1.5, 3, 2, out)
    assert out == 7.5
    with pytest.raises(TypeError):
        entry(object(), 3, 2, out)
