"""Tensor: the methods and operators of the catalogue, bound to the graph's tensor."""

from __future__ import annotations

import inspect
import math
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numgrad.ops.later  # noqa: F401 - fills the registries
from numgrad.base.device import CPU
from numgrad.base.layouts import strided
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.backward.backward import backward
from numgrad.graph.handles import Hooks, RemovableHandle, register
from numgrad.graph.inplace import check_captured
from numgrad.graph.modes.state import interceptors, is_transformed, modes
from numgrad.graph.recorder import address_of, is_traced_array
from numgrad.graph.size import Size
from numgrad.graph.storage import offset_of
from numgrad.graph.tensor import (
    NO_EDGE,
    Tensor,
    check_requires_grad,
    has_lost_history,
    is_inference,
)
from numgrad.io.copying import deep_copy, reduce_tensor, shallow_copy
from numgrad.io.printing import tensor_format, tensor_repr
from numgrad.ops.arguments import conversion
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.factories import check_memory_format
from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS, binders
from numgrad.ops.creation.from_data import legacy_tensor
from numgrad.ops.indexing.assignment import setitem
from numgrad.ops.indexing.indexing import getitem
from numgrad.ops.later_attributes import Later, bind_later
from numgrad.ops.mutation.resizing import resize_, resize_as_, set_
from numgrad.ops.numpy.protocol import array_function, array_ufunc
from numgrad.ops.operators import bind_operators
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import type_name
from numgrad.ops.signatures.numbers import as_integer, is_integer

