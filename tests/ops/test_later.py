"""Packages of operations that are loaded when one of their names is first asked for."""

from __future__ import annotations

import ast

from numgrad.ops.later import LATER, place_of
from tests.children import ended_well
from tests.docs import later_names


def test_the_names_are_what_the_packages_declare() -> None:
    written = ast.parse(later_names.FILE.read_text())
    declared = later_names.declared()
    expected = ast.parse(later_names.text(declared))
    assert ast.dump(written) == ast.dump(expected), "run `python -m tests.docs.stubs`"
    for name, (place, *kinds) in declared.items():
        later = LATER[place]
        assert place_of(name) == place
        assert [kind for kind in later._fields if name in getattr(later, kind)] == kinds


# What asks for a name, in a process that has imported numgrad and done nothing else.
NOT_LOADED = "package = 'numgrad.ops.matrices'; assert package not in sys.modules"
LOADED = "assert package in sys.modules; assert 'inverse' in vars(ng.Tensor)"
USES = (
    "ng.det(ng.eye(2))",
    "ng.eye(2).det()",
    "ng.Tensor.det",
    "ng.linalg.det(ng.eye(2))",
    "from numgrad import linalg; linalg.det(ng.eye(2))",
    "from numgrad import det; det(ng.eye(2))",
    "import numgrad.ops.matrices.determinants",
)
NUMBERS = """
from numgrad import math
assert 'numgrad.ops.special' not in sys.modules
assert math.entr(1.0) == 0.0 and math.entr_vjp(1.0, 1.0) == -1.0
assert 'xlog1py' in dir(math)
"""
TAKEN = """
from numgrad.ops.core.declare import unary
from numgrad.ops.core.domains import REAL
for name in ("det", "linalg_det", "linalg"):
    try:
        unary(name, lambda g: g, REAL, formula=lambda input: input, doc="")
        raise AssertionError(name)
    except ValueError as error:
        assert "already" in str(error)
assert ng.det(ng.eye(2)).item() == 1
"""


def test_a_name_loads_its_package_and_importing_does_not() -> None:
    """Functions of numbers do, too; and nobody else can take a name before that."""
    for lines in (*[f"{NOT_LOADED}\n{use}\n{LOADED}" for use in USES], NUMBERS, TAKEN):
        assert ended_well(f"import sys\nimport numgrad as ng\n{lines}") == "", lines
