"""The disk cache of compiled kernels: one directory, one file for a kernel and its argument types.

A file is named after a hash of everything that its machine code depends on: the kernel's source and
what it refers to, the source of this package, the versions of numgrad, Numba, llvmlite, NumPy and
Python, the processor, and the argument types. So a file is never stale, there is no index to keep
in step, and processes that fill the cache together at worst compile the same kernel twice.

Machine code and pickles can do anything, so a file is trusted only if it is a regular file that
belongs to this user, nobody else can write it, and its checksum (which covers the key) is right.
Any other is ignored, and written anew. Where nothing can be written, every process compiles.

``NUMGRAD_CACHE_DIR`` names the directory (empty: the default); ``NUMGRAD_CACHE_DIR=off`` goes
without a cache.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.resources
import os
import pickle
import stat
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite  # type: ignore[import-untyped]
import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core import config, runtime
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from numba.core.types import Type

__all__ = ["CacheInfo", "CacheWarning", "KernelCache", "cache_dir", "cache_info", "write_file"]

MAGIC = b"numgrad kernel 1\n"
SUFFIX = ".kernel"
MAX_BYTES = 1 << 29  # beyond this, the oldest half goes
MAX_HOURS_UNFINISHED = 1  # what a killed process left half-written goes after this
# What Numba reads from the environment and compiles differently for.
CODEGEN_OPTIONS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")


class CacheWarning(UserWarning):
    """The kernel cache cannot be used as it should; kernels are compiled in every process."""


class CacheInfo(NamedTuple):
    """What `cache_info` returns."""

    path: Path | None  #: the directory, None without a cache
    files: int  #: compiled kernels in it
    bytes: int  #: their size, and that of the emitted sources
    hits: int  #: kernels this process loaded
    misses: int  #: kernels this process compiled


class _Counts:
    """What happened in this process; changed under Numba's compiler lock."""

    hits = 0
    misses = 0
    warned = False
    pruned = False


def cache_dir() -> Path | None:
    """Return the directory of compiled kernels and emitted sources; it need not exist yet.

    Returns
    -------
    pathlib.Path or None
        ``NUMGRAD_CACHE_DIR``, else the platform's place for a user's caches. None if the variable
        is ``off``, or if there is no such place.

    Examples
    --------
    >>> directory = cache_dir()
    >>> directory is None or directory.is_absolute()
    True
    """
    setting = os.environ.get("NUMGRAD_CACHE_DIR", "")
    if setting.lower() == "off":
        return None
    try:
        if setting:
            return Path(setting).expanduser().absolute()
        return _user_cache_dir() / "numgrad"
    except (RuntimeError, OSError):  # no home, or no current directory
        return None


def _user_cache_dir() -> Path:
    """Return the platform's directory for this user's caches."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return xdg if xdg.is_absolute() else Path.home() / ".cache"


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
    sizes = dict(_files(path)) if path is not None else {}
    kernels = sum(name.endswith(SUFFIX) for name in sizes)
    return CacheInfo(path, kernels, sum(sizes.values()), _Counts.hits, _Counts.misses)


def _files(directory: Path) -> Iterator[tuple[str, int]]:
    """Yield name and size of the files that are the cache's."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # removed by someone else meanwhile
                if entry.name.endswith((SUFFIX, ".py")) and entry.is_file(follow_symlinks=False):
                    yield entry.name, entry.stat().st_size


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
                symbols, reduced = pickle.loads(payload)
                _provide(symbols, target_context)
                result = self._impl.rebuild(target_context, reduced)
            except Exception as error:  # whatever a pickle of another world raises: compile
                _warn(f"{self!r} could not be loaded ({error!r})")
            else:
                _Counts.hits += 1
                return result
        _Counts.misses += 1
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a kernel that was just compiled."""
        place = self._place(sig, data.codegen)
        if place is None or not self._impl.check_cachable(data):
            return
        payload = dumps((_external_symbols(data.library), self._impl.reduce(data)))
        path, key = place
        _prune(path.parent)
        write_file(path, MAGIC + hashlib.sha256(key + payload).digest() + payload)

    def _place(self, sig: Any, codegen: Any) -> tuple[Path, bytes] | None:
        """Return the file and the key of these argument types; None if they can't be cached."""
        directory = cache_dir()
        toolchain = _toolchain()
        signature = str(sig)
        # An address in the type's name (a function as argument) means nothing to other processes.
        if not self._enabled or directory is None or toolchain is None or " at 0x" in signature:
            return None
        options = [(option, getattr(config, option, None)) for option in CODEGEN_OPTIONS]
        digest = hashlib.sha256(toolchain)
        digest.update(f"{signature}\n{codegen.magic_tuple()}\n{options}\n".encode())
        try:
            for line in describe(self._function):
                digest.update(line.encode() + b"\n")
        except _Indescribable:
            return None
        name = "".join(c if c.isalnum() else "_" for c in self._function.__name__)[:60]
        return directory / f"{name}-{digest.hexdigest()[:24]}{SUFFIX}", digest.digest()


