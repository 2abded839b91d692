"""The `kernel` decorator: compile with Numba on first use, without the GIL, cached on disk.

A kernel is an ordinary function of this package under `kernel`, or Python source that was emitted
at run time, given to `compile_source`. Both become Numba dispatchers, which other kernels and
users' ``@njit`` functions can call. Neither compiles nor reads anything until the first call.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from numgrad.codegen.compile.cache import KernelCache
from numgrad.codegen.compile.cache_files import cache_dir, write_file
from numgrad.codegen.compile.dispatchers import KernelDispatcher, remember_signature, whole
from numgrad.codegen.compile.pipelines import (
    ALONE_TRANSLATED,
    LEAN,
    THOROUGH,
    THOROUGH_TRANSLATED,
    TRANSLATED,
    pipeline,
)
from numgrad.codegen.compile.translated import Translation, translated, translation_of
from numgrad.codegen.loops import Function
from numgrad.codegen.numba_private import HAS_CACHE, HAS_PIPELINES, LLVM_LOCK, global_compiler_lock
from numgrad.codegen.printer import print_module
from numgrad.runtime.forks import forkable_lock, hold_imports, release_imports

__all__ = ["compile_functions", "compile_source", "generated_sources", "kernel"]

# Emitted kernels still in use, by name and content: the same source is compiled once a process.
_emitted: weakref.WeakValueDictionary[tuple[str, str, str], Any] = weakref.WeakValueDictionary()
# The latest are kept: LLVM never forgets machine code, so that one made again would be there twice.
_latest: deque[Any] = deque(maxlen=512)
_lock = forkable_lock()

_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
    "no_cfunc_wrapper": True,
}


def kernel(
    function: Callable[..., Any],
    steps: str = LEAN,
    *,
    inlined: bool = False,
    cached: bool = True,
) -> Any:
    """Make a function a lazily compiled Numba kernel: nogil, NumPy error model, disk cache.

    Parameters
    ----------
    function : callable
        What to compile, within what Numba's nopython mode allows. Bounds are not checked, division
        by zero gives inf and nan, and no floating point operation is reordered.
    steps : str
        Which pipeline it goes through, of `numgrad.codegen.compile.pipelines`.
    inlined : bool
        Whether it is inlined where compiled code calls it, whatever its size.
    cached : bool
        Whether it is kept on disk.

    Returns
    -------
    numba.core.dispatcher.Dispatcher
        Compiles (or loads from disk) on the first call with each set of argument types, under
        ``NUMBA_DISABLE_JIT=1``, too. Other compiled functions can call it, but not hold it as a
        value (it has no entry for C).

    Examples
    --------
    >>> @kernel
    ... def triple(x):
    ...     return 3 * x
    >>> triple(2.5)
    7.5
    """
    remember_signature(function)
    options = _OPTIONS | {"forceinline": True} if inlined else _OPTIONS.copy()
    dispatcher: Any = KernelDispatcher(function, targetoptions=options, **pipeline(steps))
    if cached and HAS_CACHE:
        # What Dispatcher.enable_caching does, with our cache in the place of Numba's.
        dispatcher._cache = KernelCache(function)
    return dispatcher


def compile_source(name: str, source: str, *, for_loops: bool = False) -> Any:
    r"""Make a kernel of emitted Python source.

    The source is kept in a file of the cache directory and in `linecache`, so that tracebacks show
    its lines.

    Parameters
    ----------
    name : str
        The function in `source` to compile.
    source : str
        A module: its imports, and a function called `name`, plain or under ``@njit``.
    for_loops : bool
        Whether it is short, and there to be called in loops of other compiled code: it is optimised
        with more effort, and inlined.

    Returns
    -------
    numba.core.dispatcher.Dispatcher
        As `kernel` returns; the same object for the same source while it is in use.

    Raises
    ------
    ValueError
        If `source` defines no function called `name`.
    SyntaxError
        If `source` is not Python; the error shows the line.

    Examples
    --------
    >>> square = compile_source("square", "def square(x):\n    return x * x\n")
    >>> square(3.0)
    9.0
    """
    return _known_or_fresh(name, source, THOROUGH if for_loops else LEAN, None)


def _known_or_fresh(
    name: str, source: str, steps: str, functions: Sequence[Function] | None
) -> Any:
    """Return the kernel of a source; it is made of the functions, if they are known."""
    # Steps that build less into the code than others make other files of the same source.
    alone = steps if steps == ALONE_TRANSLATED else ""
    digest = hashlib.sha256((alone + source).encode()).hexdigest()
    key = name, digest, steps
    known = _emitted.get(key)
    if known is None:
        fresh = whole(_execute, name, source, digest[:16], steps, functions)
        fresh.source = source
        with _lock:  # of two threads that come here together, both get the same
            known = _emitted.setdefault(key, fresh)
            _latest.append(known)
    return known


def compile_functions(
    functions: Sequence[Function],
    *,
    doc: str = "",
    for_loops: bool = False,
    alone: bool = False,
) -> Any:
    """Make a kernel of functions of the loop IR, the last of which is called.

    It means the same as their printed source, which is kept as that of `compile_source` is, and
    takes a fraction of the time to compile.

    Parameters
    ----------
    functions : sequence of Function
    doc : str
        The docstring of the printed source.
    for_loops : bool
        As for `compile_source`.
    alone : bool
        Whether Python alone calls it: long scalar operations, such as `betainc`, are compiled once
        for all such kernels. Code that calls them can't be built into other compiled functions.

    Returns
    -------
    numba.core.dispatcher.Dispatcher
        As `kernel` returns; the same object for the same source while it is in use.
    """
    name, source = functions[-1].name, print_module(functions, doc=doc)
    if not HAS_PIPELINES:
        return compile_source(name, source, for_loops=for_loops)
    steps = THOROUGH_TRANSLATED if for_loops else ALONE_TRANSLATED if alone else TRANSLATED
    return _known_or_fresh(name, source, steps, functions)


def generated_sources() -> list[str]:
    """Return the sources of the generated kernels that are in use, in the order of their making."""
    return [each.source for each in list(_emitted.values())]


def _execute(
    name: str,
    source: str,
    digest: str,
    steps: str,
    functions: Sequence[Function] | None,
) -> Any:
    """Run emitted source under a file name that leads back to it, and compile its function."""
    filename = _publish(f"{name}-{digest}.py", source)
    # Numba imports the module that a cached function says it is from, so it says this one.
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, filename, "exec"), namespace)
    # What says @njit runs as it stands wherever it is copied to; here it is a kernel.
    function = getattr(namespace.get(name), "py_func", namespace.get(name))
    if not isinstance(function, FunctionType):
        raise ValueError(f"the emitted source defines no function {name!r}:\n{source}")
    for value in namespace.values():
        defined = getattr(value, "py_func", value)  # helpers may be kernels already
        if isinstance(defined, FunctionType) and defined.__globals__ is namespace:
            # Numba names machine code after it: equal names must mean equal code.
            defined.__qualname__ += f"_{digest}"
    if functions is not None:
        function = _calling(translation_of(digest, functions, namespace), digest, filename)
    return kernel(function, steps, inlined=steps in (THOROUGH, THOROUGH_TRANSLATED))


def _calling(translation: Translation, digest: str, filename: str) -> FunctionType:
    """Return a function that calls translated ones."""
    main = translation.main
    given = ", ".join(main.parameters)
    line = f"def {main.name}({given}): return translated(translation, {given})"
    namespace: dict[str, Any] = {"__name__": __name__, "translated": translated}
    namespace["translation"] = translation
    exec(compile(line, filename, "exec"), namespace)
    function: Any = namespace[main.name]
    function.__qualname__ += f"_{digest}"
    return function


def _publish(basename: str, source: str) -> str:
    """Make the source findable by tracebacks and debuggers, and return its file name."""
    directory = cache_dir()
    if directory is not None and write_file(directory / basename, source.encode(), replace=False):
        filename = str(directory / basename)
    else:
        filename = f"<numgrad {basename}>"
    # No modification time: linecache keeps the entry, whatever happens to the file.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return filename


def _before_fork() -> None:
    """Wait for kernels that are being compiled: a child could never compile one otherwise.

    And for what another thread has LLVM do besides, such as forgetting code that nobody uses. Last
    for modules that are being imported, which may be done by who compiles, but compiles nothing.
    """
    global_compiler_lock.acquire()
    LLVM_LOCK.__enter__()
    hold_imports()


def _after_fork() -> None:
    """Let parent and child compile again."""
    release_imports()
    LLVM_LOCK.__exit__(None, None, None)
    global_compiler_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
