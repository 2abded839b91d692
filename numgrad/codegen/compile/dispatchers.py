"""Dispatchers of kernels, and of functions that are parts of kernels.

A dispatcher compiles a function for each kind of arguments. Those of kernels do it as a whole or
not at all, whatever interrupts them, and say what is wrong with arguments that compiled code can't
take. Parts are built into kernels; Python does not call them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn, cast

import numpy as np
from numba import NumbaError, config, from_dtype, types
from numba.extending import register_jitable

from numgrad.base import dtypes
from numgrad.codegen.compile.pipelines import PART, pipeline
from numgrad.codegen.llvm.function_types import Part
from numgrad.codegen.numba_private import CPUDispatcher, global_compiler_lock
from numgrad.runtime.garbage import without_collections
from numgrad.runtime.interrupts import undisturbed

__all__ = ["KernelDispatcher", "inline", "part", "whole"]

# What makes Numba compile a function as a part of others, inlined whatever its size: a call that is
# left over keeps LLVM from vectorising the loop.
_PART_OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

# Of functions that can be handed on to others that are built into kernels, as an argument. (A
# dispatcher would put its address into the machine code, and such code can't be cached.) LLVM
# decides whether they are inlined; from Python they are what they were.
_registered = register_jitable(**_PART_OPTIONS | {"forceinline": False} | pipeline(PART))


def inline(function: Any) -> Any:
    """Make a function one that kernels are built of, and hand on to each other."""
    function.part_of_kernels = Part(function, is_inlined=False)
    return _registered(function)


# Up to so many dims Numba looks the type of an array up in a table (N_NDIM in its _typeof.cpp).
DIMS_AT_A_GLANCE = 5

_settings: Any = config  # whose attributes come from the environment


def whole(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a part of the compiler so that nothing can tear it, and nothing keeps it from compiling.

    ``NUMBA_DISABLE_JIT=1`` is there for who looks for an error in a program: it makes their own
    ``@njit`` functions plain ones. Kernels have nothing to do with that. Most of what they consist
    of has no meaning in Python, and Numba's own part of them is compiled functions, too.
    """
    with without_collections():  # for which compiling leaves a lot to do, a quarter of its time
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
    """A dispatcher whose compiling is done as a whole, or not at all.

    Attributes
    ----------
    source : str
        The module that was generated for it, with the ``@njit`` function that it is; empty where
        that was written by hand.
    recipe : (callable, tuple) or None
        How to make it in another process, with what arguments, where its code calls back what only
        this process has.
    """

    source = ""
    recipe: Any = None

    def add_overload(self, compiled: Any) -> None:
        """Let calls from Python find what was compiled, unless a foreign array could pass for it.

        Numba tells byte orders apart at a glance or not at all: read-only arrays, unaligned ones,
        and those of many dims go by a fingerprint, which has none. These come to
        `_compile_for_args` every time, which looks closer.
        """
        if all(map(_is_told_at_a_glance, compiled.signature.args)):
            super().add_overload(compiled)
        else:
            self.overloads[tuple(compiled.signature.args)] = compiled

    def _reduce_states(self) -> dict[str, Any]:
        """Have the steps of the compiler pickled, too, which Numba leaves out."""
        compiler: Any = vars(self)["_compiler"]
        states: dict[str, Any] = super()._reduce_states()  # type: ignore[misc]
        added = {"pipeline_class": compiler.pipeline_class, "source": self.source}
        return {**states, **added, "recipe": self.recipe}

    @classmethod
    def _rebuild(cls, pipeline_class: Any, source: str, recipe: Any, **states: Any) -> Any:
        if recipe is not None:
            (make, given), known = recipe, cast(Any, cls)._memo
            return known.get(states["uuid"]) or make(*given)
        made: Any = super()._rebuild(  # type: ignore[misc]
            **{**states, "sigs": [], "can_compile": True}
        )
        made._compiler.pipeline_class, made.source = pipeline_class, source
        for signature in states["sigs"]:
            made.compile(signature)
        made._can_compile = states["can_compile"]
        return made

    def compile(self, sig: Any) -> Any:
        for position, given in enumerate(getattr(sig, "args", sig)):
            # In compiled code it gets as far as here: Numba has a type for it, but no numbers.
            if getattr(given, "dtype", given) == types.float16:
                self._refuse(position, "an array of float16")
        return whole(super().compile, sig)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        looks = tuple(map(_look_of, args))
        known = self.__dict__.setdefault("_known", {})
        entry = known.get(looks)
        if entry is not None:
            return entry
        found: Any = self.overloads.get(tuple(map(self.typeof_pyval, args)))
        if found is not None:
            if None not in looks:
                known[looks] = found.entry_point
            return found.entry_point
        for position, argument in enumerate(args):
            self._check_type(position, argument)
        return whole(super()._compile_for_args, *args)  # type: ignore[misc]

    def typeof_pyval(self, val: Any) -> Any:
        """Return Numba's type of an argument, by which it looks for what it has compiled.

        That of an array is made here: to Numba arrays are aligned, whatever they are, its
        fingerprint of one that is not is that of one in foreign byte order, which would pass for
        it, and the first array that it is asked for makes it import masked arrays, for 8 ms.
        """
        try:
            if type(val) is not np.ndarray:
                found: Any = super().typeof_pyval(val)
                return found
            element, flags = from_dtype(val.dtype), val.flags
        except NumbaError:  # what some versions of Numba raise, and others take for an object
            return types.pyobject
        layout: Any = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        readonly, aligned = not flags.writeable, flags.aligned
        return types.Array(element, val.ndim, layout, readonly=readonly, aligned=aligned)

    def _check_type(self, position: int, argument: Any) -> None:
        """Raise for what Numba has no type for, or none that it compiles without a word."""
        dtype = getattr(argument, "dtype", None)
        found = self.typeof_pyval(argument)
        unknown = getattr(found, "dtype", found) in (types.pyobject, types.float16)
        if not (unknown or isinstance(found, (types.List, types.Set))):
            return
        what = f"a {type(argument).__name__}"
        if isinstance(dtype, np.dtype) and type(argument) is np.ndarray:
            order = "" if dtype.isnative else " in foreign byte order"
            what = f"an array of {dtype.name}{order}"
        self._refuse(position, what)

    def _refuse(self, position: int, what: str) -> NoReturn:
        raise TypeError(
            f"argument {position} is {what}, but compiled code takes numbers, and NumPy arrays of "
            "bool, integers, float32, float64, complex64 and complex128 in native byte order"
        )


def _look_of(argument: Any) -> Any:
    """Return what tells Numba's type of an argument in a moment; None if nothing does."""
    if type(argument) is np.ndarray:
        return argument.dtype, argument.ndim, argument.flags.num
    kind = type(argument)
    if kind is int:
        return kind if dtypes.is_int64(argument) else None
    return kind if kind is float or kind is bool or issubclass(kind, np.number) else None


def _is_told_at_a_glance(given: Any) -> bool:
    """Whether Numba knows an argument of a type without making a fingerprint of it."""
    if not isinstance(given, types.Array):
        return True
    return bool(given.mutable and given.aligned and given.ndim <= DIMS_AT_A_GLANCE)


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
    options = _PART_OPTIONS | {"nopython": True, "forceinline": inlined}
    made: Any = _Part(function, targetoptions=options, **pipeline(PART))
    made.part_of_kernels = Part(function, is_inlined=inlined)
    return made


def remember_signature(function: Any) -> None:
    """Keep a function's signature with it: a dispatcher asks for that four times as it is made."""
    function.__signature__ = inspect.signature(function)
