"""The Jacobians that `gradcheck` compares: by finite differences, by backward, by forward mode.

Finite differences are taken in NumPy, on the memory of the inputs, so nothing of the machinery
that is being checked takes part in computing what it is compared with. In slow mode a Jacobian
is computed whole. In fast mode it is multiplied by one random vector on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from numgrad.autograd.forward.linear_maps import Linearized, zeros_like
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.base.dtypes import float64
from numgrad.graph.backward.backward import grad
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.creation.from_data import from_numpy
from numgrad.ops.creation.random import rand

__all__ = [
    "Array",
    "Case",
    "GradcheckError",
    "Options",
    "as_array",
    "as_tensor",
    "as_tuple",
    "backward_jacobians",
    "differentiable",
    "gradients",
    "make_case",
    "numerical_jacobians",
    "pull_back",
    "push_forward",
    "push_forward_batch",
    "random_gradient",
    "tangents",
]

Array = npt.NDArray[Any]
# Where to step in an input's array, and the step, before it is multiplied by eps.
Direction = tuple[Any, Any]

FAST_MODE_SEED = 20130  # a stream of its own: the user's random numbers stay as they were

REENTRANCY_NOTE = """

NOTE: If your op relies on non-deterministic operations this failure might be expected.
If so, call gradcheck/gradgradcheck with `nondet_tol=<tol>` as a keyword argument.
"""


class GradcheckError(RuntimeError):
    """A derivative that `gradcheck` or `gradgradcheck` found to be wrong.

    Raised for what is wrong with the function under test. Wrong arguments of the check itself
    raise `ValueError`, `AssertionError` or `RuntimeError`.

    Examples
    --------
    >>> from numgrad.autograd import GradcheckError
    >>> issubclass(GradcheckError, RuntimeError)
    True
    """

    __module__ = "numgrad.autograd.gradcheck"  # where people find it


@dataclass(frozen=True)
class Options:
    """How closely derivatives are compared: the arguments of `gradcheck` of the same names."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool


@dataclass(frozen=True)
class Case:
    """A function at its inputs.

    `positions` are the arguments that require grad, `kept` the results whose derivative is
    compared, `outputs` those results with their graph. Everything below numbers inputs and
    outputs within these lists (`i` an output, `j` an input), and so do PyTorch's messages.
    `u` (for each input, a vector for its real and one for its imaginary part) and `v` (for each
    output) are the random vectors of fast mode, and None in slow mode.
    """

    func: Callable[..., Any]
    arguments: tuple[Any, ...]
    positions: tuple[int, ...]
    kept: tuple[int, ...]
    outputs: tuple[Tensor, ...]
    options: Options
    u: tuple[tuple[Array, Array], ...] | None
    v: tuple[Array, ...] | None

    @property
    def inputs(self) -> list[Tensor]:
        """The arguments that require grad."""
        return [self.arguments[position] for position in self.positions]


def make_case(
    func: Callable[..., Any], arguments: tuple[Any, ...], options: Options, fast_mode: bool
) -> Case:
    """Run `func` once, and note what is to be compared."""
    positions = tuple(
        position
        for position, argument in enumerate(arguments)
        if isinstance(argument, Tensor) and argument.requires_grad
    )
    results = as_tuple(func(*arguments))
    outputs = differentiable(results)
    # Without a differentiable output, all that could have a derivative must have none.
    kept = tuple(
        number
        for number, result in enumerate(results)
        if (result.requires_grad if outputs else as_array(result).dtype.kind in "fc")
    )
    u = v = None
    if fast_mode:
        generator = np.random.default_rng(FAST_MODE_SEED)
        inputs = [arguments[position] for position in positions]
        u = tuple((_unit_vector(x, generator), _unit_vector(x, generator)) for x in inputs)
        v = tuple(_unit_vector(output, generator) for output in outputs)
    return Case(func, arguments, positions, kept, outputs, options, u, v)


def _unit_vector(like: Tensor, generator: np.random.Generator) -> Array:
    """Draw a flat vector of length 1, with as many elements as `like` and its real dtype.

    No element is negative, so that errors of one sign cannot cancel.
    """
    array = as_array(like)
    drawn = generator.random(array.size)
    return np.asarray(drawn / np.linalg.norm(drawn), dtype=array.real.dtype)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a sequence as a tuple, anything else as a tuple of one."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def differentiable(results: Any) -> tuple[Tensor, ...]:
    """Return those results of a function that require grad."""
    return tuple(result for result in as_tuple(results) if result.requires_grad)


