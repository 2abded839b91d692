"""The printer of the loop IR: Python reads a source as what it was printed from."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.codegen.compile.compile import compile_source
from numgrad.codegen.fold_passes import without_folds
from numgrad.codegen.loop_passes import names_in, rewritten, statement_count
from numgrad.codegen.loops import (
    ONE,
    SIGNS,
    ZERO,
    Assign,
    Attribute,
    Break,
    Call,
    Choice,
    Do,
    Expression,
    Fold,
    For,
    Function,
    If,
    Infix,
    Load,
    Name,
    Number,
    Prefix,
    Raise,
    Return,
    Statement,
    Store,
    Tuple,
    While,
    call,
    combine,
    literal,
    plus,
    times,
)
from numgrad.codegen.printer import print_expression, print_module
from tests.cases import examples

VALUES = {"a": 7, "b": -3, "c": 2}
INFIX: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
ATOMS = st.sampled_from([*map(Name, VALUES), *map(Number, (0, 1, 5, -4, True))])


def deeper(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(Infix, st.sampled_from(list(INFIX)), inner, inner),
        st.builds(Prefix, st.just("-"), inner),
        st.builds(Choice, inner, inner, inner),
        st.builds(lambda *items: Load(Tuple(items), Number(1), True), inner, inner),
        st.builds(lambda *given: Call(Name("max"), given), inner, inner),
        st.builds(lambda inner: Attribute(inner, "real"), inner),
    )


EXPRESSIONS = st.recursive(ATOMS, deeper, max_leaves=12)


def value(node: Expression) -> Any:
    """Return what an expression is worth, without printing it."""
    match node:
        case Name(name):
            return VALUES[name]
        case Number(number):
            return number
        case Infix(sign, left, right):
            return INFIX[sign](value(left), value(right))
        case Prefix(_, operand):
            return -value(operand)
        case Choice(condition, yes, no):
            return value(yes) if value(condition) else value(no)
        case Load(Tuple(items), Number(index)):
            return value(items[index])
        case Call(_, (left, right)):
            return max(value(left), value(right))
        case Attribute(inner, _):
            return value(inner).real
    raise TypeError(node)


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_python_computes_what_an_expression_says(expression: Expression) -> None:
    assert eval(print_expression(expression), {}, dict(VALUES)) == value(expression)


@pytest.mark.parametrize("outer", SIGNS)
def test_every_sign_binds_as_in_python(outer: str) -> None:
    a, b, c = 7, 3, 2
    for inner in SIGNS:
        if "/" in (inner, outer):  # of whose results there are no shifts
            continue
        found = SIGNS[inner].operator
        for left, right, (x, y) in (
            (Infix(inner, Number(a), Number(b)), Number(c), (found(a, b), c)),
            (Number(a), Infix(inner, Number(c), Number(b)), (a, found(c, b))),
        ):
            if (outer in ("%", "//") and not y) or (outer in ("<<", ">>") and y < 0):
                continue
            printed = print_expression(Infix(outer, left, right))
            assert eval(printed) == eval(f"x {outer} y", {"x": x, "y": y}), printed


@settings(max_examples=examples(100))
@given(st.lists(EXPRESSIONS, max_size=4), st.lists(EXPRESSIONS, min_size=1, max_size=3))
def test_sums_and_products_are_simplified_to_the_same(terms: Any, factors: Any) -> None:
    assert value(plus(*terms)) == sum(map(value, terms))
    assert value(times(*factors)) == np.prod([value(factor) for factor in factors], dtype=object)


def blocks(inner: st.SearchStrategy[list[Statement]]) -> st.SearchStrategy[list[Statement]]:
    target = st.sampled_from(["a", "b", "x", "y"])
    array = st.sampled_from([Name("u"), Name("v")])
    line = st.one_of(
        st.builds(Assign, target, EXPRESSIONS),
        st.builds(Store, array, EXPRESSIONS, EXPRESSIONS, subscript=st.booleans()),
        st.builds(lambda body, last: For("i", ZERO, last, body), inner, EXPRESSIONS),
        st.builds(While, EXPRESSIONS, inner),
        st.builds(If, EXPRESSIONS, inner, inner),
    )
    return st.lists(line, min_size=1, max_size=3)


BODIES = st.recursive(
    st.just([Do(call(Name("print"), "a"))]).map(list[Statement]), blocks, max_leaves=4
)


@settings(max_examples=examples(60))
@given(BODIES)
def test_passes_see_what_python_sees(body: list[Statement]) -> None:
    function = Function("f", ["u", "v"], [*body, Return(ONE)])
    (parsed,) = (n for n in ast.parse(print_module([function])).body if type(n) is ast.FunctionDef)
    inside = [node for line in parsed.body for node in ast.walk(line)]
    loads = {n.id for n in inside if type(n) is ast.Name and type(n.ctx) is ast.Load}
    assert names_in(function).keys() == loads - {"element", "store", "range"}
    assert statement_count(function.body) == sum(isinstance(n, ast.stmt) for n in inside)
    assert rewritten(function, lambda node: node) is function

    def renamed(node: Any) -> Any:
        return Name("z") if node == Name("a") else node

    changed = rewritten(function, renamed)
    assert "a" not in names_in(changed)
    assert ("z" in names_in(changed)) == ("a" in names_in(function))


def test_control_flow_is_compiled() -> None:
    """Euclid's algorithm, with what loops of values that are not known need."""
    rest = combine("%", "a", "b")
    negative = If(combine("<", "b", 0), [Raise("ValueError", "b is negative")])
    stop = If(combine("==", "rest", 0), [Assign("a", Name("b")), Break()])
    step = [Assign("rest", rest), stop, Assign("a", Name("b")), Assign("b", Name("rest"))]
    body = [negative, While(combine("!=", "b", 0), step), Return(Name("a"))]
    gcd = compile_source("gcd", print_module([Function("gcd", ["a", "b"], body)]))
    assert [gcd(12, 18), gcd(7, 5), gcd(4, 0)] == [6, 1, 4]
    with pytest.raises(ValueError, match="b is negative"):
        gcd(1, -1)


