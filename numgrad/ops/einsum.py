"""Einstein's summation convention: einsum, as views, sums and products of batches of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.graph.core import Tensor
from numgrad.ops.arithmetic import mul
from numgrad.ops.diagonals import diagonal
from numgrad.ops.functions import public
from numgrad.ops.options import is_integer, type_name
from numgrad.ops.permuting import permute
from numgrad.ops.primitive import Primitive
from numgrad.ops.products import bmm
from numgrad.ops.promotion import result_dtype
from numgrad.ops.shape import reshape

__all__ = ["einsum"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS = "..."


def _complain(text: str) -> RuntimeError:
    return RuntimeError(f"einsum(): {text}")


def _tokens(text: str, start: int, where: str) -> list[str]:
    """Return the letters and the ellipsis of one part of an equation.

    Parameters
    ----------
    start : int
        Where in the equation the part begins.
    where : str
        What the part belongs to, for messages.
    """
    found: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        if letter == ".":
            if _ELLIPSIS in found:
                raise _complain(f"found '.' for {where} for which an ellipsis was already found")
            if text[position : position + 3] != _ELLIPSIS:
                raise _complain(f"found '.' for {where} that is not part of any ellipsis")
            found.append(_ELLIPSIS)
            position += 3
            continue
        if letter != " ":
            if letter not in _LETTERS:
                raise _complain(
                    f"invalid subscript given at index {start + position} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
            found.append(letter)
        position += 1
    return found


def _parse(equation: str) -> tuple[list[list[str]], list[str] | None]:
    """Return the subscripts of every operand, and those of the output where they are given."""
    left, arrow, right = equation.partition("->")
    terms: list[list[str]] = []
    start = 0
    for number, term in enumerate(left.split(",")):
        terms.append(_tokens(term, start, f"operand {number}"))
        start += len(term) + 1
    output = _tokens(right, len(left) + 2, "the output") if arrow else None
    return terms, output


def _from_lists(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the equation of the form ``einsum(operand, [0, 1], ..., [output])``."""

    def spelled(subscripts: Any) -> str:
        letters = []
        for subscript in subscripts:
            if subscript is not Ellipsis and not (is_integer(subscript) and 0 <= subscript < 52):
                raise ValueError(
                    "einsum(): invalid subscript given, subscripts must be within the range [0, 52)"
                )
            letters.append(_ELLIPSIS if subscript is Ellipsis else _LETTERS[int(subscript)])
        return "".join(letters)

    operands, terms = list(arguments[0::2]), list(arguments[1::2])
    if len(operands) > len(terms):
        output = spelled(operands.pop())
        return ",".join(map(spelled, terms)) + "->" + output, operands
    return ",".join(map(spelled, terms)), operands


def _fill_ellipsis(terms: list[list[str]], operands: Sequence[Tensor]) -> int:
    """Replace every ellipsis by names of the dims it stands for, and return how many there are."""
    widths = []
    for number, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        letters = [label for label in term if label != _ELLIPSIS]
        ndim = operand._array.ndim
        if _ELLIPSIS not in term and len(letters) != ndim:
            raise _complain(
                f"the number of subscripts in the equation ({len(letters)}) does not match the "
                f"number of dimensions ({ndim}) for operand {number} and no ellipsis was given"
            )
        if len(letters) > ndim:
            raise _complain(
                f"the number of subscripts in the equation ({len(letters)}) is more than the "
                f"number of dimensions ({ndim}) for operand {number}"
            )
        widths.append(ndim - len(letters))
    for term, width in zip(terms, widths, strict=True):
        if _ELLIPSIS in term:
            at = term.index(_ELLIPSIS)
            term[at : at + 1] = _broadcast_labels(width)
    return max(widths)


def _broadcast_labels(width: int) -> list[str]:
    """Return the names of the last `width` dims that an ellipsis stands for."""
    return [f"{_ELLIPSIS}{place}" for place in range(width, 0, -1)]


def _output_labels(
    terms: list[list[str]], output: list[str] | None, ellipsis_dims: int
) -> list[str]:
    """Return the labels of the output: those given, or else those that occur once, in order."""
    labels = [label for term in terms for label in term]
    broadcast = _broadcast_labels(ellipsis_dims)
    if output is None:
        once = (label for label in labels if labels.count(label) == 1 and label in _LETTERS)
        return broadcast + sorted(once, key=_LETTERS.index)
    chosen: list[str] = []
    for label in output:
        if label == _ELLIPSIS:
            chosen.extend(broadcast)
            continue
        if label in chosen:
            raise _complain(f"output subscript {label} appears more than once in the output")
        if label not in labels:
            raise _complain(
                f"output subscript {label} does not appear in the equation for any input operand"
            )
        chosen.append(label)
    return chosen


