"""What programs for several devices and layouts ask of a tensor: dense ones on a CPU answer so."""

from __future__ import annotations

from math import prod
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.arguments.dims import read_sizes
from numgrad.ops.core.registry import public
from numgrad.ops.movement.shape import reshape
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import type_name

__all__ = [
    "const_data_ptr",
    "dense_dim",
    "get_device",
    "is_distributed",
    "is_pinned",
    "resize",
    "resize_as",
    "sparse_dim",
    "to_dense",
    "typename",
]


@declare("get_device(Tensor input)")
def get_device(input: Tensor) -> int:
    """Return -1: the number of a device that is no GPU.

    >>> import numgrad as ng
    >>> ng.ones(2).get_device()
    -1
    """
    return -1


@declare("is_distributed(Tensor input)")
def is_distributed(input: Tensor) -> bool:
    """Return False: no tensor is spread over machines.

    >>> import numgrad as ng
    >>> ng.is_distributed(ng.ones(2))
    False
    """
    return False


@declare("is_pinned(Tensor input)", function=False)
def is_pinned(input: Tensor) -> bool:
    """Return False: no memory is pinned.

    >>> import numgrad as ng
    >>> ng.ones(2).is_pinned()
    False
    """
    return False


@declare("to_dense(Tensor input, dtype? dtype=None, *, bool? masked_grad=None)", function=False)
def to_dense(input: Tensor, dtype: Any) -> Tensor:
    """Return the tensor itself: it is dense. The gradient is g.

    Parameters
    ----------
    dtype
        What to convert to, if it is another one.

    >>> import numgrad as ng
    >>> ng.ones(2).to_dense()
    tensor([1., 1.])
    """
    result: Tensor = input if dtype is None else input.to(dtype)
    return result


@declare("dense_dim(Tensor input)", function=False)
def dense_dim(input: Tensor) -> int:
    """Return the number of dims: all of them are dense.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).dense_dim()
    2
    """
    return int(input._array.ndim)


@declare("sparse_dim(Tensor input)", function=False)
def sparse_dim(input: Tensor) -> int:
    """Return 0: no dim is sparse.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).sparse_dim()
    0
    """
    return 0


@declare("const_data_ptr(Tensor input)", function=False)
def const_data_ptr(input: Tensor) -> int:
    """Return where in memory the first element is; see `data_ptr`.

    >>> import numgrad as ng
    >>> x = ng.ones(2)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return input.data_ptr()


@public(function=False)
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Return the elements in another shape, of as many: PyTorch's deprecated name of `reshape`.

    >>> import warnings
    >>> import numgrad as ng
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     ng.arange(4).resize(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    warn("non-inplace resize is deprecated")
    return _resized(self, read_sizes("resize", sizes))


@public(function=False)
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Return the elements in the shape of another tensor: deprecated, use `reshape_as`.

    >>> import warnings
    >>> import numgrad as ng
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     ng.arange(4).resize_as(ng.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    warn("non-inplace resize_as is deprecated")
    return _resized(self, tensor._array.shape)


def _resized(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    own = tensor._array.shape
    if prod(shape) != prod(own):
        wanted, given = ["x".join(map(str, lengths)) for lengths in (shape, own)]
        raise RuntimeError(
            f"requested resize to {wanted} ({prod(shape)} elements in total), but the given tensor "
            f"has a size of {given} ({prod(own)} elements). autograd's resize can only change the "
            "shape of a given tensor, while preserving the number of elements. "
        )
    return reshape(tensor, shape)


@public("to_dlpack", method=False)
@declare("_to_dlpack(Tensor data)", function=False, method=False)  # PyTorch's messages say so
def _to_dlpack(data: Tensor) -> Any:
    """Return a capsule over a tensor's memory, for libraries that read DLPack.

    ``x.__dlpack__()`` is the same, and what `from_dlpack` of these libraries asks for by itself.

    >>> import numgrad as ng
    >>> type(ng.to_dlpack(ng.ones(2))).__name__
    'PyCapsule'
    """
    return data.__dlpack__()


@public(method=False)
def typename(obj: Any) -> str:
    """Return the name of an object's type, that of a tensor with its dtype.

    >>> import numgrad as ng
    >>> ng.typename(ng.ones(2)), ng.typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    if isinstance(obj, type):
        named = obj.__qualname__
        return named if obj.__module__ == "builtins" else f"{obj.__module__}.{named}"
    named = type_name(obj)
    module = type(obj).__module__
    return named if "." in named or module == "builtins" else f"{module}.{named}"
