"""Print tensors: ``repr(tensor)``, ``format(tensor)``, `set_printoptions`.

The text is PyTorch's, character for character, so that output pasted from one library can be
compared with the other. What is peculiar to it, and kept on purpose:

* One number format serves the whole tensor (for complex tensors one for all real and one for all
  imaginary parts): whole numbers (``1.``), fixed point or scientific. It is chosen from the
  elements that are finite and not zero; only these set the column width, too. Beside them ``nan``,
  ``inf`` and ``-0.`` may therefore stick out of their columns.
* The elements are compared in float64, so ``float32(0.0001)``, which is a little below 1e-4, is
  printed in scientific notation and ``float64(0.0001)`` is not.
* Of a tensor with more than `threshold` elements, only the printed edges choose format and width.
  Nothing else is read, so a huge tensor is printed as fast as a small one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, Protocol

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.modes.state import modes

__all__ = [
    "format_array",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
    "tensor_format",
    "tensor_repr",
]

# Fixed point becomes scientific notation outside these bounds on the elements' magnitudes.
_LARGEST_FIXED = 1e8
_SMALLEST_FIXED = 1e-4
_WIDEST_FIXED_RATIO = 1000.0

_PREFIX = "tensor("
_GAP = "..."


class Printable(Protocol):
    """What printing needs to know of a tensor."""

    @property
    def _array(self) -> np.ndarray[Any, Any]: ...
    @property
    def dtype(self) -> dtypes.dtype: ...
    @property
    def requires_grad(self) -> bool: ...
    @property
    def grad_fn(self) -> Any: ...


@dataclass(frozen=True)
class _Options:
    """Print options; PyTorch's names and defaults."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}

# Replaced as a whole and never changed, so that a thread that prints sees one consistent set.
_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed, as `torch.set_printoptions`.

    What is not given stays as it is, with one exception, which is PyTorch's: `sci_mode` goes back
    to None (automatic) in every call that does not give it.

    Parameters
    ----------
    precision : int, optional
        Digits after the decimal point (4 at first).
    threshold : float, optional
        Tensors with more elements than this are summarised (1000 at first).
    edgeitems : int, optional
        Elements shown at either end of each summarised dimension (3 at first).
    linewidth : int, optional
        Characters in a line, after which lines are broken (80 at first).
    profile : {"default", "short", "full"}, optional
        Sets the four numbers above together; one that is given as well wins. A profile of any
        other name is ignored, as in PyTorch.
    sci_mode : bool, optional
        True or False turns scientific notation on or off; None lets the elements decide.

    Examples
    --------
    >>> from numgrad.io.printing import format_array
    >>> set_printoptions(precision=2)
    >>> format_array(np.array([1.0, 2.345]))
    '[1.00, 2.35]'
    >>> set_printoptions(profile="default")
    """
    global _options
    changes: dict[str, Any] = dict(_PROFILES.get(profile, {})) if profile is not None else {}
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changes.update((name, value) for name, value in given.items() if value is not None)
    _options = replace(_options, **changes, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """Return the print options as a dict that `set_printoptions` takes as keyword arguments.

    Examples
    --------
    >>> get_printoptions()["linewidth"]
    80
    """
    return asdict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options for the length of a ``with`` block; takes `set_printoptions`' arguments.

    Options are those of the process, not of one thread.

    Examples
    --------
    >>> from numgrad.io.printing import format_array
    >>> with printoptions(sci_mode=True, precision=1):
    ...     print(format_array(np.array([1.0, 20.0])))
    [1.0e+00, 2.0e+01]
    """
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_repr(tensor: Printable) -> str:
    """Return the text of a tensor, as `repr(torch.Tensor)`: elements, then what they don't show.

    After the elements follow, where they apply and in this order: ``size=`` (no elements are shown
    that would tell it), ``dtype=`` (not the type that a literal with these elements would have),
    and either ``grad_fn=`` or ``requires_grad=True``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> array = np.array([1.0, 2.5])
    >>> leaf = SimpleNamespace(
    ...     _array=array, dtype=dtypes.float64, requires_grad=True, grad_fn=None
    ... )
    >>> print(tensor_repr(leaf))
    tensor([1.0000, 2.5000], dtype=torch.float64, requires_grad=True)
    """
    text = _PREFIX + format_array(tensor._array, indent=len(_PREFIX))
    # In a line that began with elements PyTorch leaves room for two characters after a suffix
    # (one is the comma or bracket); in a line that began with a suffix it leaves none.
    column = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in _suffixes(tensor):
        if column + len(", ") + len(suffix) > _options.linewidth:
            text += ",\n" + " " * len(_PREFIX) + suffix
            column = len(_PREFIX) + len(suffix)
        else:
            text += ", " + suffix
            column += len(", ") + len(suffix)
    return text + ")"


def tensor_format(tensor: Printable, spec: str) -> str:
    """Return ``format(tensor, spec)``: the element's format for 0-d tensors, else the repr.

    Raises
    ------
    TypeError
        If `spec` is not empty and the tensor has dimensions.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> tensor_format(SimpleNamespace(_array=np.array(2.0), dtype=dtypes.float64), ".3f")
    '2.000'
    """
    if tensor._array.ndim == 0:
        return format(tensor._array.item(), spec)
    return object.__format__(tensor, spec)


