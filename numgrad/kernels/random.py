"""Draw random numbers in compiled code: NumPy's generator PCG64, the same bits as its arrays.

What is drawn from is a state in six words: two of PCG64's state, two of its increment, the 32 bits
that it keeps for the next 32-bit number (the lowest bit says whether there are any; they are the
upper half), and one that is not looked at. A function of these and of nothing else, so that what
was drawn once can be drawn again.

The methods are those of NumPy: the ziggurat of Marsaglia and Tsang for normal and exponential
numbers, Lemire's for integers in a range. Tests compare the bits.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, overload

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.dispatchers import inline
from numgrad.codegen.llvm.pointers import element, store
from numgrad.codegen.loop_runtime import distinct, unseen
from numgrad.codegen.numba_private import cgutils, ziggurat_tables

__all__ = ["FILLS", "go_on", "words_of"]

_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645  # of PCG64
_NEXT = "numgrad_pcg64_next"  # the symbol of NumPy's function that steps a PCG64
_WIDE, _WORD = ir.IntType(128), ir.IntType(64)

_tables: Any = ziggurat_tables()
_wn, _kn, _fn = _tables.wi_double, _tables.ki_double, _tables.fi_double
_wnf, _knf, _fnf = _tables.wi_float, _tables.ki_float, _tables.fi_float
_we, _ke, _fe = _tables.we_double, _tables.ke_double, _tables.fe_double
_wef, _kef, _fef = _tables.we_float, _tables.ke_float, _tables.fe_float
_NORMAL, _NORMAL_INVERSE = _tables.ziggurat_nor_r, _tables.ziggurat_nor_inv_r
_NORMAL_F, _NORMAL_INVERSE_F = _tables.ziggurat_nor_r_f, _tables.ziggurat_nor_inv_r_f
_EXPONENTIAL, _EXPONENTIAL_F = _tables.ziggurat_exp_r, _tables.ziggurat_exp_r_f

_f32, _u32, _u64 = np.float32, np.uint32, np.uint64
_HALF = _f32(-0.5)
_UNIT, _UNIT_F = 1.0 / 9007199254740992.0, _f32(1.0 / 16777216.0)
_ALL = 0xFFFFFFFF


# --- words ----------------------------------------------------------------------------------------


def _declare_next(typing_context: Any, words: Any) -> Any:
    """Step a state, and return 64 bits of it."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(data, _WIDE.as_pointer())
        added = builder.gep(place, [ir.Constant(ir.IntType(32), 1)])
        state = builder.mul(builder.load(place, align=8), ir.Constant(_WIDE, _MULTIPLIER))
        state = builder.add(state, builder.load(added, align=8))
        builder.store(state, place, align=8)
        high = builder.trunc(builder.lshr(state, ir.Constant(_WIDE, 64)), _WORD)
        mixed = builder.xor(high, builder.trunc(state, _WORD))
        right = builder.lshr(high, ir.Constant(_WORD, 58))
        left = builder.and_(builder.neg(right), ir.Constant(_WORD, 63))
        return builder.or_(builder.lshr(mixed, right), builder.shl(mixed, left))

    return types.uint64(words), lower


