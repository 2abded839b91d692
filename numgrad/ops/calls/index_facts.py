"""What stands in keys of calls for what stands in brackets: slices, indices, masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, kind_of, refresh_view, wrap

__all__ = ["key_of", "written_key"]

_INDEX_CODES = "?" + "".join({np.dtype(kind).char for kind in (np.int32, np.int64)})


def written_key(key: Any) -> Any:
    """Return what stands in a table of calls for a key that makes views; None for other keys.

    Examples
    --------
    >>> written_key((slice(1, None), 2, ...))
    ((1, None, None), 2, Ellipsis)
    >>> written_key(True), written_key(slice(0, 2.0))
    (None, None)
    """
    kind = type(key)
    if kind is int:
        return key
    if kind is slice:
        bounds = _bounds(key)
        return None if bounds is None else ("", *bounds)  # three ints are another key
    if kind is tuple:
        parts: list[Any] = []
        for part in key:
            kind = type(part)
            if kind is int or part is Ellipsis:
                parts.append(part)
            elif kind is slice:
                bounds = _bounds(part)
                if bounds is None:
                    return None
                parts.append(bounds)
            elif part is None:
                parts.append("None")
            else:
                return None
        return tuple(parts)
    if key is Ellipsis:
        return key
    return "None" if key is None else None


def _bounds(key: slice) -> Any:
    """Return what a slice holds if that is ints alone; else None."""
    start, stop, step = key.start, key.stop, key.step
    if (
        (start is None or type(start) is int)
        and (stop is None or type(stop) is int)
        and (step is None or type(step) is int)
    ):
        return start, stop, step
    return None


def key_of(key: Any, operands: list[Tensor]) -> tuple[Any, Any] | None:
    """Return what stands in a table of calls for a key with indices, and the key to be read.

    In that key lists and arrays are tensors, as indices are operands of the call. None for keys of
    which calls are not remembered.

    Parameters
    ----------
    key
        What stands in brackets.
    operands : list of Tensor
        The tensors of the call, which those of the key are added to.
    """
    parts = list(key) if type(key) is tuple else [key]
    written: list[Any] = []
    for place, part in enumerate(parts):
        if type(part) is not Tensor:
            fact = None if type(part) is tuple else written_key(part)
            if fact is not None:
                written.append(fact)
                continue
            index = _index_tensor(part)
            if index is None:
                return None
            parts[place] = part = index
        if part._base is not None:
            refresh_view(part)
        kind = part._kind or kind_of(part)
        if not kind.shape or kind.dtype.char not in _INDEX_CODES:  # whose number is read, or which
            return None  # are warned about
        same = -1
        for at, each in enumerate(operands):
            if each is part:
                same = at
                break
        written.append((kind, same))
        operands.append(part)
    return tuple(written), tuple(parts)


def _index_tensor(part: Any) -> Tensor | None:
    """Return the tensor that an array, or a list of ints or of bools, stands for in a key."""
    if type(part) is np.ndarray:
        return wrap(part)
    if type(part) is list and len({*map(type, part)} & {int, bool}) == len({*map(type, part)}) == 1:
        return wrap(np.array(part))
    return None
