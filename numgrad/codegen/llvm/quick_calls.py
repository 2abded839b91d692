"""Functions that generated loops call often, and that Numba compiles slowly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from numgrad.codegen.numba_private import as_dtype

__all__ = [
    "DATA",
    "MEMINFO",
    "ON_STACK",
    "PARENT",
    "QUICK",
    "SHAPE",
    "STRIDES",
    "Quick",
    "array_at",
    "array_of",
    "itemsize_of",
    "new_array",
]

_TOO_BIG = (
    "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."
)

#: Functions whose result lies in the function that calls them, and goes when that returns.
ON_STACK: list[Any] = []
#: Where the parts stand of what Numba makes of an array.
MEMINFO, PARENT, NITEMS, ITEMSIZE, DATA, SHAPE, STRIDES = range(7)


class Quick(NamedTuple):
    """How a call is compiled.

    Parameters
    ----------
    result : callable
        Of the types of the arguments: that of the result; None if it is not for these.
    write : callable
        Of Numba's target, a builder, the values of the arguments and their types: writes it down.
    is_new : bool
        Whether an array that it gives is one of its own, rather than a part of another.
    """

    result: Callable[..., Any]
    write: Callable[[Any, Any, list[Any], list[Any]], Any]
    is_new: bool = True


def _type_of_one(*kinds: Any) -> Any:
    are_integers = all(kind in types.signed_domain for kind in kinds)
    return types.intp if are_integers and len(kinds) == 2 else None


def _one_that_is(sign: str) -> Callable[..., Any]:
    """Return how the one of two integers is found that is less than the other, or greater."""

    def write(context: Any, builder: Any, values: list[Any], kinds: list[Any]) -> Any:
        a, b = (
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(values, kinds, strict=True)
        )
        return builder.select(builder.icmp_signed(sign, a, b), a, b)

    return write


def _type_of_root(*kinds: Any) -> Any:
    return kinds[0] if len(kinds) == 1 and kinds[0] in types.real_domain else None


def _root(context: Any, builder: Any, values: list[Any], kinds: list[Any]) -> Any:
    root = builder.module.declare_intrinsic("llvm.sqrt", [values[0].type])
    return builder.call(root, values)


def _type_of_empty(shape: Any, dtype: Any = None) -> Any:
    sizes: tuple[Any, ...] = _sizes(shape)
    if not (sizes and isinstance(dtype, types.NumberClass)):
        return None
    if not all(isinstance(size, types.Integer) for size in sizes):
        return None
    return types.Array(dtype.dtype, len(sizes), "C")


def _sizes(shape: Any) -> Any:
    """Return the types of the sizes in a shape, which may be one number."""
    if isinstance(shape, types.Integer):
        return (shape,)
    each: Any = shape
    return tuple(each) if isinstance(shape, types.BaseTuple) else ()


def _empty(context: Any, builder: Any, values: list[Any], kinds: list[Any]) -> Any:
    is_one = isinstance(kinds[0], types.Integer)
    of_sizes = _sizes(kinds[0])
    given = (
        [values[0]]
        if is_one
        else [builder.extract_value(values[0], k) for k in range(len(of_sizes))]
    )
    sizes = [
        context.cast(builder, size, kind, types.intp)
        for size, kind in zip(given, of_sizes, strict=True)
    ]
    return new_array(context, builder, _type_of_empty(*kinds), sizes)


def new_array(context: Any, builder: Any, kind: Any, sizes: Sequence[Any]) -> Any:
    """Return a C-contiguous array of its own, as Numba makes it; that compiles a function for it.

    Raises
    ------
    ValueError, MemoryError
        In compiled code, if it has more bytes than there can be, or than there are.
    """
    is_too_big, bytes_of = ir.Constant(ir.IntType(1), 0), itemsize_of(context, kind)
    steps = [bytes_of]
    for size in reversed(sizes):
        product = builder.smul_with_overflow(steps[0], size)
        steps.insert(0, builder.extract_value(product, 0))
        is_too_big = builder.or_(is_too_big, builder.extract_value(product, 1))
    with builder.if_then(is_too_big, likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (_TOO_BIG,))
    align = context.get_preferred_array_alignment(kind.dtype)
    align = context.get_constant(types.uint32, align)
    owner = context.nrt.meminfo_alloc_aligned(builder, steps[0], align)
    data = context.nrt.meminfo_data(builder, owner)
    data = builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer())
    return array_of(context, builder, kind, data, sizes, steps[1:], owner)


def array_at(context: Any, builder: Any, kind: Any, data: Any) -> Any:
    """Return an array of which is known where its elements are, and no sizes."""
    zero = context.get_constant(types.intp, 0)
    return array_of(context, builder, kind, data, [zero] * kind.ndim, [zero] * kind.ndim)


def array_of(
    context: Any,
    builder: Any,
    kind: Any,
    data: Any,
    sizes: Sequence[Any],
    steps: Sequence[Any],
    *owner: Any,
) -> Any:
    """Return an array of which all parts are known.

    Parameters
    ----------
    *owner : values, optional
        What keeps its memory, and the object of Python's that it is of.
    """
    itemsize = itemsize_of(context, kind)
    count = context.get_constant(types.intp, 1)
    for size in sizes:
        count = builder.mul(count, size, flags=["nsw"])
    array: Any = ir.Constant(context.get_value_type(kind), None)
    parts: list[tuple[Any, Any]] = [*zip((MEMINFO, PARENT), owner, strict=False)]
    parts += [(NITEMS, count), (ITEMSIZE, itemsize), (DATA, data)]
    parts += [((SHAPE, dim), size) for dim, size in enumerate(sizes)]
    parts += [((STRIDES, dim), step) for dim, step in enumerate(steps)]
    for place, part in parts:
        array = builder.insert_value(array, part, place)
    return array


def itemsize_of(context: Any, kind: Any) -> Any:
    """Return the bytes that an element of a type of arrays takes; LLVM takes long to say it."""
    return context.get_constant(types.intp, as_dtype(kind.dtype).itemsize)


#: By the function that is called.
QUICK: dict[Any, Quick] = {
    min: Quick(_type_of_one, _one_that_is("<")),
    max: Quick(_type_of_one, _one_that_is(">")),
    np.sqrt: Quick(_type_of_root, _root),
    np.empty: Quick(_type_of_empty, _empty),
}
