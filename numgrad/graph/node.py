"""Nodes: the vertices of the backward graph, one for every recorded operation."""

from __future__ import annotations

import functools
import itertools
import linecache
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.handles import Hooks, RemovableHandle, register
from numgrad.graph.modes.anomaly import anomaly, note_node
from numgrad.graph.modes.state import interceptors
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, fresh

__all__ = [
    "FREED",
    "FROM_FIRST_OUTPUTS",
    "Arrived",
    "Attached",
    "Node",
    "OutputMeta",
    "SavedArray",
    "next_sequence",
    "node_type",
    "unpack_array",
]

next_sequence = itertools.count().__next__

# What a node saved of a tensor: the array, its version counter, and the version when it was saved.
SavedArray = tuple[np.ndarray[Any, Any], list[Any], int]
# The shape and the dtype of an output.
OutputMeta = tuple[tuple[int, ...], Any]
# The output numbers of as many edges that all lead to first outputs; nearly every node has these.
FROM_FIRST_OUTPUTS = tuple((0,) * count for count in range(4))
# Those of PyTorch's nodes that no formula generates tell their namespace in their names.
_NAMESPACED = {"AccumulateGrad", "CopyBackwards", "CopySlices"}

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


@functools.cache
def _operation_name(node: str) -> str:
    return re.sub(r"Backward\d*$", "", node)


# What came to a node: for each of its outputs the gradient so far (an array, or under create_graph
# a tensor; None if there is none), and whether we may write to that.
Arrived = list[Any]


class Attached:
    """What users hung on a node: most nodes have none of it.

    Attributes
    ----------
    hooks : dict
        For an output number, the hooks of the tensor that is this output.
    prehooks, posthooks : Hooks
        The node's own, called before and after it runs.
    retained : dict
        For an output number, a weak reference to the tensor that retains its gradient.
    recorded_shapes : dict
        For an output number, the shape that the output had when it was recorded, where its tensor
        was written to as an ``out=`` and took another one.
    metadata : dict
        The user's own notes.
    """

    __slots__ = ("hooks", "metadata", "posthooks", "prehooks", "recorded_shapes", "retained")

    def __init__(self) -> None:
        self.hooks: dict[int, Hooks] = {}
        self.prehooks = Hooks()
        self.posthooks = Hooks()
        self.retained: dict[int, weakref.ref[Any]] = {}
        self.recorded_shapes: dict[int, tuple[int, ...]] = {}
        self.metadata: dict[str, Any] = {}


