"""Jacobians: one row for each element of the output, or one column for each of the input.

The function runs once. Then one call of a linear map, a backward pass or a push forward, gives all
rows (or columns) as a batch. Where there are few, or where the user's code would see it (hooks,
custom Functions), there is one call for each; what is not recorded is then written into place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.autograd.forward.duals import lie_as
from numgrad.autograd.forward.linear_maps import Linearized, basis_of
from numgrad.autograd.forward.stacked import joined_columns, stack_rows, unrolled, zero_rows
from numgrad.base import pytree
from numgrad.base.tuning import LOOPED_DIRECTIONS
from numgrad.func.arguments import (
    Argnums,
    accept,
    check_real,
    positions_of,
    read_number_argument,
    tensor_leaves,
)
from numgrad.func.forward import check_primals, linear_map
from numgrad.func.reverse import pull_back
from numgrad.graph.modes.func_levels import outside_inference
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.jit.front.recipes import remembered

__all__ = ["jacfwd", "jacrev"]

Row = Sequence[Tensor | None]


@remembered
def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of `func` in reverse mode.

    Mirrors ``torch.func.jacrev``: J[i, j] = d output[i] / d input[j]. One backward pass for each
    element of the output: for functions with fewer outputs than inputs.

    Parameters
    ----------
    func : callable
        A function that returns a pytree of real floating point tensors.
    argnums : int or tuple of int
        With respect to which positional arguments, which may be pytrees.
    has_aux : bool
        Whether `func` returns a pair: the output, and other tensors to hand through.
    chunk_size : int, optional
        Taken as PyTorch takes it. Where there is much to compute, it is done row by row anyway.

    Returns
    -------
    callable
        Takes positional arguments. Returns a pytree like the output with, in place of every tensor,
        a pytree like the argument (a tuple of those if `argnums` is a tuple) of Jacobians: tensors
        of the output's shape followed by the input's, in the input's dtype. With `has_aux`, a pair
        of that and the other tensors.

    Raises
    ------
    RuntimeError
        From the returned function: if there is no such argument, it is of integers, an output is no
        tensor or one of integers, or anything is complex.
    ValueError
        If an argument to differentiate with respect to contains anything but tensors and NumPy
        arrays, or `chunk_size` is not positive.
    TypeError
        If `chunk_size` is no int.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.func.jacrev(lambda x: x**2)(ng.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and type(chunk_size) is not int:
        kind = type(chunk_size).__name__
        raise TypeError(f"jacrev: `chunk_size` should be an int or None, not {kind}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any) -> Any:
        return _in_reverse(func, args, argnums, has_aux)

    return jacobian


@outside_inference
def _in_reverse(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums, has_aux: bool
) -> Any:
    """Return the Jacobian at some arguments, row by row."""
    check_real(pytree.leaves(args), "jacrev", "inputs")
    function, leaves, spec = _function_of(func, args, argnums)
    pull, output_spec, aux = pull_back(function, leaves, has_aux)
    check_real(pull.outputs, "jacrev", "outputs")
    blocks: list[list[Tensor]] = []
    loops = _loops(pull.found, pull.outputs) or pull.rows()
    if loops is not None:
        for output, stacked in zip(pull.outputs, loops, strict=True):
            blocks.append(
                [
                    unrolled(whole, output._array.shape, leaf)
                    for whole, leaf in zip(stacked, leaves, strict=True)
                ]
            )
        found = _nest(blocks, output_spec, spec, argnums)
        return (found, aux) if has_aux else found
    rows: list[Row] = [pull.found(cotangents) for cotangents in basis_of(pull.outputs)]
    start = 0
    for output in pull.outputs:
        own, start = rows[start : start + output._array.size], start + output._array.size
        shape = output._array.shape
        blocks.append(
            [_stacked([row[j] for row in own], shape, leaf) for j, leaf in enumerate(leaves)]
        )
    found = _nest(blocks, output_spec, spec, argnums)
    return (found, aux) if has_aux else found


@remembered
def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of `func` in forward mode.

    Mirrors ``torch.func.jacfwd``: J[i, j] = d output[i] / d input[j]. One push forward for each
    element of the input: for functions with fewer inputs than outputs.

    Parameters
    ----------
    func : callable
        A function that returns a pytree of real tensors.
    argnums, has_aux
        As of `jacrev`.
    randomness : str
        Taken as PyTorch takes it; `func` runs only once, so all columns see the same numbers.

    Returns
    -------
    callable
        As of `jacrev`; in the output's dtype.

    Raises
    ------
    RuntimeError
        From the returned function: if there is no such argument, an output is no tensor, or
        anything is complex.
    ValueError
        If an argument to differentiate with respect to is of integers, or contains anything but
        tensors and NumPy arrays.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.func.jacfwd(lambda x, y: x * y, argnums=1)(ng.tensor([1.0, 2.0]), ng.tensor(5.0))
    tensor([1., 2.])
    """

    @functools.wraps(func)
    def jacobian(*args: Any) -> Any:
        if randomness not in ("error", "different", "same"):
            raise RuntimeError(
                "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
                f"{randomness}"
            )
        return _in_forward(func, args, argnums, has_aux)

    return jacobian


