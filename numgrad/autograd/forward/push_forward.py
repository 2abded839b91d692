"""Forward mode over a recorded graph: Jacobian-vector products, node by node.

The nodes that lead from the inputs to the outputs are run from the oldest to the youngest, each
with its tangent map. That follows from what the node has for backward mode: an elementwise rule
multiplies the cotangent by the derivative, which is its tangent map, too; a linear operation is its
own; and any other rule is linear in the cotangent, so that its transpose is the tangent map. As
nothing is computed anew, one recording serves any number of directions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.base.halves import HALF
from numgrad.graph.backward.backward import grad
from numgrad.graph.backward.engine import nodes_towards
from numgrad.graph.modes.func_levels import Level, StandIn
from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.modes.state import modes, recording
from numgrad.graph.node import Node
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, fresh, wrap
from numgrad.graph.upward import upward
from numgrad.kernels.move.accumulate import add_arrays
from numgrad.ops.core.elementwise.node import ElementwiseNode
from numgrad.ops.core.nodes import PrimitiveNode
from numgrad.ops.movement.copies import contiguous
from numgrad.ops.movement.view_geometry import strided, strided_scatter
from numgrad.ops.mutation.history import CopySlices

__all__ = ["PushForward", "TangentMaps"]

Tangents = Sequence[Tensor | None]
Meta = tuple[tuple[int, ...], Any]  # shape and dtype
_OVER = Level()  # what stands in for cotangents is of no call that still runs


class TangentMaps:
    """The derivatives of recorded operations, one by one, as linear maps of tangents.

    Parameters
    ----------
    overwritten : mapping
        For nodes of which something was overwritten, those that have a copy; see `Overwritten`.
    """

    def __init__(self, overwritten: Mapping[Node, Node] | None = None) -> None:
        self._overwritten = overwritten or {}
        self._transposes: dict[Node, Any] = {}  # see _transposed

    def push(self, node: Node, tangents: Tangents) -> Tangents:
        """Return the tangents of a node's outputs, given those of its inputs."""
        if self._overwritten:
            node = self._overwritten.get(node, node)
        if isinstance(node, ElementwiseNode):
            return self._push_elementwise(node, tangents)
        if isinstance(node, PrimitiveNode):
            kinds = {dtype.kind for _, dtype in node.shapes}
            if node.primitive.linear and kinds <= {"f", "c"}:
                return _push_linear(node, tangents)
            return self._transposed(node, node.output_metas, tangents)
        own = node.run_tangents(tangents)
        if own is not None:
            return own
        metas = getattr(node, "output_metas", None)
        if metas is not None:
            return self._transposed(node, metas, tangents)
        if isinstance(node, StandIn):  # of a function that was differentiated within this one
            return tangents
        if isinstance(node, CopySlices):
            return self._push_copy_slices(node, tangents)
        # What is left lets no gradient through, or says why there is none.
        node.run_tensors([None] * node.num_outputs)
        return [None] * node.num_outputs

    def _push_elementwise(self, node: ElementwiseNode, tangents: Tangents) -> Tangents:
        if node.shapes is None:
            shape, dtype = next((t._array.shape, t._array.dtype) for t in tangents if t is not None)
            plain = not modes.grad and modes.trace is None and modes.dual is None
            if dtype.kind == "f" and dtype != HALF and plain:
                return [_push_arrays(node, tangents)]
        else:
            shape, dtype = node.output_metas[0][0], node.parameters["compute"]
        if dtype.kind == "c":  # there the transpose is the tangent map, the rule itself may not be
            return self._transposed(node, node.output_metas or [(shape, dtype)], tangents)
        environment = node.restore()
        total: Tensor | None = None
        for position, tangent in enumerate(tangents):
            declared = node.primitive.rules[position]
            if tangent is None or declared is None:
                continue
            if tangent._array.dtype != dtype:
                tangent = upward.cast(tangent, dtype)
            if tangent._array.shape != shape:
                tangent = tangent.expand(shape)
            environment["g"] = tangent
            rule, parameters = declared
            part = rule(*[environment[name] for name in parameters])
            total = part if total is None else total + part
        return [total]

    def _push_copy_slices(self, node: CopySlices, tangents: Tangents) -> Tangents:
        """Push the view's part through the operation that wrote there, and put it into the rest."""
        if node.saved is None:
            raise RuntimeError("a write whose history was freed has no tangent map")
        function, geometry = node.saved[0], node.geometry
        base = tangents[0]
        inside = None if base is None else strided(base, geometry)
        (through,) = self.push(function, [inside, *tangents[1:]])
        if base is None:
            if through is None:
                return [None]
            shape = geometry.outer[0]
            if geometry.parts == "base":  # which counts as pairs of real numbers there
                shape = shape[:-1]
            base = fresh(np.zeros(shape, _base_dtype(through, geometry.parts)))
        elif through is None:
            if inside is None:
                raise RuntimeError("a view of something is something")
            through = fresh(np.zeros(inside._array.shape, inside._array.dtype))
        return [strided_scatter(base, through, geometry)]

    def _transposed(self, node: Node, metas: Sequence[Meta], tangents: Tangents) -> Tangents:
        """Transpose the rules: differentiate, with respect to the cotangents, what they give."""
        found = self._transposes.get(node)
        if found is None:
            with recording(True):
                cotangents: list[Tensor | None] = []
                for shape, dtype in metas:
                    cotangent = None
                    if dtype.kind in "fc":
                        # Rules that refuse some gradients, those of phases, refuse no zeros.
                        cotangent = fresh(np.zeros(shape, dtype))
                        cotangent._edge, cotangent._level = None, _OVER
                    cotangents.append(cotangent)
                found = self._transposes[node] = cotangents, node.run_tensors(cotangents)
        cotangents, products = found
        pairs = [
            (product, tangent)
            for product, tangent in zip(products, tangents, strict=True)
            if product is not None and tangent is not None and product._edge is not NO_EDGE
        ]
        if not pairs:
            return [None] * len(cotangents)
        results = iter(
            grad(
                [product for product, _ in pairs],
                [cotangent for cotangent in cotangents if cotangent is not None],
                [tangent for _, tangent in pairs],
                allow_unused=True,
                retain_graph=True,
                create_graph=modes.grad,
            )
        )
        return [None if cotangent is None else next(results) for cotangent in cotangents]


