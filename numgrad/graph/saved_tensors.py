"""Saved tensors: pack and unpack what a node keeps, and the hooks that may change that.

Where no hook is active nothing of this is run or made: nodes keep arrays. `pack_saved` turns what a
node kept into what the user's hook made of it, and the node into one that has it turned back for
every run.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.base.tuning import NESTED_PASSES
from numgrad.graph.backward.accumulate import AccumulateGrad
from numgrad.graph.backward.nested import elsewhere
from numgrad.graph.modes.state import modes, stop_watching, watch
from numgrad.graph.node import FREED, Node, SavedArray, unpack_array
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, wrap
from numgrad.runtime.forks import forkable_lock

__all__ = [
    "PackHook",
    "PackedTensor",
    "PackedValues",
    "UnpackHook",
    "enter_hooks",
    "exit_hooks",
    "pack_entry",
    "pack_saved",
    "pack_tensor",
    "restore_tensor",
    "saved_entries",
    "saved_value",
]

PackHook = Callable[[Tensor], Any]
UnpackHook = Callable[[Any], Tensor]


def restore_tensor(
    saved: SavedArray, edge: Edge, owner: Node | None = None, unpacked: bool = False
) -> Tensor:
    """Return the tensor that was saved, hanging in the graph where it hung then.

    A leaf is itself, unless it was `unpacked` by a hook: what that returned stands in for it.
    """
    array = unpack_array(saved, edge, owner)
    node = edge[0]
    if type(node) is AccumulateGrad and node.variable._array is array and not unpacked:
        return node.variable
    tensor = wrap(array)
    tensor._counter = saved[1]
    if type(node) is AccumulateGrad:  # a hook's stand-in for a leaf is a leaf
        tensor._edge, tensor._accumulator = None, weakref.ref(node)
    else:
        tensor._edge = edge
    return tensor


def enter_hooks(pack_hook: PackHook, unpack_hook: UnpackHook) -> None:
    """Have the tensors that this thread's operations save go through a pair of hooks."""
    if modes.hooks_disabled is not None:
        raise RuntimeError(modes.hooks_disabled)
    for hook in (pack_hook, unpack_hook):
        if not callable(hook):
            raise TypeError(f"hooks on saved tensors must be callable, got {type(hook).__name__}")
    pair = (pack_hook, unpack_hook)
    modes.saved_hooks = (*modes.saved_hooks, pair)
    watch(pair, sees_calls=False)  # what records a node looks whether it packs


def exit_hooks() -> None:
    """Forget the pair of hooks that was entered last.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    hooks = modes.saved_hooks
    if not hooks:
        raise RuntimeError(
            "there are no hooks on saved tensors to leave: those that are entered within a "
            "backward pass end with it"
        )
    modes.saved_hooks = hooks[:-1]
    stop_watching(hooks[-1])


class PackedTensor:
    """What the user's hook made of one tensor, and what makes a tensor of it again."""

    __slots__ = ("dtype", "shape", "strides", "unpack_hook", "value")

    def __init__(self, value: Any, tensor: Tensor, unpack_hook: UnpackHook) -> None:
        self.value = value
        array = tensor._array
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.unpack_hook = unpack_hook

    def unpack(self) -> Tensor:
        """Return what the user's other hook makes of it."""
        hook = self.unpack_hook
        tensor = hook(self.value) if modes.depth <= NESTED_PASSES else elsewhere(hook, self.value)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(tensor).__name__}"
            )
        return tensor

    def unpack_at(self, edge: Edge, owner: Node | None) -> Tensor:
        """Return the tensor, hanging in the graph where the one that was packed hung.

        Where that is nowhere, it is what the hook returned itself, if that hangs nowhere, too.
        """
        tensor = self.unpack()
        if edge[0] is None and tensor._edge is NO_EDGE:
            return tensor
        saved = (tensor._array, tensor._counter, tensor._counter[0])
        return restore_tensor(saved, edge, owner, unpacked=True)

    def unpack_for_kernel(self) -> SavedArray:
        """Return what a node would have kept: kernels rely on the shape and the dtype."""
        tensor = self.unpack()
        array = tensor._array
        if array.shape != self.shape:
            raise RuntimeError(
                f"Output of saved tensor unpack_hook has shape {list(array.shape)}, but a tensor "
                f"of shape {list(self.shape)} was saved"
            )
        if array.dtype != self.dtype:
            array = array.astype(self.dtype)
        return array, tensor._counter, tensor._counter[0]


def pack_tensor(tensor: Tensor, hooks: tuple[PackHook, UnpackHook]) -> PackedTensor:
    """Hand a tensor to the user's hook.

    Raises
    ------
    RuntimeError
        If the hook writes to the tensor.
    """
    previous = modes.grad
    modes.grad = False
    try:
        return _pack(tensor, hooks)
    finally:
        modes.grad = previous


def _pack(tensor: Tensor, hooks: tuple[PackHook, UnpackHook]) -> PackedTensor:
    """Do that where nothing is recorded."""
    pack_hook, unpack_hook = hooks
    counter = tensor._counter
    version = counter[0]
    value = pack_hook(tensor)
    if counter[0] != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to pack hook cannot be modified by in-place operations as this can lead to "
            "unexpected side-effects. Please open an issue if you need to perform in-place "
            "operations on the input to a pack hook."
        )
    return PackedTensor(value, tensor, unpack_hook)