__all__ = ["Size", "Tensor"]


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradient of this tensor and add it to the ``.grad`` of the leaves.

    See `numgrad.autograd.backward`; `gradient` is the cotangent, of this tensor's shape.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> x.prod().backward()
    >>> x.grad
    tensor([2., 1.])
    """
    backward((self,), gradient, retain_graph, create_graph, None, inputs)


# There is no table of its calls: a key takes longer to make than the call takes.
@declare("requires_grad_(Tensor self, bool requires_grad=True)", function=False)
def requires_grad_(self: Tensor, requires_grad: bool) -> Tensor:
    """Set `requires_grad` in place and return the tensor.

    Parameters
    ----------
    requires_grad
        What to set it to.

    Raises
    ------
    RuntimeError
        If a tensor that was computed shall not require grad, or one of integers or bools shall.

    >>> import numgrad as ng
    >>> ng.ones(2).requires_grad_()
    tensor([1., 1.], requires_grad=True)
    """
    if interceptors and is_transformed():
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using "
            "torch.autograd.functional.* APIs) inside of a function being transformed by a "
            "functorch transform. This is unsupported, please attempt to use the functorch "
            "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside "
            "of a function being transformed instead."
        )
    if requires_grad:
        if self._array.dtype.kind not in "fc":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        check_requires_grad(self)
    if has_lost_history(self):
        return self
    if self.grad_fn is None:
        self._edge = None if requires_grad else NO_EDGE
    elif not requires_grad:
        self.requires_grad = False  # which says why it can't be
    return self


def _retain_grad(self: Tensor) -> None:
    """Let a tensor that is not a leaf keep its gradient in ``.grad`` too.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.
    """
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if has_lost_history(self) or self.is_leaf or self._retains_grad:
        return
    node, output_nr = gradient_edge(self)
    if node is not None:
        node.attach().retained[output_nr] = weakref.ref(self)
    self._retains_grad = True


def _register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call `hook` with the gradient whenever one is computed; what it returns replaces it.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    # What stands for an argument in `func` is a leaf to the function, and may have a node below.
    node = self.grad_fn if self._level is None or self._edge is None else self._edge[0]
    if node is None:
        if self._hooks is None:
            self._hooks = Hooks()
        hooks = self._hooks
        accumulator = None if self._accumulator is None else self._accumulator()
        if accumulator is not None:
            accumulator.attach().hooks[0] = hooks
    else:
        hooks = node.attach().hooks.setdefault(self.output_nr, Hooks())
    return register(hooks, hook)


def _register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Call `hook` with this leaf whenever a gradient was added to its ``.grad``.

    Raises
    ------
    RuntimeError
        If the tensor is not a leaf that requires grad.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self._post_accumulate_hooks is None:
        self._post_accumulate_hooks = Hooks()
    return register(self._post_accumulate_hooks, hook)


def _detach_(self: Tensor) -> Tensor:
    """Cut this tensor out of its graph, in place.

    Raises
    ------
    RuntimeError
        If the tensor is a view.
    """
    if self._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
            "function in torch/optim/optimizer.py as the solution."
        )
    if interceptors and modes.level is not None:
        check_captured(self, "detach")
    self._edge = NO_EDGE
    return self


def _size(self: Tensor, dim: int | None = None) -> Any:
    """Return the shape, or the length of one dimension.

    Raises
    ------
    IndexError
        If there is no such dimension.
    """
    if dim is None:
        return self.shape
    if type(dim) is not int and not is_integer(dim):
        raise TypeError(f"size(): argument 'dim' (position 1) must be int, not {type_name(dim)}")
    return self._array.shape[_own_dim(self, dim)]


def _own_dim(self: Tensor, dim: Any) -> int:
    position = as_integer(dim)
    if not self._array.ndim:
        raise IndexError(f"Dimension specified as {position} but tensor has no dimensions")
    return wrap_dim(position, self._array.ndim)


def _stride(self: Tensor, dim: int | None = None) -> Any:
    """Return the step of each dimension, in elements, or of one.

    Raises
    ------
    IndexError
        If there is no such dimension.
    """
    array = self._array
    strides = tuple(step // array.itemsize for step in array.strides)
    if not array.size and not any(strides):  # as NumPy has it for arrays without elements
        lengths = [max(length, 1) for length in array.shape]
        strides = tuple([math.prod(lengths[at + 1 :]) for at in range(array.ndim)])
    if dim is None:
        return strides
    if type(dim) is not int and not is_integer(dim):
        raise TypeError(f"stride(): argument 'dim' (position 1) must be int, not {type_name(dim)}")
    return strides[_own_dim(self, dim)]


def _storage_offset(self: Tensor) -> int:
    """Return where the first element lies in the storage, in elements."""
    return offset_of(self)


def _data_ptr(self: Tensor) -> int:
    """Return the address of the first element."""
    array: Any = self._array
    if is_traced_array(array):
        array.storage.recorder.numbers("its address", array)  # raises if it has none
    return address_of(array)


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if self._array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _delete_item(self: Tensor, key: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


def _cpu(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return the tensor itself, which is on the CPU, or a copy in the memory format asked for."""
    check_memory_format("cpu", memory_format)
    return self if memory_format is None else METHODS["to"](self, memory_format=memory_format)


def _real_part() -> property:
    return property(FUNCTIONS["real"], lambda self, values: self.real.copy_(values))


def _imaginary_part() -> property:
    return property(FUNCTIONS["imag"], lambda self, values: self.imag.copy_(values))


# What programs for several devices and layouts ask of a tensor before they use one.
_KINDS_THERE_ARE_NOT = (
    *("is_cuda", "is_ipu", "is_maia", "is_meta", "is_mkldnn", "is_mps", "is_mtia", "is_nested"),
    *("is_quantized", "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu", "volatile"),
)


