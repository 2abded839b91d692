"""Load and store by pointer: element k of an array, whatever its shape and strides.

Kernels that walk several arrays of any strides count positions themselves. Indexing would turn a
negative position into one from the end, and know the array's own shape and stride only.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from numgrad.codegen.llvm.quick_calls import DATA, array_of
from numgrad.codegen.numba_private import cgutils

__all__ = ["element", "lesser", "release", "scratch", "store"]


def _address(builder: Any, array: Any, position: Any) -> Any:
    return builder.gep(builder.extract_value(array, DATA), [position])


def _element(typing_context: Any, array: Any, position: Any) -> Any:
    """Return the element that lies `position` elements behind the first one in memory."""
    if not (isinstance(array, types.Array) and isinstance(position, types.Integer)):
        return None

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        position = context.cast(builder, arguments[1], signature.args[1], types.intp)
        address = _address(builder, arguments[0], position)
        return context.unpack_value(builder, signature.args[0].dtype, address)

    return array.dtype(array, position), lower


def _store(typing_context: Any, array: Any, position: Any, value: Any) -> Any:
    """Write `value`, in the array's dtype, `position` elements behind the first one in memory."""
    if not (isinstance(array, types.Array) and isinstance(position, types.Integer)):
        return None

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array_type, position_type, value_type = signature.args
        position = context.cast(builder, arguments[1], position_type, types.intp)
        value = context.cast(builder, arguments[2], value_type, array_type.dtype)
        address = _address(builder, arguments[0], position)
        context.pack_value(builder, array_type.dtype, value, address)
        return context.get_dummy_value()

    return types.void(array, position, value), lower


def _lesser(typing_context: Any, a: Any, b: Any) -> Any:
    """Return the lesser of two integers. `min` takes Numba half as long as a whole kernel."""
    if not (isinstance(a, types.Integer) and isinstance(b, types.Integer)):
        return None

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        a, b = (
            context.cast(builder, argument, kind, types.intp)
            for argument, kind in zip(arguments, signature.args, strict=True)
        )
        return builder.select(builder.icmp_signed("<", a, b), a, b)

    return types.intp(a, b), lower


def _scratch(typing_context: Any, like: Any, count: Any) -> Any:
    """Return a new array of `count` elements of the dtype of another, for `release` to free.

    `np.empty` takes Numba as long as two kernels, and is freed by counting references.
    """
    if not (isinstance(like, types.Array) and isinstance(count, types.Integer)):
        return None
    kind = types.Array(like.dtype, 1, "C")

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        count = context.cast(builder, arguments[1], signature.args[1], types.intp)
        of_element = context.get_data_type(kind.dtype)
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(of_element))
        room = context.nrt.allocate(builder, builder.mul(count, itemsize))
        data = builder.bitcast(room, of_element.as_pointer())
        return array_of(context, builder, kind, data, [count], [itemsize])

    return kind(like, count), lower


def _release(typing_context: Any, array: Any) -> Any:
    """Free what `scratch` returned."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = builder.extract_value(arguments[0], DATA)
        context.nrt.free(builder, builder.bitcast(data, cgutils.voidptr_t))
        return context.get_dummy_value()

    return types.void(array), lower


element: Any = intrinsic(_element)
lesser: Any = intrinsic(_lesser)
release: Any = intrinsic(_release)
scratch: Any = intrinsic(_scratch)
store: Any = intrinsic(_store)
