"""Einstein's summation convention: einsum, as views, sums and products of batches of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.registry import public
from numgrad.ops.linalg.einsum_path import Path, contraction_path
from numgrad.ops.linalg.permuting import permute
from numgrad.ops.linalg.products import bmm
from numgrad.ops.movement.diagonals import diagonal
from numgrad.ops.movement.shape import reshape
from numgrad.ops.pointwise.arithmetic import mul
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import type_name
from numgrad.ops.signatures.numbers import is_integer

__all__ = ["einsum"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS = "..."
Shape = tuple[int, ...]


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
                    "einsum(): subscript in subscript list is not within the valid range [0, 52)"
                )
            letters.append(_ELLIPSIS if subscript is Ellipsis else _LETTERS[int(subscript)])
        return "".join(letters)

    operands, terms = list(arguments[0::2]), list(arguments[1::2])
    if len(operands) > len(terms):
        output = spelled(operands.pop())
        return ",".join(map(spelled, terms)) + "->" + output, operands
    return ",".join(map(spelled, terms)), operands


def _fill_ellipsis(terms: list[list[str]], shapes: Sequence[Shape]) -> int:
    """Replace every ellipsis by names of the dims it stands for, and return how many there are."""
    widths = []
    for number, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        letters = [label for label in term if label != _ELLIPSIS]
        ndim = len(shape)
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


def _without_repeats(
    term: list[str], shape: Shape, number: int
) -> tuple[list[tuple[int, int]], list[str], Shape]:
    """Return the diagonals to take until no label of an operand is repeated, and what is left."""
    labels, lengths = list(term), list(shape)
    diagonals = []
    for label in term:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if lengths[first] != lengths[second]:
                raise _complain(
                    f"subscript {label} is repeated for operand {number} but the sizes don't "
                    f"match, {lengths[second]} != {lengths[first]}"
                )
            diagonals.append((first, second))
            length = lengths[first]
            for place in (second, first):
                del labels[place], lengths[place]
            labels.append(label)
            lengths.append(length)
    return diagonals, labels, tuple(lengths)


def _lengths_of(terms: Sequence[Sequence[str]], shapes: Sequence[Shape]) -> dict[str, int]:
    """Return the length of each label's dim, or raise where two don't broadcast."""
    lengths: dict[str, int] = {}
    for number, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        for label, length in zip(term, shape, strict=True):
            known = lengths.get(label, 1)
            if length != known and 1 not in (length, known):
                raise _complain(
                    f"subscript {label[:1]} has size {length} for operand {number} which does not "
                    f"broadcast with previously seen size {known}"
                )
            lengths[label] = known if length == 1 else length
    return lengths


class Plan(NamedTuple):
    """How operands of some shapes are summed."""

    diagonals: list[list[tuple[int, int]]]  # to take of each operand, one after the other
    terms: list[list[str]]  # the labels of each operand then
    output: list[str]
    order: list[str]  # all labels: those of the output, then the others
    path: Path  # which two operands to multiply in each step


@lru_cache(1024)
def _plan(equation: str, shapes: tuple[Shape, ...]) -> Plan:
    """Read an equation for operands of some shapes, and choose in which order to multiply."""
    terms, given = _parse(equation)
    if len(terms) != len(shapes):
        which = "fewer" if len(shapes) < len(terms) else "more"
        raise _complain(f"{which} operands were provided than specified in the equation")
    ellipsis_dims = _fill_ellipsis(terms, shapes)
    output = _output_labels(terms, given, ellipsis_dims)
    left = [
        _without_repeats(term, shape, number)
        for number, (term, shape) in enumerate(zip(terms, shapes, strict=True))
    ]
    diagonals = [diagonals for diagonals, _, _ in left]
    terms = [labels for _, labels, _ in left]
    lengths = _lengths_of(terms, [shape for _, _, shape in left])
    order = [*output, *sorted({label for term in terms for label in term} - set(output))]
    # A dim of length 1 that another operand has longer is read again and again, not looped over.
    looped = [
        [label for label, length in zip(labels, shape, strict=True) if length == lengths[label]]
        for _, labels, shape in left
    ]
    return Plan(diagonals, terms, output, order, contraction_path(looped, output, lengths))


def _spread(operand: Tensor, term: list[str], order: list[str]) -> Tensor:
    """Return an operand with its dims in that order, and dims of length 1 where it has none."""
    if term == order:
        return operand
    dims = [term.index(label) for label in order if label in term]
    lengths = dict(zip(term, operand._array.shape, strict=True))
    return _arrange(operand, dims, [lengths.get(label, 1) for label in order])


def _arrange(tensor: Tensor, dims: list[int], shape: Sequence[int]) -> Tensor:
    """Return a tensor with its dims in another order, then of another shape."""
    if dims != sorted(dims):
        tensor = permute(tensor, tuple(dims))
    return tensor if tensor._array.shape == tuple(shape) else reshape(tensor, tuple(shape))


def _sum_dims(operand: Tensor, dims: Sequence[int]) -> Tensor:
    summed: Tensor = operand.sum(tuple(dims), keepdim=True) if dims else operand
    return summed


def _multiply_and_sum(left: Tensor, right: Tensor, summed: list[int]) -> Tensor:
    """Return the sum of the product over some dims, which it then does not have."""
    shape, other = left._array.shape, right._array.shape
    # A dim that only one side has needs no product to be summed over.
    left = _sum_dims(left, [dim for dim in summed if other[dim] == 1 and shape[dim] != 1])
    right = _sum_dims(right, [dim for dim in summed if shape[dim] == 1 and other[dim] != 1])
    inner = [dim for dim in summed if shape[dim] == other[dim]]
    shape, other = left._array.shape, right._array.shape
    rest = [dim for dim in range(len(shape)) if dim not in inner]
    if not inner:
        product: Tensor = mul(left, right)
        return _without(product, summed)
    batch = [dim for dim in rest if shape[dim] == other[dim]]
    rows = [dim for dim in rest if dim not in batch and other[dim] == 1]
    columns = [dim for dim in rest if dim not in batch and dim not in rows]
    sizes = [prod(shape[dim] for dim in dims) for dims in (batch, rows, inner)]
    width = prod(other[dim] for dim in columns)
    wide = _arrange(left, [*batch, *rows, *inner, *columns], sizes)
    tall = _arrange(right, [*batch, *inner, *columns, *rows], (sizes[0], sizes[2], width))
    product = bmm(wide, tall)
    own = [dim for dim in batch if dim not in summed]  # those summed have length 1 by now
    lengths = [*(shape[dim] for dim in own + rows), *(other[dim] for dim in columns)]
    order = [*own, *rows, *columns]
    back = sorted(range(len(order)), key=order.__getitem__)
    product = reshape(product, tuple(lengths))
    return product if back == sorted(back) else permute(product, tuple(back))


def _without(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Return a tensor without some dims, which have length 1."""
    if not dims:
        return tensor
    shape = tensor._array.shape
    return reshape(tensor, tuple([n for dim, n in enumerate(shape) if dim not in dims]))


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
        Three or more are multiplied two by two, in the order that takes least work: of up to five
        the best one, of more one that leaves little after every step.

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
    for place, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(
                f"expected Tensor as element {place} in argument 1, but got {type_name(operand)}"
            )
    return _sum_products(operands, equation)


