"""Whose code, module or class something is, and what gives something else whenever it is asked."""

from __future__ import annotations

import io
import os
import random
import sys
import weakref
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from numgrad.graph.recorder import TraceError
from numgrad.jit.capture.guards import is_a, own_dict
from numgrad.ops.core.catalogue import RESERVED
from numgrad.ops.core.primitive import Primitive
from numgrad.runtime.frames import is_library, is_of_package, where_user_is

__all__ = [
    "Libraries",
    "behind",
    "is_machinery",
    "is_ours",
    "refuse_blind",
    "refuse_source",
    "wrapped",
]

_SOURCES = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_MACHINERY = ("numgrad.base.", "numgrad.codegen.", "numgrad.kernels.", "numgrad.ops.")


class Libraries:
    """What is not looked into: Python's library and what is installed, but for one's own package.

    Parameters
    ----------
    function : callable or code
        The folder of one that is itself a part of an installed package is looked into.
    """

    def __init__(self, function: Any) -> None:
        while wrapped(function) is not None:
            function = wrapped(function)
        code = getattr(getattr(function, "__func__", function), "__code__", function)
        self._home: str | None = None
        file = code.co_filename if isinstance(code, CodeType) else ""
        if is_library(file) and not is_of_package(file):
            self._home = os.path.dirname(file) + os.sep

    def has_file(self, file: str) -> bool:
        """Whether a file is a part of a library."""
        return is_library(file) and not (self._home and file.startswith(self._home))

    def has_code(self, code: CodeType) -> bool:
        """Whether a function's code is a part of a library."""
        return self.has_file(code.co_filename)

    def has_module(self, module: ModuleType) -> bool:
        """Whether a module is a part of a library."""
        file = vars(module).get("__file__")
        if file is None:
            return module.__name__.partition(".")[0] in sys.stdlib_module_names
        return self.has_file(file)

    def has_class(self, owner: type) -> bool:
        """Whether a class is a part of a library."""
        name = type.__dict__["__module__"].__get__(owner)
        module = sys.modules.get(name) if isinstance(name, str) else None
        return module is not None and name != "__main__" and self.has_module(module)


def wrapped(value: Any) -> Any:
    """Return the function that a decorator or `jit` wrapped, None if there is none."""
    return own_dict(value).get("__wrapped__")


def behind(value: Any) -> Any:
    """Return what a proxy stands for, which is the same all the time; any other object itself.

    A proxy does not tell, but the methods that it hands out know whose they are.
    """
    while is_a(value, weakref.ProxyTypes):
        try:
            found = value.__sizeof__.__self__
        except (AttributeError, ReferenceError):  # of a class, or of what is no more
            break
        value = found
    return value


def is_ours(value: Any) -> bool:
    """Whether a function, or an object by its class, is this package's."""
    if is_a(value, FunctionType):
        return _is_of_package(value.__globals__.get("__name__", ""))
    return _is_of_package(type(value).__module__)


def is_machinery(value: Any) -> bool:
    """Whether an object is one of our operations, or of what operations consist of.

    These hold nothing of a user's, and lead to all calls that are remembered.
    """
    if is_a(value, Primitive):
        return value.name in RESERVED
    return type(value).__module__.startswith(_MACHINERY)


def _is_of_package(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "numgrad"


def refuse_source(value: Any, label: str) -> None:
    """Raise for what gives something else whenever it is asked."""
    value = behind(value)
    is_iterator = hasattr(type(value), "__next__") and not is_a(value, io.IOBase)
    if is_iterator and is_a(type(value).__next__, FunctionType):
        return  # written in Python, its attributes are watched
    if is_iterator or is_a(value, _SOURCES):
        raise TraceError(
            f"{where_user_is()}jit: {label} comes from a {type(value).__name__}, which gives "
            "something else every time, and while a function is traced it would be asked once: "
            "draw from it outside, and pass what it gives as an argument"
        )


def refuse_blind(name: str) -> None:
    """Raise for a function that reads what the code does not show."""
    raise TraceError(
        f"{where_user_is()}jit: {name} may read anything, so that a change of what it reads could "
        "not be noticed: use names in the place of it, or call it outside and pass what it gives "
        "as an argument"
    )