def _declare_product(typing_context: Any, a: Any, b: Any) -> Any:
    """Return the upper and the lower half of a product of 64-bit numbers."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        a, b = (builder.zext(argument, _WIDE) for argument in arguments)
        product = builder.mul(a, b)
        high = builder.trunc(builder.lshr(product, ir.Constant(_WIDE, 64)), _WORD)
        halves = high, builder.trunc(product, _WORD)
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), lower


_next64: Any = intrinsic(_declare_next)
_product: Any = intrinsic(_declare_product)


@inline
def _next32(words):  # type: ignore[no-untyped-def]
    kept = element(words, 4)
    if kept & _u64(1):
        store(words, 4, kept ^ _u64(1))
        return _u32(kept >> _u64(32))
    found = _next64(words)
    store(words, 4, (found >> _u64(32) << _u64(32)) | _u64(1))
    return _u32(found & _u64(_ALL))


@inline
def _unit(words):  # type: ignore[no-untyped-def]
    return (_next64(words) >> _u64(11)) * _UNIT


@inline
def _unit_f(words):  # type: ignore[no-untyped-def]
    return _f32(_next32(words) >> _u32(8)) * _UNIT_F


# --- numbers --------------------------------------------------------------------------------------


@inline
def _normal(words):  # type: ignore[no-untyped-def]
    while True:
        bits = _next64(words)
        k = np.intp(bits & _u64(0xFF))
        size = (bits >> _u64(9)) & _u64(0x000FFFFFFFFFFFFF)
        x = np.float64(size) * _wn[k]
        if bits & _u64(0x100):
            x = -x
        if size < _kn[k]:
            return x
        if k == 0:
            while True:
                beyond = -_NORMAL_INVERSE * math.log1p(-_unit(words))
                y = -math.log1p(-_unit(words))
                if y + y > beyond * beyond:
                    found = _NORMAL + beyond
                    return -found if size & _u64(0x100) else found
        elif (_fn[k - 1] - _fn[k]) * _unit(words) + _fn[k] < math.exp(-0.5 * x * x):
            return x


@inline
def _normal_f(words):  # type: ignore[no-untyped-def]
    while True:
        bits = _next32(words)
        k = np.intp(bits & _u32(0xFF))
        size = (bits >> _u32(9)) & _u32(0x007FFFFF)
        x = _f32(size) * _wnf[k]
        if bits & _u32(0x100):
            x = -x
        if size < _knf[k]:
            return x
        if k == 0:
            while True:
                beyond = -_NORMAL_INVERSE_F * _f32(np.log1p(-_unit_f(words)))
                y = -_f32(np.log1p(-_unit_f(words)))
                if y + y > beyond * beyond:
                    found = _f32(_NORMAL_F + beyond)
                    return -found if size & _u32(0x100) else found
        else:
            height = (_fnf[k - 1] - _fnf[k]) * _unit_f(words) + _fnf[k]
            if np.float64(height) < math.exp(-0.5 * np.float64(x) * np.float64(x)):
                return x


@inline
def _exponential(words):  # type: ignore[no-untyped-def]
    while True:
        bits = _next64(words) >> _u64(3)
        k = np.intp(bits & _u64(0xFF))
        bits >>= _u64(8)
        x = np.float64(bits) * _we[k]
        if bits < _ke[k]:
            return x
        if k == 0:
            return _EXPONENTIAL - math.log1p(-_unit(words))
        if (_fe[k - 1] - _fe[k]) * _unit(words) + _fe[k] < math.exp(-x):
            return x


@inline
def _exponential_f(words):  # type: ignore[no-untyped-def]
    while True:
        bits = _next32(words) >> _u32(1)
        k = np.intp(bits & _u32(0xFF))
        bits = bits >> _u32(8)
        x = _f32(bits) * _wef[k]
        if bits < _kef[k]:
            return x
        if k == 0:
            return _f32(_EXPONENTIAL_F - _f32(np.log1p(-_unit_f(words))))
        height = (_fef[k - 1] - _fef[k]) * _unit_f(words) + _fef[k]
        if np.float64(height) < math.exp(-np.float64(x)):
            return x


@inline
def _below(words, most):  # type: ignore[no-untyped-def]
    """Return an integer from 0 to `most`, by Lemire's method."""
    if most == 0:
        return _u64(0)
    if most < _u64(_ALL):
        count = most + _u64(1)
        product = _u64(_next32(words)) * count
        if (product & _u64(_ALL)) < count:
            least = (_u64(_ALL) - most) % count
            while (product & _u64(_ALL)) < least:
                product = _u64(_next32(words)) * count
        return product >> _u64(32)
    if most == _u64(_ALL):
        return _u64(_next32(words))
    if most == _u64(0xFFFFFFFFFFFFFFFF):
        return _next64(words)
    count = most + _u64(1)
    high, low = _product(_next64(words), count)
    if low < count:
        least = (_u64(0xFFFFFFFFFFFFFFFF) - most) % count
        while low < least:
            high, low = _product(_next64(words), count)
    return high


