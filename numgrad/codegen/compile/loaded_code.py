"""Machine code that was kept on disk, in a process that calls it."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from numgrad.codegen.numba_private import JITCodeLibrary, run_time_helpers

__all__ = ["loaded", "provide"]


class _LoadedLibrary(JITCodeLibrary):
    """Machine code from the disk, and the bitcode beside it, for kernels that inline this one.

    Numba's own way reads the bitcode at once and asks it symbol by symbol what it defines, which
    takes longer than all else. Few loaded kernels are ever inlined, and the names are in the file.
    """

    _shared_module: Any

    def __init__(self, codegen: Any, name: str, code: bytes, bitcode: bytes) -> None:
        super().__init__(codegen, name)
        self._bitcode = bitcode
        self.enable_object_caching()
        self._set_compiled_object(code)
        self._finalize_final_module()

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(self._bitcode)
        return self._shared_module


def loaded(
    target_context: Any, defined: list[str], name: str, code: bytes, bitcode: bytes = b""
) -> Any:
    """Return a library of machine code that defines some symbols."""
    library = _LoadedLibrary(target_context.codegen(), name, code, bitcode)
    library.codegen._engine._defined_symbols.update(defined)
    return library


_provided: set[str] = set()  # symbols that exist: each look-up costs some microseconds


def provide(symbols: list[str], target_context: Any) -> None:
    """See to it that the symbols exist that machine code needs, as cheaply as possible.

    Numba fills its typing and lowering registries before it loads anything (about 0.2 s in a
    process, most of it the import of scipy.linalg). Machine code needs none of that, only the
    symbols that it refers to. Those of Numba's run time are registered here; if any other is
    missing, Numba does all it does. LLVM ends the process over a symbol that it doesn't find, so
    one that is still missing then is an error here.

    Raises
    ------
    LookupError
        If there is none of some name.
    """
    missing = [s for s in symbols if s not in _provided and not llvm.address_of_symbol(s)]
    for symbol in missing:
        address = run_time_helpers.get(symbol.removeprefix("NRT_"), run_time_helpers.get(symbol))
        if address is None:
            target_context.refresh()
            break
        llvm.add_symbol(symbol, address)
    for symbol in missing:
        if not llvm.address_of_symbol(symbol):
            raise LookupError(f"it needs {symbol}, which this process does not have")
    _provided.update(symbols)
