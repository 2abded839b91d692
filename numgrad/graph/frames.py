"""Stack frames of the user's code: for warnings and error messages."""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType

import numpy as np

__all__ = ["is_library", "is_of_package", "user_frame", "where_user_is"]

# Where the frames are that are not the user's.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep
# Where packages are installed (which may be inside the library), and those that call us back.
_INSTALLED = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__))) + os.sep
_FOREIGN = frozenset(("hypothesis", "numba", "numgrad", "numpy", "pytest", "scipy"))
_TYPED = ("<stdin>", "<string>", "<ipython", "<input>", "<python-input", "<doctest")


def user_frame() -> FrameType | None:
    """Return the innermost frame of the user's own code.

    Not the user's are this package, NumPy and other packages that call back into it, the standard
    library, and code that was generated (as the methods of a dataclass are).
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_foreign(frame.f_code.co_filename, frame.f_code.co_name):
        frame = frame.f_back
    return frame


@functools.lru_cache(4096)
def _is_foreign(file: str, name: str) -> bool:
    if file.startswith("<"):  # only interactive input and the code of `python -c` are the user's
        return not file.startswith(_TYPED) or (name.startswith("__") and name.endswith("__"))
    if file.startswith(_INSTALLED):
        return file[len(_INSTALLED) :].split(os.sep)[0] in _FOREIGN
    return file.startswith((_PACKAGE, _LIBRARY))


@functools.lru_cache(4096)
def is_library(file: str) -> bool:
    """Whether a file is a part of this package, of Python's library or of what is installed."""
    return file.startswith((_PACKAGE, _LIBRARY, _INSTALLED, "<frozen"))


def is_of_package(file: str) -> bool:
    """Whether a file is a part of this package, whatever its module is called while it runs."""
    return file.startswith(_PACKAGE)


def where_user_is() -> str:
    """Return the user's file and line, as a message begins; nothing if there is no such place."""
    frame = user_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}: "
