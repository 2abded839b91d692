"""Reverse mode of whole functions: gradients of scalars, and vector-Jacobian products."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import NoneType
from typing import Any

import numpy as np

from numgrad.autograd.forward.linear_maps import PullBack, zeros_like
from numgrad.base import pytree
from numgrad.func.arguments import (
    Argnums,
    accept,
    check_floating,
    check_tensors,
    positions_of,
    read_directions,
    read_number_argument,
    split_aux,
    tensor_leaves,
)
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.backward.engine import nodes_towards, run
from numgrad.graph.modes.func_levels import Level, outside_inference
from numgrad.graph.modes.state import modes
from numgrad.graph.node import Node
from numgrad.graph.tensor import NO_EDGE, Tensor, fresh
from numgrad.jit.front.recipes import remembered

__all__ = ["grad", "grad_and_value", "pull_back", "value_and_grad", "vjp"]


@remembered
def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the gradient of `func`.

    Mirrors ``torch.func.grad`` and ``jax.grad``: grad(f)(x) = df/dx.

    Parameters
    ----------
    func : callable
        A function that returns a tensor of no dimensions. Its arguments may be pytrees.
    argnums : int or tuple of int
        With respect to which positional arguments; negative ones count from the last.
    has_aux : bool
        Whether `func` returns a pair: the value, and other tensors to hand through.

    Returns
    -------
    callable
        Takes the arguments of `func`. Returns a pytree like the argument with a gradient of its
        shape and dtype in place of every tensor, a tuple of those if `argnums` is a tuple; with
        `has_aux`, a pair of that and the other tensors.

    Raises
    ------
    RuntimeError
        From the returned function: if there is no such argument, it is of integers, or `func`
        returns anything but a tensor of no dimensions.
    ValueError
        If an argument to differentiate with respect to contains anything but tensors, NumPy arrays
        and plain numbers.

    Notes
    -----
    Results require grad only if the arguments, or what `func` captured, do. An outer `no_grad`
    does not keep `func` from being differentiated; one inside of it does.

    A number to differentiate with respect to is taken as a tensor of no dimensions, a list of
    numbers as the tensor that ``tensor`` makes of it, in the default dtype if they are integers.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.func.grad(lambda x: (x**3).sum())(ng.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    >>> ng.func.grad(ng.func.grad(ng.sin))(ng.tensor(1.0))
    tensor(-0.8415)
    >>> ng.func.grad(lambda x: x**3)(2.0)
    tensor(12.)
    """

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, _, aux = _differentiate(func, argnums, has_aux, args, kwargs, "grad_and_value")
        return (found, aux) if has_aux else found

    return gradient


@remembered
def value_and_grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the value of `func` and then its gradient.

    Mirrors ``jax.value_and_grad``; `grad_and_value` gives the same in PyTorch's order.

    Parameters
    ----------
    func, argnums, has_aux
        As of `grad`.

    Returns
    -------
    callable
        Takes the arguments of `func` and returns ``(value, gradient)``; with `has_aux`,
        ``((value, aux), gradient)``.

    Raises
    ------
    RuntimeError, ValueError
        As `grad`.

    Examples
    --------
    >>> import numgrad as ng
    >>> def loss(parameters, x):
    ...     return ((parameters["w"] * x + parameters["b"]) ** 2).sum()
    >>> parameters = {"w": ng.tensor(2.0), "b": ng.tensor(1.0)}
    >>> ng.func.value_and_grad(loss)(parameters, ng.tensor([0.0, 1.0]))
    (tensor(10.), {'w': tensor(6.), 'b': tensor(8.)})
    """

    @functools.wraps(func)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        found, value, aux = _differentiate(func, argnums, has_aux, args, kwargs, "value_and_grad")
        return ((value, aux) if has_aux else value), found

    return value_and_gradient


@remembered
def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the gradient of `func` and then its value.

    Mirrors ``torch.func.grad_and_value``; `value_and_grad` gives the same in JAX's order.

    Parameters
    ----------
    func, argnums, has_aux
        As of `grad`.

    Returns
    -------
    callable
        Takes the arguments of `func` and returns ``(gradient, value)``; with `has_aux`,
        ``(gradient, (value, aux))``.

    Raises
    ------
    RuntimeError, ValueError
        As `grad`.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.func.grad_and_value(lambda x, y: x * y, argnums=(0, 1))(ng.tensor(2.0), ng.tensor(5.0))
    ((tensor(5.), tensor(2.)), tensor(10.))
    """

    @functools.wraps(func)
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        found, value, aux = _differentiate(func, argnums, has_aux, args, kwargs, "grad_and_value")
        return found, ((value, aux) if has_aux else value)

    return gradient_and_value


