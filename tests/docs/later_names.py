"""The names that families of operations declare, seen while they load; written for `ops/later`.

Operations of most families are loaded when one of their names is first asked for. Before that the
names are known from numgrad/ops/later_names.py, which `python -m tests.docs.stubs` writes anew.
Importing this module loads all families.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

from numgrad import ops
from numgrad.math.functions import FORMULAS, OTHER_NAMES
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS

__all__ = ["DECLARED", "FILE", "text"]

OPS = Path(ops.__file__).parent
FILE = OPS / "later_names.py"
_HEAD = '''\
"""The names that are loaded when first asked for: where each is, and what it is there.

Written by ``python -m tests.docs.stubs`` of what the packages declare.
"""

NAMES = {
'''
# The tables of what is public, by the attribute of `Later` that has what a package enters there.
_TABLES = {
    "functions": (FUNCTIONS,),
    "methods": (METHODS, INPLACE),
    "primitives": (CATALOGUE,),
    "formulas": (FORMULAS, OTHER_NAMES),
}


def _families() -> Iterable[str]:
    """Return the packages that importing numgrad does not load; those first that others need."""
    found = {path.parent.name for path in OPS.glob("*/__init__.py")}
    later = {name for name in found if f"{ops.__name__}.{name}" not in sys.modules}
    needs: TopologicalSorter[str] = TopologicalSorter()
    for name in sorted(later):
        source = "".join(path.read_text() for path in (OPS / name).rglob("*.py"))
        imported = re.findall(rf"^from {ops.__name__}\.(\w+)", source, re.MULTILINE)
        needs.add(name, *sorted({*imported} & later - {name}))
    return needs.static_order()


def _entered() -> dict[str, set[str]]:
    return {kind: set().union(*tables) for kind, tables in _TABLES.items()}


def _load() -> dict[str, tuple[str, ...]]:
    """Load the families, and return for each name its family and what it is there."""
    found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for family in _families():
        before = _entered()
        importlib.import_module(f"{ops.__name__}.{family}")
        for kind, names in _entered().items():
            for name in names - before[kind]:
                found[name] = (*(found[name] or (family,)), kind)
    return dict(sorted(found.items()))


DECLARED = _load()


def text() -> str:
    """Return what the file has to be; ruff brings it in form."""
    lines = "".join(f"    {name!r}: {entry!r},\n" for name, entry in DECLARED.items())
    return f"{_HEAD}{lines}}}\n"
