"""Entries of kernels for Python, for kernels that keep nothing of what they are given.

Numba's entries own each array while the kernel runs: they make a record of who keeps its memory,
and count references. The tuple that the arguments come in keeps them already, so that for a kernel
which gives no array back the entry need only read where the elements are. Measured with Numba 0.68:
eager calls on 6 numbers take .87 of the time, and compiling an entry 17 ms of 50.

The fields of arrays stand where NumPy's C interface has them for extensions; errors are raised in
Python (`raise_failure`), so that an entry need not be compiled for them.
"""

from __future__ import annotations

import ctypes
import pickle
from typing import Any, NoReturn

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
from llvmlite import ir
from numba import types

from numgrad.codegen.llvm.function_expressions import parts_of
from numgrad.codegen.llvm.quick_calls import array_of, itemsize_of
from numgrad.codegen.numba_private import PyCallWrapper, cgutils, run_time_helpers

__all__ = ["BorrowingWrapper", "raise_failure", "takes"]

#: What every object begins with, the last of which is its type.
_HEADER = object.__basicsize__
_POINTER = ctypes.sizeof(ctypes.c_void_p)
#: Where in an array its fields are (``PyArrayObject``).
_DATA, _NDIM, _SHAPE, _STRIDES, _DTYPE = (
    _HEADER + position * _POINTER for position in (0, 1, 2, 3, 5)
)
#: Where in a dtype the size of an element is (``PyArray_Descr``), and the bits of that number.
_ITEMSIZE, _BITS = (24, 64) if int(np.__version__.split(".")[0]) > 1 else (16, 32)
_BYTE = ir.IntType(8).as_pointer()
_INT, _SIZE = ir.IntType(32), ir.IntType(8 * _POINTER)
#: By this name machine code finds the type of arrays.
_NDARRAY = "numgrad.ndarray"
#: How Python reads numbers of some types, and what that returns: -1 may be an error.
_READERS = {
    types.int64: ("PyLong_AsLongLong", ir.IntType(64)),
    types.float64: ("PyFloat_AsDouble", ir.DoubleType()),
    types.boolean: ("PyObject_IsTrue", _INT),
}
_RAISED = -1  # what a kernel ends with that left the error to Python
_NO_ARRAY = "compiled code was given something else than the array that it was compiled for"

llvm.add_symbol(_NDARRAY, id(np.ndarray))


def takes(arguments: tuple[Any, ...], result: Any) -> bool:
    """Whether there is such an entry for arguments and a result of some of Numba's types."""
    plain = (types.Number, types.Boolean, types.NoneType)
    results: Any = result if isinstance(result, types.BaseTuple) else (result,)
    return all(isinstance(each, plain) for each in results) and all(
        isinstance(each, plain) or type(each) is types.Array for each in arguments
    )


class BorrowingWrapper(PyCallWrapper):
    """Builds such an entry, if it `takes` the types."""

    def build_wrapper(self, api: Any, builder: Any, closure: Any, args: Any, kws: Any) -> None:
        kinds, null = self.fndesc.argtypes, api.get_null_object()
        places = [api.alloca_obj() for _ in kinds]
        count = api.unpack_tuple(args, self.fndesc.qualname, len(kinds), len(kinds), *places)
        raised, wrong = (builder.append_basic_block(name) for name in ("raised", "wrong"))
        _leave_if(builder, cgutils.is_null(builder, count), raised)
        with builder.goto_block(raised):
            builder.ret(null)
        with builder.goto_block(wrong):
            api.err_set_string("PyExc_TypeError", _NO_ARRAY)
            builder.ret(null)
        given: list[Any] = []
        for place, kind in zip(places, kinds, strict=True):
            value = builder.load(place)
            if isinstance(kind, types.Array):
                given += self._array(builder, kind, value, wrong)
            else:
                given.append(self._number(api, builder, kind, value, raised))
        thread = api.save_thread() if self.release_gil else None
        status, result = self.context.call_conv.call_function(
            builder, self.func, self.fndesc.restype, self.fndesc.passed, given, attrs=("noinline",)
        )
        if thread is not None:
            api.restore_thread(thread)
        failed = builder.append_basic_block("failed")
        _leave_if(builder, builder.not_(status.is_ok), failed)
        if self.fndesc.restype == types.none:
            api.return_none()
        else:
            environment = self.get_env(api, builder)
            builder.ret(api.from_native_return(self.fndesc.restype, result, environment))
        builder.position_at_end(failed)
        code = ir.Constant(status.code.type, _RAISED)
        _leave_if(builder, builder.icmp_signed("==", status.code, code), raised)
        _hand_over(self.context, builder, api, status)
        builder.ret(null)

    def _number(self, api: Any, builder: Any, kind: Any, value: Any, raised: Any) -> Any:
        """Read a number; what is none has `raised` an error."""
        read = _READERS.get(kind)
        if read is None:
            native = api.to_native_value(kind, value)
            _leave_if(builder, native.is_error, raised)
            return native.value
        name, returned = read
        function = ir.FunctionType(returned, [_BYTE])
        found = builder.call(
            cgutils.get_or_insert_function(builder.module, function, name), [value]
        )
        no_number = ir.Constant(returned, -1)
        if kind == types.float64:
            is_error = builder.fcmp_ordered("==", found, no_number)
        else:
            is_error = builder.icmp_signed("==", found, no_number)
        with cgutils.if_unlikely(builder, is_error):
            _leave_if(builder, cgutils.is_not_null(builder, api.err_occurred()), raised)
        return builder.trunc(found, ir.IntType(1)) if kind == types.boolean else found

    def _array(self, builder: Any, kind: Any, value: Any, wrong: Any) -> list[Any]:
        """Read of an array what the kernel is given; go to `wrong` if it is something else."""
        itemsize = _INT(itemsize_of(self.context, kind).constant)
        fits = builder.call(_is_array(builder.module), [value, _INT(kind.ndim), itemsize])
        _leave_if(builder, builder.not_(fits), wrong)
        data = _field(builder, value, _DATA, self.context.get_data_type(kind.dtype).as_pointer())
        is_apart = self.fndesc.is_apart
        wanted = len(parts_of(kind, self.fndesc.has_sizes)) - 1 if is_apart else 2 * kind.ndim
        numbers: list[Any] = []
        for place in (_SHAPE, _STRIDES):
            if len(numbers) < wanted:
                start = _field(builder, value, place, _SIZE.as_pointer())
                numbers += [
                    builder.load(builder.gep(start, [_INT(dim)])) for dim in range(kind.ndim)
                ]
        if is_apart:
            return [data, *numbers]
        sizes, steps = numbers[: kind.ndim], numbers[kind.ndim :]
        return [array_of(self.context, builder, kind, data, sizes, steps)]


