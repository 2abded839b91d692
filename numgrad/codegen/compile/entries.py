"""Compiled entry points of kernels, for who knows the types of the arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["entry_of"]


@lru_cache(maxsize=1 << 10)
def entry_of(kernel: Any, *kinds: Any) -> Any:
    """Return a kernel's compiled entry point, which does not look at the types of its arguments.

    Parameters
    ----------
    kernel : compiled function
    *kinds : numpy.dtype, type or None
        What each argument always is: a dtype stands for writable C-contiguous arrays of one
        dimension, ``int`` and ``bool`` for such a number, None for None. (Bools may be given as
        arrays where bytes are expected: only the size of the elements is looked at.)

    Examples
    --------
    >>> from numgrad.codegen.compile.compile import kernel
    >>> @kernel
    ... def double(x, out):
    ...     for i in range(x.size):
    ...         out[i] = 2 * x[i]
    >>> x, out = np.arange(3.0), np.empty(3)
    >>> entry_of(double, x.dtype, out.dtype)(x, out)
    >>> out
    array([0., 2., 4.])
    """
    examples = [
        np.empty(0, kind) if isinstance(kind, np.dtype) else None if kind is None else kind()
        for kind in kinds
    ]
    signature = tuple(map(kernel.typeof_pyval, examples))
    kernel.compile(signature)
    return kernel.overloads[signature].entry_point
