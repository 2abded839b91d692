"""Numba compiler pipelines of our own, which compile kernels in less time.

Numba optimises a function three times: by itself, again after linking what it calls, lightly, so
that counts of references meet and cancel, and then in earnest. The first is a third of the time
that LLVM takes for a kernel, and leaves nothing in the result that the last does not find. And
every function gets a second entry, for C, which no kernel needs.

Functions that only ever become a part of others need nothing of this, no entry for Python and no
machine code of their own: LLVM sees them in the functions that they are built into. (Those without
branches do without Numba: see `numgrad.codegen.llvm.scalar_ir`.)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from llvmlite import binding  # type: ignore[import-untyped]
from numba import _dynfunc, config, types  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering, NopythonTypeInference
from numba.extending import register_jitable

from numgrad.codegen.llvm.width import interleave
from numgrad.runtime.interrupts import undisturbed

__all__ = [
    "PART_OPTIONS",
    "KernelDispatcher",
    "LeanCompiler",
    "PlainCompiler",
    "ThoroughCompiler",
    "inline",
    "part",
    "whole",
]


class _LeanLibrary(JITCodeLibrary):
    """Optimises once what was linked."""

    def add_ir_module(self, ir_module: Any) -> None:
        interleave(ir_module)
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class _PlainLibrary(_LeanLibrary):
    """For code that is written as it shall be: loops are left as they are."""

    def _optimize_final_module(self) -> None:
        options = binding.create_pipeline_tuning_options(speed_level=1)
        options.loop_unrolling = options.loop_vectorization = options.slp_vectorization = False
        builder = binding.create_pass_builder(self._codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)


class _PartLibrary(_LeanLibrary):
    """For what others link: it is never optimised by itself, nor made machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _UseLibrary(FunctionPass):
    """Has the machine code made by the library that the compiler names."""

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    library: Any

    def run_pass(self, state: Any) -> bool:
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()  # as Numba's own pass does when it makes one
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _UseLeanLibrary(_UseLibrary):
    _name = "numgrad_lean_library"
    library = _LeanLibrary


@register_pass(mutates_CFG=False, analysis_only=False)
class _UsePlainLibrary(_UseLibrary):
    _name = "numgrad_plain_library"
    library = _PlainLibrary


@register_pass(mutates_CFG=False, analysis_only=False)
class _UsePartLibrary(_UseLibrary):
    _name = "numgrad_part_library"
    library = _PartLibrary


@register_pass(mutates_CFG=False, analysis_only=False)
class _UseThoroughLibrary(_UseLibrary):
    _name = "numgrad_thorough_library"
    library = JITCodeLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):
    """Leaves the function as it is, for others to link."""

    _name = "numgrad_lower_part"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_compile = True
        NativeLowering.run_pass(self, state)
        lowered, library = state.cr, state.library
        # By this the function is known; it does not lead to any code.
        key = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), lowered.fndesc.qualname, "", 0, lowered.env, (library,)
        )
        state.targetctx.insert_user_function(key, lowered.fndesc, [library])
        state.cr = lowered._replace(cfunc=key)
        return True


class LeanCompiler(CompilerBase):
    """Numba's compiler, less the optimisation of functions by themselves."""

    use: type[_UseLibrary] = _UseLeanLibrary

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(self.use, NopythonTypeInference)
        pipeline.finalize()
        return [pipeline]


class PlainCompiler(LeanCompiler):
    """The same for loops that are vectorised already."""

    use = _UsePlainLibrary


class ThoroughCompiler(LeanCompiler):
    """The same with the optimisation of functions by themselves.

    Straight-line code with short arrays on the stack takes half as long after it: LLVM sees what is
    in them before it decides about loops.
    """

    use = _UseThoroughLibrary


