"""Softmax, its logarithm and softmin, whose dim may be left out, as in ``nn.functional``."""

from __future__ import annotations

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.pointwise.arithmetic import neg
from numgrad.ops.reduction.softmax import log_softmax as log_softmax_along
from numgrad.ops.reduction.softmax import softmax as softmax_along
from numgrad.ops.signatures.declared import declare

__all__ = ["log_softmax", "softmax", "softmin"]

_PARAMETERS = "(Tensor input, int? dim=None, int _stacklevel=3, dtype? dtype=None)"


def _chosen(name: str, input: Tensor, dim: int | None, level: int) -> int:
    """Return the dim; where none is given that which PyTorch takes, and warns of."""
    if dim is not None:
        return dim
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        more=level - 3,
    )
    return 0 if input._array.ndim in (0, 1, 3) else 1


@declare(f"softmax{_PARAMETERS}", function=False, method=False)
def softmax(input: Tensor, dim: int | None, _stacklevel: int, dtype: dtypes.dtype | None) -> Tensor:
    """Return the exponentials divided by their sum along `dim`, without overflow.

    As ``numgrad.softmax``, where `dim` has to be given. Without it there is a warning, and it is
    the first dim of a tensor of 0, 1 or 3 dims, the second of others.

    >>> import numgrad as ng
    >>> ng.nn.functional.softmax(ng.tensor([[0.0, 0.0, 1000.0]]), dim=1)
    tensor([[0., 0., 1.]])
    """
    return softmax_along(input, _chosen("softmax", input, dim, _stacklevel), dtype)


@declare(f"log_softmax{_PARAMETERS}", function=False, method=False)
def log_softmax(
    input: Tensor, dim: int | None, _stacklevel: int, dtype: dtypes.dtype | None
) -> Tensor:
    """Return the logarithm of `softmax`, exact also where that underflows.

    As ``numgrad.log_softmax``, where `dim` has to be given. Without it there is a warning, as of
    `softmax`.

    >>> import numgrad as ng
    >>> ng.nn.functional.log_softmax(ng.tensor([[0.0, 1000.0]]), dim=1)
    tensor([[-1000.,     0.]])
    """
    return log_softmax_along(input, _chosen("log_softmax", input, dim, _stacklevel), dtype)


@declare(f"softmin{_PARAMETERS}", function=False, method=False)
def softmin(input: Tensor, dim: int | None, _stacklevel: int, dtype: dtypes.dtype | None) -> Tensor:
    """Return `softmax` of the negative input.

    >>> import numgrad as ng
    >>> ng.nn.functional.softmin(ng.tensor([[0.0, 0.0, 1000.0]]), dim=1)
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return softmax_along(neg(input), _chosen("softmin", input, dim, _stacklevel), dtype)
