"""Older names of PyTorch's: a norm that it deprecates, and functions that it has no more.

The latter raise what PyTorch raises, which says what to use instead.
"""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.registry import public
from numgrad.ops.matrices.norms import linalg_vector_norm
from numgrad.ops.signatures.declared import declare

__all__ = ["eig", "frobenius_norm", "lstsq", "matrix_rank", "solve", "symeig"]


@declare(
    "frobenius_norm(Tensor input, int[1] dim, bool keepdim=False, *, Tensor? out=None)",
    method=False,
    dispatched=True,
)
def frobenius_norm(input: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return the roots of sums of squares along at most two dims; PyTorch deprecates this name.

    See `linalg.vector_norm`. The gradient is g x / y.

    Parameters
    ----------
    input : tensor
    dim
        Along which; all if there are none.
    keepdim
        Keep the dims with length 1.

    Raises
    ------
    RuntimeError
        If there are more than two dims.

    >>> import numgrad as ng
    >>> ng.frobenius_norm(ng.tensor([[3.0, 4.0]]), [0, 1])
    tensor(5.)
    """
    if len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    if input._array.dtype.kind not in "fc":
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{input.dtype.scalar_name} instead."
        )
    result: Tensor = linalg_vector_norm(input, 2.0, dim or None, keepdim)
    return result


# --- what is no more -----------------------------------------------------------------------------

_GONE = "This function was deprecated since version 1.9 and is now removed."


@public
def eig(self: Tensor, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> Any:
    """Raise: `linalg.eig` and `linalg.eigvals` are what to use.

    Raises
    ------
    RuntimeError
        Always. There is no gradient.

    >>> import numgrad as ng
    >>> ng.eig(ng.eye(2))
    Traceback (most recent call last):
    RuntimeError: This function was deprecated since version 1.9 and is now removed. ...
    """
    raise RuntimeError(
        f"{_GONE} `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather "
        "than real tensors mimicking complex tensors.\n\nL, _ = torch.eig(A) should be replaced "
        "with:\nL_complex = torch.linalg.eigvals(A)\n\nand\n\nL, V = torch.eig(A, "
        "eigenvectors=True) should be replaced with:\nL_complex, V_complex = torch.linalg.eig(A)"
    )


@public
def symeig(
    input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Any = None
) -> Any:
    """Raise: `linalg.eigh` and `linalg.eigvalsh` are what to use.

    Raises
    ------
    RuntimeError
        Always. There is no gradient.

    >>> import numgrad as ng
    >>> ng.symeig(ng.eye(2))
    Traceback (most recent call last):
    RuntimeError: This function was deprecated since version 1.9 and is now removed. ...
    """
    raise RuntimeError(
        f"{_GONE} The default behavior has changed from using the upper triangular portion of the "
        "matrix by default to using the lower triangular portion.\n\nL, _ = torch.symeig(A, "
        "upper=upper) should be replaced with:\nL = torch.linalg.eigvalsh(A, UPLO='U' if upper "
        "else 'L')\n\nand\n\nL, V = torch.symeig(A, eigenvectors=True) should be replaced with:\n"
        "L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')"
    )


@public
def solve(input: Tensor, A: Tensor, *, out: Any = None) -> Any:
    """Raise: `linalg.solve` is what to use.

    Raises
    ------
    RuntimeError
        Always. There is no gradient.

    >>> import numgrad as ng
    >>> ng.solve(ng.ones(2, 1), ng.eye(2))
    Traceback (most recent call last):
    RuntimeError: This function was deprecated since version 1.9 and is now removed. ...
    """
    raise RuntimeError(
        f"{_GONE} `torch.solve` is deprecated in favor of `torch.linalg.solve`. "
        "`torch.linalg.solve` has its arguments reversed and does not return the LU factorization."
        "\n\nTo get the LU factorization see `torch.lu`, which can be used with `torch.lu_solve` "
        "or `torch.lu_unpack`.\nX = torch.solve(B, A).solution should be replaced with:\n"
        "X = torch.linalg.solve(A, B)"
    )


@public
def lstsq(input: Tensor, A: Tensor, *, out: Any = None) -> Any:
    """Raise: `linalg.lstsq` is what to use.

    Raises
    ------
    RuntimeError
        Always. There is no gradient.

    >>> import numgrad as ng
    >>> ng.lstsq(ng.ones(2, 1), ng.eye(2))
    Traceback (most recent call last):
    RuntimeError: This function was deprecated since version 1.9 and is now removed. ...
    """
    raise RuntimeError(
        f"{_GONE} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n"
        "`torch.linalg.lstsq` has reversed arguments and does not return the QR decomposition in "
        "the returned tuple (although it returns other information about the problem).\n\nTo get "
        "the QR decomposition consider using `torch.linalg.qr`.\n\nThe returned solution in "
        "`torch.lstsq` stored the residuals of the solution in the last m - n columns of the "
        "returned value whenever m > n. In torch.linalg.lstsq, the residuals are in the field "
        "'residuals' of the returned named tuple.\n\nThe unpacking of the solution, as in\nX, _ = "
        "torch.lstsq(B, A).solution[:A.size(1)]\nshould be replaced with:\n"
        "X = torch.linalg.lstsq(A, B).solution"
    )


@public(method=False)
def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> Any:
    """Raise: `linalg.matrix_rank` is what to use.

    Raises
    ------
    RuntimeError
        Always. There is no gradient.

    >>> import numgrad as ng
    >>> ng.matrix_rank(ng.eye(2))
    Traceback (most recent call last):
    RuntimeError: This function was deprecated since version 1.9 and is now removed.
    ...
    """
    raise RuntimeError(
        f"{_GONE}\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter "
        "'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'."
    )
