"""Switches that programs for PyTorch set: deterministic kernels, the usual device, precision.

All that numgrad computes is deterministic, on the CPU, and as precise as its dtype: what is set is
remembered and told, and changes nothing, but for how often it is warned of one thing.
"""

from __future__ import annotations

from typing import Any

from numgrad.base.device import device as Device
from numgrad.graph.warned import Repetition, warn
from numgrad.ops.core.registry import public
from numgrad.ops.signatures.devices import check_device
from numgrad.ops.signatures.kinds import type_name

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_default_device",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_default_device",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_warn_always",
    "use_deterministic_algorithms",
]

_DEBUG_MODES = ("default", "warn", "error")
_PRECISIONS = ("highest", "high", "medium")


class _Switches:
    """What was set."""

    deterministic = False
    warn_only = False
    precision = "highest"


def _require_bool(value: Any, name: str, position: int | None) -> None:
    if not isinstance(value, bool):
        where = "" if position is None else f" (position {position})"
        raise TypeError(
            f"_set_deterministic_algorithms(): argument '{name}'{where} must be bool, not "
            f"{type_name(value)}"
        )


@public(method=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Say that results are to be the same in every run: they are, whatever is said here.

    >>> import numgrad as ng
    >>> ng.use_deterministic_algorithms(True)
    >>> ng.are_deterministic_algorithms_enabled()
    True
    >>> ng.use_deterministic_algorithms(False)
    """
    _require_bool(mode, "mode", 1)
    _require_bool(warn_only, "warn_only", None)
    _Switches.deterministic, _Switches.warn_only = mode, warn_only


@public(method=False)
def are_deterministic_algorithms_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was told last.

    >>> import numgrad as ng
    >>> ng.are_deterministic_algorithms_enabled()
    False
    """
    return _Switches.deterministic


@public(method=False)
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` was told to warn only.

    >>> import numgrad as ng
    >>> ng.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _Switches.warn_only


@public(method=False)
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Say what `use_deterministic_algorithms` does, by a number or a word.

    Parameters
    ----------
    debug_mode : {"default", "warn", "error"} or their numbers

    Raises
    ------
    RuntimeError
        If there is no such mode.
    TypeError
        If it is neither.

    >>> import numgrad as ng
    >>> ng.set_deterministic_debug_mode("default")
    >>> ng.get_deterministic_debug_mode()
    0
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


@public(method=False)
def get_deterministic_debug_mode() -> int:
    """Return what was set: 0, 1 for warnings only, 2.

    >>> import numgrad as ng
    >>> ng.get_deterministic_debug_mode()
    0
    """
    return 0 if not _Switches.deterministic else 1 if _Switches.warn_only else 2


@public(method=False)
def set_default_device(device: Any) -> None:
    """Say where tensors are made: the CPU, or None for the same.

    Raises
    ------
    RuntimeError
        If it is another device.

    >>> import numgrad as ng
    >>> ng.set_default_device("cpu")
    """
    if device is not None:
        check_device(device)


@public(method=False)
def get_default_device() -> Any:
    """Return where tensors are made: the CPU.

    >>> import numgrad as ng
    >>> ng.get_default_device()
    device(type='cpu')
    """
    return Device("cpu")


@public(method=False)
def set_float32_matmul_precision(precision: str) -> None:
    """Say how precise products of float32 matrices have to be; they always are as float32 is.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}

    >>> import numgrad as ng
    >>> ng.set_float32_matmul_precision("high")
    >>> ng.get_float32_matmul_precision()
    'high'
    >>> ng.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str):
        raise RuntimeError(
            f"set_float32_matmul_precision expects a str, but got {type_name(precision)}"
        )
    if precision in _PRECISIONS:
        _Switches.precision = precision
    else:
        warn(f"{precision} is not one of 'highest', 'high', or 'medium'")


@public(method=False)
def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was told last.

    >>> import numgrad as ng
    >>> ng.get_float32_matmul_precision()
    'highest'
    """
    return _Switches.precision


@public(method=False)
def set_flush_denormal(mode: bool) -> bool:
    """Return whether very small numbers can be taken for 0: only that they are not can be had.

    >>> import numgrad as ng
    >>> ng.set_flush_denormal(True), ng.set_flush_denormal(False)
    (False, True)
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type_name(mode)}")
    return not mode


@public(method=False)
def get_num_interop_threads() -> int:
    """Return 1: operations run one after the other, each on `get_num_threads` threads.

    >>> import numgrad as ng
    >>> ng.get_num_interop_threads()
    1
    """
    return 1


@public(method=False)
def set_warn_always(b: bool, /) -> None:
    """Have warnings that are given once in a process given always, or not.

    The one of ``backward(create_graph=True)`` is. Of others, Python's filters decide.

    >>> import numgrad as ng
    >>> ng.set_warn_always(True)
    >>> ng.is_warn_always_enabled()
    True
    >>> ng.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type_name(b)}")
    Repetition.always = b


@public(method=False)
def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` was told, at first False.

    >>> import numgrad as ng
    >>> ng.is_warn_always_enabled()
    False
    """
    return Repetition.always