class _Serialiser(CompileResultCacheImpl):
    """Numba's own reduction of a compiled function to what can be pickled, and back."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        self._lineno = code.co_firstlineno
        self._locator = types.SimpleNamespace(_py_file=code.co_filename)


# --- what a kernel depends on -------------------------------------------------------------------


class _Indescribable(Exception):
    """A kernel refers to something that can't be compared with what it was in another process."""


@functools.cache
def _toolchain() -> bytes | None:
    """Describe everything but the kernel; None if this package's own source can't be read."""
    sources = sorted(_sources(importlib.resources.files(__package__)))
    if not sources:
        return None
    digest = hashlib.sha256()
    for name, content in sources:
        digest.update(name.encode() + b"\0" + content + b"\0")
    versions = (
        getattr(sys.modules["numgrad"], "__version__", ""),
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        sys.version,
        getattr(sys, "abiflags", ""),
    )
    digest.update(repr(versions).encode())
    return digest.digest()


def _sources(folder: Any, path: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of every Python file under a folder of this package."""
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield path + entry.name, entry.read_bytes()
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{path}{entry.name}/")


def describe(function: Callable[..., Any]) -> Iterator[str]:
    """Say in lines of text what a function compiles to: its code, and all that its names mean.

    Kernels that it calls are described in the same way, once each.
    """
    pending = [function]
    seen = {id(function)}
    while pending:
        current = pending.pop()
        yield f"{current.__module__} {current.__qualname__} {current.__defaults__}"
        yield from _describe_code(current.__code__)
        for name, value in _references(current):
            if isinstance(value, Dispatcher):
                value = value.py_func
            if isinstance(value, types.FunctionType) and id(value) not in seen:
                seen.add(id(value))
                pending.append(value)
            yield f"{name} = {_describe_value(value)}"


def _describe_code(code: types.CodeType) -> Iterator[str]:
    """Yield the instructions with their constants and names, those of nested functions included."""
    yield f"{code.co_firstlineno} {code.co_code.hex()} {code.co_names} {code.co_varnames}"
    yield f"{code.co_freevars} {code.co_cellvars} {code.co_flags}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _describe_code(constant)
        else:
            yield _describe_value(constant)


def _references(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the global and enclosed variables that a function uses, with their present values."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        yield name, cell.cell_contents
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        for name in code.co_names:
            if name in function.__globals__:
                yield name, function.__globals__[name]


def _describe_value(value: Any) -> str:
    """Return text that is the same for equal values in every process, and for them alone."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_describe_value, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_describe_value, value)))}}}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, np.dtype | Type):
        return f"{type(value).__name__} {value}"
    # Modules, builtins, types: this package and the versions say what is in them.
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if name is None:
        raise _Indescribable
    return f"{type(value).__name__} {getattr(value, '__module__', None)} {name}"


# --- machine code needs symbols ------------------------------------------------------------------


def _external_symbols(library: Any) -> list[str]:
    """Name the C functions and variables that a compiled library expects to find in the process."""
    module = library._final_module
    declared = [*module.functions, *module.global_variables]
    return sorted(
        value.name
        for value in declared
        if value.is_declaration and not value.name.startswith("llvm.")
    )


def _provide(symbols: list[str], target_context: Any) -> None:
    """See to it that the symbols exist, as cheaply as possible.

    Numba fills its typing and lowering registries before it loads anything (about 0.2 s in a
    process, most of it the import of scipy.linalg). Machine code needs none of that, only the
    symbols that it refers to. Those of Numba's run time are registered here; if any other is
    missing, Numba does all it does.
    """
    missing = [symbol for symbol in symbols if not llvm.address_of_symbol(symbol)]
    helpers = getattr(getattr(runtime, "_nrt_python", None), "c_helpers", {})
    for symbol in missing:
        address = helpers.get(symbol.removeprefix("NRT_"), helpers.get(symbol))
        if address is None:
            target_context.refresh()
            return
        llvm.add_symbol(symbol, address)


# --- files ---------------------------------------------------------------------------------------


def read_entry(path: Path, key: bytes) -> bytes | None:
    """Return what was saved under this key; None if the file is missing or not to be trusted."""
    try:
        # Without O_NONBLOCK a FIFO in this place would wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not _is_private(status):
                _warn(f"{path} is not a file of this user's alone, so it was not loaded")
                return None
            content = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(f"{path} could not be read ({error})")
        return None
    start = len(MAGIC) + hashlib.sha256().digest_size
    payload = content[start:]
    if content[:start] != MAGIC + hashlib.sha256(key + payload).digest():
        _warn(f"{path} is damaged")
        return None
    return payload


def _is_private(status: os.stat_result) -> bool:
    """Whether nobody but this user can have written a file."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if os.name == "nt":  # no owners or modes there; the profile's access rules protect it
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def write_file(path: Path, content: bytes, *, replace: bool = True) -> bool:
    """Write a file so that every reader sees all of it or none, and report whether it is there.

    Parameters
    ----------
    path : pathlib.Path
        The file; its directory is made, private to the user, if it is missing.
    content : bytes
        What to write.
    replace : bool
        Whether to write a file of the same size that exists already.

    Returns
    -------
    bool
        False, after one warning a process, if the file could not be written.
    """
    temporary = None
    try:
        if not replace:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_size == len(content):
                    return True
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=path.name, suffix=".tmp", dir=path.parent)
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if os.name == "nt" and path.exists():
            return True  # there, a file that another process reads can't be replaced
        _warn(f"{path} could not be written ({error})")
        return False
    return True


def _prune(directory: Path) -> None:
    """Keep the directory from growing for ever, as versions come and go; once a process."""
    if _Counts.pruned:
        return
    _Counts.pruned = True
    files = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.endswith((SUFFIX, ".py", ".tmp")):
                    files.append((entry.stat(follow_symlinks=False), entry))
    files.sort(key=lambda file: file[0].st_mtime)
    unfinished_since = time.time() - 3600 * MAX_HOURS_UNFINISHED
    total = sum(status.st_size for status, _ in files)
    goal = MAX_BYTES // 2 if total > MAX_BYTES else total
    for status, entry in files:
        abandoned = entry.name.endswith(".tmp") and status.st_mtime < unfinished_since
        if total > goal or abandoned:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
                total -= status.st_size


def _warn(problem: str) -> None:
    """Say what is wrong with the cache, once a process."""
    if not _Counts.warned:
        _Counts.warned = True
        warnings.warn(
            f"numgrad's kernel cache: {problem}. Kernels are compiled where they can't be loaded. "
            "NUMGRAD_CACHE_DIR names another directory, NUMGRAD_CACHE_DIR=off goes without.",
            CacheWarning,
            stacklevel=3,
        )
