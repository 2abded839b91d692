"""Levels of `numgrad.func`: keep the derivatives of nested transformations apart.

A transformation differentiates a function with respect to stand-ins: tensors over the memory of
the arguments that only this call knows. So nested calls cannot mistake one derivative for another.
What the call returns must not depend on its stand-ins any more, but still on what the function
captured and on what the arguments were computed from: on what lies outside of the level. Whether
a tensor does is read off the graph, which leads outside or ends at stand-ins.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numgrad.graph.backward.accumulate import AccumulateGrad, gradient_edge
from numgrad.graph.modes.overwritten import Overwritten
from numgrad.graph.modes.state import interceptors, modes, note_inference
from numgrad.graph.modes.unrecorded import Unrecorded
from numgrad.graph.node import Node, next_sequence
from numgrad.graph.tensor import NO_EDGE, NOWHERE, Edge, Tensor, is_inference

__all__ = ["Level", "StandIn", "outside_inference"]

_new = object.__new__


def outside_inference(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function of `numgrad.func` make no inference tensors, whatever mode it is called in.

    It may use those that it is given, and save them, as a `Level` does for what runs within.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        before = modes.inference, modes.claimed, modes.covered
        modes.inference, modes.claimed, modes.covered = False, False, True
        try:
            return function(*args, **kwargs)
        finally:
            note_inference(False)  # that the function entered and did not leave
            modes.inference, modes.claimed, modes.covered = before

    return run


class StandIn(Node):
    """The node of a stand-in that is no leaf: the identity, of an argument or of nothing."""

    __slots__ = ()

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Hand the gradient on."""
        return gradients, (None,)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Hand the gradient on."""
        return gradients


StandIn.__name__ = StandIn.__qualname__ = "AliasBackward0"  # PyTorch's name for such a node


class Level:
    """One call of a transformed function; a context manager around that function's own run.

    Inside, operations are recorded, even within an outer ``no_grad``.

    Parameters
    ----------
    guarded : bool
        Whether the function is kept from what it must not do in `numgrad.func`, such as calling
        ``backward``.
    writes : bool
        Whether it may write to what it captured, as far as no outer function is kept from that.
    forward : bool
        Whether it is differentiated in forward mode, which goes on in a ``no_grad`` inside.

    Attributes
    ----------
    start : int
        Nodes that are older were made outside.
    recording : bool
        Whether the caller records: if not, results depend on nothing.
    alive : bool
        Whether the function is running.
    arguments : dict
        By the ids of the version counters of the tensors that the function was called with, whether
        it may write to any tensor of that memory. Where it is differentiated with respect to one,
        only to the stand-in, and to what is detached from it.
    outer : list
        The tensors that stand-ins stand for: the function may not write to these.
    written : list
        Weak references to the tensors whose history in-place operations rewrote meanwhile.
    generated : list
        Weak references to the nodes of custom Functions that the function called: their class has
        another name until they are part of what the user has outside.
    overwritten : mapping
        For nodes of which something was overwritten since, those that take their place in forward
        mode; see `Overwritten`.
    """

    __slots__ = (
        "_forward",
        "_guarded",
        "_previous",
        "_unrecorded",
        "alive",
        "arguments",
        "generated",
        "outer",
        "overwritten",
        "recording",
        "start",
        "writes",
        "written",
    )

    def __init__(self, guarded: bool = True, writes: bool = False, forward: bool = False) -> None:
        self._guarded = guarded
        self._forward = forward
        self._unrecorded: Unrecorded | None = None
        self.writes = writes
        self.start = next_sequence()
        self.recording = modes.grad
        self.alive = False
        self.arguments: dict[int, bool] = {}
        self.outer: list[Tensor] = []
        self.written: list[weakref.ref[Tensor]] = []
        self.generated: list[weakref.ref[Any]] = []
        self.overwritten: Mapping[Node, Node] = {}
        self._previous: tuple[Any, ...] = ()

    def __enter__(self) -> Level:
        self._previous = (
            *(modes.grad, modes.inference, modes.claimed, modes.level, modes.covered),
            *(modes.unrecorded, modes.stretch, modes.overwritten),
        )
        if self._forward and modes.unrecorded is None:
            modes.unrecorded, modes.overwritten = Unrecorded(), Overwritten()
        self._unrecorded, modes.stretch = modes.unrecorded, None
        if self._forward:
            self.overwritten = modes.overwritten.nodes
        modes.covered = modes.covered or modes.inference or self._guarded
        modes.grad, modes.inference, modes.claimed = True, False, False
        if self._guarded:
            modes.level = self
        if self._guarded or self._forward:
            interceptors.append(self)  # so that what is made and saved meanwhile is known to be
        self.alive = True
        return self

    def __exit__(self, *exception: object) -> None:
        self.alive = False
        self.outer = []
        if self._guarded or self._forward:
            interceptors.remove(self)
        if modes.unrecorded is not None:  # that the function left as it was set
            modes.unrecorded.end()
        note_inference(False)
        modes.grad, modes.inference, modes.claimed, modes.level, modes.covered = self._previous[:5]
        modes.unrecorded, modes.stretch, modes.overwritten = self._previous[5:]

    def is_unrecorded(self, node: Node) -> bool:
        """Whether a node was made in a ``no_grad`` of the function, and is for tangents alone."""
        return self._unrecorded is not None and self._unrecorded.covers(node, self.start)

    @property
    def has_unrecorded(self) -> bool:
        """Whether there may be such nodes."""
        return bool(self._unrecorded)

    def cut(self, results: Iterable[Tensor]) -> None:
        """Cut such nodes off from where results depend on, once no forward mode needs them."""
        if self._unrecorded and self._previous[5] is None:
            edges = [gradient_edge(each) for each in results if each._edge is not NO_EDGE]
            self._unrecorded.cut([node for node, _ in edges if node is not None])

    @property
    def keeper(self) -> Level | None:
        """The innermost level that keeps its function from writing to what it captured."""
        level: Level | None = self
        while level is not None and level.writes:
            level = level._previous[3]
        return level

    def is_outer(self, tensor: Tensor) -> bool:
        """Return whether a tensor, or a view of it, is one that stand-ins stand for."""
        level: Level | None = self
        while level is not None:
            if any(tensor is outer or tensor is outer._base for outer in level.outer):
                return True
            level = level._previous[3]
        return False

    def check_in_inference(self, tensor: Tensor) -> None:
        """Raise for a tensor of which inference mode, entered in the function, shall give a view.

        It is PyTorch's error for those that depend on the function's arguments and are none of that
        mode's own: they can't share a version with what has none.
        """
        holder = tensor if tensor._base is None else tensor._base
        if is_inference(tensor) or holder._edge is NO_EDGE or self.keeper is None:
            return
        if holder._edge is None:
            captured = holder._level is None
        else:
            node = holder._edge[0]
            captured = node is None or node.sequence < self.start
        if not captured:
            raise RuntimeError("Cannot set version_counter for inference tensor")

    def lend(self, tensors: Iterable[Any]) -> None:
        """Let the function write to what else it is called with; what is no tensor is left out."""
        lent = [each for each in tensors if isinstance(each, Tensor)]
        self.arguments.update([(id(each._counter), True) for each in lent])

    def stand_in(self, tensor: Tensor, writable: bool = False) -> Tensor:
        """Return a tensor over the memory of an argument, to differentiate with respect to.

        Parameters
        ----------
        tensor : Tensor
            The argument. If the caller records and it requires grad, so does the stand-in depend
            on it.
        writable : bool
            Whether it may be written to, as no leaf may.
        """
        if modes.trace is not None:
            (tensor,) = modes.trace.operands((tensor,))
        if tensor._array.dtype.kind not in "fc":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        made = _new(Tensor)
        made._array = tensor._array
        made._counter = tensor._counter
        self.arguments.setdefault(id(made._counter), False)
        self.outer.append(tensor)
        before = NO_EDGE
        if self.recording and tensor._edge is not NO_EDGE:
            before = gradient_edge(tensor)
        if not writable:
            made._level = self
        if before is not NO_EDGE and before is not NOWHERE:
            node = StandIn((before,))
        elif writable:
            node = StandIn(())
        else:
            made._edge = None
            return made
        made._edge = (node, 0)
        return made

    def leads_outside(self, edge: Edge, inside: set[Node]) -> bool:
        """Return whether what hangs on an edge depends on anything but stand-ins.

        Parameters
        ----------
        edge : Edge
        inside : set of nodes
            Nodes that are known not to; new ones are added.
        """
        root = edge[0]
        if root is None or root in inside:
            return False
        start = self.start
        seen = {root}
        stack = [root]
        while stack:
            node = stack.pop()
            if type(node) is AccumulateGrad:
                level = node.variable._level
                if level is None or (level.alive and level is not self):
                    return True
            elif node.sequence < start:
                return True
            else:
                for target in node.targets:
                    if target is not None and target not in seen and target not in inside:
                        seen.add(target)
                        stack.append(target)
        inside |= seen
        return False

    def depends_outside(self, tensor: Tensor, inside: set[Node]) -> bool:
        """Return whether a tensor depends on anything but stand-ins."""
        return tensor._edge is not NO_EDGE and self.leads_outside(gradient_edge(tensor), inside)

    def any_outside(self, tensors: Iterable[Tensor], inside: set[Node]) -> bool:
        """Return whether one of some results, or what was written to, depends on the outside."""
        for tensor in tensors:
            if self.depends_outside(tensor, inside):
                return True
        return bool(self.written) and self.written_outside(inside)

    def written_outside(self, inside: set[Node]) -> bool:
        """Return whether a tensor that was written to, and still exists, depends on the outside."""
        tensors = [reference() for reference in self.written]
        return any(t is not None and self.depends_outside(t, inside) for t in tensors)

    def release(self, tensor: Tensor, inside: set[Node]) -> Tensor:
        """Return a result as the caller gets it: without a history of stand-ins only.

        The memory and the version counter are the same.
        """
        if tensor._edge is NO_EDGE:
            return tensor
        if self.recording and self.depends_outside(tensor, inside):
            self._let_out()
            return tensor
        if not self.recording and self._is_captured(tensor):
            return tensor
        made = _new(Tensor)
        made._array = tensor._array
        made._counter = tensor._counter
        return made

    def release_written(self, inside: set[Node]) -> None:
        """Take the history of stand-ins from tensors that the function captured and wrote to."""
        for reference in self.written:
            tensor = reference()
            if tensor is not None and not (self.recording and self.depends_outside(tensor, inside)):
                tensor._edge = NO_EDGE

    def _let_out(self) -> None:
        """Give the nodes of custom Functions their names outside, or leave that to the level there.

        They are part of one history, where PyTorch has a node for each level.
        """
        if modes.level is not None:
            modes.level.generated += self.generated
        else:
            for node in [reference() for reference in self.generated]:
                if node is not None:
                    node.__class__ = node.function._backward_cls
        self.generated = []

    def _is_captured(self, tensor: Tensor) -> bool:
        """Whether a tensor that requires grad did so before the function ran."""
        if tensor._edge is None:
            return tensor._level is not self
        node = tensor._edge[0]
        return node is not None and node.sequence < self.start
