"""gradcheck and gradgradcheck: derivatives held against central finite differences.

Slow mode compares whole Jacobians. Fast mode compares ``v @ J @ u`` for one random ``u`` an input
and one random ``v`` an output. Beyond the numbers, both check that a backward pass repeats, is
linear in what it is given (zero for zero), and takes undefined gradients for zeros.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from numgrad.autograd.gradcheck.jacobians import (
    Array,
    Case,
    GradcheckError,
    Options,
    as_array,
    as_tensor,
    as_tuple,
    backward_jacobians,
    differentiable,
    gradients,
    make_case,
    numerical_jacobians,
    pull_back,
    random_gradient,
    tangents,
)
from numgrad.autograd.gradcheck.properties import (
    check_batched_gradients,
    check_batched_tangents,
    check_undefined_gradients,
    check_undefined_tangents,
    check_zero_in_zero_out,
)
from numgrad.graph.tensor import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

FAST_FAIL_SLOW_OK = """
Fast gradcheck failed but element-wise differences are small. This means that the
test might've passed in slow_mode!
If so, call gradcheck/gradgradcheck with `fast_mode=False` as a keyword argument.
""".strip()


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of a function against central finite differences.

    For every input `x` that requires grad and every output `y` that does, the derivative from
    ``backward`` is compared with ``(f(x + eps) - f(x - eps)) / (2 * eps)``, element by element,
    by ``|analytical - numerical| <= atol + rtol * |numerical|``. A complex input's derivative is
    ``df/dRe + 1j * df/dIm``; of a complex output, the imaginary and the real part are checked one
    after the other. It is `torch.autograd.gradcheck`.

    Parameters
    ----------
    func : callable
        Takes `inputs`; returns a tensor or a tuple of tensors.
    inputs : Tensor or sequence
        The arguments of `func`, of any shapes. At least one must be a tensor that requires grad;
        others may be anything. Use float64 or complex128: less precision will likely fail.
    eps : float
        The step of the finite differences.
    atol, rtol : float
        Absolute and relative tolerance. In fast mode `atol` is scaled to the random vectors.
    raise_exception : bool
        Raise `GradcheckError` on a failure; otherwise return False.
    nondet_tol : float
        How much may two backward passes over the same graph differ.
    check_undefined_grad : bool
        Check that undefined gradients of outputs are supported, and treated as zeros.
    check_grad_dtypes : bool
        Check that a gradient has the dtype of its input (forward mode: is complex only where
        the output is).
    check_batched_grad : bool
        Check gradients of a batch of output gradients, by ``grad(..., is_grads_batched=True)``.
    check_batched_forward_grad : bool
        Check the tangents of two directions at once, by one run of `func`.
    check_forward_ad : bool
        Check the forward mode derivative, too, by `numgrad.autograd.forward_ad`.
    check_backward_ad : bool
        Whether to check ``backward``; when False, only forward mode is checked.
    fast_mode : bool
        Compare one random projection of each Jacobian instead of all of its elements. A failure
        is explained by the whole Jacobians.
    masked : bool, optional
        When true, the gradient for output gradients of zero has to be close to zero, instead of
        zero. (In PyTorch also the meaning of sparse inputs, which numgrad does not have.)

    Returns
    -------
    bool
        True if all derivatives are right.

    Raises
    ------
    GradcheckError
        If a derivative is wrong, depends on anything but its graph and output gradients, or
        isn't proportional to those.
    ValueError
        If no input requires grad.
    RuntimeError
        If an input overlaps itself in memory (as from ``expand``).
    AssertionError
        If the flags contradict each other, or `func` changes the shape or dtype of an output
        within a step of `eps`.

    Notes
    -----
    Errors have PyTorch's words, without the paragraphs that tell contributors to PyTorch which
    files of its test suite to change. Functions of mixed outputs, some of which do not require
    grad, are checked wherever in the tuple those stand, where PyTorch 2.13 may fail.

    Examples
    --------
    >>> import numgrad as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(lambda x: x.exp() * x, (x,))
    True

    A factor that the derivative does not see:

    >>> torch.autograd.gradcheck(lambda x: x * x.detach(), (x,), raise_exception=False)
    False
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    arguments = as_tuple(inputs)
    _check_inputs(arguments)
    try:
        options = Options(eps, atol, rtol, nondet_tol, check_grad_dtypes)
        case = make_case(func, arguments, options, fast_mode)
        numerical = [numerical_jacobians(case, j) for j in range(len(case.positions))]
        if not case.outputs:
            _check_zero(case, numerical)
        if check_backward_ad:
            for part in _parts(case.outputs):
                _compare_jacobians(case, numerical, part, forward=False)
        if check_forward_ad:
            for part in _parts(case.inputs):
                _compare_jacobians(case, numerical, part, forward=True)
            if check_batched_forward_grad:
                check_batched_tangents(case)
            if check_undefined_grad:
                check_undefined_tangents(case)
        if check_backward_ad:
            if check_batched_grad:
                check_batched_gradients(case)
            check_zero_in_zero_out(case, bool(masked))
            if check_undefined_grad:
                check_undefined_gradients(case)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the gradients of a function's gradients against central finite differences.

    It is `gradcheck` of the function ``(inputs, grad_outputs) -> gradients of inputs``, so it
    checks derivatives of second order, and those by `grad_outputs`. The first order is not
    checked: call `gradcheck` for that. It is `torch.autograd.gradgradcheck`.

    Parameters
    ----------
    func : callable
        Takes `inputs`; returns a tensor or a tuple of tensors.
    inputs : Tensor or sequence
        The arguments of `func`; see `gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        Gradients of those outputs of `func` that require grad, of the same shapes. When left
        out, drawn uniformly from [-1, 1).
    gen_non_contig_grad_outputs : bool
        Make the gradients that are drawn non-contiguous.
    check_fwd_over_rev : bool
        Check the forward mode derivative of the gradients, by `numgrad.autograd.forward_ad`.
    check_rev_over_rev : bool
        Check the ``backward`` of the gradients.
    eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes
        See `gradcheck`.
    check_batched_grad, fast_mode, masked
        See `gradcheck`.

    Returns
    -------
    bool
        True if all derivatives are right.

    Raises
    ------
    GradcheckError, ValueError, RuntimeError, AssertionError
        As `gradcheck` does.

    Examples
    --------
    >>> import numgrad as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(lambda x: x ** 3, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError(
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True"
        )
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_rev_over_rev to be True"
        )
    arguments = as_tuple(inputs)
    if grad_outputs is None:
        cotangents: tuple[Any, ...] = tuple(
            random_gradient(output, gen_non_contig_grad_outputs)
            for output in differentiable(func(*arguments))
        )
    else:
        cotangents = as_tuple(grad_outputs)
    count = len(arguments)
    requiring = [
        isinstance(argument, Tensor) and argument.requires_grad
        for argument in arguments + cotangents
    ]

    def gradients_of_func(*primals: Any) -> tuple[Tensor, ...]:
        # Forward mode calls this with primals that no longer require grad; those that did must,
        # for there to be a gradient whose tangent can be taken.
        restored = [
            primal.requires_grad_() if required else primal
            for primal, required in zip(primals, requiring, strict=True)
        ]
        found = pull_back(
            differentiable(func(*restored[:count])),
            list(itertools.compress(restored[:count], requiring)),
            restored[count:],
            create_graph=True,
        )
        return tuple(gradient for gradient in found if gradient is not None)

    return gradcheck(
        gradients_of_func,
        arguments + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _check_inputs(arguments: tuple[Any, ...]) -> None:
    requiring = False
    for position, argument in enumerate(arguments):
        if not (isinstance(argument, Tensor) and argument.requires_grad):
            continue
        requiring = True
        array = as_array(argument)
        if array.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{position} requires gradient and is not a double precision floating "
                "point or complex. This check will likely fail if all the inputs are not of "
                "double precision floating point or complex. ",
                stacklevel=3,
            )
        overlaps = [
            step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True)
        ]
        if array.size and any(overlaps):
            raise RuntimeError(
                f"The {position}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
    if not requiring:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, "
            "but none of them have requires_grad=True."
        )


def _check_zero(case: Case, numerical: list[list[list[Array]]]) -> None:
    """No output claims to depend on the inputs, so none may."""
    tolerance = 0.0 if case.u is None else case.options.nondet_tol
    for jacobian in (jacobian for axes in numerical for axis in axes for jacobian in axis):
        if not np.all(np.abs(jacobian) <= tolerance):
            raise GradcheckError("Numerical gradient for function expected to be zero")


# --- Comparing Jacobians -------------------------------------------------------------------------


def _parts(tensors: Sequence[Tensor]) -> list[str]:
    """Return the parts to check, one after another. Real tensors count as a real part."""
    return ["imaginary", "real"] if any(t.is_complex() for t in tensors) else ["real"]


def _compare_jacobians(
    case: Case, numerical: list[list[list[Array]]], part: str, forward: bool
) -> None:
    """Compare the derivative of every output by every input with finite differences.

    `part` is the part of complex outputs that is pulled back, or else the part of complex inputs
    that is pushed forward.
    """
    fast = case.u is not None
    pairs = list(itertools.product(range(len(case.outputs)), range(len(case.positions))))
    if fast:
        pairs.sort(key=lambda pair: pair[1])  # PyTorch's order: it decides which error is raised
    computed: dict[int, list[Array]] = {}
    for i, j in pairs:
        if forward and j not in computed:
            computed[j] = tangents(case, j, part)
        elif not forward and i not in computed:
            computed[i] = backward_jacobians(case, i, part)
        jacobian = computed[j][i] if forward else computed[i][j]
        analytical = _project_analytical(case, jacobian, j, forward)
        expected = _project_numerical(case, numerical[j], i, j, part, forward)
        atol = case.options.atol * _sum_of_weights(case, i, j, part, forward)
        if _close(analytical, expected, case.options.rtol, atol):
            continue
        message = _mismatch(case, expected, analytical, i, j, part, forward)
        raise GradcheckError(message + (_slow_mode(case, i, j, part, forward) if fast else ""))


def _project_analytical(case: Case, jacobian: Array, j: int, forward: bool) -> Array:
    """Return what is compared: the Jacobian in slow mode, ``v @ J @ u`` or ``J @ u`` in fast."""
    if case.u is None:
        return jacobian
    if forward:
        return jacobian[0]
    column = jacobian[:, 0]
    along_real, along_imaginary = case.u[j]
    if column.dtype.kind != "c":
        return np.asarray(column @ along_real)
    return np.asarray(column.real @ along_real + 1j * (column.imag @ along_imaginary))


def _project_numerical(
    case: Case, axes: list[list[Array]], i: int, j: int, part: str, forward: bool
) -> Array:
    """Return the finite differences in the form that `_project_analytical` has."""
    if forward:
        jacobian = axes[-1 if part == "imaginary" else 0][i]
        return jacobian if case.u is None else jacobian[0]
    columns = [axis[i] for axis in axes]
    if case.outputs[i].is_complex():
        columns = [column.imag if part == "imaginary" else column.real for column in columns]
    jacobian = columns[0]
    if len(columns) == 2:
        jacobian = (columns[0] + 1j * columns[1]).astype(as_array(case.inputs[j]).dtype)
    return jacobian if case.v is None else np.asarray((jacobian @ case.v[i])[0])


def _sum_of_weights(case: Case, i: int, j: int, part: str, forward: bool) -> float:
    """Return how much larger than the error of one element that of a projection may be."""
    if case.u is None or case.v is None:
        return 1.0
    sums = [float(u.sum()) for u in case.u[j]]
    complex_input = case.inputs[j].is_complex()
    if forward:
        return sums[complex_input and part == "imaginary"]
    return (sum(sums) if complex_input else sums[0]) * float(case.v[i].sum())


def _close(analytical: Array, numerical: Array, rtol: float, atol: float) -> bool:
    return bool(np.allclose(analytical, numerical, rtol=rtol, atol=atol))


def _mismatch(
    case: Case, numerical: Array, analytical: Array, i: int, j: int, part: str, forward: bool
) -> str:
    sided, element = (case.inputs[j], "inputs") if forward else (case.outputs[i], "outputs")
    prefix = f"While considering the {part} part of complex {element} only, "
    return (
        f"{prefix if sided.is_complex() else ''}"
        f"Jacobian {'computed with forward mode ' if forward else ''}mismatch for output {i} with "
        f"respect to input {j},\nnumerical:{as_tensor(numerical)}\n"
        f"analytical:{as_tensor(analytical)}\n"
    )


def _slow_mode(case: Case, i: int, j: int, part: str, forward: bool) -> str:
    """Explain a failure of fast mode, whose numbers say little, by the whole Jacobians."""
    slow = replace(case, u=None, v=None)
    numerical = _project_numerical(slow, numerical_jacobians(slow, j), i, j, part, forward)
    analytical = tangents(slow, j, part)[i] if forward else gradients(slow, i, part)[j]
    difference = as_tensor(np.asarray(np.abs(numerical - analytical).max()))
    message = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
        "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
        "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
        f"Numerical:\n {as_tensor(numerical)}\nAnalytical:\n{as_tensor(analytical)}\n\n"
        f"The max per-element difference (slow mode) is: {difference}.\n"
    )
    if _close(analytical, numerical, case.options.rtol, case.options.atol):
        message += FAST_FAIL_SLOW_OK
    return message
