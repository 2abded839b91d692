"""Derivatives of a function at a point as linear maps: vector-Jacobian and Jacobian-vector.

A function of tensors is run once, on stand-ins for its arguments (`graph.modes.func_levels`).
What was recorded then serves any number of cotangents (`PullBack`) or tangents (`Linearized`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from numgrad.autograd.forward.duals import lie_as
from numgrad.autograd.forward.push_forward import PushForward
from numgrad.batching.rows import can_batch, mapped_rows, unit_rows
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.backward.cotangents import roots_of
from numgrad.graph.backward.engine import nodes_towards, run
from numgrad.graph.modes.func_levels import Level
from numgrad.graph.modes.state import modes
from numgrad.graph.node import Node
from numgrad.graph.recorder import follow_strides, place_of
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, fresh, wrap
from numgrad.kernels.move.memory_order import empty_like

# Fewer rows than these take less time one by one than at once: 0.45 ms for ten operations.
FEW_DIRECTIONS = 10

__all__ = ["BackwardMap", "Linearized", "PullBack", "basis_of", "zeros_like"]

# Takes stand-ins and returns the results to differentiate, and others.
Function = Callable[[list[Tensor]], tuple[list[Tensor], list[Tensor]]]


def zeros_like(tensor: Tensor) -> Tensor:
    """Return zeros of a tensor's shape and dtype, which lie as it does."""
    array = empty_like(place_of(tensor._array))
    array[...] = 0
    zeros = fresh(array)
    follow_strides(tensor._array, zeros._array)
    return zeros


def basis_of(tensors: Sequence[Tensor], only: int | None = None) -> Iterator[list[Tensor | None]]:
    """Yield, for every element of some tensors, 1 there and 0 (None in other tensors) elsewhere.

    With `only`, for those of the tensor of that number.
    """
    for number, tensor in enumerate(tensors):
        if only is not None and number != only:
            continue
        for element in range(tensor._array.size):
            array = np.zeros(tensor._array.shape, tensor._array.dtype)
            array.reshape(-1)[element] = 1
            row: list[Tensor | None] = [None] * len(tensors)
            row[number] = fresh(array)
            yield row


def _are_few(tensors: Sequence[Tensor]) -> bool:
    return sum(tensor._array.size for tensor in tensors) < FEW_DIRECTIONS


def _hanging(tensor: Tensor, edge: Edge) -> Tensor:
    """Return another tensor over the same array, at a place in the graph."""
    other = wrap(tensor._array)
    if edge is not NO_EDGE:
        other._edge = edge
    return other


class _Recorded:
    """One run of a function.

    Attributes
    ----------
    outputs, others : list of Tensor
        Its results as the caller gets them.
    """

    def __init__(
        self, function: Function, primals: Sequence[Tensor], writable: bool, level: Level
    ) -> None:
        self._level = level
        with level:
            self._stand_ins = [level.stand_in(primal, writable) for primal in primals]
            # A stand-in that is written to changes its place in the graph; this is where it was.
            self._inputs = [gradient_edge(stand_in) for stand_in in self._stand_ins]
            results, others = function(self._stand_ins)
            self._edges = [gradient_edge(result) for result in results]
            # What was written to is released as what the caller gets. These stay as they are.
            self._results = [
                _hanging(result, edge) for result, edge in zip(results, self._edges, strict=True)
            ]
        self._prepare()
        level.cut([*results, *others])
        inside: set[Node] = set()
        self._outside = level.any_outside([*results, *others], inside)
        self.outputs = [level.release(result, inside) for result in results]
        self.others = [level.release(other, inside) for other in others]
        level.release_written(inside)

    def _prepare(self) -> None:
        """Find out how the map goes, while the graph is all there."""
        raise NotImplementedError

    def _unrecorded(self) -> Callable[[Node], bool] | None:
        """Return what tells nodes for tangents alone, if there are any."""
        return self._level.is_unrecorded if self._level.has_unrecorded else None

    def _released(self, found: list[Tensor | None], records: bool) -> list[Tensor | None]:
        """Return what came of a map as the caller gets it."""
        if not records:
            return found
        inside: set[Node] = set()
        return [None if each is None else self._level.release(each, inside) for each in found]

    def _records(self, given: Sequence[Tensor | None]) -> bool:
        """Whether the map's results shall depend on what is given and on the outside."""
        return modes.grad and (
            (self._outside and self._level.recording)
            or any(isinstance(tensor, Tensor) and tensor.requires_grad for tensor in given)
        )


