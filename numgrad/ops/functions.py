"""From primitives to public functions, methods and in-place methods.

`FUNCTIONS` holds what becomes ``numgrad.name``, `METHODS` what becomes ``Tensor.name``, and
`INPLACE` which functions also give a method ``name_``. `public` enters a function written by
hand; `publish` makes the function of an elementwise primitive and enters it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from numgrad.graph.accumulate import gradient_edge
from numgrad.graph.core import NO_EDGE, Tensor, refresh_view
from numgrad.graph.modes import modes
from numgrad.graph.node import next_sequence
from numgrad.kernels.elementwise import FLOATING, SMALL
from numgrad.ops.elementwise import ElementwisePrimitive

__all__ = [
    "FUNCTIONS",
    "INPLACE",
    "METHODS",
    "OPERANDS",
    "make_function",
    "make_operator",
    "public",
    "publish",
]

FUNCTIONS: dict[str, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}
INPLACE: dict[str, Callable[..., Any]] = {}
# What a tensor can be combined with.
OPERANDS = (Tensor, bool, int, float, complex, np.number, np.bool_)

F = TypeVar("F", bound=Callable[..., Any])
_new = object.__new__
_empty = np.empty


def public(*names: Any, function: bool = True, method: bool = True, inplace: bool = False) -> Any:
    """Enter a function as function, method, and in-place method; a decorator.

    Without arguments (and parentheses) it enters the function under its own name. Names, if given,
    take the place of that one.
    """
    if len(names) == 1 and callable(names[0]):
        return public()(names[0])

    def enter(f: F) -> F:
        for name in names or (f.__name__,):
            if function:
                FUNCTIONS[name] = f
            if method:
                METHODS[name] = f
            if inplace:
                INPLACE[name + "_"] = f
        return f

    return enter


def publish(primitive: ElementwisePrimitive, *aliases: str, inplace: bool = True) -> Any:
    """Make the public function of an elementwise primitive and enter it under all its names."""
    function = make_function(primitive)
    name = primitive.function_name
    function.__name__ = function.__qualname__ = name
    function.__module__ = "numgrad"
    function.__doc__ = primitive.doc
    for alias in (name, *aliases):
        public(alias, inplace=inplace)(function)
    return function


def make_function(primitive: ElementwisePrimitive) -> Callable[..., Any]:
    """Make the function of a primitive of one or two operands; the plain case goes a short way."""
    return (_unary_function, _binary_function)[len(primitive.inputs) - 1](primitive)


def _unary_function(primitive: ElementwisePrimitive) -> Callable[..., Any]:
    kernel, plain = primitive.kernel, primitive.plain_dtypes
    entries: dict[Any, Any] = {}  # of floating point dtypes

    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if type(input) is not Tensor or out is not None:
            result: Tensor = primitive(input, out=out)
            return result
        array = input._array
        dtype = array.dtype
        if dtype not in plain:
            return primitive.apply((input,))
        if input._base is not None:
            refresh_view(input)
        if array.size <= SMALL and dtype in FLOATING:
            value = _empty(array.shape, dtype)
            entry = entries.get(dtype)
            if entry is None:
                entry = entries[dtype] = kernel.entry("a", dtype, 1)
            entry(array.ravel(), value if array.ndim == 1 else value.ravel())
        else:
            (value,) = kernel(array.shape, (array,), (dtype,))
        tensor = _new(Tensor)
        tensor._array = value
        tensor._counter = [0]
        if input._edge is not NO_EDGE and modes.grad:
            _attach(primitive, 1, tensor, input, None, None)
        return tensor

    return function


def make_operator(
    primitive: ElementwisePrimitive, *, reflected: bool = False
) -> Callable[..., Any]:
    """Make the operator of a binary primitive; its operand may be of a foreign type.

    A NumPy array on the right is taken as a tensor; anything else gets its turn
    (``NotImplemented``).
    """

    def foreign(input: Any, other: Any) -> Any:
        if isinstance(other, OPERANDS):
            return primitive(input, other)
        if isinstance(other, np.ndarray) and not reflected:
            return primitive(input, FUNCTIONS["as_tensor"](other))
        return NotImplemented

    return _binary_function(primitive, foreign)


def _binary_function(
    primitive: ElementwisePrimitive, otherwise: Callable[[Any, Any], Any] | None = None
) -> Callable[..., Any]:
    """Make a function of two operands; `otherwise` takes what is not the plain case."""
    plain, kernel = primitive.plain_dtypes, primitive.kernel
    otherwise = primitive if otherwise is None else otherwise
    array_entries: dict[Any, Any] = {}  # of floating point dtypes, for two arrays
    number_entries: dict[Any, Any] = {}  # and for an array and a number

    def function(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
        if type(input) is not Tensor or out is not None:
            result: Tensor = primitive(input, other, out=out)
            return result
        array = input._array
        dtype = array.dtype
        if type(other) is Tensor:
            right: Any = other._array
            if dtype is not right.dtype or array.shape != right.shape or dtype not in plain:
                return primitive.apply((input, other))
            if other._base is not None:
                refresh_view(other)
            needs = 2 if other._edge is not NO_EDGE else 0
            if array.size <= SMALL and dtype in FLOATING:
                value = _empty(array.shape, dtype)
                entry = array_entries.get(dtype)
                if entry is None:
                    entry = array_entries[dtype] = kernel.entry("aa", dtype, 1)
                flat = value if array.ndim == 1 else value.ravel()
                entry(array.ravel(), right.ravel(), flat)
            else:
                (value,) = kernel(array.shape, (array, right), (dtype,))
        elif (type(other) is float or type(other) is int) and dtype in FLOATING and dtype in plain:
            right = float(other)
            needs = 0
            if array.size <= SMALL:
                value = _empty(array.shape, dtype)
                entry = number_entries.get(dtype)
                if entry is None:
                    entry = number_entries[dtype] = kernel.entry("as", dtype, 1)
                entry(array.ravel(), right, value if array.ndim == 1 else value.ravel())
            else:
                (value,) = kernel(array.shape, (array, right), (dtype,))
        else:
            return otherwise(input, other)
        if input._base is not None:
            refresh_view(input)
        tensor = _new(Tensor)
        tensor._array = value
        tensor._counter = [0]
        if input._edge is not NO_EDGE:
            needs += 1
        if needs and modes.grad:
            _attach(primitive, needs, tensor, input, other, right)
        return tensor

    return function


def _attach(
    primitive: ElementwisePrimitive,
    needs: int,
    tensor: Tensor,
    input: Tensor,
    other: Any,
    right: Any,
) -> None:
    """Attach a node to a result of operands with its own shape and dtype (or a number)."""
    plan = primitive.plans.get(needs) or primitive.plan(needs)
    node = _new(primitive.node_class)
    edge = input._edge
    if edge is None:
        edge = gradient_edge(input)
    if other is None:
        node.edges = (edge,)
    elif type(other) is Tensor:
        second = other._edge
        node.edges = (edge, gradient_edge(other) if second is None else second)
    else:
        node.edges = (edge, NO_EDGE)
    node.sequence = next_sequence()
    node._metadata = node._tensor_hooks = node._retained = node.metas = None
    node.plan = plan
    positions = plan.positions
    if not positions:
        node.saved = ()
    elif other is None:  # the operand, the output, or both
        counter, own = input._counter, (tensor._array, tensor._counter, 0)
        if len(positions) == 2:
            node.saved = ((input._array, counter, counter[0]), own)
        else:
            node.saved = (own if positions[0] else (input._array, counter, counter[0]),)
    elif positions == (1,) and type(other) is not Tensor:
        node.saved = (right,)
    else:
        saved: list[Any] = []
        for position in positions:
            if position == 0:
                counter = input._counter
                saved.append((input._array, counter, counter[0]))
            elif position < 0:
                saved.append((tensor._array, tensor._counter, 0))
            elif type(other) is Tensor:
                counter = other._counter
                saved.append((other._array, counter, counter[0]))
            else:
                saved.append(right)
        node.saved = tuple(saved)
    tensor._edge = (node, 0)
