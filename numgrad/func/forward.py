"""Forward mode of whole functions: Jacobian-vector products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.forward.duals import lie_as
from numgrad.autograd.forward.linear_maps import Linearized, zeros_like
from numgrad.base import pytree
from numgrad.func.arguments import (
    check_tensors,
    flatten_numbers,
    moves,
    read_directions,
    read_number_argument,
    read_plain,
    split_aux,
)
from numgrad.graph.modes.func_levels import outside_inference
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.ops.creation.from_data import from_numpy

__all__ = ["jvp", "linear_map", "linearize"]

_API = "jvp(f, primals, tangents)"
_LINEARIZE = "linearize(func, *primals)"


@outside_inference
def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Return ``func(*primals)`` and its derivative in the direction of `tangents`.

    Mirrors ``torch.func.jvp`` and ``jax.jvp``: with J the Jacobian, the derivative is J v.

    Parameters
    ----------
    func : callable
        A function that returns a pytree of tensors.
    primals : tuple of pytrees of tensors
        Where to differentiate.
    tangents : tuple of pytrees of tensors
        The direction: for each tensor in `primals` one of its shape, cast to its dtype.
    strict : bool
        Whether an output that depends on no primal is an error.
    has_aux : bool
        Whether `func` returns a pair: the output, and other tensors to hand through.

    Returns
    -------
    output, tangent_output
        Both with the structure, shapes and dtypes of what `func` returns. The tangent is zero
        where nothing depends on a primal, as in outputs of integers.
    aux
        Only with `has_aux`.

    Raises
    ------
    RuntimeError
        If primals and tangents differ in structure or shapes, or `func` returns anything but
        tensors.
    ValueError
        If a primal or a tangent is of integers.

    Notes
    -----
    Each operation contributes its own tangent map, so this costs as much as a few evaluations.
    `func` may overwrite what backward mode would need: it is copied before.
    ``no_grad`` concerns backward mode alone: what `func` computes in one has a tangent.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.func.jvp(lambda x: x**2, (ng.tensor([1.0, 3.0]),), (ng.tensor([1.0, 10.0]),))
    (tensor([1., 9.]), tensor([ 2., 60.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_API}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    found, spec = flatten_numbers(tuple(map(read_number_argument, primals)))
    leaves = _tensors(found, "primals")
    directions, directions_spec = read_directions(tangents, spec, leaves)
    if spec != directions_spec:
        raise RuntimeError(
            f"{_API}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec!r} and tangents with structure {directions_spec!r}"
        )
    directions = _tensors(directions, "tangents")
    check_primals(leaves)
    linear, output_spec, aux = linear_map(
        lambda stand_ins: func(*pytree.unflatten(spec, stand_ins)), leaves, has_aux
    )
    pushed = linear([_fit(t, p) for t, p in zip(directions, leaves, strict=True)])
    if strict and None in pushed:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
            "inputs. This is not allowed with strict=True."
        )
    derivatives = _laid_out(pushed, linear.outputs)
    output = pytree.unflatten(output_spec, linear.outputs)
    derivative = pytree.unflatten(output_spec, derivatives)
    return (output, derivative, aux) if has_aux else (output, derivative)


@outside_inference
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``func(*primals)`` and the function that maps tangents to its derivative.

    Mirrors ``torch.func.linearize`` and ``jax.linearize``: with J the Jacobian, that function
    computes J v, without running `func` again. Alone among the transformations it lets `func` write
    to tensors that it captured.

    Parameters
    ----------
    func, *primals
        As of `jvp`.

    Returns
    -------
    output, jvp_fn
        ``jvp_fn(*tangents)`` returns a pytree like the output.

    Raises
    ------
    RuntimeError, ValueError
        As `jvp`; also if a tangent has another dtype than its primal.

    Examples
    --------
    >>> import numgrad as ng
    >>> output, jvp_fn = ng.func.linearize(lambda x: x**2, ng.tensor([1.0, 3.0]))
    >>> jvp_fn(ng.tensor([1.0, 0.0])), jvp_fn(ng.tensor([0.0, 1.0]))
    (tensor([2., 0.]), tensor([0., 6.]))
    """
    found, spec = flatten_numbers(tuple(map(read_number_argument, primals)))
    leaves = _tensors(found, "primals", _LINEARIZE)
    check_primals(leaves)
    linear, output_spec, _ = linear_map(
        lambda stand_ins: func(*pytree.unflatten(spec, stand_ins)), leaves, False, _LINEARIZE
    )

    @outside_inference
    def jvp_fn(*tangents: Any) -> Any:
        given, given_spec = read_directions(tangents, spec, leaves)
        if given_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {given_spec!r} to have the same argspec as the primals "
                f"{spec!r}"
            )
        given = _tensors(given, "tangents", _LINEARIZE)
        for number, (tangent, primal) in enumerate(zip(given, leaves, strict=True)):
            _check_like(number, tangent, primal)
        pushed = linear(given)
        return pytree.unflatten(output_spec, _laid_out(pushed, linear.outputs))

    return pytree.unflatten(output_spec, linear.outputs), jvp_fn


