"""The catalogue: every primitive by its name, and which names there may be.

Tests, docs and benchmarks are made from it.
"""

from __future__ import annotations

import importlib
import keyword
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any

from numgrad.base.declared import Declared
from numgrad.ops.calls.dispatch import forget_calls
from numgrad.runtime.forks import importing
from numgrad.runtime.interrupts import undisturbed

__all__ = [
    "CATALOGUE",
    "RESERVED",
    "check_name",
    "check_names",
    "enter",
    "load_files",
    "replaced",
]

CATALOGUE = Declared()
# The names of our own operations, functions and methods, once they are complete. Whoever declares
# another operation later can declare it again, but not one of these.
RESERVED: set[str] = set()
replaced: list[Callable[[], None]] = [forget_calls]  # what to do when somebody does
_DECLARED_IN: dict[str, str] = {}  # the modules of our own by what they declare


def load_files(package: str, files: Iterable[str]) -> None:
    """Import the files of a package that declares operations of numgrad's own.

    Ctrl-C waits until that is done: of a file that was left halfway, operations would be declared
    twice when somebody asks for them again.
    """
    undisturbed(_load_files, package, files)


def _load_files(package: str, files: Iterable[str]) -> None:
    with importing():
        for file in files:
            importlib.import_module(f"{package}.{file}")


def _own_module() -> str:
    """Return the module of numgrad's that is being imported and declares now; "" if none is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    name: str = "" if frame is None else frame.f_globals["__name__"]
    return name if name.startswith("numgrad.") else ""


def _is_complete() -> bool:
    """Whether what is declared now is somebody else's."""
    return bool(RESERVED) and not _own_module()


def check_name(name: str) -> None:
    """Raise unless an operation of this name can be declared.

    Raises
    ------
    ValueError
        If numgrad has it, or nobody could write it in a program.
    TypeError
        If it is no string.
    """
    if _is_complete():  # our own have parts with names of other kinds
        if not isinstance(name, str):
            raise TypeError(f"the name of an operation is a str, not {type(name).__name__}")
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"an operation can't be called {name!r}: Python has no such names")
    if name in RESERVED and _is_complete():
        raise ValueError(
            f"numgrad has {name} already, as PyTorch or NumPy may have: declare your operation "
            "under another name"
        )


def enter(primitive: Any) -> None:
    """Enter a primitive in the catalogue, in place of one that was declared outside of numgrad."""
    name = primitive.name
    check_name(name)
    known = CATALOGUE.get(name)
    module = _own_module()
    # A module is imported anew if that was interrupted.
    if known is not None and module and _DECLARED_IN.get(name) != module:
        raise ValueError(f"the catalogue has a primitive called {name} already")
    CATALOGUE[name] = primitive
    if module:
        _DECLARED_IN[name] = module
    if known is not None:
        for forget in replaced:
            forget()


# What a rule's parameters mean that name neither an input nor an output, nor a static parameter.
_MEANINGS = {
    "g": "the cotangent",
    "g0": "the first cotangent",
    "inputs": "all inputs",
    "output_metas": "shapes and dtypes of the outputs",
    "position": "the position of the input",
    "shapes": "the shapes of all inputs",
}


def check_names(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str] = ("y",),
    parameters: Iterable[str] = (),
) -> None:
    """Raise if an input or parameter of an operation has a name that means something else in rules.

    A rule gets what its own parameters name. If an input were called ``y``, a rule that names it
    would be given the output, and gradients would be wrong without a word.

    Parameters
    ----------
    name : str
        Of the operation.
    inputs, outputs : sequence of str
        Their names.
    parameters : iterable of str
        The names of static parameters.

    Raises
    ------
    ValueError
        If a name is taken, or there twice.

    Examples
    --------
    >>> check_names("scale", ["x", "y"])
    Traceback (most recent call last):
    ValueError: scale: an input can't be called 'y': in a rule that means the output
    """
    taken = {"y": "the output", **_MEANINGS, **dict.fromkeys(outputs, "an output")}
    taken |= {f"{each}_shape": f"the shape of {each!r}" for each in inputs}
    taken |= {f"{each}_lies": f"how {each!r} lies" for each in inputs}
    if len(outputs) == 1:
        taken[outputs[0]] = "the output"
    for kind, names in (("an input", inputs), ("a parameter", parameters)):
        for each in names:
            if not each.isidentifier() or keyword.iskeyword(each):
                raise ValueError(
                    f"{name}: {kind} can't be called {each!r}: Python has no such names"
                )
            if each in taken:
                raise ValueError(
                    f"{name}: {kind} can't be called {each!r}: in a rule that means {taken[each]}"
                )
            taken[each] = "an input"
