"""The tensor core: an array, a version counter, and an edge into the graph.

Methods and operators are bound to `Tensor` in `numgrad.tensor`; here is only what the engine
and the catalogue need.
"""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.counters import NoCounter, level_counter, new_counter
from numgrad.graph.forbidden_views import forbidden_view
from numgrad.graph.handles import Hooks
from numgrad.graph.kinds import Kind, kind_for
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.size import Size
from numgrad.graph.upward import upward
from numgrad.kernels.move.strides import holder_behind

if TYPE_CHECKING:
    from numgrad import _Methods  # what numgrad.tensor and the catalogue bind to the class
    from numgrad.graph.node import Node
else:
    _Methods = object

__all__ = [
    "NOWHERE",
    "NO_EDGE",
    "Edge",
    "Tensor",
    "check_requires_grad",
    "fresh",
    "has_lost_history",
    "holder_of",
    "is_inference",
    "kind_of",
    "move_retained",
    "plain",
    "refresh_view",
    "set_array",
    "uncounted",
    "view_of",
    "wrap",
]

Edge = tuple["Node | None", int]
# The edge of a tensor that does not require grad; what `next_functions` shows for it.
NO_EDGE: Edge = (None, 0)
# The edge of a view made while nothing was recorded, of a base that requires grad: the view does
# too, but no gradient flows from it. Told from NO_EDGE by identity, so it is made at run time.
NOWHERE: Edge = tuple([None, 0])  # type: ignore[assignment]  # noqa: C409

_new_size: Any = tuple.__new__
_NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
    "attribute won't be populated during autograd.backward(). If you indeed want the .grad field "
    "to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you "
    "access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
    "github.com/pytorch/pytorch/pull/30531 for more information."
)


