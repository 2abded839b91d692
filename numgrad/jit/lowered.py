"""What `lower` returns: a traced function to look at, and to call from compiled code."""

from __future__ import annotations

from typing import Any

from numgrad.jit.cost import Cost, cost
from numgrad.jit.graph import Graph
from numgrad.jit.program import Program, build
from numgrad.jit.simplify import simplify
from numgrad.jit.traced import Trace

__all__ = ["Lowered"]


class Lowered:
    """A function, traced for arguments of some shapes and dtypes, simplified and emitted.

    Attributes
    ----------
    graph : Graph
        What it computes; ``print`` it.
    source : str
        The Python that is compiled, each line with the operation it came from.
    dispatcher : numba.core.dispatcher.Dispatcher
        A compiled function of plain arrays and scalars, the leaves of the arguments in order, that
        returns the leaves of the results as a tuple (those of no dims as scalars). It can be called
        in ``@njit`` functions, from several threads, and checks the shapes that it is given.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.graph: Graph = simplify(trace.graph)
        self._program: Program = build(self.graph)

    @property
    def source(self) -> str:
        """The Python that is compiled."""
        return self._program.source

    @property
    def dispatcher(self) -> Any:
        """The compiled function, for use in others."""
        return self._program.dispatcher

    def cost(self) -> Cost:
        """Return how much there is to compute, to read and to write.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.jit(lambda x: (x * x).sum()).lower(ng.ones(1000)).cost().read
        4000
        """
        return cost(self.graph)

    def __str__(self) -> str:
        return str(self.graph)
