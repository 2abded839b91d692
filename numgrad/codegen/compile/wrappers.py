"""Entries of kernels for Python, compiled once for all kernels of the same types.

An entry (Numba's "cpython wrapper") takes arguments out of Python's objects, calls the kernel, and
makes an object of what that returns. It depends on the types alone, but Numba builds one for each
function, which is a quarter of what LLVM does for a kernel. Here it has the kernel as one more
argument, and what a kernel has for itself is a function that hands its own address over.
"""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any, NoReturn

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from numgrad.codegen.compile.borrowed_arguments import BorrowingWrapper, takes
from numgrad.codegen.compile.shared_code import PREFIX, SharedCode
from numgrad.codegen.llvm.function_expressions import passed
from numgrad.codegen.llvm.function_types import Typed
from numgrad.codegen.numba_private import PyCallWrapper

__all__ = ["Wrappers"]


class _NeedsEnvironment(Exception):
    """An entry needs what a kernel of its own has: constants that objects are made with."""


class _NoEnvironment:
    """In the place of Numba's manager of a function's environment, of which entries have none."""

    def __getattr__(self, name: str) -> NoReturn:
        raise _NeedsEnvironment


class _OwningWrapper(PyCallWrapper):
    """Builds the entry of any kernel of some types."""

    func: Any  #: the entry's name, then what it calls

    def build(self) -> None:
        pointer = self.context.get_argument_type(types.pyobject)
        called = self.context.call_conv.get_function_type(self.fndesc.restype, self.fndesc.passed)
        kind = ir.FunctionType(pointer, [pointer] * 3 + [called.as_pointer()])
        entry: Any = ir.Function(self.module, kind, name=self.func)
        builder = ir.IRBuilder(entry.append_basic_block("entry"))
        closure, arguments, keywords, self.func = entry.args
        api = self.context.get_python_api(builder)
        self.build_wrapper(api, builder, closure, arguments, keywords)

    def get_env(self, api: Any, builder: Any) -> _NoEnvironment:
        return _NoEnvironment()


class _BorrowingWrapper(BorrowingWrapper, _OwningWrapper):
    """Builds that of kernels that keep nothing of their arguments."""


class Wrappers:
    """The entries of this process, by name; used under the lock of Numba's compiler.

    Parameters
    ----------
    shared : SharedCode
        Where they are kept.
    library : type
        Of Numba's libraries, what they are compiled with.
    """

    def __init__(self, shared: SharedCode, library: Any) -> None:
        self._shared, self._library = shared, library
        self._names: dict[Any, str | None] = {}

    def create(
        self,
        context: Any,
        library: Any,
        fndesc: Any,
        env: Any,
        call_helper: Any,
        release_gil: bool = False,
        *,
        typed: Typed | None = None,
    ) -> None:
        """Add the entry of a function to its library, as Numba's `create_cpython_wrapper` does.

        Parameters
        ----------
        typed : Typed, optional
            What the function was translated of, if no other code can keep what it is given.
        """
        borrows = typed is not None and takes(fndesc.argtypes, fndesc.restype)
        given = fndesc.argtypes if typed is None else passed(typed)
        key = fndesc.argtypes, given, fndesc.restype, release_gil, borrows
        if key not in self._names:
            some = SimpleNamespace(
                argtypes=fndesc.argtypes,
                passed=given,
                is_apart=typed is not None and typed.is_apart,
                has_sizes=typed is None or typed.has_sizes,
                restype=fndesc.restype,
                qualname="compiled function",
            )
            self._names[key] = self._compiled(context, some, release_gil, borrows)
        name = self._names[key]
        if name is None:
            assert typed is None or not typed.is_apart  # what it `takes` needs no environment
            build = type(context).create_cpython_wrapper
            build(context, library, fndesc, env, call_helper, release_gil=release_gil)
            return
        module = context.create_module("wrapper")
        pointer = context.get_argument_type(types.pyobject)
        called = context.call_conv.get_function_type(fndesc.restype, given)
        kernel = ir.Function(module, called, fndesc.llvm_func_name)
        general = ir.FunctionType(pointer, [pointer] * 3 + [called.as_pointer()])
        entry = ir.Function(module, general, name)
        kind = ir.FunctionType(pointer, [pointer] * 3)
        own = ir.Function(module, kind, fndesc.llvm_cpython_wrapper_name)
        builder = ir.IRBuilder(own.append_basic_block("entry"))
        builder.ret(builder.call(entry, [*own.args, kernel], tail=True))
        library.add_ir_module(module)

    def _compiled(self, context: Any, some: Any, release_gil: bool, borrows: bool) -> str | None:
        """Return the name of an entry for some types; None if a kernel needs one of its own."""
        kinds = some.argtypes, some.passed, some.restype
        described = f"{kinds} {some.is_apart} {some.has_sizes} {release_gil} {borrows}"
        if " at 0x" in described:  # which means something else when the object is gone
            return None
        name = f"{PREFIX}entry." + hashlib.sha256(described.encode()).hexdigest()[:24]

        def write(module: Any) -> None:
            build = _BorrowingWrapper if borrows else _OwningWrapper
            build(context, module, name, some, None, None, release_gil).build()

        try:
            self._shared.add(context, name, write, self._library)
        except _NeedsEnvironment:
            return None
        return name