@outside_inference
def _in_forward(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums, has_aux: bool
) -> Any:
    """Return the Jacobian at some arguments, column by column."""
    check_real(pytree.leaves(args), "jacfwd", "inputs")
    function, leaves, spec = _function_of(func, args, argnums)
    check_primals(leaves)
    linear, output_spec, aux = linear_map(function, leaves, has_aux)
    check_real(linear.outputs, "jacfwd", "outputs")
    blocks: list[list[Tensor]] = []
    loops = _loops(functools.partial(_laid_out, linear), leaves) or linear.columns(leaves)
    if loops is not None:
        for i, output in enumerate(linear.outputs):
            blocks.append(
                [
                    unrolled(stacked[i], leaf._array.shape, output, True)
                    for leaf, stacked in zip(leaves, loops, strict=True)
                ]
            )
        found = _nest(blocks, output_spec, spec, argnums)
        return (found, aux) if has_aux else found
    columns = [linear(tangents) for tangents in basis_of(leaves)]
    blocks = joined_columns(columns, linear, leaves)
    found = _nest(blocks, output_spec, spec, argnums)
    return (found, aux) if has_aux else found


def _function_of(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums
) -> tuple[Callable[[list[Tensor]], Any], list[Tensor], pytree.TreeSpec]:
    """Return `func` as a function of the tensors in some arguments, and these."""
    positions = positions_of(argnums, len(args))
    leaves, spec = tensor_leaves(tuple([read_number_argument(args[p]) for p in positions]))
    fixed = [accept(argument) for argument in args]
    others = [each for i, each in enumerate(fixed) if i not in positions]

    def function(stand_ins: list[Tensor]) -> Any:
        if modes.level is not None and others:
            modes.level.lend(pytree.leaves(others))
        arguments = list(fixed)
        given = pytree.unflatten(spec, stand_ins)
        for position, argument in zip(positions, given, strict=True):
            arguments[position] = argument
        return func(*arguments)

    return function, leaves, spec


def _loops(
    function: Callable[[list[Tensor | None]], Sequence[Tensor | None]], tensors: Sequence[Tensor]
) -> list[Sequence[Tensor | None]] | None:
    """Return, in a traced function, what a linear function gives for the basis of each tensor.

    That is one compiled loop for each tensor; the results are stacked along a first dim. None where
    nothing is traced, where there are few directions, or where results are to be differentiated.
    """
    if modes.trace is None or sum(tensor._array.size for tensor in tensors) < LOOPED_DIRECTIONS:
        return None
    found: list[Sequence[Tensor | None]] = []
    for number, tensor in enumerate(tensors):

        def row(vector: Tensor, number: int = number) -> Sequence[Tensor | None]:
            given: list[Tensor | None] = [None] * len(tensors)
            given[number] = vector
            return function(given)

        stacked = modes.trace.each_row(row, tensor._array.shape, tensor._array.dtype)
        if stacked is None:
            return None
        found.append(stacked)
    return found


def _laid_out(linear: Linearized, tangents: Sequence[Tensor | None]) -> Row:
    """Return the tangents of outputs, laid out as these are."""
    return [
        None if tangent is None else lie_as(tangent, output._array)
        for tangent, output in zip(linear(tangents), linear.outputs, strict=True)
    ]


def _stacked(rows: Sequence[Tensor | None], shape: tuple[int, ...], leaf: Tensor) -> Tensor:
    """Return the Jacobian of an output of some shape, of gradients of a leaf."""
    array = leaf._array
    if all(row is None for row in rows):
        return zero_rows(array, array.dtype, shape, False)
    return stack_rows(rows, array.shape, array.dtype, spread=shape)


def _nest(
    blocks: Sequence[Sequence[Tensor]],
    output_spec: pytree.TreeSpec,
    spec: pytree.TreeSpec,
    argnums: Argnums,
) -> Any:
    """Return Jacobians, by output and input, in the output's structure of the inputs'."""
    inputs = [pytree.unflatten(spec, row) for row in blocks]
    if isinstance(argnums, int):
        inputs = [only for (only,) in inputs]
    return pytree.unflatten(output_spec, inputs)