def as_array(tensor: Tensor) -> Array:
    """Return the memory of `tensor` as an array; writing to it is not seen by autograd."""
    return tensor._array


def as_tensor(array: Array) -> Tensor:
    """Return the tensor that prints as `array`."""
    return from_numpy(np.ascontiguousarray(array).reshape(array.shape))


def random_gradient(output: Tensor, non_contiguous: bool = False) -> Tensor:
    """Draw a leaf of the shape and dtype of `output`, uniformly from [-1, 1)."""
    array = as_array(output)
    # From the library's own stream, so that manual_seed repeats the check.
    drawn = as_array(rand(2, *array.shape, dtype=float64)) * 2 - 1
    values = drawn[0] + 1j * drawn[1] if output.is_complex() else drawn[0]
    values = np.asarray(values, dtype=array.dtype)
    if non_contiguous and array.size > 1:
        values = np.repeat(values, 2, axis=-1)[..., ::2]
    return from_numpy(values).requires_grad_()


# --- Finite differences --------------------------------------------------------------------------


def numerical_jacobians(case: Case, j: int) -> list[list[Array]]:
    """Return every kept output's derivative along the real, then along the imaginary axis.

    A derivative has the shape (number of directions, elements of the output) and the dtype of
    the output. A real input has only the first axis.
    """
    array = as_array(case.inputs[j])
    along_real, along_imaginary = (None, None) if case.u is None else case.u[j]
    axes = [_differences(case, array, _directions(array, along_real))]
    if case.inputs[j].is_complex():
        directions = _directions(array, along_imaginary)
        axes.append(_differences(case, array, [(where, 1j * step) for where, step in directions]))
    return axes


def _directions(array: Array, u: Array | None) -> list[Direction]:
    """Return each element's own direction, or the one direction `u`."""
    if u is None:
        return [(index, 1.0) for index in np.ndindex(array.shape)]
    return [(..., u.reshape(array.shape))]


def _differences(case: Case, array: Array, directions: list[Direction]) -> list[Array]:
    """Return the central differences of the kept outputs, one row for each direction."""
    eps = case.options.eps
    results = [as_array(result) for result in _evaluate(case)]
    jacobians = [np.empty((len(directions), results[k].size), results[k].dtype) for k in case.kept]
    for row, (where, step) in enumerate(directions):
        original = array[where].copy()
        try:
            array[where] = original - eps * step
            below = _evaluate(case)
            array[where] = original + eps * step
            above = _evaluate(case)
        finally:
            array[where] = original
        for low, high in zip(below, above, strict=True):
            _check_alike(low, high, "" if where is ... else f"on index {where} ", eps)
        with np.errstate(invalid="ignore"):  # at an infinite value the derivative is nan
            for jacobian, k in zip(jacobians, case.kept, strict=True):
                jacobian[row] = (as_array(above[k]) - as_array(below[k])).reshape(-1) / (2 * eps)
    return jacobians


def _evaluate(case: Case) -> list[Tensor]:
    """Call the function. Results are copied: one may be an input, whose memory changes next."""
    return [wrap(as_array(result).copy()) for result in as_tuple(case.func(*case.arguments))]


def _check_alike(low: Tensor, high: Tensor, where: str, eps: float) -> None:
    for name, first, second in (
        ("shape", low.shape, high.shape),
        ("dtype", low.dtype, high.dtype),
    ):
        if first != second:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {name} when inputs are "
                f"perturbed {where}by {eps}, but got: {name}s {first} and {second}."
            )


# --- Derivatives by backward and by forward mode -------------------------------------------------


def backward_jacobians(case: Case, i: int, part: str) -> list[Array]:
    """Return the `gradients` of output `i`, computed twice to see that they come out the same."""
    first, second = gradients(case, i, part), gradients(case, i, part)
    for one, other in zip(first, second, strict=True):
        with np.errstate(invalid="ignore"):  # equal infinities, or nan, are no difference
            differs = np.any(np.abs(one - other) > case.options.nondet_tol)
        if differs:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and "
                "grad_output multiple times gives different values, although analytical gradient "
                "matches numerical gradient.The tolerance for nondeterminism was "
                f"{case.options.nondet_tol}.{REENTRANCY_NOTE}"
            )
    return first


