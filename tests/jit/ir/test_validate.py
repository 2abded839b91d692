"""Every rule of the representation is checked."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Affine, Graph, Value
from numgrad.jit.ir.validate import InvalidGraph, validate
from numgrad.math import arithmetic, scalar
from tests.jit.small_graphs import graphs, inputs

F8, F4, I8, BOOL = (np.dtype(name) for name in ("float64", "float32", "int64", "bool"))
X, Y, MASK, Z = inputs((F8, (3, 4)), (F4, (4,)), (BOOL, (3, 1)), (F8, (2,)))
PLACES = Value("input", (), (2,), np.dtype("int64"), position=4)
AT = (Affine(0, ((1, 1),)), Affine(0, ()))


def value(operation: str, *operands: Value, shape: Any, dtype: Any = F8, **more: Any) -> Value:
    return Value(operation, operands, shape, dtype, **more)


def one_view(*maps: tuple[int, tuple[tuple[int, int], ...]], shape: Any) -> Value:
    return value("view", X, shape=shape, maps=tuple(Affine(*each) for each in maps))


WRONG = {
    "there is no operation": value("frobnicate", X, shape=(3, 4)),
    "has 2 operands, not 1": value("add", X, shape=(3, 4)),
    "broadcast to (3, 4), not to (4, 3)": value("add", X, X, shape=(4, 3)),
    "do not broadcast": value("add", X, Z, shape=(3, 4)),
    "the operands are": value("add", X, Y, shape=(3, 4)),
    "gives bool, not float64": value("lt", X, X, shape=(3, 4)),
    "gives float64, not float32": value("exp", X, shape=(3, 4), dtype=F4),
    "the condition is f64": value("where", X, X, X, shape=(3, 4)),
    "does not take bool": value("exp", MASK, shape=(3, 1), dtype=BOOL),
    "has no attributes": value("exp", X, shape=(3, 4), base=2),
    "the attributes are": value("reshape", X, shape=(4, 3), order="C"),
    "is no tuple of sizes": value("exp", X, shape=[3, 4]),
    "1 maps for 2 dims": one_view((0, ()), shape=()),
    "reads from 1 to 3 in dim 0": one_view((1, ((0, 1),)), (0, ()), shape=(3,)),
    "reads from -1 to 1": one_view((1, ((0, -1),)), (0, ()), shape=(3,)),
    "the terms of the map of dim 0": one_view((0, ((1, 1), (0, 1))), (0, ()), shape=(1, 1)),
    "the terms of the map of dim 1": one_view((0, ()), (0, ((2, 1),)), shape=(1, 1)),
    "a view of float64 is not": value(
        "view", X, shape=(), dtype=F4, maps=(Affine(0, ()), Affine(0, ()))
    ),
    "12 elements are not reshaped to 6": value("reshape", X, shape=(6,)),
    "no reduction": value("reduce", X, shape=(3,), kind="median", dims=(1,)),
    "are not sorted": value("reduce", X, shape=(), kind="sum", dims=(1, 0)),
    "are not among 2": value("reduce", X, shape=(3,), kind="sum", dims=(2,)),
    "leaves (3,), not (4,)": value("reduce", X, shape=(4,), kind="sum", dims=(1,)),
    "the any of float64 is not float64": value("reduce", X, shape=(3,), kind="any", dims=(1,)),
    "from 1 to 12, of 12 elements": value("update", X, X, shape=(3, 4), offset=1, strides=(4, 1)),
    "written more than once": value("update", X, X, shape=(3, 4), offset=0, strides=(4, 0)),
    "the strides (1,)": value("update", X, X, shape=(3, 4), offset=0, strides=(1,)),
    "the update of (3, 4) is not": value("update", X, X, shape=(12,), offset=0, strides=(4, 1)),
    "there are 1 starts for 2 parts": value("join", X, X, shape=(6, 4), starts=((0, 0),)),
    "a part of float32 is not float64": value("join", Y, shape=(4,), starts=((0,),)),
    "is no box in": value("join", Z, shape=(3, 4), starts=((0, 0),)),
    "a part reaches from (1, 0) to (4, 4)": value("join", X, shape=(3, 4), starts=((1, 0),)),
    "have elements in common": value("join", X, X, shape=(6, 4), starts=((0, 0), (2, 0))),
    "do not fill (4, 4)": value("join", X, shape=(4, 4), starts=((0, 0),)),
    "a gather from float64 is not": value("gather", X, PLACES, shape=(2,), dtype=F4, maps=AT),
    "positions are not float64": value("gather", X, Z, shape=(2,), maps=AT),
    "positions of shape (2,) are not of (3,)": value("gather", X, PLACES, shape=(3,), maps=AT),
    "not all positions are used": value(
        "gather", Z, PLACES, shape=(2,), maps=(Affine(0, ((0, 1),)),)
    ),
    "it reads from 0 to 1 in dim 1 of size 1": value(
        "gather", MASK, PLACES, shape=(2,), dtype=BOOL, maps=(AT[0], Affine(0, ((0, 1),)))
    ),
    "the scatter into (3, 4) is not": value(
        "scatter", X, Z, PLACES, shape=(4, 3), maps=AT, adds=True
    ),
    "what a check goes by is b[]": value(
        "check",
        PLACES,
        MASK,
        shape=(2,),
        dtype=np.dtype("int64"),
        kind="take",
        low=0,
        size=3,
        dim=0,
    ),
    "are not matrices": value("matmul", X, Y, shape=(3,)),
    "times (3, 4) is not": value("matmul", X, X, shape=(3, 4)),
    "the shape of a constant": value("constant", shape=(1,), value=1.0),
    "the value of the constant": value("constant", shape=(), value="1"),
    "is not of dtype": value("constant", shape=(), value=1j),
    "an item is of a call": value("item", X, shape=(3, 4), position=0),
    "the array is": value("array", shape=(3, 4), array=np.zeros(3), made=False),
    "not among the function's": value("input", shape=(3,), position=3),
}


@pytest.mark.parametrize(("words", "wrong"), list(WRONG.items()), ids=list(WRONG))
def test_what_is_wrong_is_said(words: str, wrong: Value) -> None:
    with pytest.raises(InvalidGraph) as caught:
        validate(Graph([X, Y, MASK, Z, PLACES], [wrong]))
    assert words in str(caught.value)


def test_the_line_is_shown() -> None:
    good = value("exp", X, shape=(3, 4))
    bad = value("add", good, good, shape=(3,))
    with pytest.raises(InvalidGraph, match=r"v1: f64\[3\] = add\(v0, v0\)"):
        validate(Graph([X], [value("neg", bad, shape=(3,))]))


def test_cycles_are_found() -> None:
    x = value("exp", X, shape=(3, 4))
    y = value("neg", x, shape=(3, 4))
    x.operands = (y,)
    with pytest.raises(InvalidGraph, match="needs itself"):
        validate(Graph([X], [y]))


def test_inputs_stand_in_their_positions() -> None:
    with pytest.raises(InvalidGraph, match="input 0 has the attributes"):
        validate(Graph([Y, X], [X]))


def test_calls_and_their_items_are_valid() -> None:
    call = value("call", X, shape=(3,), primitive=len)
    validate(Graph([X], [value("item", call, shape=(3,), position=1)]))


@given(graphs())
def test_random_graphs_are_valid(graph: Graph) -> None:
    validate(graph)


def test_every_scalar_operation_has_a_signature() -> None:
    own = {
        name: getattr(function, "py_func", function)
        for name, function in vars(scalar).items()
        if not name.startswith("_")
        and getattr(function, "__module__", "") in (scalar.__name__, arithmetic.__name__)
        and callable(function)
    }
    later = {name: getattr(scalar, name) for name in scalar.LATER}  # loaded when asked for
    own |= {name: getattr(each, "py_func", each) for name, each in later.items()}
    own["complex_divide"] = scalar.complex_divide.py_func  # the one that comes from elsewhere
    operations = own.keys() - {"to_int32", "to_int64", "to_uint32", "to_uint64"}
    operations -= {"sin_cos_near", "sin_apart", "cos_apart", "tan_apart"}  # and loops of angles
    operators = {name for name, op in SCALAR_OPS.items() if op.symbol is not None}
    assert operations <= SCALAR_OPS.keys()
    assert SCALAR_OPS.keys() - operators - {"cast"} <= own.keys()
    for name in operations:
        parameters = inspect.signature(own[name]).parameters
        if "others" not in parameters:  # of what stands for functions that are loaded later
            assert SCALAR_OPS[name].operands == len(parameters), name
