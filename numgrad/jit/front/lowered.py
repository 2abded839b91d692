"""`lower`: the graph, source and dispatcher of a traced function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.extending import typeof_impl

from numgrad.graph.tensor import Tensor
from numgrad.jit.front.trace_function import Trace
from numgrad.jit.front.unrolled import warn_of_unrolled
from numgrad.jit.ir.cost import Cost, cost
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.rolling.prepare import prepared
from numgrad.jit.run.program import Program, build

__all__ = ["Lowered"]


@typeof_impl.register(Tensor)
def _refuse_tensor(tensor: Tensor, context: Any) -> None:
    """Say what Numba's error of an unknown type would not."""
    raise TypeError(
        "compiled code takes NumPy arrays and numbers, but got a Tensor; pass tensor.numpy(), or "
        "call what numgrad.jit returned, which takes tensors"
    )


def _results(trace: Trace) -> Iterator[Value]:
    """Yield all results of a function that are arrays or numbers, wherever they come from."""
    for kind, which, *_ in trace.outputs:
        if kind == "computed":
            yield trace.graph.outputs[which]
        elif kind == "argument":
            yield trace.graph.inputs[trace.traced.index(which)]
        elif isinstance(which, Tensor):
            yield Value("array", (), which._array.shape, which._array.dtype, array=which._array)
        elif isinstance(which, (np.ndarray, np.generic, bool, int, float, complex)):
            array = np.asarray(which)
            yield Value("array", (), array.shape, array.dtype, array=array)


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
        returns the leaves of the results as a tuple (those of no dims as scalars), but for leaves
        that are no arrays or numbers. It can be called in ``@njit`` functions, from several
        threads, and checks the shapes that it is given.
    """

    def __init__(self, trace: Trace) -> None:
        self.graph: Graph = prepared(Graph(trace.graph.inputs, list(_results(trace))))
        warn_of_unrolled(self.graph, trace.files, trace.caller)
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
        return cost(self.graph, fused=self._program.steps)

    def __str__(self) -> str:
        return str(self.graph)