def _bind() -> None:
    """Put every method and operator on `Tensor`."""
    for table in (METHODS, INPLACE):
        for name, function in table.items():
            setattr(Tensor, name, function)
        for name in table.later.keys() - table.keys():
            bind_later(name, partial(table.__getitem__, name))
    bind_operators()
    later: dict[str, Callable[[], Any]] = {
        "__neg__": partial(FUNCTIONS.__getitem__, "neg"),
        "__pos__": partial(METHODS.__getitem__, "positive"),
        "__abs__": partial(FUNCTIONS.__getitem__, "abs"),
        # The names of Python 2, which PyTorch has kept.
        "__div__": partial(FUNCTIONS.__getitem__, "true_divide"),
        "__idiv__": partial(INPLACE.__getitem__, "div_"),
        "real": _real_part,
        "imag": _imaginary_part,
    }
    for name, make in later.items():
        bind_later(name, make)
    own: dict[str, Any] = {
        "__long__": conversion.to_int,
        "__nonzero__": conversion.to_bool,
        "__hash__": object.__hash__,
        "__reduce_ex__": reduce_tensor,
        "__getitem__": getitem,
        "__setitem__": setitem,
        "__delitem__": _delete_item,
        "__iter__": _iterate,
        "__repr__": tensor_repr,
        "__str__": tensor_repr,
        "__format__": tensor_format,
        "__copy__": shallow_copy,
        "__deepcopy__": deep_copy,
        "__array__": conversion.to_array,
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function,
        "__dlpack__": conversion.to_dlpack,
        "__dlpack_device__": conversion.dlpack_device,
        "__bool__": conversion.to_bool,
        "__complex__": conversion.to_complex,
        "__float__": conversion.to_float,
        "__index__": conversion.to_index,
        "__int__": conversion.to_int,
        "__len__": conversion.length,
        "numpy": conversion.to_numpy,
        "item": conversion.item,
        "tolist": conversion.tolist,
        "backward": _backward,
        "retain_grad": _retain_grad,
        "register_hook": _register_hook,
        "register_post_accumulate_grad_hook": _register_post_accumulate_grad_hook,
        "detach_": _detach_,
        "is_inference": is_inference,
        "resize_": resize_,
        "resize_as_": resize_as_,
        "set_": set_,
        "size": _size,
        "stride": _stride,
        "storage_offset": _storage_offset,
        "data_ptr": _data_ptr,
        "dim": lambda self: self._array.ndim,
        "ndimension": lambda self: self._array.ndim,
        "numel": lambda self: self._array.size,
        "nelement": lambda self: self._array.size,
        "element_size": lambda self: self._array.itemsize,
        "is_floating_point": lambda self: self._array.dtype.kind == "f",
        "is_complex": lambda self: self._array.dtype.kind == "c",
        "_is_view": lambda self: self._base is not None,
        "is_signed": lambda self: self.dtype.is_signed,
        "retains_grad": property(lambda self: self._retains_grad and not self.is_leaf),
        "itemsize": property(lambda self: self._array.itemsize),
        "nbytes": property(lambda self: self._array.nbytes),
        "device": property(lambda self: CPU),
        "cpu": _cpu,
        "is_cpu": property(lambda self: True),
        "layout": property(lambda self: strided),
        "name": property(lambda self: None),
    }
    for name in _KINDS_THERE_ARE_NOT:
        own[name] = property(lambda self: False)
    for name, attribute in own.items():
        if inspect.isfunction(attribute) and attribute.__module__ == __name__:
            attribute.__name__, attribute.__qualname__ = name, f"Tensor.{name}"  # errors say it
        setattr(Tensor, name, attribute)


def _bind_declared(name: str, method: bool, inplace: bool) -> None:
    """Put a function that was declared after that on `Tensor`.

    What somebody has put in the place of one of ours, or taken away, stays as it is.
    """
    for table, key, is_wanted in ((METHODS, name, method), (INPLACE, f"{name}_", inplace)):
        is_ours = key in table.later
        if is_wanted and (not is_ours or isinstance(vars(Tensor).get(key), Later)):
            setattr(Tensor, key, table[key])


def _construct(cls: type[Tensor], *arguments: Any, **keywords: Any) -> Tensor:
    """Make a tensor as PyTorch's legacy constructor does: of a shape, or of data."""
    return legacy_tensor(None, *arguments, **keywords)


_bind()
binders.append(_bind_declared)
Tensor.__new__ = _construct  # type: ignore[method-assign,assignment]
Tensor.__module__ = "numgrad"
