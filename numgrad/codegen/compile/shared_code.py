"""Machine code that kernels have in common: it is compiled once, and they call it by its name.

What is kept on disk of a kernel has the code beside it that it calls (`numgrad.codegen.compile.
cache`): a process that loads it may not have that yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from numgrad.codegen.numba_private import link_run_time

__all__ = ["PREFIX", "Code", "SharedCode", "symbols_of"]

#: What the names begin with, as machine code refers to them.
PREFIX = "numgrad.shared."


class Code(NamedTuple):
    """What is kept on disk of it."""

    symbols: list[str]  #: that the machine code expects to find in the process
    code: bytes


class SharedCode:
    """The functions of this process that kernels share; used under the lock of Numba's compiler.

    Parameters
    ----------
    library : type
        Of Numba's libraries, what they are compiled with.

    Attributes
    ----------
    known : dict
        What is kept on disk of a function, by its name.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self.known: dict[str, Code] = {}
        self._libraries: list[Any] = []  # which keep the machine code

    def add(self, context: Any, name: str, write: Callable[[Any], None]) -> None:
        """Compile a function, unless there is one of that name: it is written into a module."""
        if name in self.known:  # loaded, or compiled for another kernel
            return
        module, library = context.create_module(name), self._library(context.codegen(), name)
        library.enable_object_caching()
        with context.push_code_library(library):  # which functions of Numba's are linked to
            write(module)
        link_run_time(context, module, library)
        library.add_ir_module(module)
        library.finalize()
        self.keep(name, Code(symbols_of(library)[0], library._get_compiled_object()), library)

    def keep(self, name: str, code: Code, library: Any) -> None:
        """Let machine code find a function."""
        llvm.add_symbol(name, library.get_pointer_to_function(name))
        self.known[name] = code
        self._libraries.append(library)


def symbols_of(library: Any) -> tuple[list[str], list[str]]:
    """Name what a compiled library expects to find in the process, and what it defines."""
    module, needed, defined = library._final_module, list[str](), list[str]()
    for value in (*module.functions, *module.global_variables):
        name = value.name
        if not value.is_declaration:
            defined.append(name)
        elif not name.startswith("llvm."):
            needed.append(name)
    return sorted(needed), sorted(defined)
