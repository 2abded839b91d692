"""A shorter way through Numba's compiler, for kernels that need no more.

Numba optimises a function three times: by itself, again after linking what it calls, lightly, so
that counts of references meet and cancel, and then in earnest. The first is a third of the time
that LLVM takes for a kernel, and leaves nothing in the result that the last does not find. And
every function gets a second entry, for C, which no kernel needs.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference

__all__ = ["LeanCompiler", "PlainCompiler"]


class _LeanLibrary(JITCodeLibrary):
    """Optimises once what was linked."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class _PlainLibrary(_LeanLibrary):
    """For code that is written as it shall be: loops are left as they are."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager(
            opt=1, loop_vectorize=False, slp_vectorize=False
        )
        passes.run(self._final_module, builder)


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