class Node:
    """A function of the backward graph: gradients of its outputs in, gradients of its inputs out.

    A graph of a million operations has a million nodes, and the garbage collector visits every
    container again and again. So a node holds few: what could be tuples of tuples lies flat.

    Attributes
    ----------
    targets : tuple of (Node or None)
        Where each input's gradient goes: the node that computed the input.
    numbers : tuple of int
        Which of that node's outputs each input was.
    sequence : int
        Grows with every node made; the engine runs the highest first. A node is younger than its
        targets.
    saved : tuple or None
        What the rule needs, three entries for each value: an array, its version counter, and the
        version when it was saved; or what is no array, None, and 0. None once freed.
    attached : Attached or None
        Hooks and the like.
    """

    __slots__ = ("__weakref__", "attached", "numbers", "saved", "sequence", "targets")

    num_outputs: int = 1
    computes_all: ClassVar[bool] = False  # also the gradients that nobody asked for
    # The positions of the inputs that users see, which are those with a rule; None for all.
    _derived: ClassVar[tuple[int, ...] | None] = None
    gives_views: ClassVar[bool] = False  # whether its outputs share the memory of its input
    targets: tuple[Node | None, ...]
    numbers: tuple[int, ...]
    saved: tuple[Any, ...] | None
    sequence: int
    attached: Attached | None

    def __init__(self, edges: Sequence[Edge], saved: tuple[Any, ...] | None = ()) -> None:
        self.targets = tuple([node for node, _ in edges])
        self.numbers = tuple([number for _, number in edges])
        self.saved = saved
        self.sequence = next_sequence()
        self.attached = None
        if interceptors:
            note_node(self)

    def edge(self, position: int) -> Edge:
        """Return where the gradient of an input goes: a node, and which of its outputs it was."""
        target = self.targets[position]
        return NO_EDGE if target is None else (target, self.numbers[position])

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """The nodes that this one hands its gradients to, each with its output number."""
        return self._seen(tuple(zip(self.targets, self.numbers, strict=True)))

    def _seen(self, each: Sequence[Any]) -> tuple[Any, ...]:
        """Return, of what there is for each input, that of those which users see."""
        return tuple(each) if self._derived is None else tuple([each[k] for k in self._derived])

    def _unseen_too(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Return gradients of all inputs, given those of the inputs that users see."""
        if self._derived is None:
            return gradients
        found = dict(zip(self._derived, gradients, strict=True))
        return [found.get(position) for position in range(len(self.targets))]

    def is_reached(self) -> bool:
        """Return whether it hands on gradients. If not, it was only made for its tangent map."""
        return any(target is not None for target in self.targets)

    def attach(self) -> Attached:
        """Return what is attached, made if there was nothing."""
        if self.attached is None:
            self.attached = Attached()
        return self.attached

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes about this node."""
        return self.attach().metadata

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call a function whenever this node has run.

        Parameters
        ----------
        fn : callable
            ``fn(grad_inputs, grad_outputs)`` gets the gradients that the node gives and those that
            it was given, both tuples. A tuple that it returns replaces the first.

        Returns
        -------
        RemovableHandle

        >>> import numgrad as ng
        >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 2
        >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + outputs[0], None))
        >>> y.sum().backward()
        >>> x.grad
        tensor([3., 3.])
        """
        return register(self.attach().posthooks, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call a function whenever this node is about to run.

        Parameters
        ----------
        fn : callable
            ``fn(grad_outputs)`` gets the gradients of the node's outputs, a tuple. A tuple that it
            returns replaces them.

        Returns
        -------
        RemovableHandle

        >>> import numgrad as ng
        >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 2
        >>> handle = y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10,))
        >>> y.sum().backward()
        >>> x.grad
        tensor([20., 20.])
        """
        return register(self.attach().prehooks, fn)

    def name(self) -> str:
        """Return the node's name, PyTorch's name for the same operation."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in _NAMESPACED else name

    def operation_name(self) -> str:
        """Return the name as PyTorch's messages tell it, such as ``Mul`` of ``MulBackward0``."""
        return _operation_name(self.name())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Return the gradient of each input as an array (or None), and whose memory each is.

        Parameters
        ----------
        gradients : sequence of array or None
            The gradient of each output; None for an output nothing depended on.

        Returns
        -------
        gradients : sequence of array or None
            One for each input.
        owned : sequence of (bool or None)
            Whether the caller may write to it. None says: if it may write to the gradient it gave.
        """
        raise NotImplementedError

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Return the gradient of each input as a tensor, recording a graph if grad mode is on."""
        raise NotImplementedError

    def __call__(self, *gradients: Tensor | None, **keywords: Any) -> Any:
        """Return the gradients of the inputs for gradients of the outputs, without any hooks.

        They are recorded if grad mode is on.

        Returns
        -------
        Tensor, None, or tuple of them
            A tuple unless there is one input.

        Raises
        ------
        TypeError
            If there is not one gradient (or None) for each output that gradients flow through, and
            for what stands before the last of these.

        >>> import numgrad as ng
        >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
        >>> node = (x * x).sum().grad_fn
        >>> with ng.no_grad():
        ...     node(ng.tensor(3.0))
        tensor([3., 3.])
        """
        if keywords:
            raise TypeError("keyword arguments are not supported")
        count = self.count_of_gradients()
        if len(gradients) != count:
            raise TypeError(f"expected {count} arguments, got {len(gradients)} instead")
        for position, gradient in enumerate(gradients):
            if gradient is not None and not isinstance(gradient, Tensor):
                raise TypeError(f"argument {position} is not a Variable")
        fitted = [self._fitted(number, gradient) for number, gradient in enumerate(gradients)]
        fitted += [None] * (self.num_outputs - count)
        results = self._seen(self.run_tensors(fitted))
        return results[0] if len(results) == 1 else results

    def count_of_gradients(self) -> int:
        """Return how many gradients a call of the node takes."""
        return self.num_outputs

    def _fitted(self, number: int, gradient: Tensor | None) -> Tensor | None:
        """Return the gradient of an output in its shape, as kernels rely on."""
        meta = self.output_meta(number)
        if gradient is None or meta is None or gradient._array.shape == meta[0]:
            return gradient
        return (gradient * fresh(np.ones(meta[0], gradient._array.dtype))).reshape(meta[0])

    def output_meta(self, number: int) -> OutputMeta | None:
        """Return the shape and the dtype of an output, None if the node does not know them."""
        metas = getattr(self, "output_metas", None)
        found: OutputMeta | None = None if metas is None else metas[number]
        return found

    def saved_edges(self) -> Sequence[Edge]:
        """Return where the tensors that were saved hung in the graph, one edge for each value."""
        return [NO_EDGE] * (len(self.saved or ()) // 3)

    def saved_names(self) -> Sequence[str]:
        """Return PyTorch's names of what was saved, without ``_saved_``, one for each value."""
        return ()

    def takes_tensor(self, index: int) -> bool:
        """Return whether a saved value is that of an operand which may be a tensor."""
        return False

    def run_tangents(self, tangents: Sequence[Tensor | None]) -> Sequence[Tensor | None] | None:
        """Return the tangent of each output, given those of the inputs.

        None if the node has no rule of its own for that, as most have none: then the tangents
        follow from the rule for gradients.
        """
        return None


_node_types: dict[Any, Any] = {}


def node_type(name: str, base: type[Node], module: str = "numgrad", **attributes: Any) -> Any:
    """Return the class of nodes that are those of a class but for a name and some attributes.

    >>> node_type("TwiceBackward", Node, num_outputs=2).num_outputs
    2
    """
    key = (name, base, module, *attributes.items())
    found = _node_types.get(key)
    if found is None:
        members = {"__slots__": (), "__module__": module, **attributes}
        found = _node_types[key] = type(name, (base,), members)
    return found


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
    name = "" if node is None or not node.targets else node.operation_name()
    if node is None or node is not owner:
        if node is not None and node.gives_views:
            name, output_nr = "AsStrided", 0
        elif len(counter) > 1 and counter[1]:
            name, output_nr = counter[1], 0
    origin = f", which is output {output_nr} of {name}," if name else ""
    hint = (
        "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    if anomaly.enabled:
        noted = (counter[2] if len(counter) > 2 else None) or {}
        code, line = noted.get(version + 1, (None, 0))
        hint = (
            "the backtrace further above shows the operation that failed to compute its gradient. "
            "The variable in question was changed in there or anywhere later. Good luck!"
        )
        if code is not None:
            text = linecache.getline(code.co_filename, line).strip()
            hint = (
                "the backtrace further above shows the operation that failed to compute its "
                f"gradient. The variable in question was changed from version {version} to "
                f'{version + 1} at File "{code.co_filename}", line {line}, in {code.co_name}: '
                f"{text}"
            )
    return (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{tensor_type_name(array.dtype)} {list(array.shape)}]{origin} is at version "
        f"{counter[0]}; expected version {version} instead. Hint: {hint}"
    )


def tensor_type_name(numpy_dtype: Any) -> str:
    """Return the type name that PyTorch's messages use, such as ``torch.FloatTensor``.

    Dtypes that came after those names are told otherwise.
    """
    name = dtypes.of_numpy(numpy_dtype).scalar_name
    return f"CPU{name}Type" if numpy_dtype.kind in "bc" else f"torch.{name}Tensor"
