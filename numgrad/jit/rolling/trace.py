"""The operations of a trace, in the order in which they were recorded."""

from __future__ import annotations

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.rolling.tokens import Tokens, followed_back

__all__ = ["Trace"]

_NO_OPERATIONS = frozenset(("input", "array", "constant", "view", "reshape"))


class Trace:
    """The operations of a graph in the order in which they were recorded."""

    def __init__(self, graph: Graph, tokens: Tokens) -> None:
        self.graph, self.tokens, self.handed_on = graph, tokens, tokens.handed_on
        values = [value for value in graph.values() if value.operation not in _NO_OPERATIONS]
        values.sort(key=lambda value: value.number)
        self.operations = [tokens.operation(value) for value in values]
        self.weights = [_weight(value) for value in values]
        self.place = {value: k for k, value in enumerate(values)}
        self.last_used = [0] * len(values)
        # Of calls, the last of the results that are had of them; of what a loop stacks whose turns
        # are not known, who takes it last.
        self.parts: dict[int, int] = {}
        for k, operation in enumerate(self.operations):
            for base in operation.bases:
                made = self.place.get(base)
                if made is not None:
                    self.last_used[made] = k
                    if operation.value.operation == "item":
                        self.parts[made] = k
        for output in graph.outputs:
            made = self.place.get(followed_back(output)[1])
            if made is not None:
                self.last_used[made] = len(values)
        self.parts |= {k: self.last_used[k] for k, value in enumerate(values) if 0 in value.shape}


def _weight(value: Value) -> int:
    """Return how many operations are compiled for a value."""
    body = getattr(value.attributes.get("primitive"), "graph", None)
    return 1 if body is None else len(body.values())
