"""The disk cache of compiled kernels: one directory, one file for a kernel and its argument types.

A file is named after a hash of everything that its machine code depends on: the kernel's source and
what it refers to, the source of this package, the versions of numgrad, Numba, llvmlite, NumPy and
Python, the processor, and the argument types (see `cache_key`). So a file is never stale, there is
no index to keep in step, and processes that fill the cache together at worst compile the same
kernel twice. Which files are trusted, `cache_files` says. Where nothing can be written, every
process compiles.

``NUMGRAD_CACHE_DIR`` names the directory (empty: the default); ``NUMGRAD_CACHE_DIR=off`` goes
without a cache.
"""

from __future__ import annotations

import hashlib
import pickle
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from numgrad.codegen.compile.cache_files import (
    KERNEL,
    UNFINISHED,
    cache_dir,
    cache_files,
    read_entry,
    warn,
    write_entry,
)
from numgrad.codegen.compile.cache_key import Indescribable, describe, environment
from numgrad.codegen.compile.loaded_code import loaded, provide
from numgrad.codegen.compile.pipelines import shared
from numgrad.codegen.compile.shared_code import PREFIX, symbols_of
from numgrad.codegen.numba_private import (
    CompileResultCacheImpl,
    FunctionCache,
    compile_result,
    dumps,
)

__all__ = ["CacheInfo", "KernelCache", "cache_info", "counts"]


class CacheInfo(NamedTuple):
    """What `cache_info` returns."""

    path: Path | None  #: the directory, None without a cache
    files: int  #: compiled kernels in it
    bytes: int  #: their size, and that of what they share and of the emitted sources
    hits: int  #: kernels this process loaded
    misses: int  #: kernels this process compiled


class _Counts:
    """What happened in this process; changed under Numba's compiler lock."""

    hits = 0
    misses = 0


def counts() -> tuple[int, int]:
    """Return how many kernels this process has loaded, and how many it has compiled.

    Examples
    --------
    >>> hits, misses = counts()
    >>> hits >= 0 and misses >= 0
    True
    """
    return _Counts.hits, _Counts.misses


def cache_info() -> CacheInfo:
    """Return where the cache is, how much is in it, and how this process used it.

    Returns
    -------
    CacheInfo
        ``path``, ``files``, ``bytes``, ``hits`` (kernels loaded by this process), ``misses``
        (kernels compiled by this process).

    Examples
    --------
    >>> cache_info().files >= 0
    True
    """
    path = cache_dir()
    files = [] if path is None else [f for f in cache_files(path) if f.sort != UNFINISHED]
    kernels = sum(file.sort == KERNEL for file in files)
    size = sum(file.bytes for file in files)
    return CacheInfo(path, kernels, size, _Counts.hits, _Counts.misses)


class KernelCache(FunctionCache):
    """The cache as a Numba dispatcher sees it: `load_overload` and `save_overload`.

    Parameters
    ----------
    function : callable
        The function that the dispatcher compiles. Nothing is read or computed yet.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._impl = _Serialiser(function)
        self.enable()

    def __repr__(self) -> str:
        return f"<KernelCache of {self._function.__qualname__}>"

    @property
    def cache_path(self) -> str | None:
        """The directory, for `Dispatcher.stats`."""
        path = cache_dir()
        return None if path is None else str(path)

    def flush(self) -> None:
        """Forget nothing: a file is right or is not found."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for these argument types, or None if it is not on disk."""
        place = self._place(sig, target_context.codegen())
        payload = None if place is None else read_entry(*place)
        if payload is not None:
            try:
                result = _read(target_context, *pickle.loads(payload))
            except Exception as error:  # whatever a pickle of another world raises: compile
                warn(f"{self!r} could not be loaded ({error!r})")
            else:
                if result is not None:
                    _Counts.hits += 1
                    return result
        _Counts.misses += 1
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a kernel that was just compiled."""
        place = self._place(sig, data.codegen)
        if place is None or not self._impl.check_cachable(data):
            return
        needed, defined = symbols_of(data.library)
        called = [name for name in needed if name.startswith(PREFIX)]
        symbols = [name for name in needed if not name.startswith(PREFIX)]
        write_entry(*place, dumps((symbols, defined, called, self._impl.reduce(data))))

    def _place(self, sig: Any, codegen: Any) -> tuple[Path, bytes] | None:
        """Return the file and the key of these argument types; None if they can't be cached."""
        directory = cache_dir()
        surroundings = environment(codegen)
        signature = str(sig)
        # An address in the type's name (a function as argument) means nothing to other processes.
        if not self._enabled or directory is None or surroundings is None or " at 0x" in signature:
            return None
        digest = hashlib.sha256(surroundings + signature.encode() + b"\n")
        try:
            for line in describe(self._function):
                digest.update(line.encode() + b"\n")
        except Indescribable:
            return None
        name = "".join(c if c.isalnum() else "_" for c in self._function.__name__)[:60]
        key = digest.hexdigest()[:24]
        return directory / f"{name}-{surroundings.hex()[:8]}-{key}.kernel", digest.digest()


class _Serialiser(CompileResultCacheImpl):
    """Numba's own reduction of a compiled function to what can be pickled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        self._lineno = code.co_firstlineno
        self._locator = types.SimpleNamespace(_py_file=code.co_filename)


def _read(
    target_context: Any, symbols: list[str], defined: list[str], called: list[str], reduced: Any
) -> Any:
    """Make a compiled function of what was saved; None if what it calls is no longer on disk."""
    if not all(shared.find(target_context, name) for name in called):
        return None
    provide(symbols, target_context)
    return _rebuild(target_context, defined, *reduced)


def _rebuild(
    target_context: Any,
    defined: list[str],
    library_data: tuple[str, str, tuple[bytes, bytes]],
    descriptor: Any,
    environment: Any,
    signature: Any,
    objectmode: bool,
    lifted: Any,
    annotation: str,
    reload_init: Any,
    referenced: tuple[Any, ...],
) -> Any:
    """Make a compiled function of what `_Serialiser` reduced it to."""
    for reload in reload_init:
        reload()
    name, _, code = library_data
    library = loaded(target_context, defined, name, *code)
    result: Any = compile_result(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=environment,
        entry_point=target_context.get_executable(library, descriptor, environment),
        fndesc=descriptor,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=referenced,
    )
    for one in referenced:
        library.codegen.set_env(one.env_name, one)
    return result
