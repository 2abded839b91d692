"""Products of a vector with a Jacobian or a Hessian, which is never made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.forward.duals import lie_as
from numgrad.autograd.forward.linear_maps import zeros_like
from numgrad.autograd.forward.push_forward import PushForward
from numgrad.autograd.functional.arguments import (
    Run,
    check_single,
    finish,
    read_vector,
    require_dependent,
    require_used,
    unpack,
    zeros_for_none,
)
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.backward.backward import grad
from numgrad.graph.modes.grad_modes import enable_grad, set_grad_enabled
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import NO_EDGE, Tensor, fresh
from numgrad.graph.upward import upward

__all__ = ["hvp", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]

Vector = Sequence[Tensor | None]
_ONE_INPUT = "the input to the user-provided function is a single Tensor with a single element."


def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return what a function gives, and the product of a vector with its Jacobian.

    Mirrors ``torch.autograd.functional.vjp``: with J the Jacobian, the product is ``J^T v``.

    Parameters
    ----------
    func : callable
        Takes tensors, and returns a tensor or a tuple of them.
    inputs : tensor or tuple of tensors
        Where to differentiate.
    v : tensor or tuple of tensors, optional
        Of the shapes of the outputs; 1 where the output is one tensor of one element.
    create_graph : bool
        Whether both results can be differentiated in turn.
    strict : bool
        Whether an input that no output depends on is an error, instead of having a product of 0.

    Returns
    -------
    outputs, product
        Of which the second is like `inputs`.

    Raises
    ------
    TypeError
        If inputs, vector or outputs are anything but tensors or tuples of them.
    RuntimeError
        If `v` does not fit, or as `strict` says.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0])
    >>> ng.autograd.functional.vjp(lambda x: x**2, x, ng.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        run = Run(inputs, "vjp", create_graph)
        outputs = run.call(func, strict)
        vector = read_vector(
            v,
            outputs,
            run.several_outputs,
            "vjp",
            create_graph,
            "the user-provided function returns a single Tensor with a single element.",
        )
    with set_grad_enabled(create_graph or modes.grad):
        found = _gradients(outputs, run.inputs, vector, create_graph=create_graph)
        product = zeros_for_none(found, run.inputs, "vjp", strict, create_graph)
    return (
        unpack(finish(outputs, create_graph), run.several_outputs),
        unpack(finish(product, create_graph), run.several_inputs),
    )


def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return what a function gives, and the product of its Jacobian with a vector.

    Mirrors ``torch.autograd.functional.jvp``: with J the Jacobian, the product is ``J v``.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As of `vjp`.
    v : tensor or tuple of tensors, optional
        Of the shapes of the inputs; 1 where there is one of one element.

    Returns
    -------
    outputs, product
        Of which both are what the function returns, in structure and shapes.

    Raises
    ------
    TypeError, RuntimeError
        As `vjp`.

    Notes
    -----
    The tangents are pushed through what was recorded: there is no double backward, as in PyTorch.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0])
    >>> ng.autograd.functional.jvp(lambda x: x.sum() * x, x, ng.tensor([1.0, 0.0]))
    (tensor([3., 6.]), tensor([4., 2.]))
    """
    with enable_grad():
        run = Run(inputs, "jvp", create_graph)
        vector = read_vector(
            v,
            run.inputs,
            run.several_inputs,
            "jvp",
            create_graph,
            _ONE_INPUT,
        )
        outputs = run.call(func, strict)
        if strict:  # as the double backward would have it
            zeros = [zeros_like(output) for output in outputs]
            require_used(_gradients(outputs, run.inputs, zeros, retain_graph=True))
    found = _push(outputs, run.inputs, vector, create_graph)
    product = zeros_for_none(found, outputs, "jvp", strict, create_graph)
    return (
        unpack(finish(outputs, create_graph), run.several_outputs),
        unpack(finish(product, create_graph), run.several_outputs),
    )


