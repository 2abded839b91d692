"""From a trace to the graph that is scheduled: all that makes it smaller, in the right order."""

from __future__ import annotations

from numgrad.jit.ir.graph import Graph
from numgrad.jit.lowering.carried_values import with_carried_values
from numgrad.jit.lowering.handed_over import with_less_kept
from numgrad.jit.lowering.unneeded import needed_loops
from numgrad.jit.passes.simplify import simplify
from numgrad.jit.rolling.rolling import rolled
from numgrad.runtime.garbage import without_collections

__all__ = ["prepared"]


@without_collections()
def prepared(graph: Graph) -> Graph:
    """Return a graph that computes the same bits in fewer operations.

    Parameters
    ----------
    graph : Graph
        As it was traced.
    """
    graph = needed_loops(simplify(rolled(graph)))
    for change in (with_less_kept, with_carried_values):
        changed = change(graph)
        if changed is not graph:
            graph = needed_loops(simplify(changed))
    return graph