def _laid_out(tangents: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return tangents that lie as the outputs do, zeros where there are none."""
    return [
        zeros_like(output) if tangent is None else lie_as(tangent, output._array)
        for tangent, output in zip(tangents, outputs, strict=True)
    ]


def linear_map(
    function: Callable[[list[Tensor]], Any], leaves: list[Tensor], has_aux: bool, api: str = _API
) -> tuple[Linearized, pytree.TreeSpec, Any]:
    """Run a function of a list of tensors, and return the map from its tangents to the output's.

    Returns
    -------
    linear : Linearized
    spec : TreeSpec
        The structure of the output.
    aux : pytree
        None without `has_aux`.
    """
    specs: list[Any] = []

    def flat(stand_ins: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        output, aux, aux_spec = split_aux(function(stand_ins), has_aux, api)
        outputs, spec = pytree.flatten(output)
        check_tensors(outputs, api)
        specs[:] = spec, aux_spec
        return outputs, aux

    linear = Linearized(flat, leaves, writes=api == _LINEARIZE)
    spec, aux_spec = specs
    return linear, spec, pytree.unflatten(aux_spec, linear.others) if has_aux else None


def check_primals(primals: Sequence[Tensor]) -> None:
    """Raise for a tensor of integers or bools, which cannot move."""
    for primal in primals:
        if primal._array.dtype.kind not in "fc":
            raise ValueError(
                f"Expected primal to be floating point or complex, but got: {primal.dtype}"
            )


def _tensors(leaves: Sequence[Any], what: str, api: str = _API) -> list[Tensor]:
    if not leaves:
        raise RuntimeError(f"{api}: Expected {what} to contain at least one Tensor.")
    made = []
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            made.append(leaf)
        elif isinstance(leaf, np.ndarray):
            made.append(from_numpy(leaf))
        elif moves(leaf):
            made.append(read_plain(leaf))
        else:
            raise RuntimeError(f"{api}: Expected {what} to only contain Tensors, got {type(leaf)}")
    return made


def _check_like(number: int, tangent: Tensor, primal: Tensor) -> None:
    """Raise unless a tangent has the shape and the dtype of its primal."""
    for what in ("shape", "dtype"):
        own, wanted = getattr(tangent, what), getattr(primal, what)
        if own != wanted:
            raise RuntimeError(
                f"tangent:{number} with {what} {own} in flattened pytree doesn't match the {what} "
                f"{wanted} of the corresponding primal."
            )


def _fit(tangent: Tensor, primal: Tensor) -> Tensor:
    """Return a tangent in its primal's dtype, or raise if it has another shape."""
    array, like = tangent._array, primal._array
    if array.shape != like.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(like.shape)} while the given "
            f"forward gradient is of size {list(array.shape)}."
        )
    if array.dtype == like.dtype:
        return tangent
    if array.dtype.kind not in "fc":
        raise ValueError(
            f"Expected tangent to be floating point or complex, but got: {tangent.dtype}"
        )
    if array.dtype.kind == "c":
        raise RuntimeError(
            f"{_API}: Expected the tangent of a real primal to be real, got {tangent.dtype}"
        )
    cast: Tensor = upward.cast(tangent, like.dtype)
    return cast
