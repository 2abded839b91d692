"""Machine code that kernels have in common: it is compiled once, and they call it by its name.

It is kept on disk by itself: other kernels that call it, in other processes, find it there. What it
does follows from its name and from what every file of the cache depends on (`environment`).
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from numgrad.codegen.compile.cache_files import cache_dir, read_entry, warn, write_entry
from numgrad.codegen.compile.cache_key import environment
from numgrad.codegen.compile.loaded_code import loaded, provide
from numgrad.codegen.numba_private import link_run_time

__all__ = ["PREFIX", "SharedCode", "symbols_of"]

#: What the names begin with, as machine code refers to them.
PREFIX = "numgrad.shared."


class SharedCode:
    """The functions of this process that kernels share; used under the lock of Numba's compiler.

    Parameters
    ----------
    library : type
        Of Numba's libraries, what they are compiled with.

    Attributes
    ----------
    known : dict
        What the machine code of a function expects to find in the process, by the function's name.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self.known: dict[str, list[str]] = {}
        self._libraries: list[Any] = []  # which keep the machine code

    def add(self, context: Any, name: str, write: Callable[[Any], None], kind: Any = None) -> None:
        """Compile a function, unless there is one of that name: it is written into a module.

        Parameters
        ----------
        kind : type, optional
            Of Numba's libraries, what to compile it with instead.
        """
        if self.find(context, name):
            return
        module = context.create_module(name)
        library = (kind or self._library)(context.codegen(), name)
        library.enable_object_caching()
        with context.push_code_library(library):  # which functions of Numba's are linked to
            write(module)
        link_run_time(context, module, library)
        library.add_ir_module(module)
        library.finalize()
        symbols = symbols_of(library)[0]
        self._keep(name, symbols, library)
        place = _place(context, name)
        if place is not None:
            write_entry(*place, pickle.dumps((symbols, library._get_compiled_object())))

    def find(self, context: Any, name: str) -> bool:
        """Whether there is a function of that name: it is loaded if it is on disk."""
        if name in self.known:  # loaded, or compiled for another kernel
            return True
        place = _place(context, name)
        payload = None if place is None else read_entry(*place)
        if payload is None:
            return False
        try:
            symbols, code = pickle.loads(payload)
            provide(symbols, context)
            self._keep(name, symbols, loaded(context, [name], name, code))
        except Exception as error:  # whatever a pickle of another world raises: compile
            warn(f"{name} could not be loaded ({error!r})")
            return False
        return True

    def _keep(self, name: str, symbols: list[str], library: Any) -> None:
        """Let machine code find a function."""
        llvm.add_symbol(name, library.get_pointer_to_function(name))
        self.known[name] = symbols
        self._libraries.append(library)


def _place(context: Any, name: str) -> tuple[Path, bytes] | None:
    """Return the file and the key of a function; None if it can't be kept."""
    directory, surroundings = cache_dir(), environment(context.codegen())
    if directory is None or surroundings is None:
        return None
    digest = hashlib.sha256(surroundings + name.encode())
    return (
        directory / f"shared-{surroundings.hex()[:8]}-{digest.hexdigest()[:24]}.shared",
        digest.digest(),
    )


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