def format_array(array: np.ndarray[Any, Any], *, indent: int = 0) -> str:
    """Return the elements of an array as nested lists, in the format of the print options.

    Parameters
    ----------
    array : numpy.ndarray
        Of booleans, integers, floating point or complex numbers; any shape and strides.
    indent : int
        The column in which the text will begin; later lines are indented to fit it.

    Examples
    --------
    >>> print(format_array(np.array([[1.0, -2.0], [np.inf, 0.5]])))
    [[ 1.0000, -2.0000],
     [    inf,  0.5000]]
    """
    if array.size == 0:
        return "[]"
    options = _options
    shortened = [False] * array.ndim
    if array.size > options.threshold and array.ndim:
        if options.edgeitems == 0:
            return f"[{_GAP}]"
        shortened = [length > 2 * options.edgeitems for length in array.shape]
        if any(shortened):
            array = _edges(array, shortened, options.edgeitems)
    texts, width = _element_texts(array.reshape(-1), options)
    room = options.linewidth - (indent + array.ndim - 1)
    per_line = max(1, int(room // (width + len(", "))))
    for axis in reversed(range(array.ndim)):
        innermost = axis == array.ndim - 1
        length = array.shape[axis]
        margin = " " * (indent + axis + 1)
        gap = " " + _GAP if innermost else _GAP
        separator = "," + "\n" * (array.ndim - 1 - axis) + margin
        brackets = []
        for start in range(0, len(texts), length):
            items = texts[start : start + length]
            if shortened[axis]:
                items.insert(options.edgeitems, gap)
            inside = _wrapped(items, per_line, margin) if innermost else separator.join(items)
            brackets.append(f"[{inside}]")
        texts = brackets
    return texts[0]


def _edges(
    array: np.ndarray[Any, Any], shortened: Sequence[bool], edgeitems: int
) -> np.ndarray[Any, Any]:
    """Return a copy with only the first and last `edgeitems` of each shortened dimension."""
    kept = [
        np.r_[:edgeitems, length - edgeitems : length] if short else np.arange(length)
        for length, short in zip(array.shape, shortened, strict=True)
    ]
    # Without the dimensions of length 1, whatever fits in an address space has few enough
    # dimensions for NumPy's limit on index arrays; one open mesh reads nothing but the edges.
    mesh = np.ix_(*(index for index in kept if index.size > 1))
    edges: np.ndarray[Any, Any] = array.squeeze()[mesh]
    return edges.reshape([index.size for index in kept])


def _wrapped(items: list[str], per_line: int, margin: str) -> str:
    """Join the elements of one vector, with `per_line` of them in a line."""
    lines = (items[start : start + per_line] for start in range(0, len(items), per_line))
    return (",\n" + margin).join(", ".join(line) for line in lines)


def _element_texts(elements: np.ndarray[Any, Any], options: _Options) -> tuple[list[str], int]:
    """Return the padded texts of elements in one dimension, and their nominal width."""
    if elements.dtype.kind == "c":
        reals, real_width = _element_texts(elements.real, options)
        imags, imag_width = _element_texts(elements.imag, options)
        texts = [
            f"{real}{imag}j" if imag.startswith("-") else f"{real}+{imag}j"
            for real, imag in zip(reals, map(str.lstrip, imags), strict=True)
        ]
        return texts, real_width + imag_width + len("j")
    if elements.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # a signalling nan is no reason for a warning here
            doubles = elements.astype(np.float64)
        texts, width = _float_texts(doubles, options)
    else:
        texts = [str(element) for element in elements.tolist()]
        width = max(map(len, texts))
    return [text.rjust(width) for text in texts], width


def _float_texts(elements: np.ndarray[Any, Any], options: _Options) -> tuple[list[str], int]:
    """Return the texts of float64 elements, not yet padded, and the width to pad them to."""
    finite = np.isfinite(elements)
    decisive = finite & (elements != 0)
    magnitudes = np.abs(elements[decisive])
    whole = bool(np.all(magnitudes == np.floor(magnitudes)))
    scientific = bool(magnitudes.size) and (
        _prefers_scientific(magnitudes) if options.sci_mode is None else options.sci_mode
    )
    if scientific:
        spec, ending = f".{options.precision}e", ""
    elif whole:
        spec, ending = ".0f", "."
    else:
        spec, ending = f".{options.precision}f", ""
    texts = [format(element, spec) for element in elements.tolist()]
    if ending:
        texts = [
            text + ending if ok else text for text, ok in zip(texts, finite.tolist(), strict=True)
        ]
    width = max(
        (len(text) for text, counts in zip(texts, decisive.tolist(), strict=True) if counts),
        default=1,
    )
    return texts, width


def _prefers_scientific(magnitudes: np.ndarray[Any, Any]) -> bool:
    """Whether these magnitudes (one or more; finite, not zero) need scientific notation."""
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    return (
        largest / smallest > _WIDEST_FIXED_RATIO
        or largest > _LARGEST_FIXED
        or smallest < _SMALLEST_FIXED
    )


def _suffixes(tensor: Printable) -> Iterator[str]:
    """Yield what the elements alone don't tell: size, dtype, and the tensor's place in a graph."""
    array, dtype = tensor._array, tensor.dtype
    if array.size == 0:
        # No element tells the type, so only the default type goes without saying.
        if array.ndim != 1:
            yield f"size={tuple(array.shape)}"
        understood: tuple[dtypes.dtype, ...] = (dtypes.default_dtype(),)
    else:
        if _options.edgeitems == 0:
            yield f"size={tuple(array.shape)}"
        understood = (
            dtypes.default_dtype(),
            dtypes.default_complex_dtype(),
            dtypes.int64,
            dtypes.bool_,
        )
    if dtype not in understood:
        yield f"dtype={dtype!r}"
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:
        # A view whose history was forbidden (its base was written to in another grad mode).
        yield "grad_fn=<Invalid>"
        return
    if grad_fn is not None:
        yield f"grad_fn=<{type(grad_fn).__name__}>"
    elif tensor.requires_grad:
        yield "requires_grad=True"
    tangent = None if modes.dual is None else modes.dual.tangent(tensor)
    if tangent is not None:
        yield f"tangent={tangent}"
