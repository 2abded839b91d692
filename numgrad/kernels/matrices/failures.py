"""Matrices that are singular, or not positive definite: PyTorch's words, in compiled code too."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.llvm.pointers import element

__all__ = ["WORDS", "FailedError", "LinAlgError", "raise_failed", "refuse_failed"]

Array = np.ndarray[Any, Any]


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive definite, or an algorithm does not converge."""


LinAlgError.__module__ = "numgrad.linalg"

_SINGULAR = "The solver failed because the input matrix is singular."
_INVERSE = (
    "The diagonal element {0} is zero, the inversion could not be completed because the input "
    "matrix is singular."
)
_CHOLESKY = (
    "The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {0} is not positive-definite)."
)
_LU = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still "
    "want to perform the factorization, consider calling linalg.lu(A, pivot) or "
    "linalg.lu_factor_ex(A, pivot)"
)
# What is raised by the function that raises; the number is that which a factorisation failed with.
WORDS: dict[str, tuple[type[Exception], str]] = {
    "torch.linalg.solve": (LinAlgError, _SINGULAR),
    "torch.linalg.solve_ex": (LinAlgError, _SINGULAR),
    "inv": (LinAlgError, _INVERSE),  # as `linalg.tensorinv` says it
    "linalg.inv": (LinAlgError, _INVERSE),
    "linalg.inv_ex": (LinAlgError, _INVERSE),
    "linalg.cholesky": (LinAlgError, _CHOLESKY),
    "linalg.cholesky_ex": (LinAlgError, _CHOLESKY),
    "cholesky": (LinAlgError, _CHOLESKY),
    "cholesky_inverse": (LinAlgError, _INVERSE),
    "torch.linalg.lu_factor": (RuntimeError, _LU),
    "torch.linalg.lu_factor_ex": (RuntimeError, _LU),
}
_FUNCTIONS = list(WORDS)


class FailedError(Exception):
    """Makes the error of a matrix that failed, which is of another type.

    As for `numgrad.kernels.move.bounds.OutsideError`, the words are found in the interpreter.

    Examples
    --------
    >>> FailedError(0, 3, 1)
    LinAlgError('torch.linalg.solve: (Batch element 3): The solver failed because the input matrix \
is singular.')
    """

    def __new__(cls, *numbers: Any) -> Any:
        """Return the error: of the function by number, the matrix (or -1) and what it failed at."""
        if len(numbers) == 1:
            return numbers[0]
        which, one, order = numbers
        function = _FUNCTIONS[which]
        where = "" if one < 0 else f"(Batch element {one}): "
        error, words = WORDS[function]
        return error(f"{function}: {where}{words.format(order)}")


@kernel
def raise_failed(failed: Any, count: int, which: int) -> None:
    """Raise for the first of `count` matrices that failed; of -1, a single one is no batch."""
    for one in range(abs(count)):
        order = element(failed, one)
        if order != 0:
            # Constants have a type of their own: see `numgrad.kernels.move.bounds.raise_outside`.
            numbers = np.int64(which), np.int64(one if count > 0 else -1), np.int64(order)
            raise FailedError(numbers[0], numbers[1], numbers[2])


def refuse_failed(function: str, failed: Array) -> None:
    """Raise for the first matrix that failed, in the words of a function."""
    if failed.any():
        first = int(np.flatnonzero(failed)[0])
        order = int(failed.reshape(-1)[first])
        raise FailedError(_FUNCTIONS.index(function), first if failed.ndim else -1, order)
