"""Primitives that a mapped function takes apart: what stands here runs on one example, inside.

They are those that treat an operand as flat, or that take numbers where a batch has tensors. What
they are made of comes to the batcher in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.shape import reshape

__all__ = ["INSIDE"]


def _apply(name: str, *operands: Any, **parameters: Any) -> Any:
    return CATALOGUE[name].apply(*operands, **parameters)


def _flat(name: str) -> Callable[..., Any]:
    """Return the reduction of all dims as one along the only dim of what is flat."""

    def run(input: Tensor, **parameters: Any) -> Any:
        return _apply(name, reshape(input, (-1,)), dims=(0,), keepdim=False, **parameters)

    return run


def _dot(input: Tensor, tensor: Tensor) -> Any:
    return _flat("sum_over_dims")(_apply("mul", input, tensor), dtype=None)


def _vdot(input: Tensor, other: Tensor) -> Any:
    if input._array.dtype.kind == "c":
        input = _apply("conj_physical", input)
    return _dot(input, other)


def _scaled_sum(product: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``beta * input + alpha * product``; with a beta of 0 the input does not count."""

    def run(input: Tensor, left: Tensor, right: Tensor, beta: Any, alpha: Any) -> Any:
        found = product(left, right)
        if alpha != 1:
            found = _apply("mul", found, alpha)
        if beta == 0:
            return found
        return _apply("add", input if beta == 1 else _apply("mul", input, beta), found)

    return run


def _outer(left: Tensor, right: Tensor) -> Any:
    return _apply("mul", reshape(left, (-1, 1)), right)


def _sum_of_products(left: Tensor, right: Tensor) -> Any:
    product = _apply("bmm", left, right)
    return _apply("sum_over_dims", product, dims=(0,), keepdim=False, dtype=None)


def _trace(input: Tensor) -> Any:
    diagonal = _apply("diagonal", input, offset=0, dim1=0, dim2=1)
    return _apply("sum_over_dims", diagonal, dims=(0,), keepdim=False, dtype=None)


def _take(input: Tensor, index: Any) -> Any:
    picked = _apply("index", reshape(input, (-1,)), indices=(index.reshape(-1),))
    return reshape(picked, index.shape)


def _take_backward(input: Tensor, shape: tuple[int, ...], index: Any) -> Any:
    count = int(np.prod(shape))
    flat = reshape(input, (-1,))
    found = _apply("index_backward", flat, shape=(count,), indices=(index.reshape(-1),))
    return reshape(found, shape)


def _fill(input: Tensor, value: Tensor) -> Any:
    return _apply("copy", input, value)


def _masked_fill(input: Tensor, value: Tensor, mask: Any) -> Any:
    return _apply("where", wrap(mask), cast(value, input._array.dtype), input)


def _index_fill(input: Tensor, value: Tensor, dim: int, index: Any) -> Any:
    if not input._array.ndim:
        return _apply("copy", input, value)
    # What is named twice is filled once.
    length, behind = input._array.shape[dim], input._array.ndim - dim - 1
    nowhere = wrap(np.zeros(length, np.bool_))
    there = _apply("index_fill_number", nowhere, dim=0, index=index, value=np.asarray(True))
    return _apply("where", reshape(there, (length, *[1] * behind)), value, input)


def _positions(mask: Any) -> tuple[Any, ...]:
    return tuple([np.ascontiguousarray(each) for each in np.nonzero(np.asarray(mask))])


def _masked_select(input: Tensor, mask: Any) -> Any:
    shape = np.broadcast_shapes(input._array.shape, mask.shape)
    whole = _apply("expand", input, shape=shape)
    if not shape:
        whole, mask = reshape(whole, (1,)), mask.reshape(1)
    numbers = np.broadcast_to(np.asarray(mask), whole._array.shape)
    return _apply("index", whole, indices=_positions(numbers))


def _masked_select_backward(input: Tensor, mask: Any) -> Any:
    shape = mask.shape
    numbers = np.asarray(mask).reshape(shape or (1,))
    indices = _positions(numbers)
    count = len(indices[0])
    if input._array.ndim != 1 or len(input._array) != count:
        input = _apply("slice", reshape(input, (-1,)), dim=0, start=0, stop=count, step=1)
    found = _apply("index_backward", input, shape=numbers.shape, indices=indices)
    return reshape(found, shape)


def _block_diag(*tensors: Tensor, dtype: Any) -> Any:
    """Pad each block with zeros on both sides, and join the rows."""
    shapes = [(1,) * (2 - tensor._array.ndim) + tensor._array.shape for tensor in tensors]
    width = sum(shape[1] for shape in shapes)
    rows, before = [], 0
    for tensor, shape in zip(tensors, shapes, strict=True):
        around = (before, width - before - shape[1])
        block = reshape(tensor, shape)
        rows.append(_apply("constant_pad_nd", block, widths=((0, 0), around), value=0))
        before += shape[1]
    return _apply("cat", *rows, dim=0, dtype=dtype)


INSIDE: dict[str, Callable[..., Any]] = {
    "sum": _flat("sum_over_dims"),
    "mean": _flat("mean_over_dims"),
    "max": _flat("amax"),
    "min": _flat("amin"),
    "dot": _dot,
    "vdot": _vdot,
    "addmm": _scaled_sum(lambda left, right: _apply("mm", left, right)),
    "addmv": _scaled_sum(lambda left, right: _apply("mv", left, right)),
    "addr": _scaled_sum(_outer),
    "baddbmm": _scaled_sum(lambda left, right: _apply("bmm", left, right)),
    "addbmm": _scaled_sum(_sum_of_products),
    "trace": _trace,
    "take": _take,
    "take_backward": _take_backward,
    "fill_tensor": _fill,
    "fill_tensor_in_place": _fill,
    "masked_fill_tensor": _masked_fill,
    "index_fill_tensor": _index_fill,
    "masked_select": _masked_select,
    "masked_select_backward": _masked_select_backward,
    "block_diag": _block_diag,
    "drop_first_dim": lambda input: reshape(input, input._array.shape[1:]),
}