@inline
def _interval(words, most):  # type: ignore[no-untyped-def]
    """Return an integer from 0 to `most`, by rejection of others with as many bits."""
    mask = most
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> _u64(shift)
    while True:
        if most <= _u64(_ALL):
            found = _u64(_next32(words)) & mask
        else:
            found = _next64(words) & mask
        if found <= most:
            return found


@inline
def _trials(words, p):  # type: ignore[no-untyped-def]
    if p < 0.333333333333333333333333:
        found = math.ceil(-_exponential(words) / math.log1p(-p))
        return np.int64(0x7FFFFFFFFFFFFFFF) if found >= 9.223372036854776e18 else np.int64(found)
    count, total, factor = 1, p, p
    bound = _unit(words)
    while bound > total:
        factor *= 1.0 - p
        total += factor
        count += 1
    return np.int64(count)


# --- generators of NumPy's ------------------------------------------------------------------------


def _address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _order() -> tuple[int, int]:
    """Return where the lower and the upper half of 128 bits are: not every compiler has such."""
    generator = np.random.PCG64(0)
    at = ctypes.c_uint64.from_address(generator.ctypes.state_address).value
    first = ctypes.c_uint64.from_address(at).value
    state: Any = generator.state
    return (0, 1) if first == state["state"]["state"] & 0xFFFFFFFFFFFFFFFF else (1, 0)


binding.add_symbol(_NEXT, _address_of(np.random.PCG64(0).ctypes.next_uint64))
_LOW, _HIGH = _order()


def _declare_memory(typing_context: Any, generator: Any) -> Any:
    """Return the address of the state of a PCG64, and 0 for another generator."""
    if not isinstance(generator, types.NumPyRandomGeneratorType):
        return None

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        whole = cgutils.create_struct_proxy(signature.args[0])
        kind = types.NumPyRandomBitGeneratorType("bit_generator")
        inner = cgutils.create_struct_proxy(kind)
        source = whole(context, builder, value=arguments[0]).bit_generator
        fields = inner(context, builder, value=source)
        known = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_WORD, [cgutils.voidptr_t]), _NEXT
        )
        is_known = builder.icmp_unsigned(
            "==", fields.fnptr_next_uint64, builder.ptrtoint(known, fields.fnptr_next_uint64.type)
        )
        address = builder.zext(fields.state_address, _WORD)
        return builder.select(is_known, address, ir.Constant(_WORD, 0))

    return types.uint64(generator), lower


def _declare_read(typing_context: Any, address: Any, k: Any) -> Any:
    """Return the word that lies k words behind an address."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(_place(context, builder, signature, arguments))

    return types.uint64(types.uint64, types.intp), lower


def _declare_write(typing_context: Any, address: Any, k: Any, word: Any) -> Any:
    """Write the word that lies k words behind an address."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store(arguments[2], _place(context, builder, signature, arguments))
        return context.get_dummy_value()

    return types.void(types.uint64, types.intp, types.uint64), lower


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.gep(builder.inttoptr(arguments[0], _WORD.as_pointer()), [arguments[1]])


_memory: Any = intrinsic(_declare_memory)
_read: Any = intrinsic(_declare_read)
_write: Any = intrinsic(_declare_write)


def words_of(generator: Any, position: int) -> Any:
    """Return the words of a generator of NumPy's, in compiled code; it is some argument."""
    raise NotImplementedError


def go_on(generator: Any, words: Any) -> None:
    """Have a generator of NumPy's go on with other words, in compiled code."""
    raise NotImplementedError