def _without_repeats(operand: Tensor, term: list[str], number: int) -> tuple[Tensor, list[str]]:
    """Take diagonals until no label of an operand is repeated."""
    labels = list(term)
    for label in term:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            lengths = operand._array.shape[first], operand._array.shape[second]
            if lengths[0] != lengths[1]:
                raise _complain(
                    f"subscript {label} is repeated for operand {number} but the sizes don't "
                    f"match, {lengths[1]} != {lengths[0]}"
                )
            operand = diagonal(operand, 0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    return operand, labels


def _check_lengths(operands: Sequence[Tensor], terms: list[list[str]]) -> None:
    lengths: dict[str, int] = {}
    for number, (operand, term) in enumerate(zip(operands, terms, strict=True)):
        for label, length in zip(term, operand._array.shape, strict=True):
            known = lengths.get(label, 1)
            if length != known and 1 not in (length, known):
                raise _complain(
                    f"subscript {label[:1]} has size {length} for operand {number} which does not "
                    f"broadcast with previously seen size {known}"
                )
            lengths[label] = known if length == 1 else length


def _spread(operand: Tensor, term: list[str], order: list[str]) -> Tensor:
    """Return an operand with its dims in that order, and dims of length 1 where it has none."""
    ordered = permute(operand, tuple(term.index(label) for label in order if label in term))
    lengths = dict(zip(term, operand._array.shape, strict=True))
    return reshape(ordered, tuple(lengths.get(label, 1) for label in order))


def _sum_dims(operand: Tensor, dims: Sequence[int]) -> Tensor:
    summed: Tensor = operand.sum(tuple(dims), keepdim=True) if dims else operand
    return summed


def _multiply_and_sum(left: Tensor, right: Tensor, summed: list[int]) -> Tensor:
    """Return the sum of the product over some dims, which stay with length 1."""
    shape, other = left._array.shape, right._array.shape
    # A dim that only one side has needs no product to be summed over.
    left = _sum_dims(left, [dim for dim in summed if other[dim] == 1 and shape[dim] != 1])
    right = _sum_dims(right, [dim for dim in summed if shape[dim] == 1 and other[dim] != 1])
    inner = [dim for dim in summed if shape[dim] == other[dim]]
    if not inner:
        product: Tensor = mul(left, right)
        return product
    shape, other = left._array.shape, right._array.shape
    rest = [dim for dim in range(len(shape)) if dim not in inner]
    batch = [dim for dim in rest if shape[dim] == other[dim]]
    rows = [dim for dim in rest if dim not in batch and other[dim] == 1]
    columns = [dim for dim in rest if dim not in batch and dim not in rows]
    sizes = [prod(shape[dim] for dim in dims) for dims in (batch, rows, inner)]
    width = prod(other[dim] for dim in columns)
    wide = reshape(permute(left, (*batch, *rows, *inner, *columns)), tuple(sizes))
    tall = reshape(permute(right, (*batch, *inner, *columns, *rows)), (sizes[0], sizes[2], width))
    product = bmm(wide, tall)
    order = [*batch, *rows, *columns, *inner]
    lengths = [
        *(shape[dim] for dim in batch + rows),
        *(other[dim] for dim in columns),
        *(1 for _ in inner),
    ]
    return permute(reshape(product, tuple(lengths)), tuple(np.argsort(order).tolist()))


@public(method=False)
def einsum(*arguments: Any) -> Tensor:
    """Return sums of products of tensors' elements, told by labels of their dims.

    Derivative: for each operand, the same kind of sum with g in its place in the equation.

    Parameters
    ----------
    equation : str
        Labels for the dims of every operand, then those of the output after ``->``: a label that
        the output lacks is summed over, one that an operand repeats stands for a diagonal, and
        ``...`` for dims that are broadcast. Without ``->`` the output has what occurs once.
    *operands : tensor
        They may also be given as one sequence, or each followed by a list of numbers for labels.
        From left to right, products are taken and sums made.

    Raises
    ------
    RuntimeError
        If the equation does not fit the operands.

    >>> import numgrad as ng
    >>> ng.einsum("ij,kj->ik", ng.ones(2, 3), ng.ones(4, 3)).shape
    torch.Size([2, 4])
    """
    if len(arguments) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    equation, *operands = arguments
    if isinstance(equation, Tensor):
        equation, operands = _from_lists(arguments)
    elif len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = list(operands[0])
    for operand in operands:
        if not isinstance(operand, Tensor):
            raise TypeError(f"einsum(): operands must be tensors, not {type_name(operand)}")
    terms, given = _parse(equation)
    if len(terms) != len(operands):
        which = "fewer" if len(operands) < len(terms) else "more"
        raise _complain(f"{which} operands were provided than specified in the equation")
    ellipsis_dims = _fill_ellipsis(terms, operands)
    output = _output_labels(terms, given, ellipsis_dims)
    common = result_dtype(operands).numpy
    for number, term in enumerate(terms):
        cast = Primitive.cast(operands[number], common)
        operands[number], terms[number] = _without_repeats(cast, term, number)
    _check_lengths(operands, terms)
    order = [*output, *sorted({label for term in terms for label in term} - set(output))]
    spread = [_spread(operand, term, order) for operand, term in zip(operands, terms, strict=True)]
    result = spread[0]
    for number, operand in enumerate(spread[1:], 1):
        later = {label for term in terms[number + 1 :] for label in term} | set(output)
        done = [dim for dim, label in enumerate(order) if label not in later]
        result = _multiply_and_sum(result, operand, done)
    left_over = [dim for dim in range(len(output), len(order)) if result._array.shape[dim] != 1]
    return reshape(_sum_dims(result, left_over), result._array.shape[: len(output)])