@outside_inference
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``func(*primals)`` and the function that maps cotangents to gradients.

    Mirrors ``torch.func.vjp``: with J the Jacobian, that function computes J^T v.

    Parameters
    ----------
    func : callable
        A function that returns a pytree of floating point or complex tensors.
    *primals : pytrees of tensors
        Where to differentiate, with respect to all of them.
    has_aux : bool
        Whether `func` returns a pair: the output, and other tensors to hand through.

    Returns
    -------
    output, vjp_fn
        ``vjp_fn(cotangents)`` takes a pytree like the output and returns a tuple of one pytree for
        each primal. It can be called again and again, and differentiated.
    aux
        Only with `has_aux`.

    Raises
    ------
    RuntimeError
        If an output is no tensor, or one of integers; and from ``vjp_fn`` if the cotangents'
        structure or shapes are not the output's.
    ValueError
        If a primal contains anything but tensors, NumPy arrays and numbers.

    Examples
    --------
    >>> import numgrad as ng
    >>> output, vjp_fn = ng.func.vjp(lambda x, y: x * y, ng.tensor([1.0, 2.0]), ng.tensor(3.0))
    >>> output
    tensor([3., 6.])
    >>> vjp_fn(ng.tensor([1.0, 10.0]))
    (tensor([ 3., 30.]), tensor(21.))
    """
    leaves, spec = tensor_leaves(tuple(map(read_number_argument, primals)))
    pull, output_spec, aux = pull_back(
        lambda stand_ins: func(*pytree.unflatten(spec, stand_ins)), leaves, has_aux
    )

    @outside_inference
    def vjp_fn(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> tuple[Any, ...]:
        for name, option in (("retain_graph", retain_graph), ("create_graph", create_graph)):
            if not isinstance(option, (bool, int, NoneType)):
                raise TypeError(
                    f"vjp_fn(cotangents, {name}=): {name} is a bool, not {type(option).__name__}. "
                    "The cotangents are one argument, of the structure of the function's output"
                )
        given, given_spec = read_directions(cotangents, output_spec, pull.outputs)
        if given_spec != output_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {given_spec}, primal output: {output_spec}"
            )
        given = [
            _implicit(output) if each is None else each
            for each, output in zip(given, pull.outputs, strict=True)
        ]
        result: tuple[Any, ...] = pytree.unflatten(spec, pull(given, retain_graph, create_graph))
        return result

    output = pytree.unflatten(output_spec, pull.outputs)
    return (output, vjp_fn, aux) if has_aux else (output, vjp_fn)


def _implicit(output: Tensor) -> Tensor:
    """Return the cotangent that None stands for: one, of an output of one element."""
    if output._array.size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if output._array.dtype.kind == "c":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
        )
    return fresh(np.ones(output._array.shape, output._array.dtype))


def pull_back(
    function: Callable[[list[Tensor]], Any], leaves: list[Tensor], has_aux: bool
) -> tuple[PullBack, pytree.TreeSpec, Any]:
    """Run a function of a list of tensors, and return the map from its cotangents to gradients.

    Returns
    -------
    pull : PullBack
    spec : TreeSpec
        The structure of the output.
    aux : pytree
        None without `has_aux`.
    """
    specs: list[Any] = []

    def flat(stand_ins: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        output, aux, aux_spec = split_aux(function(stand_ins), has_aux, "vjp(f, *primals)")
        outputs, spec = pytree.flatten(output)
        check_tensors(outputs, "vjp(f, *primals)")
        check_floating(outputs)
        specs[:] = spec, aux_spec
        return outputs, aux

    pull = PullBack(flat, leaves)
    spec, aux_spec = specs
    return pull, spec, pytree.unflatten(aux_spec, pull.others) if has_aux else None


def _differentiate(
    func: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str,
) -> tuple[Any, Tensor, Any]:
    """Return the gradients, the value, and the auxiliary output of a function."""
    api = f"{name}(f)(*args)"
    positions = positions_of(argnums, len(args))
    given = [accept(argument) for argument in args]
    level = Level()
    with level:
        stand_ins: list[Tensor] = []
        specs = []
        for position in positions:
            argument = given[position]
            if isinstance(argument, Tensor):
                made = given[position] = level.stand_in(argument)
                stand_ins.append(made)
                specs.append(pytree.LEAF)
            else:
                leaves, spec = tensor_leaves(read_number_argument(argument))
                parts = [level.stand_in(leaf) for leaf in leaves]
                given[position] = pytree.unflatten(spec, parts)
                stand_ins += parts
                specs.append(spec)
        inputs = list(stand_ins)
        if kwargs or len(given) > len(positions):
            fixed = [each for i, each in enumerate(given) if i not in positions]
            level.lend(pytree.leaves((fixed, kwargs)))
        value, aux, aux_spec = split_aux(func(*given, **kwargs), has_aux, api)
        _check_scalar(value, api)
        inside: set[Node] = set()
        found = [
            zeros_like(stand_in) if gradient is None else gradient
            for stand_in, gradient in zip(
                inputs, _run_backward(level, value, aux, inputs, inside), strict=True
            )
        ]
    gradients = iter([level.release(gradient, inside) for gradient in found])
    trees = [
        next(gradients)
        if spec is pytree.LEAF
        else pytree.unflatten(spec, [next(gradients) for _ in range(spec.num_leaves)])
        for spec in specs
    ]
    value = level.release(value, inside)
    others = None
    if has_aux:
        others = pytree.unflatten(aux_spec, [level.release(tensor, inside) for tensor in aux])
    if level.written:
        level.release_written(inside)
    return (trees[0] if isinstance(argnums, int) else tuple(trees)), value, others


def _check_scalar(value: Any, api: str) -> None:
    if not isinstance(value, Tensor):
        raise RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(value)}")
    if value._array.ndim:
        raise RuntimeError(
            f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{value._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def _run_backward(
    level: Level, value: Tensor, aux: list[Tensor], stand_ins: list[Tensor], inside: set[Node]
) -> list[Tensor | None]:
    """Return the gradient of each stand-in, None where the value does not depend on it."""
    edge = gradient_edge(value)
    if edge is NO_EDGE:
        return [None] * len(stand_ins)
    dtype = value._array.dtype
    if dtype.kind == "c":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {value.dtype}"
        )
    roots = [(edge, fresh(np.ones((), dtype)))]
    if not level.has_unrecorded and not level.any_outside([value, *aux], inside):
        # Nothing but stand-ins is down there, so nothing is fed that is not ours.
        run(roots, keep_graph=False, create_graph=False)
        return [stand_in._grad for stand_in in stand_ins]
    inputs = [gradient_edge(stand_in) for stand_in in stand_ins]
    needed = None
    if level.has_unrecorded:
        captures = [node for node, _ in inputs if node is not None]
        starts = [edge[0]] if edge[0] is not None else []
        needed = nodes_towards(captures, starts, level.is_unrecorded)
    return run(
        roots,
        keep_graph=True,
        create_graph=modes.grad and level.recording,
        inputs=inputs,
        accumulate=False,
        needed=needed,
    )
