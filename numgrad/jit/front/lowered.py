"""`lower`: the graph, source and dispatcher of a traced function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numba.extending import typeof_impl

from numgrad.graph.tensor import Tensor
from numgrad.jit.front.trace_function import Trace
from numgrad.jit.front.unrolled import warn_of_unrolled
from numgrad.jit.ir.cost import Cost, cost
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.draws import STATE_DTYPE, STATE_SHAPE
from numgrad.jit.rolling.prepare import prepared
from numgrad.jit.run.program import Program
from numgrad.ops.creation.generator import Generator

__all__ = ["Lowered"]


@typeof_impl.register(Tensor)
def _refuse_tensor(tensor: Tensor, context: Any) -> None:
    """Say what Numba's error of an unknown type would not."""
    raise TypeError(
        "compiled code takes NumPy arrays and numbers, but got a Tensor; pass tensor.numpy(), or "
        "call what numgrad.jit returned, which takes tensors"
    )


@typeof_impl.register(Generator)
def _refuse_generator(generator: Generator, context: Any) -> None:
    raise TypeError(
        "compiled code draws from NumPy's generators, but got a numgrad.Generator: pass "
        "generator.numpy"
    )


def _results(trace: Trace) -> Iterator[Value]:
    """Yield all results of a function that are arrays or numbers, wherever they come from."""
    for kind, which, *_ in trace.outputs:
        if kind == "computed":
            yield trace.graph.outputs[which]
        elif kind == "argument":
            yield trace.graph.inputs[trace.traced.index(which)]
        elif isinstance(which, Tensor):
            array = which._array
            yield Value("array", (), array.shape, array.dtype, array=array, made=False)
        elif isinstance(which, (np.ndarray, np.generic, bool, int, float, complex)):
            array = np.asarray(which)
            yield Value("array", (), array.shape, array.dtype, array=array, made=False)


class Lowered:
    """A function, traced for arguments of some shapes and dtypes, simplified and emitted.

    Attributes
    ----------
    graph : Graph
        What it computes; ``print`` it.
    source : str
        The loops that are compiled, as functions under ``@njit``, each line with the operation it
        came from.
    dispatcher : numba.core.dispatcher.Dispatcher
        A compiled function of plain arrays and scalars, the leaves of the arguments in order, that
        returns the leaves of the results as a tuple (those of no dims as scalars), but for leaves
        that are no arrays or numbers. It can be called in ``@njit`` functions, from several
        threads, and checks the shapes that it is given. For each generator among the arguments it
        takes a ``numpy.random.Generator`` (``generator.numpy``), and one more behind all arguments
        for each that the function draws from otherwise, the default one included. They go on from
        where they were. Its attribute `source` is the module that it is made from, which runs
        wherever it is pasted.
    """

    def __init__(self, trace: Trace, leaves: Sequence[Any]) -> None:
        results = list(_results(trace))
        inputs = dict(zip(trace.traced, trace.graph.inputs, strict=False))
        states = trace.graph.inputs[len(trace.traced) :]
        last = trace.graph.outputs[len(trace.graph.outputs) - len(states) :]
        # The states before and behind the function, by where the generator is among the arguments.
        known: dict[int, tuple[Value, Value]] = {}
        for k, (source, *both) in enumerate(zip(trace.sources, states, last, strict=True)):
            known[source if isinstance(source, int) else len(leaves) + k] = (both[0], both[1])
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, Generator) and k not in known:  # nothing is drawn from it
                known[k] = (Value("input", (), STATE_SHAPE, STATE_DTYPE, position=k),) * 2
        inputs |= {k: before for k, (before, _) in known.items()}
        order = sorted(inputs)
        sources = [(order.index(k), len(results) + at) for at, k in enumerate(known)]
        behind = [after for _, after in known.values()]
        own = [inputs[k] for k in order]
        graph = Graph(own, [*results, *behind], trace.graph.unread)
        self.graph: Graph = prepared(graph)
        warn_of_unrolled(self.graph, trace.files, trace.caller)
        self._program = Program(self.graph, sources)

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