def pull_back(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor],
    cotangents: Tensor | Sequence[Tensor],
    **options: bool,
) -> tuple[Tensor | None, ...]:
    """Return the gradients that reach `inputs`, None where there is none; see `autograd.grad`."""
    return grad(outputs, inputs, cotangents, allow_unused=True, **options)


def gradients(case: Case, i: int, part: str) -> list[Array]:
    """Return, for each input, its gradients as columns, one for each cotangent of output `i`.

    A complex output's real part has the cotangent 1, and its imaginary part has 1j, for a
    gradient is ``df/dRe + 1j * df/dIm``.
    """
    output, inputs = case.outputs[i], case.inputs
    like = as_array(output)
    unit = 1j if output.is_complex() and part == "imaginary" else 1
    count = like.size if case.v is None else 1
    jacobians = [np.zeros((as_array(x).size, count), as_array(x).dtype) for x in inputs]
    for column in range(count):
        cotangent = np.zeros(like.shape, like.dtype)
        if case.v is None:
            cotangent.reshape(-1)[column] = unit
        else:
            cotangent[...] = unit * case.v[i].reshape(like.shape)
        found = pull_back(output, inputs, from_numpy(cotangent), retain_graph=True)
        for x, gradient, jacobian in zip(inputs, found, jacobians, strict=True):
            if gradient is None:
                continue
            if gradient.shape != x.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            if gradient.dtype != x.dtype and case.options.check_grad_dtypes:
                raise GradcheckError("Gradient has dtype mismatch")
            jacobian[:, column] = as_array(gradient).reshape(-1)
    return jacobians


def tangents(case: Case, j: int, part: str) -> list[Array]:
    """Return, for each output, its tangents as rows, one for each direction of input `j`."""
    like = as_array(case.inputs[j])
    imaginary = case.inputs[j].is_complex() and part == "imaginary"
    directions = _directions(like, None if case.u is None else case.u[j][imaginary])
    jacobians = [
        np.zeros((len(directions), as_array(o).size), as_array(o).dtype) for o in case.outputs
    ]
    for row, (where, step) in enumerate(directions):
        tangent = np.zeros(like.shape, like.dtype)
        tangent[where] = 1j * step if imaginary else step
        found = push_forward(case, {j: from_numpy(tangent)})
        for output, pushed, jacobian in zip(case.outputs, found, jacobians, strict=True):
            if case.options.check_grad_dtypes and pushed.is_complex() != output.is_complex():
                raise GradcheckError("Forward AD gradient has dtype mismatch.")
            jacobian[row] = as_array(pushed).reshape(-1)
    return jacobians


def push_forward(case: Case, tangents: dict[int, Tensor]) -> tuple[Tensor, ...]:
    """Return the outputs' tangents, given those of some inputs; the other inputs have none."""
    with dual_level():
        duals = {j: make_dual(case.inputs[j].detach(), tangent) for j, tangent in tangents.items()}
        found = []
        for output in _at(case, duals):
            tangent = unpack_dual(output).tangent
            found.append(zeros_like(output) if tangent is None else tangent)
    return tuple(found)


def push_forward_batch(case: Case, j: int, batch: Sequence[Tensor]) -> list[list[Tensor]]:
    """Return the outputs' tangents for each of several tangents of input `j`, from one run."""

    def outputs(stand_ins: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return _at(case, {j: stand_ins[0]}), []

    linear = Linearized(outputs, [case.inputs[j].detach()], guarded=False)
    found = []
    for tangent in batch:
        pairs = zip(linear([tangent]), linear.outputs, strict=True)
        found.append([zeros_like(output) if pushed is None else pushed for pushed, output in pairs])
    return found


def _at(case: Case, replaced: dict[int, Tensor]) -> list[Tensor]:
    """Return the kept outputs with some inputs replaced, and the others without history."""
    arguments = [a.detach() if isinstance(a, Tensor) else a for a in case.arguments]
    for j, tensor in replaced.items():
        arguments[case.positions[j]] = tensor
    results = as_tuple(case.func(*arguments))
    return [results[k] for k in case.kept]
