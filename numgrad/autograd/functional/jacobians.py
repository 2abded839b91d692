"""Whole Jacobians and Hessians: one backward pass, or one push forward, for each row or column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.forward.linear_maps import BackwardMap, Linearized, basis_of
from numgrad.autograd.forward.stacked import joined_columns, stack_rows, unrolled, zero_rows
from numgrad.autograd.functional.arguments import (
    Run,
    check_single,
    finish,
    read_tensors,
    require_dependent,
    unpack,
)
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.grad_modes import enable_grad
from numgrad.graph.tensor import Tensor, fresh

__all__ = ["hessian", "jacobian"]

_STRATEGIES = ("forward-mode", "reverse-mode")
_NAME = "torch.autograd.functional.jacobian"


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function.

    Mirrors ``torch.autograd.functional.jacobian``: J[i, j] = d output[i] / d input[j].

    Parameters
    ----------
    func : callable
        Takes tensors, and returns a tensor or a tuple of them.
    inputs : tensor or tuple of tensors
        Where to differentiate.
    create_graph : bool
        Whether the Jacobian can be differentiated in turn.
    strict : bool
        Whether an output that does not depend on an input is an error.
    vectorize : bool
        Whether one pass computes everything, as a batch (see `numgrad.func.vmap`), which hooks and
        custom Functions see. `strict` is refused with it, and forward mode without it.
    strategy : str
        ``"reverse-mode"``, a cotangent for each element of the outputs, or ``"forward-mode"``, a
        tangent for each element of the inputs.

    Returns
    -------
    tensor or (nested) tuple of tensors
        A tensor of the output's shape followed by the input's. If the function returns a tuple, a
        tuple of one for each output; if `inputs` is a tuple, a tuple for each input inside of that.

    Raises
    ------
    TypeError
        If inputs or outputs are anything but tensors or tuples of them.
    RuntimeError
        As `strict` says, and for what can't be combined; for complex outputs without `vectorize`,
        as the conjugate of the derivative is no Jacobian.
    NotImplementedError
        For forward mode with `create_graph` or without `vectorize`.
    AssertionError
        If there is no such strategy.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.autograd.functional.jacobian(lambda x: x**2, ng.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in _STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _forward(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        run = Run(inputs, "jacobian", create_graph)
        outputs = run.call(func, strict)
        if vectorize and strict:
            raise RuntimeError(
                f"{_NAME}: `strict=True` and `vectorized=True` are not supported together. Please "
                "either set `strict=False` or `vectorize=False`."
            )
        if not vectorize:
            _require_real(outputs)
        pull = BackwardMap(outputs, [gradient_edge(tensor) for tensor in run.inputs])
        if vectorize or not (strict or create_graph or pull.few(outputs)):
            found = _at_once(pull, outputs, run.inputs, create_graph, not vectorize)
        else:
            found = [
                _row_by_row(pull, outputs, number, run.inputs, create_graph, strict)
                for number in range(len(outputs))
            ]
    blocks = [unpack(finish(row, create_graph), run.several_inputs) for row in found]
    return unpack(blocks, run.several_outputs)


def _at_once(
    pull: BackwardMap,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    create_graph: bool,
    by_rows: bool,
) -> list[list[Tensor]]:
    """Return the Jacobians of all outputs, of one batch of cotangents; `by_rows` they lie so."""
    stacked = pull.rows(create_graph)
    found: list[list[Tensor]] = []
    start = 0
    for output in outputs:
        shape, first = output._array.shape, start
        start += output._array.size
        blocks = []
        for rows, tensor in zip(stacked, inputs, strict=True):
            if rows is None:
                block = zero_rows(tensor._array, tensor._array.dtype, shape, False)
            else:
                block = rows[first:start].reshape((*shape, *tensor._array.shape))
            blocks.append(block.contiguous() if by_rows else block)
        found.append(blocks)
    return found


def _row_by_row(
    pull: BackwardMap,
    outputs: Sequence[Tensor],
    number: int,
    inputs: Sequence[Tensor],
    create_graph: bool,
    strict: bool,
) -> list[Tensor]:
    """Return the Jacobians of one output, of a backward pass for each of its elements."""
    shape = outputs[number]._array.shape
    rows = [pull(row, True, create_graph) for row in basis_of(outputs, number)]
    if strict:
        for row in rows:
            _check_row(row, number, create_graph)
    blocks = []
    for position, tensor in enumerate(inputs):
        inner, dtype = tensor._array.shape, tensor._array.dtype
        column = [row[position] for row in rows]
        if all(row is None for row in column):
            blocks.append(fresh(np.zeros((*shape, *inner), dtype)))
        else:
            blocks.append(stack_rows(column, inner, dtype, spread=shape, like=np.empty(inner)))
    return blocks


def _require_real(outputs: Sequence[Tensor]) -> None:
    """Raise for complex outputs, whose gradient PyTorch does not take to be 1 by itself."""
    for output in outputs:
        if output._array.dtype.kind == "c" and output._array.size:
            raise RuntimeError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{output.dtype!r}"
            )


def _check_row(row: Sequence[Tensor | None], number: int, create_graph: bool) -> None:
    """Raise for an input that the output of that number does not depend on."""
    for position, gradient in enumerate(row):
        if gradient is None:
            raise RuntimeError(
                f"Output {number} of the user-provided function is independent of input "
                f"{position}. This is not allowed in strict mode."
            )
        if create_graph and not gradient.requires_grad:
            raise RuntimeError(
                "The jacobian of the user-provided function is independent of input "
                f"{number}. This is not allowed in strict mode when create_graph=True."
            )


def _forward(
    func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    """Return the Jacobian, column by column."""
    for flag, name in ((create_graph, "create_graph"), (strict, "strict")):
        if flag:
            error = NotImplementedError if name == "create_graph" else RuntimeError
            raise error(
                f'{_NAME}: `{name}=True` and `strategy="forward-mode"` are not supported together '
                f'(yet). Please either set `{name}=False` or `strategy="reverse-mode"`.'
            )
    several, tensors = read_tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly "
            "implemented for `vectorize=True`."
        )
    shape: list[bool] = []

    def function(stand_ins: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        several_outputs, outputs = read_tensors(func(*stand_ins), "outputs", "jacobian")
        shape.append(several_outputs)
        return list(outputs), []

    linear = Linearized(function, tensors, guarded=False)
    together = linear.columns(tensors)
    if together is not None:
        blocks = [
            [
                unrolled(columns[i], tensor._array.shape, output, last=True)
                for tensor, columns in zip(tensors, together, strict=True)
            ]
            for i, output in enumerate(linear.outputs)
        ]
    else:
        blocks = joined_columns([linear(each) for each in basis_of(tensors)], linear, tensors)
    return unpack([unpack(row, several) for row in blocks], shape[0])


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a function of one element.

    Mirrors ``torch.autograd.functional.hessian``: H[i, j] = d^2 output / d input[i] d input[j], the
    `jacobian` of a `jacobian`. The function runs once.

    Parameters
    ----------
    func : callable
        Takes tensors, and returns a tensor of one element.
    inputs, create_graph, strict, vectorize
        As of `jacobian`.
    outer_jacobian_strategy : str
        The strategy of the outer `jacobian`; the inner one is computed in reverse mode.

    Returns
    -------
    tensor or tuple of tuples of tensors
        Of the input's shape, twice. If `inputs` is a tuple, ``hessian[i][j]`` has the shape of
        input i followed by that of input j.

    Raises
    ------
    TypeError, RuntimeError, NotImplementedError, AssertionError
        As `jacobian`; also if the function returns anything but one tensor of one element.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.autograd.functional.hessian(lambda x: (x**3).sum(), ng.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, tensors = read_tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def single(*arguments: Tensor) -> Tensor:
        several_outputs, outputs = read_tensors(
            func(*arguments), "outputs of the user-provided function", "hessian"
        )
        require_dependent(outputs, "outputs", strict)
        check_single(outputs, several_outputs, "hessian")
        return outputs[0].squeeze()

    def gradient(*arguments: Tensor) -> Any:
        found = jacobian(single, arguments, create_graph=True)
        require_dependent(found, "jacobian", strict)
        return found

    found = jacobian(gradient, tensors, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0][0]
