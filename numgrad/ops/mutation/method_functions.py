"""Functions of what are methods in place by hand: ``detach_(x)`` beside ``x.detach_()``."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.signatures.declared import declare

__all__: list[str] = []


@declare("detach_(Tensor input)", method=False)
def detach_(input: Tensor) -> Tensor:
    """Cut a tensor out of its graph in place, and return it; see ``Tensor.detach_``.

    >>> import numgrad as ng
    >>> x = ng.ones(2, requires_grad=True) * 3
    >>> ng.detach_(x)
    tensor([3., 3.])
    """
    return input.detach_()


@declare(
    "as_strided_(Tensor input, int[] size, int[] stride, int? storage_offset=None)", method=False
)
def as_strided_(input: Tensor, size: Any, stride: Any, storage_offset: int | None) -> Tensor:
    """Give a tensor another shape and other strides in place; see ``Tensor.as_strided_``.

    >>> import numgrad as ng
    >>> ng.as_strided_(ng.arange(4.0), (2, 2), (1, 2))
    tensor([[0., 2.],
            [1., 3.]])
    """
    return input.as_strided_(size, stride, storage_offset)


@declare(
    "resize_as_(Tensor input, Tensor the_template, *, memory_format? memory_format=None)",
    method=False,
)
def resize_as_(input: Tensor, the_template: Tensor, memory_format: Any) -> Tensor:
    """Give a tensor the shape of another one in place; see ``Tensor.resize_as_``.

    >>> import numgrad as ng
    >>> ng.resize_as_(ng.arange(4.0), ng.ones(2))
    tensor([0., 1.])
    """
    return input.resize_as_(the_template, memory_format=memory_format)
