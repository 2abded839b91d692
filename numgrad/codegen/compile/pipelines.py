"""Numba compiler pipelines of our own, which compile kernels in less time.

Numba optimises a function three times: by itself, again after linking what it calls, lightly, so
that counts of references meet and cancel, and then in earnest. The first is a third of the time
that LLVM takes for a kernel, and leaves nothing in the result that the last does not find. And
every function gets a second entry, for C, which no kernel needs.

Of functions of the loop IR the types are known and the instructions are written by
`numgrad.codegen.compile.translated`: two steps do for them, without bytecode or inference. Kernels
that are written in Python are read as such functions, if they can be; else Numba's steps take them.

Functions that only ever become a part of others need nothing of this, no entry for Python and no
machine code of their own: LLVM sees them in the functions that they are built into. (Those without
branches do without Numba: see `numgrad.codegen.llvm.scalar_ir`.)

The entry for Python is compiled once for all kernels that take arguments of the same types
(`numgrad.codegen.compile.wrappers`).

Straight-line code that does the same to neighbouring elements becomes vector instructions (LLVM's
SLP vectoriser, which compilers of C run by default and Numba does not): a Kalman filter of four
states with its gradient takes .65 of the time, products of small matrices a third. Operations and
their order, and so the bits, are the same. ``NUMBA_SLP_VECTORIZE=0`` turns it off.

Where Numba has not what this takes (`HAS_PIPELINES` of `numgrad.codegen.numba_private`), kernels go
through its own pipeline.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from llvmlite import binding  # type: ignore[import-untyped]
from numba import config, types

from numgrad.codegen.compile.shared_code import SharedCode
from numgrad.codegen.compile.translated import declared, read_kernel, write_functions
from numgrad.codegen.compile.wrappers import Wrappers
from numgrad.codegen.llvm.width import VECTORISES_STRAIGHT_CODE, advise
from numgrad.codegen.numba_private import (
    HAS_PIPELINES,
    CompilerBase,
    DefaultPassBuilder,
    FunctionPass,
    JITCodeLibrary,
    Lower,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PassManager,
    begin_without_tables,
    fill_tables,
    link_run_time,
    make_function,
    register_pass,
)

__all__ = [
    "ALONE_TRANSLATED",
    "AS_WRITTEN",
    "LEAN",
    "PART",
    "THOROUGH",
    "THOROUGH_TRANSLATED",
    "TRANSLATED",
    "pipeline",
    "shared",
]

_options: Any = config


class _ThoroughLibrary(JITCodeLibrary):
    """Looks for vector instructions in straight-line code, too."""

    links_others = False  #: whether there is code in it that is no part of kernels

    def add_linking_library(self, library: Any) -> None:
        self.links_others = self.links_others or not isinstance(library, _PartLibrary)
        super().add_linking_library(library)

    def _optimize_final_module(self) -> None:  # under the lock of Numba's compiler
        before = _options.SLP_VECTORIZE
        _options.SLP_VECTORIZE = int(VECTORISES_STRAIGHT_CODE)
        try:
            super()._optimize_final_module()
        finally:
            _options.SLP_VECTORIZE = before


class _LeanLibrary(_ThoroughLibrary):
    """Optimises once what was linked."""

    def add_ir_module(self, ir_module: Any) -> None:
        advise(ir_module)
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class _AsWrittenLibrary(_LeanLibrary):
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
class _UseAsWrittenLibrary(_UseLibrary):
    _name = "numgrad_as_written_library"
    library = _AsWrittenLibrary


@register_pass(mutates_CFG=False, analysis_only=False)
class _UsePartLibrary(_UseLibrary):
    _name = "numgrad_part_library"
    library = _PartLibrary


@register_pass(mutates_CFG=False, analysis_only=False)
class _UseThoroughLibrary(_UseLibrary):
    _name = "numgrad_thorough_library"
    library = _ThoroughLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):
    """Leaves the function as it is, for others to link."""

    _name = "numgrad_lower_part"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_compile = True
        NativeLowering.run_pass(self, state)
        lowered, library = state.cr, state.library
        # By this the function is known; it does not lead to any code.
        key = make_function(
            lowered.fndesc.lookup_module(), lowered.fndesc.qualname, "", 0, lowered.env, (library,)
        )
        state.targetctx.insert_user_function(key, lowered.fndesc, [library])
        state.cr = lowered._replace(cfunc=key)
        return True


#: What the kernels of this process have in common, and the entries among it.
shared = SharedCode(_LeanLibrary)
_wrappers = Wrappers(shared, _AsWrittenLibrary)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerKernel(NativeLowering):
    """Compiles the entry for Python once for arguments of the same types."""

    _name = "numgrad_lower_kernel"

    def run_pass(self, state: Any) -> bool:  # under the lock of Numba's compiler
        context = state.targetctx
        context.create_cpython_wrapper = partial(_wrappers.create, context)
        try:
            return bool(NativeLowering.run_pass(self, state))
        finally:
            del context.create_cpython_wrapper


class _Translating(Lower):
    """Writes a translation down, and what hands its address over for the entry for Python."""

    shared: SharedCode | None = None  #: where what is dear to compile is, if it is not built in

    def init(self) -> None:
        """Look for nothing in Numba's IR: there is none."""

    def lower(self) -> None:
        self.emit_environment_object()
        typed = self.func_ir.typed
        if typed.is_apart:
            function = declared(self.context, self.module, self.fndesc.llvm_func_name, typed)
        else:
            function = self.context.declare_function(self.module, self.fndesc)
        write_functions(self.context, function, typed, self.shared)
        self.call_helper = None
        if not self.flags.no_cpython_wrapper:
            _wrappers.create(
                self.context,
                self.library,
                self.fndesc,
                self.env,
                self.call_helper,
                self.flags.release_gil,
                typed=None if self.library.links_others and not typed.is_apart else typed,
            )
        link_run_time(self.context, self.module, self.library)
        self.library.add_ir_module(self.module)

    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        """Do nothing: it is there."""


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerTranslated(_LowerKernel):
    """Goes from the loop IR to LLVM's, by types that are known without inference."""

    _name = "numgrad_lower_translated"
    lowering_class = _Translating
    use: type[_UseLibrary] = _UseLeanLibrary

    def run_pass(self, state: Any) -> bool:
        names = state.func_id.arg_names
        place = SimpleNamespace(filename=state.func_id.filename, line=state.func_id.firstlineno)
        place.with_lineno = lambda line: place
        # What is left of Numba's IR of a function: what its lowering looks at.
        state.func_ir = SimpleNamespace(
            func_id=state.func_id,
            arg_names=names,
            blocks={0: None},
            generator_info=None,
            loc=place,
            typed=state.typed,
        )
        state.typemap = {f"arg.{name}": kind for name, kind in zip(names, state.args, strict=True)}
        state.calltypes, state.type_annotation = {}, ""
        state.return_type = state.typed.result
        self.use().run_pass(state)
        return super().run_pass(state)