@overload(words_of, prefer_literal=True)
def _words_of(generator, position):  # type: ignore[no-untyped-def]
    place = getattr(position, "literal_value", "?")
    if isinstance(generator, types.NumPyRandomGeneratorType):
        other = (
            f"argument {place} must be a numpy.random.Generator of PCG64, as default_rng returns "
            "it, but draws from another bit generator"
        )

        def found(generator, position):  # type: ignore[no-untyped-def]
            at = _memory(generator)
            if at == 0:
                raise TypeError(other)
            inner = _read(at, 0)
            words = np.zeros(6, np.uint64)
            words[0], words[1] = _read(inner, _LOW), _read(inner, _HIGH)
            words[2], words[3] = _read(inner, 2 + _LOW), _read(inner, 2 + _HIGH)
            words[4] = _read(at, 1)
            return words

        return found
    message = f"argument {place} must be a numpy.random.Generator, but is of {generator}"

    def wrong(generator, position):  # type: ignore[no-untyped-def]
        # When it runs, not when it is compiled: what stands behind has to have a type.
        if unseen(1) > 0:
            raise TypeError(message)
        return np.zeros(6, np.uint64)

    return wrong


@overload(go_on)
def _go_on(generator, words):  # type: ignore[no-untyped-def]
    if not isinstance(generator, types.NumPyRandomGeneratorType):
        return lambda generator, words: None

    def written(generator, words):  # type: ignore[no-untyped-def]
        at = _memory(generator)
        inner = _read(at, 0)
        _write(inner, _LOW, words[0])
        _write(inner, _HIGH, words[1])
        _write(inner, 2 + _LOW, words[2])
        _write(inner, 2 + _HIGH, words[3])
        _write(at, 1, words[4])

    return written


# --- arrays ---------------------------------------------------------------------------------------


@kernel
def uniform(words, out, count):  # type: ignore[no-untyped-def]
    """Fill with numbers from [0, 1) in float64."""
    distinct()
    for k in range(count):
        store(out, k, _unit(words))


@kernel
def uniform_f(words, out, count):  # type: ignore[no-untyped-def]
    """Fill with numbers from [0, 1) in float32."""
    distinct()
    for k in range(count):
        store(out, k, _unit_f(words))


@kernel
def normal(words, out, count):  # type: ignore[no-untyped-def]
    """Fill with normally distributed numbers in float64."""
    distinct()
    for k in range(count):
        store(out, k, _normal(words))


@kernel
def normal_f(words, out, count):  # type: ignore[no-untyped-def]
    """Fill with normally distributed numbers in float32."""
    distinct()
    for k in range(count):
        store(out, k, _normal_f(words))


@kernel
def exponential(words, out, count):  # type: ignore[no-untyped-def]
    """Fill with exponentially distributed numbers in float64."""
    distinct()
    for k in range(count):
        store(out, k, _exponential(words))


@kernel
def exponential_f(words, out, count):  # type: ignore[no-untyped-def]
    """Fill with exponentially distributed numbers in float32."""
    distinct()
    for k in range(count):
        store(out, k, _exponential_f(words))


@kernel
def integers(words, out, count, low, most):  # type: ignore[no-untyped-def]
    """Fill with integers from `low` to ``low + most``."""
    distinct()
    for k in range(count):
        store(out, k, np.int64(_below(words, _u64(most)) + _u64(low)))


@kernel
def geometric(words, out, count, p):  # type: ignore[no-untyped-def]
    """Fill with numbers of trials until the first success."""
    distinct()
    for k in range(count):
        store(out, k, _trials(words, p))


@kernel
def permutation(words, out, count):  # type: ignore[no-untyped-def]
    """Fill with the integers below `count` in random order."""
    distinct()
    for k in range(count):
        store(out, k, k)
    for k in range(count - 1, 0, -1):
        other = np.intp(_interval(words, _u64(k)))
        kept = element(out, other)
        store(out, other, element(out, k))
        store(out, k, kept)


_F64, _F32 = np.dtype(np.float64), np.dtype(np.float32)

# What fills an array of a dtype (of any, if None) with numbers of a kind.
FILLS: dict[tuple[str, Any], str] = {
    ("uniform", _F64): "uniform",
    ("uniform", _F32): "uniform_f",
    ("normal", _F64): "normal",
    ("normal", _F32): "normal_f",
    ("exponential", _F64): "exponential",
    ("exponential", _F32): "exponential_f",
    ("integers", None): "integers",
    ("geometric", None): "geometric",
    ("permutation", None): "permutation",
}
