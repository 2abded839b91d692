"""Transformations of functions: derivatives that take a function and give one, or give values.

And control flow as functions: branches and loops. Of these, `map` is no part of a star import,
which would have it in the place of Python's own.
"""

from numgrad.func.control import (
    Binomial,
    associative_scan,
    cond,
    fori_loop,
    scan,
    switch,
    while_loop,
)
from numgrad.func.control import (
    map as map,
)
from numgrad.func.forward import jvp, linearize
from numgrad.func.jacobians import jacfwd, jacrev
from numgrad.func.mapping import vmap
from numgrad.func.reverse import grad, grad_and_value, value_and_grad, vjp
from numgrad.func.second_order import hessian, hvp

__all__ = [
    "Binomial",
    "associative_scan",
    "cond",
    "fori_loop",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "scan",
    "switch",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]


def __dir__() -> list[str]:
    return sorted((*__all__, "map"))
