"""Layers as functions: linear, bilinear, embedding, one_hot."""

from __future__ import annotations

import math
from typing import Any

from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.recorder import refuse_shape_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.places import unless_inside
from numgrad.ops.calls.steps import forget_steps
from numgrad.ops.core.declare import elementwise
from numgrad.ops.core.domains import REAL
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.creation.creation import zeros
from numgrad.ops.indexing.index_along import index_select
from numgrad.ops.indexing.scattering import scatter
from numgrad.ops.linalg.addmm import addmm
from numgrad.ops.linalg.einsum import einsum
from numgrad.ops.linalg.linalg import matmul
from numgrad.ops.linalg.permuting import t
from numgrad.ops.movement.shape import unsafe_view
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = [
    "bilinear",
    "check_numbers_of_rows",
    "embedding",
    "linear",
    "numbers_of_rows",
    "one_hot",
    "rows_by_number",
    "shorten_rows",
]


@declare(
    "linear(Tensor input, Tensor weight, Tensor? bias=None, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``input @ weight.T + bias``.

    The gradients are ``g @ weight``, ``g.T @ input`` and the sum of g.

    Parameters
    ----------
    input : tensor of shape (..., m)
    weight : tensor of shape (n, m) or (m,)
    bias : tensor of shape (n,), optional

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> ng.nn.functional.linear(ng.tensor([1.0, 2.0]), ng.tensor([[3.0, 4.0]]), ng.tensor([0.5]))
    tensor([11.5000])
    """
    turned = t(weight)
    if bias is not None and input._array.ndim == 2 and weight._array.ndim == 2:
        return addmm(bias, input, turned)
    result: Tensor
    if bias is not None and bias._array.ndim == 1 and weight._array.ndim == 2 and _is_flat(input):
        shape = input._array.shape
        rows = input.view(math.prod(shape[:-1]), shape[-1])
        result = addmm(bias, rows, turned).view(*shape[:-1], weight._array.shape[0])
        return result
    result = matmul(input, turned)
    return result if bias is None else result + bias


def _is_flat(input: Tensor) -> bool:
    """Whether the rows of a tensor of any dims are those of a matrix on its memory."""
    return input._array.ndim > 0 and input.is_contiguous()


@declare(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)",
    method=False,
    dispatched=True,
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the sums of x1[i] weight[k, i, j] x2[j], for each k, plus the bias.

    The gradient of each of the three is such a sum of g and the two others.

    Parameters
    ----------
    input1, input2 : tensors of shape (..., m) and (..., l)
    weight : tensor of shape (n, m, l)
    bias : tensor of shape (n,), optional

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> x, y, weight = ng.tensor([1.0, 2.0]), ng.tensor([3.0]), ng.tensor([[[4.0], [5.0]]])
    >>> ng.nn.functional.bilinear(x, y, weight)
    tensor([42.])
    """
    first, second = input1._array.shape, input2._array.shape
    if len(first) != len(second):
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {len(first)} and {len(second)}"
        )
    for at, (own, other) in enumerate(zip(first[:-1], second[:-1], strict=True)):
        if own != other:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {at}: got {own} and "
                f"{other}"
            )
    n, m, length = weight._array.shape
    for name, own, other in (("input1", first[-1], m), ("input2", second[-1], length)):
        if own != other:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {own} but expected "
                f"{other}"
            )
    if bias is not None and bias._array.shape[0] != n:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias._array.shape[0]} but "
            f"expected {n}"
        )
    result: Tensor = einsum("...i,kij,...j->...k", input1, weight, input2)
    return result if bias is None else result + bias


# --- numbers of classes --------------------------------------------------------------------------


def check_numbers_of_rows(tensor: Tensor, position: int, name: str, function: str) -> None:
    """Raise unless a tensor is of int64 or int32."""
    if str(tensor._array.dtype) not in ("int64", "int32"):
        scalar = tensor.dtype.scalar_name
        given = "CPUBoolType" if scalar == "Bool" else f"torch.{scalar}Tensor"
        raise RuntimeError(
            f"Expected tensor for argument #{position} '{name}' to have one of the following "
            f"scalar types: Long, Int; but got {given} instead (while checking arguments for "
            f"{function})"
        )


@at_run_time(quick=unless_inside)
def numbers_of_rows(index: Any, size: int) -> Any:
    """Return numbers of rows; raise if there is no such row."""
    if index.size and (index.min() < 0 or index.max() >= size):
        raise IndexError("index out of range in self")
    return index


