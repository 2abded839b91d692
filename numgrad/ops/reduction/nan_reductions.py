"""nansum and nanmean."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.kernels.reduce import reductions as kernels
from numgrad.ops.arguments.reductions import in_dtype, read_dtype, reduced_dims
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.pointwise.arithmetic import mul
from numgrad.ops.pointwise.comparison import isnan, logical_not
from numgrad.ops.pointwise.division import div
from numgrad.ops.reduction.reductions import spread, sum
from numgrad.ops.signatures.declared import declare

__all__ = ["nanmean", "nansum"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _nansum(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    if dtype is not None and dtype.kind != "f":
        array = in_dtype(np.where(array == array, array, 0), dtype)
    return in_dtype(kernels.nansum(in_dtype(array, dtype), dims, keepdim), dtype)


def _nansum_of_few(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None and dtype != array.dtype:
        return None
    return kernels.specialised("nansum", array.shape, array.dtype, dims, keepdim)


_NANSUM: Primitive = Primitive(
    "nansum",
    "NansumBackward0",
    _nansum,
    ["input"],
    [
        # A product, not a choice: the gradient of a mean of nothing but nan is nan, as in PyTorch.
        lambda g, input, input_shape, dims, keepdim: mul(
            spread(g, input_shape, dims, keepdim), logical_not(isnan(input))
        )
    ],
    few=_nansum_of_few,
    samples=[
        sample("nansum", (2, 3)),
        sample("nansum", (2, 3), dim=1, keepdim=True),
        sample("nansum", (), dim=0),
        sample("nansum", (0, 2), dim=0),
    ],
)


@declare(
    "nansum(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None, "
    "Tensor? out=None)",
    casts=True,
    dispatched=True,
)
def nansum(
    input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, dtype: dtypes.dtype | None
) -> Tensor:
    """Return the sum of the elements that are not nan; see `sum`.

    The gradient is g where the element is a number, 0 where it is nan. Mirrors ``torch.nansum``.

    Raises
    ------
    RuntimeError
        If the elements are complex; and as `sum` does.
    NotImplementedError
        If `dtype` is complex and the elements are not integers.

    >>> import numgrad as ng
    >>> ng.nansum(ng.tensor([1.0, ng.nan, 2.0]))
    tensor(3.)
    """
    dims = reduced_dims(input, dim)
    if input._array.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if input._array.dtype.kind == "f" and dtype is not None and dtype.is_complex:
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{dtype.scalar_name}'")
    result: Tensor = _NANSUM.apply(
        input, dims=dims, keepdim=keepdim, dtype=read_dtype(input, dtype)
    )
    return result


@declare(
    "nanmean(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None, "
    "Tensor? out=None)",
    casts=True,
    dispatched=True,
)
def nanmean(
    input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, dtype: dtypes.dtype | None
) -> Tensor:
    """Return the mean of the elements that are not nan; nan where there are none.

    The gradient is g / n where the element is a number, 0 where it is nan. Mirrors
    ``torch.nanmean``.

    Parameters
    ----------
    input
        Floating point.

    Raises
    ------
    RuntimeError
        If the elements are not real floating point numbers; and as `mean` does.

    >>> import numgrad as ng
    >>> ng.nanmean(ng.tensor([1.0, ng.nan, 2.0]))
    tensor(1.5000)
    """
    dims = reduced_dims(input, dim)
    if input._array.dtype.kind not in "fc":
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{input.dtype.scalar_name}"
        )
    numbers = sum(logical_not(isnan(input)), dims, keepdim)
    return div(nansum(input, dim, keepdim, dtype=dtype), numbers)
