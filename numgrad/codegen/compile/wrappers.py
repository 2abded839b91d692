"""Entries of kernels for Python, built once for all kernels that take arguments of the same types.

An entry (Numba's "cpython wrapper") takes arguments out of Python's objects, calls the kernel, and
makes an object of what that returns. It depends on the types alone, but for the names in it: those
of the kernel and of its environment. To build it takes a tenth of the time that a kernel takes to
compile, so its text is kept, and other names are written into it.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

__all__ = ["Wrappers"]

# Names that LLVM's text has as they are, wherever they stand.
_PLAIN = re.compile(r"[A-Za-z0-9_.$]+").fullmatch
_KEPT = 256


class _Names(NamedTuple):
    """What tells two entries for arguments of the same types apart."""

    environment: str
    kernel: str  # less what stands before it where an entry is named after it
    function: str

    @classmethod
    def of(cls, described: Any) -> _Names | None:
        """Return the names in a description of a function; None where they can't be replaced."""
        names = cls(described.env_name, described.mangled_name[3:], described.qualname)
        return names if all(map(_PLAIN, names)) else None

    def taken_out(self, text: str) -> str:
        """Return a text with numbers of names in the place of the names."""
        for name, place in zip(self._written(), _PLACES, strict=True):
            text = text.replace(name, place)
        return text

    def put_into(self, text: str) -> str:
        """Return what `taken_out` was given, if these were its names."""
        for name, place in zip(self._written(), _PLACES, strict=True):
            text = text.replace(place, name)
        return text

    def _written(self) -> tuple[str, ...]:
        """Return the names as they stand in a text.

        The function's own name may be that of an instruction or part of a type: it is told by the
        constant that it is, which is named after it.
        """
        constant, value = f'.const.{self.function}"', f'c"{self.function}\\00"'
        return self.environment, self.kernel, constant, value


_PLACES = "\x000", "\x001", "\x002", "\x003"  # no text of LLVM's has that character


class _Written(ir.Module):
    """A module whose text is known."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name)
        self._text = text

    def __repr__(self) -> str:
        return self._text


class Wrappers:
    """The texts of entries, by what they depend on; used under the lock of Numba's compiler."""

    def __init__(self) -> None:
        self._texts: dict[Any, str] = {}

    def create(
        self,
        context: Any,
        library: Any,
        fndesc: Any,
        env: Any,
        call_helper: Any,
        release_gil: bool = False,
    ) -> None:
        """Add the entry of a function to its library, as Numba's `create_cpython_wrapper` does."""
        build = partial(type(context).create_cpython_wrapper, context)
        names = _Names.of(fndesc)
        if names is None:
            build(library, fndesc, env, call_helper, release_gil=release_gil)
            return
        # Texts in LLVM say how long they are.
        key = (fndesc.argtypes, fndesc.restype, release_gil, *map(len, names))
        text = self._texts.get(key)
        if text is not None:
            library.add_ir_module(_Written("wrapper", names.put_into(text)))
            return
        listening, constants = _Listening(library), len(env.consts)
        build(listening, fndesc, env, call_helper, release_gil=release_gil)
        # What is made an object with the help of a constant has it put into the environment.
        if listening.text is not None and len(env.consts) == constants:
            if len(self._texts) >= _KEPT:
                self._texts.clear()
            self._texts[key] = names.taken_out(listening.text)


class _Listening:
    """A library that keeps the text of the module that it is given."""

    text: str | None = None

    def __init__(self, library: Any) -> None:
        self._library = library

    def add_ir_module(self, module: Any) -> None:
        self.text = str(module)
        self._library.add_ir_module(_Written(module.name, self.text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)