def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return what a scalar function gives, and the product of a vector with its Hessian.

    Mirrors ``torch.autograd.functional.vhp``: with H the Hessian, the product is ``H^T v``, by
    two backward passes.

    Parameters
    ----------
    func : callable
        Takes tensors, and returns a tensor of one element.
    inputs, create_graph, strict
        As of `vjp`.
    v : tensor or tuple of tensors, optional
        Of the shapes of the inputs; 1 where there is one of one element.

    Returns
    -------
    output, product
        Of which the second is like `inputs`.

    Raises
    ------
    TypeError, RuntimeError
        As `vjp`; also if the function returns anything but one tensor of one element.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0])
    >>> ng.autograd.functional.vhp(lambda x: (x**3).sum(), x, ng.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        run, vector, gradients = _gradient(func, inputs, v, create_graph, strict, "vhp")
    with set_grad_enabled(create_graph or modes.grad):
        found = _gradients(gradients, run.inputs, vector, create_graph=create_graph)
        product = zeros_for_none(found, run.inputs, "vhp", strict, create_graph)
    return (
        unpack(finish(run.outputs, create_graph), run.several_outputs),
        unpack(finish(product, create_graph), run.several_inputs),
    )


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return what a scalar function gives, and the product of its Hessian with a vector.

    Mirrors ``torch.autograd.functional.hvp``: with H the Hessian, the product is ``H v``, a
    backward pass and a push forward through it.

    Parameters
    ----------
    func, inputs, v, create_graph, strict
        As of `vhp`.

    Returns
    -------
    output, product
        Of which the second is like `inputs`.

    Raises
    ------
    TypeError, RuntimeError
        As `vhp`.

    Examples
    --------
    >>> import numgrad as ng
    >>> x, y = ng.tensor([1.0, 2.0]), ng.tensor(3.0)
    >>> v = ng.tensor([1.0, 0.0]), ng.tensor(1.0)
    >>> ng.autograd.functional.hvp(lambda x, y: (x**2).sum() * y, (x, y), v)
    (tensor(15.), (tensor([8., 4.]), tensor(2.)))
    """
    with enable_grad():
        run, vector, gradients = _gradient(func, inputs, v, create_graph, strict, "hvp")
    found = _push(gradients, run.inputs, vector, create_graph)
    product = zeros_for_none(found, run.inputs, "hvp", strict, create_graph)
    return (
        unpack(finish(run.outputs, create_graph), run.several_outputs),
        unpack(finish(product, create_graph), run.several_inputs),
    )


def _gradient(
    func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool, function: str
) -> tuple[Run, Vector, Vector]:
    """Run a scalar function; return the run, the checked vector, and the gradient, recorded."""
    run = Run(inputs, function, create_graph)
    vector = read_vector(v, run.inputs, run.several_inputs, function, create_graph, _ONE_INPUT)
    outputs = run.call(func, strict)
    check_single(outputs, run.several_outputs, function)
    gradients = _gradients(outputs, run.inputs, (None,), create_graph=True)
    require_dependent(gradients, "jacobian", strict)
    return run, vector, gradients


def _gradients(
    outputs: Vector, inputs: Sequence[Tensor], cotangents: Vector, **options: bool
) -> Vector:
    """Return the gradients of those outputs that have one, None where there is none."""
    pairs = [
        (output, cotangent)
        for output, cotangent in zip(outputs, cotangents, strict=True)
        if output is not None and output.requires_grad
    ]
    if not pairs:
        return [None] * len(inputs)
    return grad(
        [output for output, _ in pairs],
        inputs,
        [cotangent for _, cotangent in pairs],
        allow_unused=True,
        **options,
    )


def _push(
    outputs: Vector, inputs: Sequence[Tensor], tangents: Vector, create_graph: bool
) -> Vector:
    """Return the tangents of outputs, None where an output depends on no input."""
    directions = []
    for tensor, tangent in zip(inputs, tangents, strict=True):
        array = tensor._array
        if tangent is None:
            tangent = fresh(np.ones(array.shape, array.dtype))
        elif tangent._array.dtype != array.dtype:
            tangent = upward.cast(tangent, array.dtype)
        directions.append(tangent)
    with enable_grad():
        edges = [NO_EDGE if output is None else gradient_edge(output) for output in outputs]
        push = PushForward(edges, [gradient_edge(tensor) for tensor in inputs])
    return [
        tangent if tangent is None or output is None else lie_as(tangent, output._array)
        for tangent, output in zip(push(directions, create_graph), outputs, strict=True)
    ]
