"""The generated source of the kernels that this process uses."""

from __future__ import annotations

from numgrad.codegen.compile.compile import generated_sources

__all__ = ["kernel_sources"]


def kernel_sources(name: str = "") -> list[str]:
    """Return the generated sources of compiled kernels, in the order in which they were made.

    Each is a module, with functions under Numba's ``@njit`` of which the last is the kernel. Pasted
    elsewhere it runs, and has the same bits. Kernels that nobody can call any more are left out.

    Parameters
    ----------
    name : str
        What the first lines of the modules begin with: that of an elementwise operation, or of a
        function of `numgrad.math`. All if empty.

    See Also
    --------
    numgrad.jit : ``jit(f).lower(x).source`` and ``jit(f).lower(x).dispatcher.source`` are those of
        one compiled function.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.utils import kernel_sources
    >>> y = ng.hypot(ng.tensor([3.0, 5.0]), ng.tensor([4.0, 12.0]))
    >>> print(kernel_sources("hypot")[0])
    \"\"\"hypot, for operands aa.\"\"\"
    <BLANKLINE>
    from numba import njit
    from numgrad.codegen.llvm.width import use_wide_vectors
    from numgrad.math import scalar
    <BLANKLINE>
    <BLANKLINE>
    @njit(error_model="numpy", nogil=True)
    def loop(input, other, out0):
        ...
    """
    return [each for each in generated_sources() if each.startswith(f'"""{name},' * bool(name))]