@settings(max_examples=examples(3), deadline=None)
@given(st.integers(2, 60), st.integers(1, 3), st.sampled_from(["sum", "max", "prod"]))
def test_loops_of_an_unknown_number_of_turns(size: int, steps: int, kind: str) -> None:
    """Reduce again and again while there is more than `bound`: what loops of users become."""
    x, i = Name("x"), Name("i")
    fold = Fold("total", kind, Load(x, i), "i", dtype=np.dtype("float64"))
    small = combine("<", Load(x, i), 0.5)
    halved = If(small, [Store(x, i, Number(0.5))], [Store(x, i, combine("/", Load(x, i), 2))])
    turn = [For("i", ZERO, Name("n"), [fold]), For("i", ZERO, Name("n"), [halved])]
    going = combine("&", combine("<", "turns", steps), combine(">", "total", 0))
    body = [
        Assign("total", Number(1.0)),
        Assign("turns", ZERO),
        While(going, [*turn, Assign("turns", plus("turns", 1))]),
        Return(Tuple((Name("total"), Name("turns")))),
    ]
    source = print_module(
        [Function("f", ["x", "n", "room"], without_folds(body, lambda fold, count: "room"))]
    )
    values = np.random.default_rng(size).uniform(0.6, 1.4, size)
    x_after, total = values.copy(), 1.0
    for _ in range(steps):
        total = float(getattr(np, kind)(x_after))
        x_after = np.where(x_after < 0.5, 0.5, x_after / 2)
    x_given = values.copy()
    found, turns = compile_source("f", source)(x_given, size, np.empty(size))
    assert turns == steps
    np.testing.assert_allclose(found, total, rtol=1e-12)
    np.testing.assert_array_equal(x_given, x_after)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 1e-310, -0.0, complex(1, np.inf)])
def test_every_number_has_a_literal(number: Any) -> None:
    function = Function("f", [], [Return(literal(number))])
    namespace: dict[str, Any] = {}
    exec(print_module([function]), namespace)
    assert repr(namespace["f"].py_func()) == repr(number)
