"""From primitives to public functions, methods and in-place methods.

`FUNCTIONS` holds what becomes ``numgrad.name``, `METHODS` what becomes ``Tensor.name``, and
`INPLACE` which functions also give a method ``name_``. `public` enters a function; those that are
declared (`numgrad.ops.signatures`) come here, too.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np

from numgrad.base.declared import Declared
from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.codegen.define import define
from numgrad.graph.counters import new_counter
from numgrad.graph.kinds import Kind, kind_for
from numgrad.graph.modes.state import call_interceptors, interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor, kind_of, refresh_view
from numgrad.graph.upward import upward
from numgrad.kernels.move.loop_order import BY_ROWS
from numgrad.kernels.move.strides import strided_view
from numgrad.kernels.pointwise.elementwise import FLOATING
from numgrad.ops.calls.node_source import attach_plain
from numgrad.ops.calls.plain_calls import PlainCall, front_source
from numgrad.ops.core.catalogue import RESERVED, check_name, replaced
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive

__all__ = [
    "FUNCTIONS",
    "INPLACE",
    "METHODS",
    "OPERANDS",
    "binders",
    "make_front",
    "make_operator",
    "public",
    "public_property",
]

FUNCTIONS = Declared()
METHODS = Declared()
INPLACE = Declared()
# What is told of a function that is entered after the methods were bound: its name, and whether it
# is a method, and one in place.
binders: list[Callable[[str, bool, bool], None]] = []
# What a tensor can be combined with.
OPERANDS = (Tensor, bool, int, float, complex, np.number, np.bool_)

F = TypeVar("F", bound=Callable[..., Any])


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
            known = (function and name in FUNCTIONS) or (method and name in METHODS)
            if RESERVED and known:
                for forget in replaced:
                    forget()
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


def public_property(name: str, get: Callable[[Tensor], Any]) -> None:
    """Enter a property of tensors that is computed from them."""
    METHODS[name] = property(get)
    for bind in binders:
        bind(name, True, False)


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
            return primitive(input, upward.as_tensor(other))
        return NotImplemented

    return make_front(primitive, foreign, front_source(primitive.inputs), {})


def make_front(
    primitive: ElementwisePrimitive,
    otherwise: Callable[..., Any],
    source: str,
    names: dict[str, Any],
) -> Callable[..., Any]:
    """Make a function of one or two operands; `otherwise` takes what is not the plain case.

    Its source is what `front_source` returned; `names` are those beside the primitive's own.
    """
    kernel, plain = primitive.kernel, primitive.plain_dtypes
    arity = len(primitive.inputs)
    find, keep = primitive.find_call, primitive.calls.programs.keep

    def new_calls(kind: Kind) -> Any:
        """Make room for the calls of operands of a kind: of tensors, and of one and a number."""
        return keep(kind, [None, None])

    def find_call(kind: Kind, with_number: bool) -> None:
        """Find what a call of operands of a kind takes; False if the plain case can't be of it."""
        shape, dtype = kind.shape, kind.dtype
        found: Any = dtype in FLOATING and dtype in plain and prod(shape) <= FEW_ELEMENTS
        # Of fewer than two dims, strides leave no choice of the result's. With a number, which is a
        # tensor without dims to PyTorch, those of dims of length 1 decide, too.
        place = strided_view(np.empty(1, dtype), (shape, kind.steps, 0))
        given = [place, 0.0] if with_number else [place] * arity
        in_rows = kind.lies_in_rows and primitive.order_of(shape, given) == BY_ROWS
        if found and (in_rows or len(shape) < 2):
            entry = kernel.entry("as" if with_number else "a" * arity, dtype, 1)
            is_flat = len(shape) == 1 and kind.lies_in_rows
            found = PlainCall(entry, shape, dtype, kind_for(np.empty(shape, dtype)), is_flat)
        else:
            found = False
        if arity == 1:
            keep(kind, found)
        else:
            (find(kind) or new_calls(kind))[with_number] = found

    def make_recorder(key: Any, kinds: str) -> Any:
        """Return what attaches a node to a result, for the operands that require grad."""
        needs = 1 if kinds == "tn" else key
        return keep(key, attach_plain(primitive, primitive.plan(needs, kinds), kinds, needs))

    namespace = {
        "__name__": __name__,
        "NO_EDGE": NO_EDGE,
        "Tensor": Tensor,
        "call": primitive.call,
        "call_interceptors": call_interceptors,
        "empty": np.empty,
        "find": find,
        "find_call": find_call,
        "interceptors": interceptors,
        "kind_of": kind_of,
        "modes": modes,
        "new": object.__new__,
        "new_counter": new_counter,
        "new_calls": new_calls,
        "otherwise": otherwise,
        "make_recorder": make_recorder,
        "refresh_view": refresh_view,
    }
    namespace |= names
    return define("function", source, f"front of functions of {arity}", namespace)
