"""The names that files of operations declare, seen while they load; written for `ops/later`.

Most operations are loaded when one of their names is first asked for. Before that the names are
known from numgrad/ops/later_names.py, which `python -m tests.docs.stubs` writes anew.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

from numgrad import ops
from numgrad.math.functions import FORMULAS, OTHER_NAMES
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS

Names = list[list[str]]

__all__ = ["FILE", "declared", "load", "text"]

OPS = Path(ops.__file__).parent
FILE = OPS / "later_names.py"
_HEAD = '''\
"""The names that are loaded when first asked for: where each is, and what it is there.

Written by ``python -m tests.docs.stubs`` of what the files and packages declare.
"""

NAMES = (
'''
# The tables of what is public, by the attribute of `Later` that has what a file enters there.
_TABLES = {
    "functions": (FUNCTIONS,),
    "methods": (METHODS,),
    "in_place": (INPLACE,),
    "primitives": (CATALOGUE,),
    "formulas": (FORMULAS, OTHER_NAMES),
}

_IMPORTS = rf"^from {ops.__name__}\.([\w.]+)"


def _places() -> Iterable[str]:
    """Return what has not been loaded; first what others need.

    Of packages that load their files that is the package; of the others, the files.
    """
    sources: dict[str, str] = {}
    for path in OPS.glob("*/**/*.py"):
        package = path.relative_to(OPS).parts[0]
        place = ".".join(path.relative_to(OPS).with_suffix("").parts)
        if "load_files(" in (OPS / package / "__init__.py").read_text():
            place = package
        if path.stem != "__init__" and f"{ops.__name__}.{place}" not in sys.modules:
            sources[place] = sources.get(place, "") + path.read_text()
    needs: TopologicalSorter[str] = TopologicalSorter()
    for place in sorted(sources):
        found = re.findall(_IMPORTS, sources[place], re.MULTILINE)
        imported = {*found, *[each.partition(".")[0] for each in found]}
        needs.add(place, *sorted(imported & sources.keys() - {place}))
    return needs.static_order()


def _entered() -> dict[str, set[str]]:
    return {kind: set().union(*tables) for kind, tables in _TABLES.items()}


def load() -> Names:
    """Load all operations, and return each name, the place of it, and what it is there.

    A place that asks for a name that no table has yet is loaded when the others have been.
    """
    for table in (FUNCTIONS, METHODS, INPLACE, CATALOGUE):
        table.later.clear()  # nothing is loaded out of turn
    found: dict[tuple[str, str], list[str]] = {}
    left, failed = deque(_places()), 0
    while left:
        place, before = left.popleft(), _entered()
        try:
            importlib.import_module(f"{ops.__name__}.{place}")
            failed = 0
        except KeyError:
            failed += 1
            if failed > len(left):
                raise
            left.append(place)
        for kind, names in _entered().items():
            for name in names - before[kind]:
                found.setdefault((name, place), []).append(kind)
    return [[*where, *kinds] for where, kinds in sorted(found.items())]


def declared() -> Names:
    """Return what a process finds that has imported numgrad, and nothing else."""
    command = [sys.executable, "-m", __name__]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    names: Names = json.loads(found.stdout)
    return names


def text(names: Names) -> str:
    """Return what the file has to be of names; ruff brings it in form."""
    lines = "".join([f"    {(*entry,)!r},\n" for entry in names])
    return f"{_HEAD}{lines})\n"


if __name__ == "__main__":
    print(json.dumps(load()))
