"""Batching rules of matrix products: as few and as large ones as there can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.batching.memory import Part
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.movement.shape import reshape

__all__ = ["PRODUCTS"]


def _apply(name: str, *operands: Tensor) -> Tensor:
    result: Tensor = CATALOGUE[name].apply(*operands)
    return result


def _mm(size: int, input: Part, mat2: Part) -> Tensor:
    if mat2.batched:
        return _apply("bmm", input.every(size), mat2.tensor)
    rows, inner = input.shape
    tall = reshape(input.tensor, (size * rows, inner))
    return reshape(_apply("mm", tall, mat2.tensor), (size, rows, mat2.shape[1]))


def _mv(size: int, input: Part, vec: Part) -> Tensor:
    rows, inner = input.shape
    if not vec.batched:
        tall = reshape(input.tensor, (size * rows, inner))
        return reshape(_apply("mv", tall, vec.tensor), (size, rows))
    if not input.batched:
        return _apply("mm", vec.tensor, _apply("t", input.tensor))
    product = _apply("bmm", input.tensor, reshape(vec.tensor, (size, inner, 1)))
    return reshape(product, (size, rows))


def _bmm(size: int, input: Part, mat2: Part) -> Tensor:
    count, rows, inner = input.shape
    columns = mat2.shape[2]
    left = reshape(input.every(size), (size * count, rows, inner))
    right = reshape(mat2.every(size), (size * count, inner, columns))
    return reshape(_apply("bmm", left, right), (size, count, rows, columns))


PRODUCTS: dict[str, Callable[..., Any]] = {"mm": _mm, "mv": _mv, "bmm": _bmm}