class _TranslatingAlone(_Translating):
    shared = shared


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerTranslatedAlone(_LowerTranslated):
    _name = "numgrad_lower_translated_alone"
    lowering_class = _TranslatingAlone


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerTranslatedThoroughly(_LowerTranslated):
    _name = "numgrad_lower_translated_thoroughly"
    use = _UseThoroughLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerTranslatedAsWritten(_LowerTranslated):
    _name = "numgrad_lower_translated_as_written"
    use = _UseAsWrittenLibrary


class _TranslatedCompiler(CompilerBase):
    """Compiles a function of the loop IR."""

    def __init__(self, *given: Any, **named: Any) -> None:
        with begin_without_tables():
            super().__init__(*given, **named)

    lower: type[_LowerTranslated] = _LowerTranslated
    is_alone = False  #: whether Python alone calls the function

    def typed(self, arguments: tuple[Any, ...]) -> Any:
        """Return the function with its types; None if Numba has to find them."""
        translation = self.state.func_id.func.__globals__["translation"]
        return translation.called_with(self.state.typingctx, arguments, alone=self.is_alone)

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.typed = self.typed(tuple([types.unliteral(kind) for kind in state.args]))
        if state.typed is None:
            fill_tables()
            return [_steps_of_numba(state, self.lower.use, _LowerKernel)]
        steps = PassManager("translated")
        steps.add_pass(self.lower, "loop IR to LLVM")
        steps.add_pass(NoPythonBackend, "what was compiled")
        steps.finalize()
        return [steps]