class PartCompiler(CompilerBase):
    """For functions that are built into others and that Python does not call."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_UsePartLibrary, NopythonTypeInference)
        pipeline.passes = [
            (_LowerPart if step is NativeLowering else step, says) for step, says in pipeline.passes
        ]
        pipeline.finalize()
        return [pipeline]


# What makes Numba compile a function as a part of others, inlined whatever its size: a call that is
# left over keeps LLVM from vectorising the loop.
PART_OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": PartCompiler,
}

# Marks functions that can be handed on to others that are built into kernels, as an argument. (A
# dispatcher would put its address into the machine code, and such code can't be cached.) LLVM
# decides whether they are inlined; from Python they are what they were.
inline = register_jitable(**PART_OPTIONS | {"forceinline": False})


_settings: Any = config  # whose attributes come from the environment


def whole(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a part of the compiler so that nothing can tear it, and nothing keeps it from compiling.

    ``NUMBA_DISABLE_JIT=1`` is there for who looks for an error in a program: it makes their own
    ``@njit`` functions plain ones. Kernels have nothing to do with that. Most of what they consist
    of has no meaning in Python, and Numba's own part of them is compiled functions, too.
    """
    if not _settings.DISABLE_JIT:
        return undisturbed(function, *arguments)
    return undisturbed(_while_enabled, function, *arguments)


def _while_enabled(function: Callable[..., Any], *arguments: Any) -> Any:
    with global_compiler_lock:  # of two threads, the second must not find it disabled again
        before, _settings.DISABLE_JIT = _settings.DISABLE_JIT, 0
        try:
            return function(*arguments)
        finally:
            _settings.DISABLE_JIT = before


class KernelDispatcher(CPUDispatcher):
    """A dispatcher whose compiling is done as a whole, or not at all."""

    def compile(self, sig: Any) -> Any:
        for position, given in enumerate(getattr(sig, "args", sig)):
            # In compiled code it gets as far as here: Numba has a type for it, but no numbers.
            if getattr(given, "dtype", given) == types.float16:
                self._refuse(position, "an array of float16")
        return whole(super().compile, sig)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        for position, argument in enumerate(args):
            self._check_type(position, argument)
        return whole(super()._compile_for_args, *args)  # type: ignore[misc]

    def _check_type(self, position: int, argument: Any) -> None:
        """Raise for what Numba has no type for, or none that it compiles without a word."""
        dtype = getattr(argument, "dtype", None)
        found = self.typeof_pyval(argument)
        unknown = getattr(found, "dtype", found) in (types.pyobject, types.float16)
        if not (unknown or isinstance(found, (types.List, types.Set))):
            return
        what = f"a {type(argument).__name__}"
        if isinstance(dtype, np.dtype):
            order = "" if dtype.isnative else " in foreign byte order"
            what = f"an array of {dtype.name}{order}"
        self._refuse(position, what)

    def _refuse(self, position: int, what: str) -> NoReturn:
        raise TypeError(
            f"argument {position} is {what}, but compiled code takes numbers, and NumPy arrays of "
            "bool, integers, float32, float64, complex64 and complex128 in native byte order"
        )


class _Part(KernelDispatcher):
    """A dispatcher that only compiled code can call."""

    def add_overload(self, compiled: Any) -> None:
        # Not where a call from Python would find it: there is nothing to be called.
        self.overloads[tuple(compiled.signature.args)] = compiled

    def _compile_for_args(self, *args: Any, **kws: Any) -> NoReturn:
        raise TypeError(f"{self.py_func.__name__} is a part of kernels: only these can call it")


def part(function: Callable[..., Any], *, inlined: bool = True) -> Any:
    """Make a function one that kernels are built of.

    Parameters
    ----------
    function : callable
        What to compile, within what Numba's nopython mode allows, without exceptions.
    inlined : bool
        Whether to inline it whatever its size; else LLVM decides. A call that is left over keeps it
        from vectorising the loop.

    Returns
    -------
    numba.core.dispatcher.Dispatcher
        For compiled functions to call; from Python it raises a `TypeError`.

    Examples
    --------
    >>> from numgrad.codegen.compile.compile import kernel
    >>> @part
    ... def twice(x):
    ...     return x + x
    >>> @kernel
    ... def six_times(x):
    ...     return 3 * twice(x)
    >>> six_times(2.0)
    12.0
    """
    remember_signature(function)
    options = PART_OPTIONS | {"nopython": True, "forceinline": inlined}
    compiler = options.pop("pipeline_class")
    return _Part(function, targetoptions=options, pipeline_class=compiler)


def remember_signature(function: Any) -> None:
    """Keep a function's signature with it: a dispatcher asks for that four times as it is made."""
    function.__signature__ = inspect.signature(function)