_WITH_PART = elementwise(
    "with_part_of_gradient",
    ("input", "part"),
    (lambda g, part: g * part, None),
    (REAL, REAL),
    formula=lambda input, part: input,
    accepts="f",
    listed=False,
    doc="Return the input; its gradient is a part of g.",
)


def shorten_rows(weight: Tensor, numbers: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Make rows that are read and whose norm is greater shorter, in the table itself."""
    read = weight.index_select(0, numbers)
    length = read.norm(norm_type, 1, True)
    shorter = where(length > max_norm, max_norm / (length + 1e-7), 1.0)
    result: Tensor = weight.index_copy_(0, numbers, read * shorter)
    return result


def rows_by_number(weight: Tensor, numbers: Tensor, shared: bool) -> Tensor:
    """Return rows of a table; `shared`, each has the gradient over how often its row is read."""
    found: Tensor = index_select(weight, 0, numbers)
    if not shared:
        return found
    often = zeros(weight._array.shape[0], dtype=found.dtype).index_add(
        0, numbers, zeros(numbers.shape, dtype=found.dtype) + 1
    )
    return _WITH_PART(found, 1 / index_select(often, 0, numbers).reshape(-1, 1))


@declare(
    "embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, "
    "float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False)",
    function=False,
    method=False,
    dispatched=True,
)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None,
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Tensor:
    """Return rows of a table by their numbers.

    The gradient is g, added up in the rows that it came from.

    Parameters
    ----------
    input : tensor of ints, of any shape
    weight : tensor of shape (rows, length)
    padding_idx
        A row to which no gradient flows.
    max_norm, norm_type
        Rows that are read and whose norm of that order is greater are first made shorter, in the
        table itself.
    scale_grad_by_freq
        Whether to divide the gradient of a row by how often it is read.
    sparse
        Gradients are dense here: True is refused.

    Raises
    ------
    IndexError
        If there is no such row.
    RuntimeError
        If the table has not two dims, or the numbers are no ints.

    >>> import numgrad as ng
    >>> ng.nn.functional.embedding(ng.tensor([1, 0, 1]), ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.],
            [3., 4.]])
    """
    if sparse:
        raise NotImplementedError("numgrad has no sparse gradients: leave sparse=False")
    rows = weight._array.shape[0] if weight._array.ndim else 0
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_numbers_of_rows(input, 1, "indices", "embedding")
    numbers = wrap(numbers_of_rows(input.long()._array, size=rows)).reshape(-1)
    if max_norm is not None:
        with no_grad():
            shorten_rows(weight, numbers, max_norm, norm_type)
    found = rows_by_number(weight, numbers, scale_grad_by_freq)
    if padding_idx is not None:
        found = where((numbers == padding_idx).reshape(-1, 1), found.detach(), found)
    result: Tensor = unsafe_view(found, (*input._array.shape, weight._array.shape[1]))
    return result


@at_run_time
def _classes_below(classes: Any, count: int) -> Any:
    """Return numbers of classes; raise if one is none."""
    if classes.size and classes.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if classes.size and count != -1 and classes.max() >= count:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return classes


@declare(
    "one_hot(Tensor tensor, int num_classes=-1)", function=False, method=False, dispatched=True
)
def one_hot(tensor: Tensor, num_classes: int) -> Tensor:
    """Return 1 in the place of each number, and 0 in all others: a further dim, of classes.

    No gradient flows.

    Parameters
    ----------
    tensor : tensor of int64
    num_classes
        How many classes there are; by default one more than the greatest number, which a traced
        function cannot know.

    Raises
    ------
    RuntimeError
        If a number is negative, or there is no such class.

    >>> import numgrad as ng
    >>> ng.nn.functional.one_hot(ng.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if str(tensor._array.dtype) != "int64":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not tensor._array.size:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return zeros((*tensor._array.shape, num_classes), dtype=tensor.dtype)
    if num_classes == -1:
        refuse_shape_of("one_hot", tensor._array)
        forget_steps()  # the next numbers may have another maximum
        return one_hot(tensor, max(int(tensor._array.max()), 0) + 1)
    classes = wrap(_classes_below(tensor._array, count=num_classes))
    shape = (*tensor._array.shape, num_classes)
    result: Tensor = scatter(zeros(shape, dtype=tensor.dtype), -1, unsqueeze(classes, -1), 1)
    return result