class Tensor(_Methods):
    """A NumPy array with PyTorch's tensor-and-autograd semantics.

    Create one with `numgrad.tensor`, `numgrad.from_numpy`, `numgrad.zeros` and the like.

    Attributes
    ----------
    dtype, shape, ndim, requires_grad, is_leaf, grad, grad_fn, output_nr, data
        As in PyTorch.
    """

    # What most tensors share stands on the class, so that making a tensor sets two attributes.
    #
    # _edge says how the tensor hangs in the graph: NO_EDGE, it does not require grad; None, it is
    # a leaf that does; (node, output_nr), it was computed by that node; NOWHERE, see above.
    _array: np.ndarray[Any, Any]  # give a tensor another one by `set_array`
    _kind: Kind | None = None  # that of the array, once it was asked for; see `kind_of`
    _counter: list[Any]  # [version]; one list for a storage, shared by all of its views
    _edge: Edge | None = NO_EDGE
    _grad: Tensor | None = None
    _base: Tensor | None = None  # for a view: the tensor that owns the storage
    _view_version: int = 0  # for a view: the version for which _edge is right
    # For a view: why it may not be written to ("no_grad", "inference", "multiple", "function").
    _view_origin: str = ""
    _accumulator: weakref.ref[Any] | None = None
    _hooks: Hooks | None = None
    _post_accumulate_hooks: Hooks | None = None
    _retains_grad: bool = False
    # After `resize_` or `set_`: the memory that there is, flat, and where in it the tensor starts.
    _memory: np.ndarray[Any, Any] | None = None
    _offset: int = 0
    # Of what shares a view's memory and is none (`detach`, `data`): the array that it is part of.
    # Also of what was given other memory by ``data =`` or `set_`.
    _owner: np.ndarray[Any, Any] | None = None
    _parted: bool = False  # whether it was given some, or a view of it, so that views lie elsewhere
    _level: Any = None  # for what stands for an argument in `numgrad.func`: which call's (a Level)

    __array_priority__ = 1000  # NumPy's operators hand over to ours

    if TYPE_CHECKING:  # what the catalogue has no types for

        def __getattr__(self, name: str) -> Any: ...

    @property
    def dtype(self) -> dtypes.dtype:
        """The element type."""
        return dtypes.of_numpy(self._array.dtype)

    @property
    def shape(self) -> Size:
        """The lengths of the dimensions, a `Size`."""
        return _new_size(Size, self._array.shape)  # ints: nothing to check

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this tensor; settable on leaves."""
        edge, base = self._edge, self._base
        if base is not None and (edge is NO_EDGE or edge is NOWHERE):
            return base.requires_grad
        return edge is not NO_EDGE

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if self.grad_fn is not None:
            advice = (
                ""
                if value
                else " If you want to use a computed variable in a subgraph that doesn't require "
                "differentiation use var_no_grad = var.detach()."
            )
            raise RuntimeError(
                f"you can only change requires_grad flags of leaf variables.{advice}"
            )
        if value and self._array.dtype.kind not in "fc":
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        if value:
            check_requires_grad(self)
        self._edge = None if value else NO_EDGE

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation computed this tensor."""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        """The node that computed this tensor, or None for a leaf."""
        if self._base is not None:
            refresh_view(self, reading=True)
        edge, level = self._edge, self._level
        if edge is None or (level is not None and level.alive):
            return None  # what stands for an argument is a leaf of the function that runs
        return edge[0]

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is."""
        edge = self._edge
        return 0 if edge is None else edge[1]

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated by `backward`; None until then."""
        if self._grad is None and not self._retains_grad and not self.is_leaf:
            warnings.warn(_NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            _check_assigned_grad(self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def _version(self) -> int:
        if is_inference(self):
            raise RuntimeError("Inference tensors do not track version counter.")
        version: int = self._counter[0]
        return version

    @property
    def data(self) -> Tensor:
        """The same storage without history and without a version check."""
        if modes.inference and modes.level is not None:
            modes.level.check_in_inference(self)
        made = uncounted(self._array if modes.dual is None else self._array[...])
        counter: list[Any] = [0]  # in any mode
        if type(self._counter) is NoCounter:
            counter = self._counter
        elif len(self._counter) > 3:
            counter = level_counter(self._counter[3])
        made._counter = counter
        if self._base is not None:
            made._owner = holder_of(self)
        elif self._owner is not None:
            made._owner = self._owner
        return made

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self.requires_grad and value._array.dtype.kind not in "fc":
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex "
                "dtype"
            )
        array, own = value._array, self._array
        if (
            self._edge is not None
            and self._edge[0] is not None
            and (array.shape != own.shape or array.dtype != own.dtype)
        ):  # the node that computed it has kernels for that shape
            raise RuntimeError(
                f"data of size {list(array.shape)} and {value.dtype!r} can't be assigned to a "
                f"computed tensor of size {list(own.shape)} and {self.dtype!r}: gradients would "
                "not fit the graph"
            )
        owner = holder_of(value)  # which may be a view of this one
        set_array(self, array)
        self._owner = owner
        if self._memory is not None or self._offset:
            self._memory, self._offset = None, 0
        (self if self._base is None else self._base)._parted = True

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


def kind_of(tensor: Tensor) -> Kind:
    """Return the kind of a tensor's array, and note it; where it was noted, read ``_kind``."""
    kind = tensor._kind = kind_for(tensor._array)
    return kind


def set_array(tensor: Tensor, array: Any) -> None:
    """Give a tensor that there is another array."""
    tensor._array = array
    tensor._kind = None


def holder_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return the array whose memory a tensor lies in: its own, or what that is a part of."""
    base = tensor._base
    holder = tensor if base is None or tensor._owner is not None else base
    found = holder._memory
    if found is None:
        found = holder._array if holder._owner is None else holder._owner
    if base is not None and base._parted:  # one of them may have been given other memory
        array = tensor._array
        if not _lies_in(array, found):
            found = holder_behind(array)
    return found


def _lies_in(array: np.ndarray[Any, Any], memory: np.ndarray[Any, Any]) -> bool:
    """Return whether an array is a part of another one's memory; one without elements may be."""
    if array.size and memory.size:
        return np.may_share_memory(memory, array)
    start, place = (each.__array_interface__["data"][0] for each in (memory, array))
    return bool(start <= place <= start + memory.nbytes)


def check_requires_grad(tensor: Tensor) -> None:
    """Raise for a tensor that may not be made to require grad."""
    if is_inference(tensor) and not modes.inference:
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        )


def _check_assigned_grad(tensor: Tensor, grad: Tensor) -> None:
    """Raise unless `grad` can stand as the gradient of `tensor`."""
    if not isinstance(grad, Tensor):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type "
            f"{type(grad).__name__}"
        )
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad.dtype is not tensor.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{grad.dtype.cpp_name}' to a tensor "
            f"with grad_dtype '{tensor.dtype.scalar_name}'. The gradient must match the tensor's "
            "grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype "
            "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with "
            "caution. Diverging the dtypes of a tensor and its gradient may break downstream "
            "systems that assume they match."
        )
    if grad.shape != tensor.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of size "
            f"'{list(tensor.shape)}'. Please ensure that the gradient and the tensor are the same "
            "size"
        )


_new = object.__new__


_ndarray = np.ndarray


def is_inference(tensor: Tensor) -> bool:
    """Return whether a tensor's memory was made in `inference_mode`.

    Such a tensor has no version. Outside of the mode it can't be written to, require grad, or be
    saved for the backward pass.

    >>> import numgrad as ng
    >>> with ng.inference_mode():
    ...     x = ng.ones(2)
    >>> x.is_inference(), x[0].is_inference(), (x + 1).is_inference()
    (True, True, False)
    """
    return type(tensor._counter) is NoCounter


