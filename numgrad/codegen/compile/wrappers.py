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

from numgrad.codegen.compile.shared_code import PREFIX, SharedCode
from numgrad.codegen.numba_private import PyCallWrapper

__all__ = ["Wrappers"]


class _NeedsEnvironment(Exception):
    """An entry needs what a kernel of its own has: constants that objects are made with."""


class _NoEnvironment:
    """In the place of Numba's manager of a function's environment, of which entries have none."""

    def __getattr__(self, name: str) -> NoReturn:
        raise _NeedsEnvironment


class _Wrapper(PyCallWrapper):
    """Builds the entry of any kernel of some types."""

    func: Any  #: the entry's name, then what it calls

    def build(self) -> None:
        pointer = self.context.get_argument_type(types.pyobject)
        called = self.context.call_conv.get_function_type(self.fndesc.restype, self.fndesc.argtypes)
        kind = ir.FunctionType(pointer, [pointer] * 3 + [called.as_pointer()])
        entry: Any = ir.Function(self.module, kind, name=self.func)
        builder = ir.IRBuilder(entry.append_basic_block("entry"))
        closure, arguments, keywords, self.func = entry.args
        api = self.context.get_python_api(builder)
        self.build_wrapper(api, builder, closure, arguments, keywords)

    def get_env(self, api: Any, builder: Any) -> _NoEnvironment:
        return _NoEnvironment()


class Wrappers:
    """The entries of this process, by name; used under the lock of Numba's compiler.

    Parameters
    ----------
    shared : SharedCode
        Where they are kept.
    """

    def __init__(self, shared: SharedCode) -> None:
        self._shared = shared
        self._names: dict[Any, str | None] = {}

    def create(
        self,
        context: Any,
        library: Any,
        fndesc: Any,
        env: Any,
        call_helper: Any,
        release_gil: bool = False,
    ) -> None:
        """Add the entry of a function to its library, as Numba's `create_cpython_wrapper` does."""
        key = fndesc.argtypes, fndesc.restype, release_gil
        if key not in self._names:
            self._names[key] = self._compiled(context, fndesc, release_gil)
        name = self._names[key]
        if name is None:
            build = type(context).create_cpython_wrapper
            build(context, library, fndesc, env, call_helper, release_gil=release_gil)
            return
        module = context.create_module("wrapper")
        pointer = context.get_argument_type(types.pyobject)
        called = context.call_conv.get_function_type(fndesc.restype, fndesc.argtypes)
        kernel = ir.Function(module, called, fndesc.llvm_func_name)
        general = ir.FunctionType(pointer, [pointer] * 3 + [called.as_pointer()])
        entry = ir.Function(module, general, name)
        kind = ir.FunctionType(pointer, [pointer] * 3)
        own = ir.Function(module, kind, fndesc.llvm_cpython_wrapper_name)
        builder = ir.IRBuilder(own.append_basic_block("entry"))
        builder.ret(builder.call(entry, [*own.args, kernel], tail=True))
        library.add_ir_module(module)

    def _compiled(self, context: Any, fndesc: Any, release_gil: bool) -> str | None:
        """Return the name of an entry for some types; None if a kernel needs one of its own."""
        described = f"{fndesc.argtypes} {fndesc.restype} {release_gil}"
        if " at 0x" in described:  # which means something else when the object is gone
            return None
        name = f"{PREFIX}entry." + hashlib.sha256(described.encode()).hexdigest()[:24]
        some = SimpleNamespace(
            argtypes=fndesc.argtypes, restype=fndesc.restype, qualname="compiled function"
        )

        def write(module: Any) -> None:
            _Wrapper(context, module, name, some, None, None, release_gil).build()

        try:
            self._shared.add(context, name, write)
        except _NeedsEnvironment:
            return None
        return name