def _is_array(module: Any) -> Any:
    """Return a function of an entry's module that checks an object.

    It is given a number of dims and the bytes of an element: whether it is an array of those.
    """
    name = "is_array"
    if name in module.globals:
        return module.globals[name]
    yes = ir.IntType(1)
    function = ir.Function(module, ir.FunctionType(yes, [_BYTE, _INT, _INT]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    value, ndim, itemsize = function.args
    builder: Any = ir.IRBuilder(function.append_basic_block("entry"))
    subclass, array, other = (
        function.append_basic_block(name) for name in ("subclass", "array", "other")
    )
    arrays = ir.GlobalVariable(module, _BYTE.pointee, _NDARRAY)
    kind = _field(builder, value, _HEADER - _POINTER, _BYTE)
    builder.cbranch(builder.icmp_unsigned("==", kind, arrays), array, subclass)
    builder.position_at_end(subclass)
    check = ir.Function(module, ir.FunctionType(_INT, [_BYTE, _BYTE]), "PyObject_IsInstance")
    is_one = builder.icmp_signed("==", builder.call(check, [value, arrays]), _INT(1))
    builder.cbranch(is_one, array, other)
    builder.position_at_end(array)
    dtype = _field(builder, value, _DTYPE, _BYTE)
    size = _field(builder, dtype, _HEADER + _ITEMSIZE, ir.IntType(_BITS))
    builder.ret(
        builder.and_(
            builder.icmp_signed("==", _field(builder, value, _NDIM, _INT), ndim),
            builder.icmp_signed("==", builder.trunc(size, _INT) if _BITS > 32 else size, itemsize),
        )
    )
    builder.position_at_end(other)
    builder.ret(yes(0))
    return function


def _field(builder: Any, value: Any, offset: int, kind: Any) -> Any:
    """Read what stands some bytes behind the beginning of an object."""
    place = builder.gep(builder.bitcast(value, _BYTE), [_INT(offset)])
    return builder.load(builder.bitcast(place, kind.as_pointer()))


def _leave_if(builder: Any, condition: Any, block: Any) -> None:
    """Go on with a block if something unlikely is the case."""
    rest = builder.append_basic_block("rest")
    branch = builder.cbranch(condition, block, rest)
    branch.set_weights([1, 99])
    builder.position_at_end(rest)


def _hand_over(context: Any, builder: Any, api: Any, status: Any) -> None:
    """Write down the call of `raise_failure`."""
    name, method, form = (
        context.insert_const_string(builder.module, text)
        for text in (__name__, raise_failure.__name__, "in")
    )
    load = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_BYTE, [_BYTE]), "PyImport_ImportModule"
    )
    call = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_BYTE, [_BYTE, _BYTE, _BYTE], var_arg=True),
        "PyObject_CallMethod",
    )
    api.err_clear()
    module = builder.call(load, [name])
    with builder.if_then(cgutils.is_not_null(builder, module)):
        error = builder.ptrtoint(status.excinfoptr, _SIZE)
        builder.call(call, [module, method, form, status.code, error])
        api.decref(module)


class _Error(ctypes.Structure):
    """How Numba's compiled functions say what they raise.

    Pickled, at an address; then, if the arguments are numbers of this call, where these are, what
    makes objects of them, and how many there are.
    """

    _fields_ = (
        ("pickled", ctypes.c_void_p),
        ("size", ctypes.c_int32),
        ("numbers", ctypes.c_void_p),
        ("boxed", ctypes.c_void_p),
        ("count", ctypes.c_int32),
    )


def raise_failure(code: int, address: int) -> NoReturn:
    """Raise what a compiled function ended with.

    Parameters
    ----------
    code : int
        What it returned.
    address : int
        Of what it raised, if that is greater than zero.
    """
    if code <= 0:
        raise SystemError("unknown error when calling native function")
    error = _Error.from_address(address)
    kind, arguments, *_ = pickle.loads(ctypes.string_at(error.pickled, error.size))
    if error.count > 0:
        boxed = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(error.boxed)
        numbers = iter(boxed(error.numbers))
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(run_time_helpers["Free"])(address)
        # In the place of each stands something of LLVM's.
        arguments = [next(numbers) if isinstance(a, ir.Constant) else a for a in arguments]
    raise kind(*arguments or ())
