"""Operations that are loaded when one of their names is first asked for: importing takes longer.

Their names are taken from the beginning. Which file or package below this folder declares which is
in `numgrad.ops.later_names`.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from numgrad.graph.upward import upward
from numgrad.math.functions import FORMULAS
from numgrad.ops.core.catalogue import CATALOGUE, load_files
from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS
from numgrad.ops.later_names import NAMES

__all__ = ["LATER", "Later", "listed", "load_all", "load_file"]


class Later(NamedTuple):
    """The names in one file or package of operations.

    Attributes
    ----------
    functions : list of str
        What becomes ``numgrad.name``.
    methods, in_place : list of str
        What becomes ``Tensor.name``.
    primitives : list of str
        What enters the catalogue.
    formulas : list of str
        Of these, what is a function of numbers as well, in `numgrad.math`.
    """

    functions: list[str]
    methods: list[str]
    in_place: list[str]
    primitives: list[str]
    formulas: list[str]


LATER: dict[str, Later] = {}


def load_file(place: str) -> None:
    """Load a file or package of operations, if that has not been done."""
    load_files("numgrad.ops", [place])


def _read_names() -> None:
    tables = {
        "functions": FUNCTIONS.later,
        "methods": METHODS.later,
        "in_place": INPLACE.later,
        "primitives": CATALOGUE.later,
        "formulas": FORMULAS.later,
    }
    loads: dict[str, Any] = {}
    for name, place, *kinds in NAMES:
        if place not in LATER:
            LATER[place] = Later([], [], [], [], [])
            loads[place] = functools.partial(load_file, place)
        for kind in kinds:
            getattr(LATER[place], kind).append(name)
            tables[kind][name] = loads[place]


_read_names()


def load_all() -> None:
    """Load all of them: for who wants every operation there is."""
    load_files("numgrad.ops", LATER)


def listed(name: str) -> Any:
    """Return the primitive of a name; what declares it is loaded if that has not been done."""
    return CATALOGUE[name]


upward.listed = listed


def _matrix_norm(*arguments: Any) -> Any:
    """Load what has norms of matrices, which takes this function's place."""
    load_file("matrices")
    return upward.matrix_norm(*arguments)


upward.matrix_norm = _matrix_norm
