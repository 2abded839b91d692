"""Checks of `gradcheck` besides the numbers: zero, undefined and batched gradients.

Gradients of zero give gradients of zero, missing ones count as zeros, and a batch of them gives
the batch of what each alone gives.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.gradcheck.jacobians import (
    Case,
    GradcheckError,
    as_array,
    as_tensor,
    differentiable,
    pull_back,
    push_forward,
    push_forward_batch,
    random_gradient,
)
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.node import Node
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.creation.creation import zeros_like
from numgrad.ops.creation.from_data import from_numpy

__all__ = [
    "check_batched_gradients",
    "check_batched_tangents",
    "check_undefined_gradients",
    "check_undefined_tangents",
    "check_zero_in_zero_out",
]

BATCHED_GRAD_FAILED = """
gradcheck or gradgradcheck failed while testing batched gradient computation.
To leave this out, call gradcheck/gradgradcheck with `check_batched_grad=False` as a keyword
argument.
""".strip()

BATCHED_FORWARD_GRAD_FAILED = """
gradcheck failed while testing batched gradient computation with forward-mode AD.
To leave this out, call gradcheck/gradgradcheck with `check_batched_forward_grad=False` as a
keyword argument.
""".strip()

# How close "masked" gradients and batched ones have to be: the defaults of allclose.
ALLCLOSE_RTOL, ALLCLOSE_ATOL = 1e-5, 1e-8

UNDEFINED_GRAD_NOTES = (
    'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)
UNDEFINED_GRAD_WARNING = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by "
    "default, but it may break existing callers of this function. If this is true for you, you "
    'can call this function with "check_undefined_grad=False" to disable the feature'
)


class UndefinedGrad(Node):
    """The identity, whose backward swallows the gradient."""

    __slots__ = ()

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Hand on no gradient."""
        return (None,), (False,)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Hand on no gradient."""
        return (None,)


def undefined_grad(tensor: Tensor) -> Tensor:
    """Return `tensor`, but so that no gradient reaches what it was computed from."""
    result = wrap(tensor._array)
    result._edge = (UndefinedGrad((gradient_edge(tensor),)), 0)
    return result


def check_zero_in_zero_out(case: Case, masked: bool) -> None:
    """For output gradients of zero, input gradients are zero and like their inputs."""
    zeros = [zeros_like(output) for output in case.outputs]
    found = pull_back(case.outputs, case.inputs, zeros)
    for gradient, x in zip(found, case.inputs, strict=True):
        if gradient is None:
            continue
        if not np.all(np.abs(as_array(gradient)) <= (ALLCLOSE_ATOL if masked else 0.0)):
            raise GradcheckError("backward not multiplied by grad_output")
        if gradient.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if gradient.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


def check_undefined_gradients(case: Case) -> None:
    """Every backward takes undefined output gradients for zeros: all of them, and one at a time."""
    count = len(case.outputs)
    choices = [set(range(count))] + [{i} for i in range(count) if count > 1]
    for undefined in choices:
        outputs = [
            undefined_grad(output) if i in undefined else output
            for i, output in enumerate(differentiable(case.func(*case.arguments)))
        ]
        zeros = [zeros_like(output) for output in outputs]
        try:
            found = pull_back(outputs, case.inputs, zeros)
        except RuntimeError as error:
            warnings.warn(UNDEFINED_GRAD_WARNING, stacklevel=3)
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. "
                f"{UNDEFINED_GRAD_NOTES}"
            ) from error
        if any(gradient is not None and np.any(as_array(gradient) != 0) for gradient in found):
            warnings.warn(UNDEFINED_GRAD_WARNING, stacklevel=3)
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                f"undefined or zero. {UNDEFINED_GRAD_NOTES}"
            )


def check_undefined_tangents(case: Case) -> None:
    """Forward mode takes an input without a tangent for one whose tangent is zero."""
    drawn = {j: random_gradient(x).detach() for j, x in enumerate(case.inputs)}
    for j, x in enumerate(case.inputs):
        others = {k: tangent for k, tangent in drawn.items() if k != j}
        if not others:
            continue
        with_zero = push_forward(case, {**drawn, j: zeros_like(x).detach()})
        without = push_forward(case, others)
        for i, (zero, undefined) in enumerate(zip(with_zero, without, strict=True)):
            if not np.allclose(as_array(zero), as_array(undefined), ALLCLOSE_RTOL, ALLCLOSE_ATOL):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {i} when input: {x} has an "
                    f"undefined tangent value.  Got: {zero} but expected: {undefined}"
                )


def check_batched_gradients(case: Case) -> None:
    """Gradients of two cotangents at once are the gradients of each, stacked."""
    for i, output in enumerate(case.outputs):
        drawn = [random_gradient(output).detach() for _ in range(2)]
        separate = [
            pull_back(output, case.inputs, cotangent, retain_graph=True) for cotangent in drawn
        ]
        cotangents = from_numpy(np.stack([as_array(cotangent) for cotangent in drawn]))
        try:
            batched = pull_back(
                output, case.inputs, cotangents, retain_graph=True, is_grads_batched=True
            )
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n{BATCHED_GRAD_FAILED}"
            ) from error
        for j, (x, result) in enumerate(zip(case.inputs, batched, strict=True)):
            zero = np.zeros_like(as_array(x))
            alone = [found[j] for found in separate]
            expected = np.stack([zero if one is None else as_array(one) for one in alone])
            got = np.zeros_like(expected) if result is None else as_array(result)
            if not np.allclose(got, expected, ALLCLOSE_RTOL, ALLCLOSE_ATOL):
                raise GradcheckError(
                    f"For output {i} and input {j}:\n\n{BATCHED_GRAD_FAILED}\n\n"
                    f"Got:\n{as_tensor(got)}\n\nExpected:\n{as_tensor(expected)}"
                )


def check_batched_tangents(case: Case) -> None:
    """Two tangents give in one run of the function what each gives in a run of its own."""
    for j, x in enumerate(case.inputs):
        drawn = [random_gradient(x).detach() for _ in range(2)]
        expected = [push_forward(case, {j: tangent}) for tangent in drawn]
        try:
            batched = push_forward_batch(case, j, drawn)
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n{BATCHED_FORWARD_GRAD_FAILED}"
            ) from error
        for i, (got, alone) in enumerate(
            zip(zip(*batched, strict=True), zip(*expected, strict=True), strict=True)
        ):
            found = np.stack([as_array(tangent) for tangent in got])
            wanted = np.stack([as_array(tangent) for tangent in alone])
            if not np.allclose(found, wanted, ALLCLOSE_RTOL, ALLCLOSE_ATOL):
                raise GradcheckError(
                    f"For output {i} and input {j}:\n\n{BATCHED_FORWARD_GRAD_FAILED}\n\n"
                    f"Got:\n{as_tensor(found)}\n\nExpected:\n{as_tensor(wanted)}"
                )