class PushForward:
    """The derivative of recorded results as a linear map of tangents.

    Parameters
    ----------
    outputs : sequence of edges
        Where the results hang.
    inputs : sequence of edges
        Where the tensors hang whose tangents will be given.
    unrecorded : callable, optional
        Whether a node was made with recording switched off: then so is what its tangents need.
    overwritten : mapping, optional
        As of `TangentMaps`.
    start : int
        The number of the first node that may be between them: inputs may be computed from others.
    """

    def __init__(
        self,
        outputs: Sequence[Edge],
        inputs: Sequence[Edge],
        unrecorded: Callable[[Node], bool] | None = None,
        overwritten: Mapping[Node, Node] | None = None,
        start: int = 0,
    ) -> None:
        self._outputs = outputs
        self._inputs = inputs
        sources = [node for node, _ in inputs if node is not None]
        roots = [node for node, _ in outputs if node is not None]
        between = nodes_towards(sources, roots).difference(sources)
        self.nodes = sorted(
            [node for node in between if node.sequence >= start], key=lambda node: node.sequence
        )
        self._edges = [(node.targets, node.numbers) for node in self.nodes]  # they may be cut
        self._aside = set(filter(unrecorded, self.nodes)) if unrecorded is not None else set()
        self._overwritten = overwritten
        self._maps = TangentMaps(overwritten)
        # After which node a tangent is needed no more: memory goes as soon as it can.
        self._last: dict[Node, Node] = {}
        for node in self.nodes:
            for target in node.targets:
                if target is not None:
                    self._last[target] = node
        for root in roots:
            self._last.pop(root, None)

    def renewed(self) -> PushForward:
        """Return the same map, which remembers nothing of where it was run."""
        other = copy.copy(self)
        other._maps = TangentMaps(self._overwritten)
        return other

    def __call__(self, tangents: Tangents, record: bool) -> list[Tensor | None]:
        """Return the tangents of the outputs, None where no input has any influence.

        Parameters
        ----------
        tangents : sequence of tensor or None
            For each input one of its shape and dtype; None for zeros.
        record : bool
            Whether the results can be differentiated in turn.
        """
        table: dict[Edge, Tensor] = {}
        for edge, tangent in zip(self._inputs, tangents, strict=True):
            if tangent is not None:
                table[edge] = tangent
        with recording(record):
            for node, (targets, numbers) in zip(self.nodes, self._edges, strict=True):
                incoming = [
                    None if target is None else table.get((target, number))
                    for target, number in zip(targets, numbers, strict=True)
                ]
                if any(tangent is not None for tangent in incoming):
                    if node in self._aside:
                        with no_grad():
                            pushed = self._maps.push(node, incoming)
                    else:
                        pushed = self._maps.push(node, incoming)
                    for number, tangent in enumerate(pushed):
                        if tangent is not None:
                            table[node, number] = tangent
                for target in targets:
                    if target is not None and self._last.get(target) is node:
                        for number in range(target.num_outputs):
                            table.pop((target, number), None)
        return [table.get(edge) for edge in self._outputs]


def _push_arrays(node: ElementwiseNode, tangents: Tangents) -> Tensor | None:
    """Run the compiled gradient kernel on tangents; nothing is broadcast or cast."""
    total: Any = None
    for position, tangent in enumerate(tangents):
        if tangent is not None:
            part = node.run_arrays((tangent._array,))[0][position]
            if part is not None:
                total = part if total is None else add_arrays(total, part)
    return None if total is None else wrap(total)


def _push_linear(node: PrimitiveNode, tangents: Tangents) -> Tangents:
    """Run a linear operation on tangents, with zeros for the inputs that have none."""
    primitive = node.primitive
    given = [
        fresh(np.zeros(shape, dtype)) if tangent is None else tangent
        for tangent, (shape, dtype) in zip(tangents, node.shapes, strict=True)
    ]
    if primitive.view:  # some views want the memory to be as it was; dense is what most take
        given = [contiguous(tangent) for tangent in given]
    result = primitive.apply(*given, **node.parameters)
    return [result] if isinstance(result, Tensor) else list(result)


def _base_dtype(source: Tensor, parts: str) -> np.dtype[Any]:
    """Return the dtype of a base, given a tangent of a view of it."""
    dtype = source._array.dtype
    if parts == "base":
        return np.result_type(dtype, np.complex64)
    return np.empty(0, dtype).real.dtype if parts == "view" else dtype


upward.push_forward = PushForward
