"""From primitives to public functions, methods and in-place methods.

`FUNCTIONS` holds what becomes ``numgrad.name``, `METHODS` what becomes ``Tensor.name``, and
`INPLACE` which functions also give a method ``name_``. `public` enters a function written by
hand; `publish` makes the function of an elementwise primitive and enters it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.modes import call_interceptors, interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor, new_counter, refresh_view
from numgrad.kernels.pointwise.elementwise import FLOATING
from numgrad.ops.core.elementwise import ElementwisePrimitive
from numgrad.ops.core.primitive import check_name

__all__ = [
    "FUNCTIONS",
    "INPLACE",
    "METHODS",
    "OPERANDS",
    "binders",
    "make_function",
    "make_operator",
    "public",
    "publish",
]

FUNCTIONS: dict[str, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}
INPLACE: dict[str, Callable[..., Any]] = {}
# What is told of a function that is entered after the methods were bound: its name, and whether it
# is a method, and one in place.
binders: list[Callable[[str, bool, bool], None]] = []
# What a tensor can be combined with.
OPERANDS = (Tensor, bool, int, float, complex, np.number, np.bool_)

F = TypeVar("F", bound=Callable[..., Any])
_new = object.__new__
_empty = np.empty


def public(*names: Any, function: bool = True, method: bool = True, inplace: bool = False) -> Any:
    """Enter a function as function, method, and in-place method; a decorator.

    Without arguments (and parentheses) it enters the function under its own name. Names, if given,
    take the place of that one.

    Raises
    ------
    ValueError
        If numgrad has a name already; functions entered by others are replaced.
    """
    if len(names) == 1 and callable(names[0]):
        return public()(names[0])

    def enter(f: F) -> F:
        for name in names or (f.__name__,):
            check_name(name)
            if function:
                FUNCTIONS[name] = f
            if method:
                METHODS[name] = f
            if inplace:
                INPLACE[name + "_"] = f
            for bind in binders:
                bind(name, method, inplace)
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
    """Make the function of a primitive of one or two operands; the plain case takes a fast path."""
    return (_unary_function, _binary_function)[len(primitive.inputs) - 1](primitive)


def _unary_function(primitive: ElementwisePrimitive) -> Callable[..., Any]:
    """Make a function of one operand; with `call_interceptors` it takes no fast path."""
    kernel, plain = primitive.kernel, primitive.plain_dtypes
    entries: dict[Any, Any] = {}  # of floating point dtypes, for few elements
    plans: dict[int, Any] = {}

    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if type(input) is not Tensor or out is not None or call_interceptors:
            result: Tensor = primitive(input, out=out)
            return result
        array = input._array
        dtype = array.dtype
        if input._base is not None:
            refresh_view(input)
        entry = entries.get(dtype)
        # Of fewer than two dims, strides leave no choice of the result's.
        if (
            entry is not None
            and array.size <= FEW_ELEMENTS
            and (array.ndim < 2 or array.flags.c_contiguous)
        ):
            shape = array.shape
            value = _empty(shape, dtype)
            entry(array.ravel(), value if len(shape) == 1 else value.ravel())
        else:
            if entry is None and dtype in FLOATING and dtype in plain:
                entries[dtype] = kernel.entry("a", dtype, 1)
            return primitive.apply((input,))
        tensor = _new(Tensor)
        tensor._array = value
        tensor._counter = new_counter() if interceptors else [0]
        if input._edge is not NO_EDGE and modes.grad:
            plan = plans.get(1)
            if plan is None:
                plan = plans[1] = primitive.plan(1, "t")
            plan.attach(tensor, input, None, None)
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
    primitive: ElementwisePrimitive,
    otherwise: Callable[[Any, Any], Any] | None = None,
) -> Callable[..., Any]:
    """Make a function of two operands; `otherwise` takes what is not the plain case."""
    plain, kernel = primitive.plain_dtypes, primitive.kernel
    otherwise = primitive if otherwise is None else otherwise
    entries: dict[Any, Any] = {}  # for two arrays of a floating point dtype and few elements
    number_entries: dict[Any, Any] = {}  # for such an array and a number
    plans: dict[int, Any] = {}  # by which operands require grad
    number_plans: dict[int, Any] = {}

    def function(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
        if type(input) is not Tensor or out is not None or call_interceptors:
            result: Tensor
            if out is None:
                result = otherwise(input, other)
            else:
                result = primitive(input, other, out=out)
            return result
        array = input._array
        dtype = array.dtype
        if type(other) is Tensor:
            right: Any = other._array
            shape = array.shape
            if dtype is not right.dtype or shape != right.shape:
                return primitive.apply((input, other))
            if other._base is not None:
                refresh_view(other)
            if input._base is not None:
                refresh_view(input)
            entry = entries.get(dtype)
            if (
                entry is not None
                and array.size <= FEW_ELEMENTS
                and (len(shape) < 2 or (array.flags.c_contiguous and right.flags.c_contiguous))
            ):
                value = _empty(shape, dtype)
                flat = value if len(shape) == 1 else value.ravel()
                entry(array.ravel(), right.ravel(), flat)
            else:
                if entry is None and dtype in FLOATING and dtype in plain:
                    entries[dtype] = kernel.entry("aa", dtype, 1)
                return primitive.apply((input, other))
            tensor = _new(Tensor)
            tensor._array = value
            tensor._counter = new_counter() if interceptors else [0]
            needs = 0 if input._edge is NO_EDGE else 1
            if other._edge is not NO_EDGE:
                needs += 2
            if needs and modes.grad:
                plan = plans.get(needs)
                if plan is None:
                    plan = plans[needs] = primitive.plan(needs, "tt")
                plan.attach(tensor, input, other, None)
            return tensor
        if not (type(other) is float or type(other) is int):
            return otherwise(input, other)
        if input._base is not None:
            refresh_view(input)
        entry = number_entries.get(dtype)
        if (
            entry is not None
            and array.size <= FEW_ELEMENTS
            and (array.ndim < 2 or array.flags.c_contiguous)
        ):
            right = float(other)
            shape = array.shape
            value = _empty(shape, dtype)
            entry(array.ravel(), right, value if len(shape) == 1 else value.ravel())
        else:
            if entry is None and dtype in FLOATING and dtype in plain:
                number_entries[dtype] = kernel.entry("as", dtype, 1)
            return otherwise(input, other)
        tensor = _new(Tensor)
        tensor._array = value
        tensor._counter = new_counter() if interceptors else [0]
        if input._edge is not NO_EDGE and modes.grad:
            plan = number_plans.get(1)
            if plan is None:
                plan = number_plans[1] = primitive.plan(1, "tn")
            plan.attach(tensor, input, None, right)
        return tensor

    return function
