"""All that is used of Numba besides its public interface, and whether this Numba has it.

No other module imports from ``numba.core`` or the like. What is here is of three kinds:

*Needed.* What functions that write LLVM's instructions are made with. Numba's documentation has
them as its low-level interface for extensions, though they stand in ``numba.core``. There is no
other way to hand an instruction on, so nothing takes their place.

*To compile in less time* (`HAS_PIPELINES`): the steps that Numba's compiler goes through, of which
`numgrad.codegen.compile.pipelines` leaves some out.

*To keep what was compiled* (`HAS_CACHE`): the machine code in a compiled function, for
`numgrad.codegen.compile.cache`. Numba's own cache knows a function by its file and the time this
was written, and not what it calls or refers to, so it can't hold code that is generated.

What the latter two gain was measured with Numba 0.68: seconds of a processor that it takes, on
first use, to multiply by a transposed tensor, exp, sum, tanh, softmax, their backward pass and a
compiled function of sin, a sum and logsumexp.

==============================  ===
all of it                       3.8
without pipelines               5.3
without either                  5.3
all of it, run again            0.24
without pipelines, run again    0.28
==============================  ===

Where a Numba lacks something of a kind, or ``NUMGRAD_NUMBA=plain`` says so, kernels are compiled as
``numba.njit`` does it, anew in every process: later, and with the same bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from llvmlite.binding import ffi  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.extending import _Intrinsic as Intrinsic
from numba.core.imputils import builtin_registry as lowering_registry
from numba.core.imputils import impl_ret_borrowed
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.typing.templates import (
    AbstractTemplate,
    builtin_registry,
    infer_global,
    signature,
)
from numba.np.numpy_support import as_dtype
from numba.np.ufunc.dufunc import DUFunc

from numgrad.base.environment import words_of

__all__ = [
    "HAS_CACHE",
    "HAS_PIPELINES",
    "IS_PLAIN",
    "LLVM_LOCK",
    "PARTS",
    "AbstractTemplate",
    "CPUDispatcher",
    "CompileResultCacheImpl",
    "CompilerBase",
    "DUFunc",
    "DefaultPassBuilder",
    "FunctionCache",
    "FunctionPass",
    "Intrinsic",
    "JITCodeLibrary",
    "Lower",
    "NativeLowering",
    "NoPythonBackend",
    "NopythonTypeInference",
    "PassManager",
    "PyCallWrapper",
    "as_dtype",
    "begin_without_tables",
    "cgutils",
    "compile_result",
    "cpu_target",
    "dumps",
    "fill_tables",
    "found_in",
    "global_compiler_lock",
    "impl_ret_borrowed",
    "infer_global",
    "link_run_time",
    "look_up",
    "make_function",
    "register_pass",
    "run_time_helpers",
    "signature",
    "type_of_value",
    "ziggurat_tables",
]


#: Whether ``NUMGRAD_NUMBA=plain`` forbids what can be done without.
IS_PLAIN = "plain" in words_of("NUMGRAD_NUMBA", ["plain"])

_LIBRARY = "add_ir_module add_linking_library enable_object_caching _finalize_final_module"
#: What can be done without, by kind: where it stands, and the methods of it that classes derived
#: from it call or override.
PARTS: dict[str, dict[str, str]] = {
    "pipelines": {
        "numba._dynfunc.make_function": "",
        "numba.core.callwrapper.PyCallWrapper": "build build_wrapper get_env",
        "numba.core.codegen.JITCodeLibrary": _LIBRARY
        + " finalize get_pointer_to_function _get_compiled_object"
        + " _finalize_dynamic_globals _optimize_functions _optimize_final_module",
        "numba.core.compiler.CompilerBase": "define_pipelines",
        "numba.core.compiler.DefaultPassBuilder": "define_nopython_pipeline",
        "numba.core.compiler_machinery.FunctionPass": "",
        "numba.core.compiler_machinery.PassManager": "add_pass finalize",
        "numba.core.compiler_machinery.register_pass": "",
        "numba.core.cpu.CPUContext": "create_cpython_wrapper post_lowering",
        "numba.core.dispatcher.Dispatcher": "_reduce_states _rebuild",
        "numba.core.runtime._nrt_python.c_helpers": "",
        "numba.core.lowering.Lower": "init emit_environment_object create_cpython_wrapper",
        "numba.core.typed_passes.NativeLowering": "run_pass lowering_class",
        "numba.core.typed_passes.NoPythonBackend": "",
        "numba.core.typed_passes.NopythonTypeInference": "",
    },
    "cache": {
        "numba.core.caching.CompileResultCacheImpl": "check_cachable reduce",
        "numba.core.caching.FunctionCache": "enable load_overload save_overload",
        "numba.core.codegen.JITCodeLibrary": _LIBRARY
        + " _set_compiled_object _get_module_for_linking",
        "numba.core.compiler.compile_result": "",
        "numba.core.dispatcher.Dispatcher": "enable_caching",
        "numba.core.runtime._nrt_python.c_helpers": "",
    },
}


def look_up(kind: str) -> dict[str, Any]:
    """Return the parts of a kind by their names; none if this Numba lacks one of them.

    Examples
    --------
    >>> "compile_result" in look_up("cache") or not look_up("cache")
    True
    """
    found = {}
    for path, methods in PARTS[kind].items():
        module, name = path.rsplit(".", 1)
        try:
            found[name] = part = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            return {}
        if not all(hasattr(part, method) for method in methods.split()):
            return {}
    return found


# Where a part is not there, classes derived from these are nothing that is made use of.
_pipelines, _cache = ({} if IS_PLAIN else look_up(kind) for kind in ("pipelines", "cache"))
HAS_PIPELINES, HAS_CACHE = bool(_pipelines), bool(_cache)

make_function: Any = _pipelines.get("make_function")
JITCodeLibrary: Any = (_pipelines or _cache).get("JITCodeLibrary", object)
CompilerBase: Any = _pipelines.get("CompilerBase", object)
DefaultPassBuilder: Any = _pipelines.get("DefaultPassBuilder")
FunctionPass: Any = _pipelines.get("FunctionPass", object)
register_pass: Any = _pipelines.get("register_pass", lambda **_: lambda cls: cls)
Lower: Any = _pipelines.get("Lower", object)
NativeLowering: Any = _pipelines.get("NativeLowering", object)
NoPythonBackend: Any = _pipelines.get("NoPythonBackend")
NopythonTypeInference: Any = _pipelines.get("NopythonTypeInference")
PassManager: Any = _pipelines.get("PassManager")
PyCallWrapper: Any = _pipelines.get("PyCallWrapper", object)

CompileResultCacheImpl: Any = _cache.get("CompileResultCacheImpl", object)
FunctionCache: Any = _cache.get("FunctionCache", object)
compile_result: Any = _cache.get("compile_result")
#: The functions of Numba's run time that machine code may call, by name: their addresses.
run_time_helpers: dict[str, int] = (_pipelines or _cache).get("c_helpers", {})

# --- LLVM's lock ---------------------------------------------------------------------------------

# llvmlite calls LLVM under it. A process that forks meanwhile would leave it locked in the child.
LLVM_LOCK: Any = getattr(ffi.lib, "_lock", contextlib.nullcontext())

# --- Numba's tables ------------------------------------------------------------------------------


def type_of_value(context: Any, value: Any) -> Any:
    """Return Numba's type of what a name stands for, whether its tables are filled or not.

    What this package declares waits in a list until they are.

    Raises
    ------
    ValueError
        If there is none.
    """
    if str(getattr(value, "__module__", "")).startswith("numgrad."):
        for declared, kind in reversed(builtin_registry.globals):
            if declared is value:
                return kind
    return context.resolve_value_type(value)


def fill_tables() -> None:
    """Have Numba fill its tables of all that it can compile: .07 s, and little when it did before.

    What functions of the loop IR consist of is mostly known without: see `begin_without_tables`.
    """
    vars(cpu_target.typing_context).pop("resolve_value_type", None)
    load_functions_of_arrays()
    cpu_target.target_context.refresh()


def found_in(context: Any, find: Callable[[], Any]) -> Any:
    """Return how Numba writes something down; load what it knows of arrays if it does not know."""
    try:
        return find()
    except NotImplementedError:
        import_module("numba.np.arrayobj")
        context.refresh()
        return find()


def _type_or_fill(value: Any) -> Any:
    """Return Numba's type of a value, that of a function when the tables have it.

    Functions that write down others (a cast to a bool, say) ask for these.
    """
    own, typing = type(cpu_target.typing_context).resolve_value_type, cpu_target.typing_context
    try:
        return own(typing, value)
    except ValueError:
        fill_tables()
        return own(typing, value)


@contextlib.contextmanager
def begin_without_tables() -> Iterator[None]:
    """Let a compiler of Numba's begin without filling its tables; under its lock.

    It can write down arithmetic, conversions, elements of arrays, and what this package declares.
    Before another function is written down, the tables are filled: so that its type is known.
    """
    typing, target = cpu_target.typing_context, cpu_target.target_context
    for module in ("cpython.builtins", "cpython.numbers", "cpython.tupleobj"):
        import_module(f"numba.{module}")
    target.install_registry(lowering_registry)
    typing.refresh = lambda: None
    # The compiler copies this context, and Numba asks the copy for functions that there may not be:
    # it learns what was declared in the meantime, and no more.
    target.refresh = lambda: target.install_registry(lowering_registry)
    typing.resolve_value_type = _type_or_fill  # for good: what is written down asks after this
    try:
        yield
    finally:
        del typing.refresh, target.refresh


def link_run_time(context: Any, module: Any, library: Any) -> None:
    """Do to a module what is to be done once it is written; link what it calls of the run time.

    The run time has to be compiled, which takes as long as a short kernel.
    """
    if context.is32bit or any(name.startswith("NRT_") for name in module.globals):
        rtsys.initialize(context)
        context.post_lowering(module, library)


# --- modules that Numba loads --------------------------------------------------------------------


@cache
def load_functions_of_arrays() -> None:
    """Have Numba load what it knows of NumPy's functions, and SciPy not before it is used.

    As it is imported, which the first compile in a process has done, ``numba.np.arraymath`` imports
    SciPy's BLAS to see whether it is there: a fifth of the time that a first compile takes. That
    SciPy is installed says the same (what calls BLAS imports it, and says what is wrong).
    """
    linalg: Any = import_module("numba.np.linalg")
    if not hasattr(linalg, "ensure_blas") or find_spec("scipy") is None:
        return
    with global_compiler_lock:  # one thread at a time
        imports_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
        try:
            import_module("numba.np.arraymath")
        finally:
            linalg.ensure_blas = imports_blas


def ziggurat_tables() -> Any:
    """Return the module of the tables that NumPy draws normal and exponential numbers with.

    Numba has them for its own compiled generators; NumPy does not hand them out.
    """
    return import_module("numba.np.random._constants")
