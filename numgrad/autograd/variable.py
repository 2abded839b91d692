"""Variable: the class that old PyTorch programs wrap tensors in."""

from __future__ import annotations

import warnings
from typing import Any

from numgrad.tensor import Tensor

__all__ = ["Variable"]


class _Tensors(type):
    """Says of tensors that they are instances of the class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_Tensors):
    """A tensor over the memory of another one; only for old programs.

    Mirrors ``torch.autograd.Variable``. What it makes is a `Tensor`, and all tensors are its
    instances.

    Parameters
    ----------
    data : Tensor, optional
        The tensor; without it, one of no elements.
    requires_grad : bool
        Whether what is made requires grad; it is a leaf.
    volatile : bool, optional
        Warns that this means nothing any more.

    Raises
    ------
    TypeError
        If the data is no tensor.
    ValueError
        If it is to be volatile and to require grad.

    >>> import numgrad as ng
    >>> ng.autograd.Variable(ng.tensor([1.0, 2.0]), requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """

    def __new__(
        cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None
    ) -> Any:
        if volatile is not None:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                UserWarning,
                stacklevel=2,
            )
            if volatile and requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made = data.detach()
        made.requires_grad = bool(requires_grad)
        return made
