"""Legacy tensor types: FloatTensor, LongTensor and the like.

Each is a constructor, the target of `isinstance`, and something to ask `Tensor.type` for. They are
made from the dtypes.
"""

from __future__ import annotations

from typing import Any

from numgrad.base import dtypes
from numgrad.base.layouts import strided
from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.core.registry import public
from numgrad.ops.creation.from_data import legacy_tensor
from numgrad.ops.movement.casts import to
from numgrad.ops.signatures.declared import declare

__all__ = ["LEGACY_TYPES", "tensortype"]


class tensortype(type):  # noqa: N801 - PyTorch's name of the class of these types
    """The class of the legacy types.

    Attributes
    ----------
    dtype : dtype
        Of the tensors that are of the type.
    """

    dtype: dtypes.dtype
    layout = strided
    is_cuda = is_sparse = False

    def __call__(cls, *arguments: Any, **keywords: Any) -> Tensor:
        """Make a tensor of some shape, or of data; see `numgrad.Tensor`."""
        return legacy_tensor(cls.dtype, *arguments, **keywords)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"

    def __reduce__(cls) -> str:
        return cls.__name__


def _make(dtype: dtypes.dtype) -> tensortype:
    name = f"{dtype.scalar_name}Tensor"
    doc = f"Tensors of {dtype!r}: called, it makes one as `Tensor` does; `isinstance` knows them."
    return tensortype(name, (), {"dtype": dtype, "__module__": "numgrad", "__doc__": doc})


_LATER = ("uint16", "uint32", "uint64")  # than these types
LEGACY_TYPES = {
    made.__name__: made
    for made in (
        _make(dtype)
        for name, dtype in dtypes.DTYPES.items()
        if dtype.category < dtypes.COMPLEX and name not in _LATER
    )
}


def _dtype_of(kind: Any) -> dtypes.dtype:
    """Return the dtype that a dtype, a legacy type or the name of one stands for.

    Raises
    ------
    ValueError
        If there is no type of that name.
    TypeError
        If it is none of these.
    """
    if isinstance(kind, (dtypes.dtype, tensortype)):
        return kind if isinstance(kind, dtypes.dtype) else kind.dtype
    if isinstance(kind, type):
        kind = kind.__name__ if kind.__module__ == "builtins" else f"torch.{kind.__name__}"
    if not isinstance(kind, str):
        raise TypeError("dtype must be a type, str, or dtype object")
    if kind == "torch.Tensor":
        return dtypes.default_dtype()
    for candidate in dtypes.DTYPES.values():
        if kind == f"torch.{candidate.scalar_name}Tensor":
            return candidate
    raise ValueError(f"invalid type: '{kind}'")


@declare(
    "type(Tensor input, object dtype=None, bool non_blocking=False, *, "
    "memory_format? memory_format=None)",
    function=False,
)
def type_(input: Tensor, dtype: Any, memory_format: Any) -> Any:
    """Return the tensor in another dtype, or the name of its type if none is given.

    Parameters
    ----------
    input : tensor
    dtype : dtype, type or str, optional
        A dtype, a legacy type such as ``numgrad.DoubleTensor``, or the name of one.
    non_blocking : bool
        Changes nothing.
    memory_format : memory_format, optional
        How the result lies in memory.

    Raises
    ------
    ValueError
        If there is no type of that name.

    >>> import numgrad as ng
    >>> ng.ones(2).type()
    'torch.FloatTensor'
    >>> ng.ones(2).type(ng.LongTensor)
    tensor([1, 1])
    """
    if dtype is None:
        return f"torch.{input.dtype.scalar_name}Tensor"
    return to(input, dtype=_dtype_of(dtype), memory_format=memory_format)


@public(function=False)
def new(self: Tensor, *arguments: Any, device: Any = None, **keywords: Any) -> Tensor:
    """Make a tensor as ``Tensor(...)`` does, in the dtype of this one.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new([3.0, 4.0])
    tensor([3, 4])
    """
    return legacy_tensor(self.dtype, *arguments, device=device, **keywords)


@public(method=False)
def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a legacy type; `set_default_dtype` is PyTorch's advice, and ours.

    Raises
    ------
    TypeError
        If it is not one of a real floating point dtype.
    """
    warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives."
    )
    try:
        dtype = _dtype_of(t)
    except (TypeError, ValueError):
        dtype = dtypes.int64  # no more than that
    if dtype.category != dtypes.FLOATING:
        words = "only floating-point types are supported as the default type"
        is_type = isinstance(t, (str, tensortype))
        raise TypeError(words if is_type else f"invalid type object: {words}")
    dtypes.set_default_dtype(dtype)
