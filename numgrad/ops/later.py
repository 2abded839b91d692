"""Operations that are loaded when one of their names is first asked for: importing takes longer.

Their names are taken from the beginning. Which package below this folder declares which is in
`numgrad.ops.later_names`.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

from numgrad.graph.upward import upward
from numgrad.math.functions import LATER_FORMULAS
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.later_names import NAMES

__all__ = ["LATER", "Later", "listed", "load_all", "load_package", "package_of"]


class Later(NamedTuple):
    """The names in one package of operations.

    Attributes
    ----------
    functions, methods : list of str
        What becomes ``numgrad.name`` and ``Tensor.name``.
    primitives : list of str
        What enters the catalogue.
    formulas : list of str
        Of these, what is a function of numbers as well, in `numgrad.math`.
    """

    functions: list[str]
    methods: list[str]
    primitives: list[str]
    formulas: list[str]


LATER: dict[str, Later] = {}
_PACKAGES: dict[str, str] = {}


def package_of(name: str) -> str | None:
    """Return the package in which a name is, None if it is in none."""
    return _PACKAGES.get(name)


def load_package(package: str) -> None:
    """Load a package of operations, if that has not been done."""
    importlib.import_module(f"numgrad.ops.{package}")


def _read_names() -> None:
    for name, (package, *kinds) in NAMES.items():
        later = LATER.get(package)
        if later is None:
            later = LATER[package] = Later([], [], [], [])
        _PACKAGES[name] = package
        for kind in kinds:
            getattr(later, kind).append(name)
    for package, later in LATER.items():
        load = functools.partial(load_package, package)
        LATER_FORMULAS.update(dict.fromkeys(later.formulas, load))


_read_names()


def load_all() -> None:
    """Load all of them: for who wants every operation there is."""
    for package in LATER:
        load_package(package)


def listed(name: str) -> Any:
    """Return the primitive of a name; its package is loaded if that has not been done."""
    if name not in CATALOGUE and name in _PACKAGES:
        load_package(_PACKAGES[name])
    return CATALOGUE[name]


upward.listed = listed


def _matrix_norm(*arguments: Any) -> Any:
    """Load what has norms of matrices, which takes this function's place."""
    load_package("matrices")
    return upward.matrix_norm(*arguments)


upward.matrix_norm = _matrix_norm