class _AloneTranslatedCompiler(_TranslatedCompiler):
    lower = _LowerTranslatedAlone
    is_alone = True


class _ThoroughTranslatedCompiler(_TranslatedCompiler):
    lower = _LowerTranslatedThoroughly


class _LeanCompiler(_TranslatedCompiler):
    """Compiles a Python function, which is read as one of the loop IR if it can be."""

    def typed(self, arguments: tuple[Any, ...]) -> Any:
        return read_kernel(self.state.typingctx, self.state.func_id.func, arguments)


class _AsWrittenCompiler(_LeanCompiler):
    lower = _LowerTranslatedAsWritten


class _ThoroughCompiler(_LeanCompiler):
    lower = _LowerTranslatedThoroughly


class _PartCompiler(CompilerBase):
    def __init__(self, *given: Any, **named: Any) -> None:
        fill_tables()
        super().__init__(*given, **named)

    def define_pipelines(self) -> list[Any]:
        return [_steps_of_numba(self.state, _UsePartLibrary, _LowerPart)]


def _steps_of_numba(state: Any, use: type[_UseLibrary], lower: type[FunctionPass]) -> Any:
    """Return Numba's own steps, of which the last goes another way."""
    steps = DefaultPassBuilder.define_nopython_pipeline(state)
    steps.add_pass_after(use, NopythonTypeInference)
    steps.passes = [
        (lower if step is NativeLowering else step, says) for step, says in steps.passes
    ]
    steps.finalize()
    return steps


#: Numba's compiler, less the optimisation of functions by themselves.
LEAN = "lean"
#: The same for loops that are vectorised already.
AS_WRITTEN = "as written"
#: The same with the optimisation of functions by themselves. Straight-line code with short arrays
#: on the stack takes half as long after it: LLVM knows what is in them before it decides on loops.
THOROUGH = "thorough"
#: LEAN and THOROUGH for functions of the loop IR, of which Numba sees neither bytecode nor types.
TRANSLATED, THOROUGH_TRANSLATED = "translated", "thorough, translated"
#: TRANSLATED for functions that Python alone calls: they call the machine code that kernels share,
#: which a user's own compiled function, kept on disk by Numba, would look for in vain.
ALONE_TRANSLATED = "alone, translated"
#: For functions that are built into others and that Python does not call.
PART = "part"

_COMPILERS: dict[str, Any] = {
    LEAN: _LeanCompiler,
    AS_WRITTEN: _AsWrittenCompiler,
    THOROUGH: _ThoroughCompiler,
    TRANSLATED: _TranslatedCompiler,
    THOROUGH_TRANSLATED: _ThoroughTranslatedCompiler,
    ALONE_TRANSLATED: _AloneTranslatedCompiler,
    PART: _PartCompiler,
}


def pipeline(name: str) -> dict[str, Any]:
    """Return the option by which Numba compiles with a pipeline of ours; none without them.

    Examples
    --------
    >>> sorted(pipeline(LEAN)) in (["pipeline_class"], [])
    True
    """
    return {"pipeline_class": _COMPILERS[name]} if HAS_PIPELINES else {}
