"""Entries of kernels for Python, compiled once for all kernels of the same types.

An entry (Numba's "cpython wrapper") takes arguments out of Python's objects, calls the kernel, and
makes an object of what that returns. It depends on the types alone, but Numba builds one for each
function, which is a quarter of what LLVM does for a kernel. Here it has the kernel as one more
argument, and what a kernel has for itself is a function that hands its own address over.

Machine code that is kept on disk has the entries beside it that it calls (`numgrad.codegen.compile.
cache`): a process that loads it may not have them yet.
"""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

import llvmlite.binding as llvm  # type: ignore[import-untyped]
from llvmlite import ir
from numba import types

from numgrad.codegen.numba_private import PyCallWrapper

__all__ = ["PREFIX", "Entry", "Wrappers", "symbols_of"]

#: What names of entries begin with, as machine code refers to them.
PREFIX = "numgrad.entry."


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


class Entry(NamedTuple):
    """What is kept on disk of an entry."""

    symbols: list[str]  #: that its machine code expects to find in the process
    code: bytes


class Wrappers:
    """The entries of this process, by name; used under the lock of Numba's compiler.

    Parameters
    ----------
    library : type
        Of Numba's libraries, what entries are compiled with.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._names: dict[Any, str | None] = {}
        self.entries: dict[str, Entry] = {}
        self._libraries: list[Any] = []  # which keep the machine code

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
        name = PREFIX + hashlib.sha256(described.encode()).hexdigest()[:24]
        if name in self.entries:  # loaded
            return name
        module = context.create_module(name)
        some = SimpleNamespace(
            argtypes=fndesc.argtypes, restype=fndesc.restype, qualname="compiled function"
        )
        try:
            _Wrapper(context, module, name, some, None, None, release_gil).build()
        except _NeedsEnvironment:
            return None
        library = self._library(context.codegen(), name)
        library.enable_object_caching()
        context.post_lowering(module, library)
        library.add_ir_module(module)
        library.finalize()
        entry = Entry(symbols_of(library)[0], library._get_compiled_object())
        self.keep(name, entry, library)
        return name

    def keep(self, name: str, entry: Entry, library: Any) -> None:
        """Let machine code find an entry."""
        llvm.add_symbol(name, library.get_pointer_to_function(name))
        self.entries[name] = entry
        self._libraries.append(library)


def symbols_of(library: Any) -> tuple[list[str], list[str]]:
    """Name what a compiled library expects to find in the process, and what it defines."""
    module = library._final_module
    needed = [
        value.name
        for value in (*module.functions, *module.global_variables)
        if value.is_declaration and not value.name.startswith("llvm.")
    ]
    module = library._get_module_for_linking()
    defined = [
        value.name
        for value in (*module.functions, *module.global_variables)
        if not value.is_declaration
    ]
    return sorted(needed), sorted(defined)
