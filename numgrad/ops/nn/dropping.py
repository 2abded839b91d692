"""Dropout: elements, or whole channels, set to 0 at random while training."""

from __future__ import annotations

import math

from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.graph.warned import warn
from numgrad.ops.core.places import laid_out
from numgrad.ops.creation.drawing import drawn_bernoulli
from numgrad.ops.signatures.declared import declare

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "dropped",
    "feature_alpha_dropout",
]

_PARAMETERS = "(Tensor input, float p=0.5, bool training={}, bool inplace=False)"
# Of selu: minus what it goes to for great negative x.
_ALPHA = 1.0507009873554804934193349852946 * 1.6732632423543772848170429916717


def dropped(
    input: Tensor, p: float, training: bool, inplace: bool, *, channels: bool, alpha: bool
) -> Tensor:
    """Return the input with elements or channels set to 0, or to selu's least value with `alpha`.

    What is left is scaled so that the mean stays, and with `alpha` the variance.
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not training or not input._array.size:
        return input
    shape = input._array.shape
    dtype = input.dtype.to_real()
    if channels:
        if len(shape) < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        shape = (*shape[:2], *[1] * (len(shape) - 2))
    if not input.dtype.is_floating_point and not input.dtype.is_complex:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype.scalar_name}"
        )
    kept = drawn_bernoulli(1 - p, None, shape, dtype)
    if not channels:
        kept = laid_out(kept, input)
    if p < 1 and not alpha:
        kept = kept / (1 - p)

    def function(stand_in: Tensor) -> Tensor:
        if alpha and p < 1:
            part = 1 / math.sqrt((_ALPHA**2 * p + 1) * (1 - p))
            return stand_in * (kept * part) + ((kept - 1) * (_ALPHA * part) + _ALPHA * part * p)
        return stand_in * kept

    result: Tensor = upward.perform(function, "dropout", input) if inplace else function(input)
    return result


@declare(f"dropout{_PARAMETERS.format(True)}", function=False, method=False, dispatched=True)
def dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Return the input with each element set to 0 with probability p, others over 1 - p.

    The gradient is g over 1 - p where an element was kept, else 0. Srivastava and others, 2014.

    Parameters
    ----------
    training
        If not, the input is returned as it is.
    inplace
        Whether to write to the input.

    Raises
    ------
    ValueError
        If p is no probability.

    >>> import numgrad as ng
    >>> sorted({*ng.nn.functional.dropout(ng.ones(100)).tolist()})
    [0.0, 2.0]
    """
    return dropped(input, p, training, inplace, channels=False, alpha=False)


@declare(f"alpha_dropout{_PARAMETERS.format(False)}", function=False, method=False, dispatched=True)
def alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Return `dropout` for what `selu` gives: mean and variance stay as they are.

    The gradient is g, times a number, where an element was kept. Klambauer and others, 2017.

    >>> import numgrad as ng
    >>> len({*ng.nn.functional.alpha_dropout(ng.ones(100), training=True).tolist()})
    2
    """
    return dropped(input, p, training, inplace, channels=False, alpha=True)


@declare(
    f"feature_alpha_dropout{_PARAMETERS.format(False)}",
    function=False,
    method=False,
    dispatched=True,
)
def feature_alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Return `alpha_dropout` of whole channels, by the first two dims.

    The gradient is g, times a number, where a channel was kept.

    >>> import numgrad as ng
    >>> y = ng.nn.functional.feature_alpha_dropout(ng.ones(8, 8, 2), training=True)
    >>> bool((y[..., 0] == y[..., 1]).all())
    True
    """
    return dropped(input, p, training, inplace, channels=True, alpha=True)


def _batched(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    """Return the input with channels dropped; of one without a batch its first dim has them."""
    if batched:
        return dropped(input, p, training, inplace, channels=True, alpha=False)
    rows = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = dropped(rows, p, training, inplace, channels=True, alpha=False)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def _check_p(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _warn_of_dims(name: str, ndim: int, spatial: int) -> None:
    warn(
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use "
        f"dropout instead. Note that {name} exists to provide channel-wise dropout on inputs with "
        f"{spatial} spatial dimensions, a channel dimension, and an optional batch dimension "
        f"(i.e. {spatial + 1}D or {spatial + 2}D inputs)."
    )


@declare(f"dropout1d{_PARAMETERS.format(True)}", function=False, method=False, dispatched=True)
def dropout1d(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Return the input with whole channels dropped, of shape (N, C, L) or (C, L).

    The gradient is g over 1 - p where a channel was kept, else 0. Tompson and others, arXiv
    1411.4280.

    Raises
    ------
    RuntimeError
        If it has another number of dims.

    >>> import numgrad as ng
    >>> y = ng.nn.functional.dropout1d(ng.ones(50, 2))
    >>> bool((y[:, 0] == y[:, 1]).all())
    True
    """
    _check_p(p)
    ndim = input._array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _batched(input, p, training, inplace, ndim == 3)


@declare(f"dropout2d{_PARAMETERS.format(True)}", function=False, method=False, dispatched=True)
def dropout2d(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Return the input with whole channels dropped, of shape (N, C, H, W).

    The gradient is g over 1 - p where a channel was kept, else 0. Three dims are those of
    `dropout1d`, with a warning, and so are others.

    >>> import numgrad as ng
    >>> y = ng.nn.functional.dropout2d(ng.ones(8, 8, 2, 1))
    >>> bool((y[:, :, 0] == y[:, :, 1]).all())
    True
    """
    _check_p(p)
    ndim = input._array.ndim
    if ndim not in (3, 4):
        _warn_of_dims("dropout2d", ndim, 2)
    if ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead."
        )
    return _batched(input, p, training, inplace, True)


@declare(f"dropout3d{_PARAMETERS.format(True)}", function=False, method=False, dispatched=True)
def dropout3d(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Return the input with whole channels dropped, of shape (N, C, D, H, W) or (C, D, H, W).

    The gradient is g over 1 - p where a channel was kept, else 0. Of other numbers of dims there is
    a warning.

    >>> import numgrad as ng
    >>> y = ng.nn.functional.dropout3d(ng.ones(50, 2, 1, 1))
    >>> bool((y[:, 0] == y[:, 1]).all())
    True
    """
    _check_p(p)
    ndim = input._array.ndim
    if ndim not in (4, 5):
        _warn_of_dims("dropout3d", ndim, 3)
    return _batched(input, p, training, inplace, ndim == 5)
