"""From primitives to public functions, methods and in-place methods.

`FUNCTIONS` holds what becomes ``numgrad.name``, `METHODS` what becomes ``Tensor.name``, and
`INPLACE` which functions also give a method ``name_``. `public` enters a function; those that are
declared (`numgrad.ops.signatures`) come here, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.codegen.define import define
from numgrad.graph.modes import call_interceptors, interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor, new_counter, refresh_view
from numgrad.kernels.pointwise.elementwise import FLOATING
from numgrad.ops.calls.node_source import attach_plain
from numgrad.ops.calls.plain_calls import front_source
from numgrad.ops.core.catalogue import RESERVED, check_name, replaced
from numgrad.ops.core.elementwise import ElementwisePrimitive

__all__ = [
    "FUNCTIONS",
    "INPLACE",
    "METHODS",
    "OPERANDS",
    "binders",
    "make_front",
    "make_operator",
    "public",
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
            if RESERVED and name in FUNCTIONS.keys() | METHODS.keys():
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
    find, keep = primitive.find_call, primitive.calls.keep

    def new_entries(dtype: Any) -> Any:
        """Make room for the kernel's loops for a dtype: of tensors, and of one and a number."""
        return keep(dtype, [None, None])

    def find_entry(dtype: Any, with_number: bool) -> None:
        """Find the kernel's loop for a dtype; False if the plain case can't be of that."""
        pattern = "as" if with_number else "a" * arity
        is_plain = dtype in FLOATING and dtype in plain
        entry = is_plain and kernel.entry(pattern, dtype, 1)
        if arity == 1:
            keep(dtype, entry)
        else:
            (find(dtype) or new_entries(dtype))[with_number] = entry

    def make_recorder(key: Any, kinds: str) -> Any:
        """Return what attaches a node to a result, for the operands that require grad."""
        needs = 1 if kinds == "tn" else key
        return keep(key, attach_plain(primitive, primitive.plan(needs, kinds), kinds, needs))

    namespace = {
        "__name__": __name__,
        "FEW_ELEMENTS": FEW_ELEMENTS,
        "NO_EDGE": NO_EDGE,
        "Tensor": Tensor,
        "call": primitive.call,
        "call_interceptors": call_interceptors,
        "empty": np.empty,
        "find": find,
        "find_entry": find_entry,
        "interceptors": interceptors,
        "modes": modes,
        "new": object.__new__,
        "new_counter": new_counter,
        "new_entries": new_entries,
        "otherwise": otherwise,
        "make_recorder": make_recorder,
        "refresh_view": refresh_view,
    }
    namespace |= names
    return define("function", source, f"front of functions of {arity}", namespace)
