"""The vertices of the graph: one node for every recorded operation."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from numgrad import dtypes

if TYPE_CHECKING:
    import numpy as np

    from numgrad.graph.core import Edge, Tensor

__all__ = ["FREED", "Node", "RemovableHandle", "SavedArray", "next_sequence", "unpack_array"]

next_sequence = itertools.count().__next__

# What a node saved of a tensor: the array, its version counter, and the version when it was saved.
SavedArray = tuple["np.ndarray[Any, Any]", list[Any], int]
# Those of PyTorch's nodes that no formula generates tell their namespace in their names.
_NAMESPACED = {"AccumulateGrad", "CopyBackwards", "CopySlices"}

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class Node:
    """A function of the backward graph: gradients of its outputs in, gradients of its inputs out.

    Attributes
    ----------
    edges : tuple of (Node or None, int)
        Where each input's gradient goes: the node that computed the input, and which of that
        node's outputs it was.
    sequence : int
        Grows with every node made; the engine runs the highest first.
    saved : tuple or None
        What the rule needs; None once freed.
    """

    __slots__ = (
        "__weakref__",
        "_metadata",
        "_retained",
        "_tensor_hooks",
        "edges",
        "saved",
        "sequence",
    )

    num_outputs: ClassVar[int] = 1
    gives_views: ClassVar[bool] = False  # whether its outputs share the memory of its input
    _metadata: dict[str, Any] | None
    _tensor_hooks: dict[int, dict[int, Callable[[Any], Any]]] | None
    _retained: dict[int, Any] | None
    edges: tuple[Edge, ...]
    saved: tuple[Any, ...] | None
    sequence: int

    def __init__(self, edges: tuple[Edge, ...], saved: tuple[Any, ...] | None = ()) -> None:
        self.edges = edges
        self.saved = saved
        self.sequence = next_sequence()
        self._metadata = self._tensor_hooks = self._retained = None

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """The nodes that this one hands its gradients to, each with its output number."""
        return self.edges

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes about this node."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    def name(self) -> str:
        """Return the node's name, PyTorch's name for the same operation."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in _NAMESPACED else name

    def operation_name(self) -> str:
        """Return the name as PyTorch's messages tell it, such as ``Mul`` of ``MulBackward0``."""
        return re.sub(r"Backward\d*$", "", self.name())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    def run_arrays(self, gradients: Sequence[Any]) -> Sequence[tuple[Any, bool | None] | None]:
        """Return the gradient of each input as an array, with whether the caller may write to it.

        None in that place says: if it may write to the gradient it gave.

        Parameters
        ----------
        gradients : sequence of array or None
            The gradient of each output; None for an output nothing depended on.
        """
        raise NotImplementedError

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Return the gradient of each input as a tensor, recording a graph if grad mode is on."""
        raise NotImplementedError

    def release(self) -> None:
        """Free what was saved."""
        if self.saved:
            self.saved = None


def unpack_array(saved: SavedArray, edge: Edge, owner: Node | None = None) -> np.ndarray[Any, Any]:
    """Return a saved array, or raise if it was written to since.

    `edge` is where the saved tensor hung in the graph, for the error's words, and `owner` the node
    that saved it.
    """
    array, counter, version = saved
    if counter[0] != version:
        raise RuntimeError(modified_message(saved, edge, owner))
    return array


def modified_message(saved: SavedArray, edge: Edge, owner: Node | None) -> str:
    """Return PyTorch's words for a saved tensor that an in-place operation changed.

    They tell which operation the tensor is an output of by now: a node's own output is still its
    own, a view hangs on its base anew, and another tensor on the last operation that wrote to it,
    whose name in-place operations leave beside the version.
    """
    array, counter, version = saved
    node, output_nr = edge
    name = "" if node is None or not node.edges else node.operation_name()
    if node is None or node is not owner:
        if node is not None and node.gives_views:
            name, output_nr = "AsStrided", 0
        elif len(counter) > 1:
            name, output_nr = counter[1], 0
    origin = f", which is output {output_nr} of {name}," if name else ""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{tensor_type_name(array.dtype)} {list(array.shape)}]{origin} is at version "
        f"{counter[0]}; expected version {version} instead. Hint: enable anomaly detection to find "
        "the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def tensor_type_name(numpy_dtype: Any) -> str:
    """Return the legacy type name that PyTorch's messages use, such as ``torch.FloatTensor``."""
    return f"torch.{dtypes.of_numpy(numpy_dtype).scalar_name}Tensor"


class RemovableHandle:
    """What registering a hook returns: call `remove()`, or use it as a context manager."""

    _next_id = itertools.count().__next__

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self.id = RemovableHandle._next_id()

    def remove(self) -> None:
        """Unregister the hook; calling it again does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