def plain(array: Any) -> Any:
    """Return an array of a class of its own as one of NumPy's class, over the same memory.

    Kernels look at an array's memory, whatever its class makes of ``[]`` or ``*``. Anything else is
    returned as it is.

    Raises
    ------
    TypeError
        If some of it is masked: a tensor has no place for that.
    """
    if type(array) is _ndarray or not isinstance(array, _ndarray):
        return array
    if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        raise TypeError(
            "can't convert a masked array in which something is masked: a tensor has no mask. Fill "
            "it with array.filled(value), or take array.data"
        )
    return np.asarray(array)


def wrap(array: np.ndarray[Any, Any]) -> Tensor:
    """Return a leaf tensor that does not require grad over `array` (not copied)."""
    if type(array) is _ndarray:
        tensor: Tensor = _new(Tensor)
    else:
        array = plain(array)
        tensor = _new(upward.tensor_class(array))
    tensor._array = array
    tensor._counter = new_counter() if interceptors else [0]
    return tensor


def uncounted(array: np.ndarray[Any, Any]) -> Tensor:
    """Return what `wrap` does, for who gives it a counter."""
    tensor: Tensor = _new(Tensor if type(array) is _ndarray else upward.tensor_class(array))
    tensor._array = array
    return tensor


def fresh(array: np.ndarray[Any, Any]) -> Tensor:
    """Return what `wrap` does of an array that was made for this call and depends on no tensor.

    In a traced function it is a constant, and may be written to as any local tensor.
    """
    tensor = wrap(array if modes.trace is None else modes.trace.constant(array))
    if interceptors and modes.steps is not None:
        modes.steps.constants.append(tensor)
    return tensor


def view_of(tensor: Tensor, array: np.ndarray[Any, Any]) -> Tensor:
    """Return a view tensor over `array`, which shares the memory of `tensor`; no history yet."""
    view: Tensor = _new(Tensor if type(array) is _ndarray else upward.tensor_class(array))
    view._array = array
    view._counter = counter = tensor._counter
    view._base = base = tensor if tensor._base is None else tensor._base
    try:
        view._view_version = counter[0]
    except RuntimeError:  # an inference tensor has no version
        return _without_base(view, tensor)
    if tensor._view_origin:
        view._view_origin = tensor._view_origin
    if not modes.grad:
        if modes.inference:
            if is_inference(tensor):
                return _without_base(view, tensor)
            if modes.level is not None:
                modes.level.check_in_inference(tensor)
        if tensor._view_origin != "inference":  # that stays said of all views of a view
            view._view_origin = "inference" if modes.inference else "no_grad"
        if base._edge is not NO_EDGE:
            view._edge = NOWHERE
    return view


def _without_base(view: Tensor, tensor: Tensor) -> Tensor:
    """Return a view of an inference tensor as PyTorch has it: a tensor in the same memory."""
    view._base, view._owner = None, holder_of(tensor)
    return view


def refresh_view(view: Tensor, reading: bool = False) -> None:
    """Give a view the history of its base as it stands after the last write to the storage.

    Parameters
    ----------
    view : Tensor
        A tensor that has a base.
    reading : bool
        Whether the history itself is asked for: then it is made even where nothing is recorded.

    Raises
    ------
    RuntimeError
        In PyTorch's words, if the view is of those that have no history to give: made while grad
        mode was off, or one of several that one operation returned.
    """
    base = view._base
    if base is None:
        return
    edge = view._edge
    if edge is NO_EDGE or edge is NOWHERE:
        if base._edge is NO_EDGE:
            view._edge = NO_EDGE
            return
        view._edge = NOWHERE
    elif base._edge is NO_EDGE and edge is None:
        return
    try:
        version = view._counter[0]
    except RuntimeError:  # an inference tensor has no version
        return
    if version == view._view_version or not (modes.grad or reading):
        return
    if view._view_origin:
        raise RuntimeError(forbidden_view(view, "its base or another view of its base has been"))
    view._edge = upward.view_history(view, base)
    move_retained(view, edge, view._edge)
    view._view_version = version


def has_lost_history(tensor: Tensor) -> bool:
    """Whether a tensor is a view that has no history to give since its base was written to.

    To ask for it is an error; that it is no computed tensor may be said nevertheless.
    """
    base = tensor._base
    if base is None or base._edge is NO_EDGE or not tensor._view_origin or is_inference(tensor):
        return False
    return (tensor._edge or NO_EDGE)[0] is None and tensor._counter[0] != tensor._view_version


def move_retained(tensor: Tensor, old: Edge | None, new: Edge) -> None:
    """Let a tensor that retains its gradient retain that of its new node, not of its old one."""
    if not tensor._retains_grad:
        return
    if old is not None and old[0] is not None and old[0].attached is not None:
        old[0].attached.retained.pop(old[1], None)
    node, output_nr = new
    if node is not None:
        node.attach().retained[output_nr] = weakref.ref(tensor)
