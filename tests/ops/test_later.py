"""Packages of operations that are loaded when one of their names is first asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_the_table_has_what_the_packages_declare():
    printed = run(
        "from numgrad.ops.core.catalogue import CATALOGUE\n"
        "from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS\n"
        "from numgrad.ops.later import LATER, load_package\n"
        "for package, later in LATER.items():\n"
        "    tables = FUNCTIONS, {**METHODS, **INPLACE}, CATALOGUE\n"
        "    before = [{*table} for table in tables]\n"
        "    load_package(package)\n"
        "    tables = FUNCTIONS, {**METHODS, **INPLACE}, CATALOGUE\n"
        "    for table, known, names in zip(tables, before, later):\n"
        "        print(package, {*table} - known == {*names}, ({*table} - known) ^ {*names})"
    )
    lines = printed.splitlines()[:-1]
    assert lines and all(line.split()[1] == "True" for line in lines), printed


def test_functions_of_numbers_load_their_package():
    run(
        "from numgrad import math\n"
        "assert 'numgrad.ops.special' not in sys.modules\n"
        "assert math.entr(1.0) == 0.0 and math.entr_vjp(1.0, 1.0) == -1.0\n"
        "assert 'xlog1py' in dir(math)"
    )


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
