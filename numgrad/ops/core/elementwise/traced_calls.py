"""What calls of an elementwise primitive have in common that one trace records thousands of times.

Their operands are of the same dtypes and shapes, or numbers of the same kinds. So they are promoted
and broadcast alike, and their nodes share what those of one kind of call do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.graph.modes.anomaly import note_node
from numgrad.graph.modes.state import interceptors
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import NO_EDGE, Tensor
from numgrad.ops.calls.node_source import attach_for
from numgrad.ops.core.elementwise.node import ElementwiseNode
from numgrad.ops.core.nodes import Call

__all__ = ["TracedCalls"]


class TracedCalls:
    """One kind of call.

    Attributes
    ----------
    compute, result : numpy.dtype
        Of the computation, and of what it gives.
    shape : tuple of int
    converts : bool
        Whether operands have to be brought to the dtype of the computation.
    """

    __slots__ = ("_numbers", "_primitive", "_recorders", "compute", "converts", "result", "shape")

    def __init__(
        self,
        primitive: Any,
        operands: Sequence[Any],
        compute: np.dtype[Any],
        result: np.dtype[Any],
        shape: tuple[int, ...],
    ) -> None:
        self._primitive = primitive
        self.compute, self.result, self.shape = compute, result, shape
        # By which operands require grad: what makes the node, and what it shares with its like.
        self._recorders: dict[int, tuple[Callable[..., Any], Any]] = {}
        self._numbers = [p for p, each in enumerate(operands) if not isinstance(each, Tensor)]
        self.converts = bool(self._numbers) or any(
            place_of(each._array).dtype is not compute and position not in primitive.masks
            for position, each in enumerate(operands)
        )

    def record(self, needs: int, operands: Sequence[Any], output: Tensor) -> None:
        """Attach a node to a result; bit i of `needs` is set if operand i requires grad."""
        known = self._recorders.get(needs)
        if known is None:
            self._find_out(needs, operands, output)
            return
        attach, call = known
        kept = list(operands)
        for position in self._numbers:
            kept[position] = self._primitive.number_converter(position, {"compute": self.compute})(
                operands[position]
            )
        node = attach(self._primitive.node_class, call, kept, (output,), ())
        if interceptors:
            note_node(node)

    def _find_out(self, needs: int, operands: Sequence[Any], output: Tensor) -> None:
        """Attach a node, and remember how that was done."""
        primitive = self._primitive
        primitive.record(operands, (output,), {"compute": self.compute})
        edge = output._edge
        node: Any = None if edge is NO_EDGE or edge is None else edge[0]
        if type(node) is not primitive.node_class or not isinstance(node, ElementwiseNode):
            return
        if type(node.call) is Call and node.call.lies:  # that is another one each time
            return
        letters = "nq", "tm"
        kinds = "".join(
            [
                letters[isinstance(each, Tensor)][position in primitive.masks]
                for position, each in enumerate(operands[: primitive.tensor_count])
            ]
        )
        self._recorders[needs] = attach_for(node.call.saved_places, kinds, (0,)), node.call
