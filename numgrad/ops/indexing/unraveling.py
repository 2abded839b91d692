"""unravel_index: flat positions as positions along each dim."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.core.registry import public
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.splitting import unbind
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.pointwise.division import floor_divide, remainder
from numgrad.ops.signatures.numbers import is_integer

__all__ = ["unravel_index"]


@public(method=False)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Return for each dim of a shape where in it the elements at flat positions lie.

    Parameters
    ----------
    indices : tensor
        Of integers; positions in the flattened shape, which are not checked against it.
    shape : int or sequence of int

    Raises
    ------
    TypeError
        If the indices are no integers, or the shape isn't made of some.
    ValueError
        If a length is negative.

    >>> import numgrad as ng
    >>> ng.unravel_index(ng.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    if not isinstance(indices, Tensor):
        raise TypeError(f"expected 'indices' to be a Tensor, but got {type(indices)}")
    if indices._array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype!r}")
    lengths = (shape,) if is_integer(shape) and not isinstance(shape, Tensor) else shape
    if isinstance(lengths, str):  # which is a sequence, too
        lengths = list(lengths)
    if not isinstance(lengths, (tuple, list)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for length in lengths:
        if not is_integer(length) or isinstance(length, Tensor):
            raise TypeError(
                f"expected 'shape' sequence to only contain ints, but got {type(length)}"
            )
    if any(length < 0 for length in lengths):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(lengths)}")
    steps = [prod(lengths[dim + 1 :]) for dim in range(len(lengths))]
    behind = [fresh(np.array(each, np.int64)) for each in (steps, lengths)]
    along = unsqueeze(cast(indices, dtypes.int64.numpy), -1)
    found: tuple[Tensor, ...] = unbind(remainder(floor_divide(along, behind[0]), behind[1]), -1)
    return found
