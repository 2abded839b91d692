"""Switches of anomaly mode: ``torch.autograd.anomaly_mode``."""

from __future__ import annotations

import warnings

from numgrad.graph.modes.anomaly import (
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
)

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Turn anomaly mode on or off, at once; as a context manager, until its end.

    Mirrors ``torch.autograd.set_detect_anomaly``. While it is on, a node remembers the traceback of
    the call that made it, and where it fails, a warning shows that, and those of the nodes whose
    backward made it. A saved tensor that was overwritten makes an error that names, beyond
    PyTorch's, the line that did it. It is on for all threads.

    Parameters
    ----------
    mode : bool
        On or off.
    check_nan : bool
        Whether a backward pass raises where a node returns nan.

    Raises
    ------
    TypeError
        If an argument is no bool.

    Examples
    --------
    >>> import warnings
    >>> import numgrad as ng
    >>> x = ng.tensor([0.0, 1.0], requires_grad=True)
    >>> with ng.autograd.set_detect_anomaly(True), warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # they have the traceback
    ...     (x.sqrt() * 0).sum().backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._previous = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        """Leave it as it was set."""

    def __exit__(self, *exception: object) -> None:
        set_anomaly_enabled(*self._previous)


class detect_anomaly:  # noqa: N801 - PyTorch's name
    """Anomaly mode as a context manager, with a warning that it is slow; see `set_detect_anomaly`.

    Mirrors ``torch.autograd.detect_anomaly``.

    Parameters
    ----------
    check_nan : bool
        Whether a backward pass raises where a node returns nan.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        self._previous = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self._check_nan)

    def __exit__(self, *exception: object) -> None:
        set_anomaly_enabled(*self._previous)