@declare(
    "_sum_products(Tensor[] operands, str equation)", function=False, method=False, dispatched=True
)
def _sum_products(operands: Sequence[Tensor], equation: str) -> Tensor:
    """Return the sums that an equation tells of."""
    plan = _plan(equation, tuple([operand._array.shape for operand in operands]))
    common = result_dtype(operands).numpy
    left: list[tuple[Tensor, list[str]]] = []
    for operand, diagonals, term in zip(operands, plan.diagonals, plan.terms, strict=True):
        cast = upward.cast(operand, common)
        for first, second in diagonals:
            cast = diagonal(cast, 0, first, second)
        left.append((cast, term))
    for i, j in plan.path:
        later = {label for k, (_, term) in enumerate(left) if k not in (i, j) for label in term}
        left[i] = _contract(left[i], left.pop(j), plan, later)
    (result, term) = left[0]
    result = _spread(result, term, plan.order)
    kept = len(plan.output)
    # Dims of length 1 are summed, too: the result is in memory of its own.
    left_over = [dim for dim in range(kept, len(plan.order)) if plan.order[dim] in term]
    if left_over:
        result = result.sum(tuple(left_over))
    shape = result._array.shape[:kept]
    return result if result._array.shape == shape else reshape(result, shape)


def _contract(
    one: tuple[Tensor, list[str]], other: tuple[Tensor, list[str]], plan: Plan, later: set[str]
) -> tuple[Tensor, list[str]]:
    """Return the product of two operands, summed over what neither the output nor others have."""
    order = [label for label in plan.order if label in one[1] or label in other[1]]
    done = [
        dim for dim, label in enumerate(order) if label not in later and label not in plan.output
    ]
    product = _multiply_and_sum(_spread(*one, order), _spread(*other, order), done)
    return product, [label for dim, label in enumerate(order) if dim not in done]
