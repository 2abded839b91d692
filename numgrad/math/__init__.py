"""Scalar functions that kernels and users' own ``@njit`` code call: real and complex.

Every elementwise operation of the catalogue is here as a function of numbers, under its name there
and its other public ones, with the bits that it has on tensors of their dtype. Beside it is its
derivative rule, ``<name>_vjp``: a function of the cotangent and the operands that returns the
gradient of the operand, or a tuple of those that have one. Both are Numba dispatchers, made when
they are first asked for; ``dir(numgrad.math)`` lists them. `ufunc` gives an operation as a NumPy
ufunc.

>>> from numba import njit
>>> from numgrad import math
>>> @njit
... def logistic_loss(x, label):
...     return -math.logsigmoid(x if label else -x)
>>> round(logistic_loss(0.5, True), 6)
0.474077
>>> math.tanh_vjp(1.0, 0.0)
1.0
"""

from __future__ import annotations

from typing import Any

from numgrad.math.functions import (
    FORMULAS,
    OTHER_NAMES,
    has_function,
    scalar_function,
    ufunc,
)

__all__ = ["ufunc"]


def __getattr__(name: str) -> Any:
    if not (name.isidentifier() and has_function(name)):
        raise AttributeError(f"module 'numgrad.math' has no attribute {name!r}")
    return scalar_function(name)


def __dir__() -> list[str]:
    for load in {*FORMULAS.later.values()}:
        load()
    named = [name for name in (*FORMULAS, *OTHER_NAMES) if name.isidentifier()]
    rules = filter(has_function, [f"{name}_vjp" for name in named])
    return sorted({*__all__, *named, *rules})
