"""Packages of operations that are loaded when one of their names is first asked for."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS, METHODS
from numgrad.ops.later import LATER


def test_the_table_has_what_the_packages_declare():
    for package, later in LATER.items():
        own = f"numgrad.ops.{package}"
        for names, entered in ((later.functions, FUNCTIONS), (later.methods, METHODS)):
            found = [
                name
                for name, function in entered.items()
                if inspect.isfunction(function)
                and inspect.unwrap(function).__module__.startswith(own)
            ]
            assert sorted(found) == sorted(names)
        assert {*later.primitives} <= {*CATALOGUE}
        listed = [
            name
            for name, each in CATALOGUE.items()
            if getattr(getattr(each, "forward", None), "__module__", "").startswith(own)
        ]
        assert sorted(listed) == sorted(later.primitives)


def run(lines: str) -> str:
    program = f"import sys\nimport numgrad as ng\n{lines}\nprint('as it should be')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "use",
    [
        "ng.det(ng.eye(2))",
        "ng.eye(2).det()",
        "ng.Tensor.det",
        "ng.linalg.det(ng.eye(2))",
        "from numgrad import linalg; linalg.det(ng.eye(2))",
        "from numgrad import det; det(ng.eye(2))",
        "import numgrad.ops.matrices.determinants",
    ],
)
def test_a_name_loads_its_package_and_importing_does_not(use):
    package = "'numgrad.ops.matrices' in sys.modules"
    run(f"assert not {package}\n{use}\nassert {package}\nassert 'inverse' in vars(ng.Tensor)")


def test_names_are_taken_before_their_package_is_loaded():
    printed = run(
        "from numgrad.ops.core.declare import unary\n"
        "from numgrad.ops.core.domains import REAL\n"
        "for name in ('det', 'linalg_det', 'linalg'):\n"
        "    try:\n"
        "        unary(name, lambda g: g, REAL, formula=lambda input: input, doc='')\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
        "assert ng.det(ng.eye(2)).item() == 1"
    )
    assert printed.count("already") == 3