class BackwardMap:
    """Maps cotangents of some results to gradients at some edges, any number of times.

    Parameters
    ----------
    results : sequence of Tensor
    inputs : sequence of edges
    without : callable, optional
        Whether no gradient goes through a node.
    """

    def __init__(
        self,
        results: Sequence[Tensor],
        inputs: Sequence[Edge],
        without: Callable[[Node], bool] | None = None,
    ) -> None:
        self._results = results
        self._inputs = inputs
        self._edges = [gradient_edge(result) for result in results]
        self._moving = [i for i, edge in enumerate(self._edges) if edge is not NO_EDGE]
        self.nodes = self._needed = nodes_towards(
            [node for node, _ in inputs if node is not None],
            [node for node, _ in [self._edges[i] for i in self._moving] if node is not None],
            without,
        )

    def __call__(
        self, cotangents: Sequence[Tensor | None], keep_graph: bool, create_graph: bool
    ) -> list[Tensor | None]:
        """Return the gradients, None where none arrives.

        Parameters
        ----------
        cotangents : sequence of tensor or None
            For each result one of its shape; None for zeros.
        """
        moving = [i for i in self._moving if cotangents[i] is not None]
        if not moving:
            return [None] * len(self._inputs)
        return run(
            roots_of(
                tuple([self._results[i] for i in moving]),
                [cotangents[i] for i in moving],
            ),
            keep_graph=keep_graph,
            create_graph=create_graph,
            inputs=self._inputs,
            accumulate=False,
            needed=self._needed,
        )

    def few(self, results: Sequence[Tensor]) -> bool:
        """Whether gradients of every element of these had better be computed one by one."""
        return _are_few(results) or not can_batch(self.nodes, results)

    def rows(self, create_graph: bool) -> list[Tensor | None]:
        """Return the gradients of every element of all results, in C order along a first dim."""
        arrays = [result._array for result in self._results]
        bases = []
        start, total = 0, sum(array.size for array in arrays)
        for number, array in enumerate(arrays):
            if number in self._moving:
                basis = np.eye(total, array.size, -start, dtype=array.dtype)
                bases.append(fresh(basis.reshape(total, *array.shape)))
            start += array.size
        if not bases or not total:
            return [None] * len(self._inputs)

        def gradients(given: Sequence[Tensor]) -> list[Tensor | None]:
            cotangents: list[Tensor | None] = [None] * len(arrays)
            for number, each in zip(self._moving, given, strict=True):
                cotangents[number] = each
            return self(cotangents, True, create_graph)

        return mapped_rows(gradients, bases, create_graph)


class PullBack(_Recorded):
    """Maps cotangents of the results to gradients of the arguments."""

    def __init__(self, function: Function, primals: Sequence[Tensor]) -> None:
        super().__init__(function, primals, False, Level())

    def _prepare(self) -> None:
        self._pull = BackwardMap(self._results, self._inputs, self._unrecorded())

    def __call__(
        self,
        cotangents: Sequence[Tensor | None],
        keep_graph: bool = True,
        create_graph: bool | None = None,
    ) -> list[Tensor]:
        """Return the gradients.

        Parameters
        ----------
        cotangents : sequence of tensor or None
            For each result one of its shape; None for zeros.
        keep_graph : bool
            Whether this can be called again.
        create_graph : bool, optional
            Whether the gradients can be differentiated in turn; by default where grad mode is on.
        """
        found = self.found(cotangents, keep_graph, create_graph)
        return [
            zeros_like(stand_in) if gradient is None else gradient
            for gradient, stand_in in zip(found, self._stand_ins, strict=True)
        ]

    def rows(self) -> list[list[Tensor | None]] | None:
        """Return, for each result, the gradients of its elements, stacked along a first dim.

        None where they have to be computed one by one, or are few.
        """
        if self._pull.few(self._results):
            return None
        records = self._records(())
        found: list[list[Tensor | None]] = []
        for number, result in enumerate(self._results):

            def row(vector: Tensor, number: int = number) -> list[Tensor | None]:
                given: list[Tensor | None] = [None] * len(self._results)
                given[number] = vector
                return self._pull(given, True, records)

            found.append(self._released(unit_rows(row, result, records), records))
        return found

    def found(
        self,
        cotangents: Sequence[Tensor | None],
        keep_graph: bool = True,
        create_graph: bool | None = None,
    ) -> list[Tensor | None]:
        """Return the same, but None where no gradient arrives."""
        records = create_graph is not False and self._records(cotangents)
        return self._released(self._pull(cotangents, keep_graph, records), records)


class Linearized(_Recorded):
    """Maps tangents of the arguments to tangents of the results.

    `guarded` and `writes` are those of its `Level`.
    """

    def __init__(
        self,
        function: Function,
        primals: Sequence[Tensor],
        guarded: bool = True,
        writes: bool = False,
    ) -> None:
        super().__init__(function, primals, True, Level(guarded, writes, forward=True))

    def _prepare(self) -> None:
        self._push = PushForward(
            self._edges, self._inputs, self._unrecorded(), self._level.overwritten
        )

    def __call__(self, tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return the tangents of the results, None where they depend on no argument.

        Parameters
        ----------
        tangents : sequence of tensor or None
            For each argument one of its shape and dtype; None for zeros.
        """
        records = self._records(tangents)
        return self._released(self._push(tangents, records), records)

    def columns(self, primals: Sequence[Tensor]) -> list[list[Tensor | None]] | None:
        """Return, for each argument, the tangents of its elements, stacked along a first dim.

        None where they have to be computed one by one, or are few.
        """
        if _are_few(primals):
            return None
        if not can_batch(self._push.nodes, primals):
            return None
        records = self._records(())
        found: list[list[Tensor | None]] = []
        for number, primal in enumerate(primals):

            def column(vector: Tensor, number: int = number) -> list[Tensor | None]:
                given: list[Tensor | None] = [None] * len(primals)
                given[number] = vector
                # What one remembers is of where it is run.
                pushed = self._push.renewed()(given, records)
                return [
                    None if tangent is None else lie_as(tangent, output._array)
                    for tangent, output in zip(pushed, self.outputs, strict=True)
                ]

            found.append(self._released(unit_rows(column, primal, records), records))
        return found