class PackedValues:
    """What stands in ``node.saved`` where some of it is packed.

    Attributes
    ----------
    entries : list
        For each saved value a `PackedTensor`, or what the node itself keeps (`SavedArray`).
    order : sequence of int
        In which order hooks get them.
    """

    __slots__ = ("entries", "lock", "order")

    def __init__(self, entries: list[Any], order: Sequence[int]) -> None:
        self.entries = entries
        self.order = order
        self.lock = forkable_lock()

    def __bool__(self) -> bool:
        return True

    def unpacked(self) -> tuple[tuple[Any, ...], bool]:
        """Return what the node would have kept by itself, and whether that lies as it lay."""
        flat: list[Any] = [None] * (3 * len(self.entries))
        alike = True
        for index in self.order:
            entry = self.entries[index]
            if type(entry) is PackedTensor:
                strides = entry.strides
                entry = entry.unpack_for_kernel()
                alike = alike and entry[0].strides == strides
            flat[3 * index : 3 * index + 3] = entry
        return tuple(flat), alike


def _order(node: Node, count: int) -> Sequence[int]:
    """Return PyTorch's order of what a node saved: operands by their names, then results."""
    names = node.saved_names() if count > 1 else ()
    if len(names) != count:
        return range(count)
    return sorted(range(count), key=lambda index: (names[index] == "result", names[index]))


def pack_saved(node: Node, tensors: Sequence[Any] | None = None) -> None:
    """Hand what a node has just saved to the innermost hooks of this thread.

    Parameters
    ----------
    node : Node
    tensors : sequence of (Tensor or None), optional
        For each saved value the tensor that it is, as far as there is one. For others, and without
        it, tensors are made that hang in the graph where those hang.
    """
    saved: Any = node.saved
    if not saved:
        return
    if modes.steps is not None:  # a program is made of the node as it is: later
        modes.steps.packing.append((node, tensors))
        return
    entries = saved_entries(node)
    given: Sequence[Any] = () if tensors is None else tensors
    order = _order(node, len(entries))
    hooks = modes.saved_hooks[-1]
    packed = False
    previous = modes.grad
    modes.grad = False
    try:
        for index in order:
            if entries[index][1] is not None:
                tensor = given[index] if given else None
                if tensor is None:
                    tensor = _tensor_of(node, entries[index], index)
                entries[index] = _pack(tensor, hooks)
                packed = True
    finally:
        modes.grad = previous
    if packed:
        _hold_packed(node, entries, order)


def pack_entry(node: Node, index: int, hooks: tuple[PackHook, UnpackHook]) -> None:
    """Hand one tensor that a node saved to a pair of hooks."""
    entries = saved_entries(node)
    entries[index] = pack_tensor(_tensor_of(node, entries[index], index).detach(), hooks)
    _hold_packed(node, entries, _order(node, len(entries)))


def saved_entries(node: Node) -> list[Any]:
    """Return what a node saved, one entry for each value (see `PackedValues`)."""
    saved: Any = node.saved
    if saved is None:
        raise RuntimeError(FREED)
    if isinstance(saved, PackedValues):
        return saved.entries
    count = len(node.saved_edges())  # what stands behind, if anything, is no saved value
    return [saved[at : at + 3] for at in range(0, 3 * count, 3)]


def saved_value(node: Node, index: int) -> Any:
    """Return one of the values that a node saved: a tensor, hanging in the graph, or a number."""
    entry = saved_entries(node)[index]
    edge = node.saved_edges()[index]
    owner = node if edge[0] is node else None
    if type(entry) is PackedTensor:
        return entry.unpack_at(edge, owner)
    return entry[0] if entry[1] is None else restore_tensor(entry, edge, owner)


def _tensor_of(node: Node, entry: SavedArray, index: int) -> Tensor:
    """Return the tensor that a node saved."""
    edge = node.saved_edges()[index]
    return restore_tensor(entry, edge, node if edge[0] is node else None)


def _hold_packed(node: Node, entries: list[Any], order: Sequence[int]) -> None:
    """Make the node one that unpacks what it saved for every run."""
    if not isinstance(node.saved, PackedValues):
        node.__class__ = _packed_class(type(node))
        node.saved = PackedValues(entries, order)  # type: ignore[assignment]
        node.attach()  # the engine tells nodes with something attached in which pass they run


_packed_classes: dict[type[Node], type[Node]] = {}


def _packed_class(cls: type[Node]) -> type[Node]:
    """Return the class of nodes like those of a class, but with packed values."""
    found = _packed_classes.get(cls)
    if found is None:
        attributes: dict[str, Any] = {
            method: _with_values(getattr(cls, method))
            for method in ("run_arrays", "run_tensors", "restore")
            if hasattr(cls, method)
        }
        if hasattr(cls, "run_rules"):  # what hooks return need not lie as in other calls
            attributes["run_arrays"] = _with_values(cls.run_arrays, cls.run_rules)
        attributes |= {"__slots__": (), "__module__": cls.__module__}
        found = _packed_classes[cls] = type(cls.__name__, (cls,), attributes)
    return found


def _with_values(
    method: Callable[..., Any], otherwise: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Return a method that runs another one of a node while its values are unpacked.

    That is `otherwise`, if given, where values lie in memory in another way than those it packed.
    """

    def run(node: Node, *arguments: Any) -> Any:
        packed: Any = node.saved
        if packed is None:
            raise RuntimeError(FREED)
        if not isinstance(packed, PackedValues):  # one method of the node has called another
            return method(node, *arguments)
        with packed.lock:
            node.saved, alike = packed.unpacked()
            run_now = method if alike or otherwise is None else otherwise
            try:
                return run_now(node, *arguments)
            finally:
                node.saved = packed  # type: ignore[assignment]

    return run
