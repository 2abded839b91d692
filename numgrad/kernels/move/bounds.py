"""Bounds checks of indices in compiled code, with PyTorch's errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.llvm.pointers import element

__all__ = ["BOUNDS", "OutsideError", "raise_outside"]

# What is said of a position, by the operation that checks it; the numbers are the position, the
# dim, and its size.
BOUNDS: dict[str, tuple[type[Exception], str]] = {
    "from_front": (IndexError, "index {0} is out of bounds for dimension {1} with size {2}"),
    "filled_positions": (IndexError, "index {0} is out of bounds for dimension {1} with size {2}"),
    "check_bounds": (RuntimeError, "index {0} is out of bounds for dimension {1} with size {2}"),
    "check_selected": (IndexError, "index out of range in self"),
    "numbers_of_rows": (IndexError, "index out of range in self"),
    "classes_of": (IndexError, "Target {0} is out of bounds."),
    "check_copied": (
        IndexError,
        "index_copy_(): index {0} is out of bounds for dimension {1} with size {2}",
    ),
    "flat_index": (
        IndexError,
        "out of range: tried to access index {0} on a tensor of {2} elements.",
    ),
    # Of these, 1 says that a number is none that may be, and 0 that it is.
    "check_probabilities": (
        RuntimeError,
        "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
    ),
    "check_deviations": (RuntimeError, "normal expects all elements of std >= 0.0"),
}
_WORDS = list(BOUNDS.values())
_FROM_FRONT = list(BOUNDS).index("from_front")


class OutsideError(Exception):
    """Makes the error of a position that leads outside, which is of another type.

    Compiled code can raise classes with numbers as arguments, but to put numbers into words takes
    it seconds to compile. So the words are found where the exception is made, in the interpreter.

    Examples
    --------
    >>> OutsideError(0, 5, 1, 3)
    IndexError('index 5 is out of bounds for dimension 1 with size 3')
    """

    def __new__(cls, *numbers: Any) -> Any:
        """Return the error: of the check by number, position, dim and size; or one that is made."""
        if len(numbers) == 1:
            return numbers[0]
        which, position, dim, size = numbers
        error, words = _WORDS[which]
        if size == 0 and which == _FROM_FRONT:
            return error("index is out of bounds for dimension with size 0")
        return error(words.format(position, dim, size))


@kernel
def raise_outside(positions: Any, count: int, low: int, which: int, dim: int, size: int) -> None:
    """Raise for the first of `count` positions that is below `low`, or not below `size`."""
    for k in range(count):
        position = element(positions, k)
        if position < low or position >= size:
            # A constant is a type of its own for Numba, but the function by which it hands on an
            # exception's arguments has one name for all of them. With Numba 0.64, a kernel from the
            # disk cache finds that of another kernel, with other constants.
            numbers = np.int64(which), np.int64(dim), np.int64(size)
            raise OutsideError(numbers[0], position, numbers[1], numbers[2])
