"""Files and packages of operations that are loaded when one of their names is first asked for."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys

import numgrad as ng
from numgrad.ops.later import LATER
from tests.children import ended_well
from tests.docs import later_names


def test_the_names_are_what_the_packages_declare() -> None:
    written = ast.parse(later_names.FILE.read_text())
    declared = later_names.declared()
    expected = ast.parse(later_names.text(declared))
    assert ast.dump(written) == ast.dump(expected), "run `python -m tests.docs.stubs`"
    for name, place, *kinds in declared:
        of_place = LATER[place]._asdict()
        assert {kind for kind, names in of_place.items() if name in names} == {*kinds}


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


# Asks for each name as the first thing that a process does: each in a fork of one that has imported
# numgrad, and done nothing else.
ALONE = """
import os
import traceback

import numgrad as ng
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.later import LATER

def in_fork(ask):
    pid = os.fork()
    if not pid:
        try:
            ask()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0

def names_of(later):
    for name in later.functions:
        assert callable(getattr(ng, name)), name
    for name in (*later.methods, *later.in_place):
        getattr(ng.Tensor, name)
    for name in later.primitives:
        assert CATALOGUE[name].name == name

for later in LATER.values():
    in_fork(lambda: names_of(later))
    in_fork(lambda: names_of(type(later)(*[names[-1:] for names in later])))

x, n, c = ng.ones(2, 2), ng.ones(2, dtype=ng.int64), ng.ones(2, dtype=ng.complex64)
EXPRESSIONS = (
    "x - x", "1 - x", "x / x", "1 / x", "x // x", "1 // x", "x % 2", "2 % x", "x ** 2", "2 ** x",
    "x @ x", "-x", "+x", "abs(x)", "~n", "n & n", "1 & n", "n | n", "n ^ n", "n << 1", "1 << n",
    "n >> 1", "x == x", "x != x", "x < x", "x <= 1", "1 > x", "x >= x", "1 in x", "list(x)",
    "x.T", "x.mT", "x.H", "x.mH", "c.real", "c.imag", "x.t_()", "ng.as_strided_(x, (2,), (1,))",
)
for text in EXPRESSIONS:
    in_fork(lambda: eval(text))
for text in ("x -= 1", "x /= 2", "x **= 2", "n &= n", "c.real = x[0]", "c.imag = 2.0"):
    in_fork(lambda: exec(text, dict(globals())))
for text in ("x.T = x", "x.mH = x"):
    def refused():
        try:
            exec(text)
        except AttributeError:
            return
        raise AssertionError(text)
    in_fork(refused)
assert "sinh" in dir(ng)

def stay():
    ng.Tensor.cosh = lambda self: "mine"
    del ng.Tensor.tanh
    assert ng.zeros(1).sinh().item() == 0
    assert ng.zeros(1).cosh() == "mine" and not hasattr(ng.Tensor, "tanh")

def called_once():
    class Own(ng.Tensor):
        def sinh(self):
            return super().sinh() + 1
    x = ng.zeros(1)
    x.__class__ = Own
    assert x.sinh().item() == 1

in_fork(stay)
in_fork(called_once)
"""


def test_operators_go_to_other_processes() -> None:
    x = ng.ones(2)
    for name in ("add", "radd", "iadd", "sub", "rsub", "isub", "truediv", "rpow", "eq", "and"):
        for operator in (getattr(ng.Tensor, f"__{name}__"), getattr(x, f"__{name}__")):
            assert pickle.loads(pickle.dumps(operator)).__name__ == f"__{name}__"


def test_operations_load_without_docstrings() -> None:
    script = "import numgrad as ng; ng.layer_norm, ng.nn.functional.kl_div, ng.Tensor.hardshrink"
    subprocess.run([sys.executable, "-OO", "-c", script], check=True)


def test_each_name_can_be_the_first_that_is_asked_for() -> None:
    assert ended_well(ALONE) == ""
