"""What formulas and rules of a user's own operations call: NumPy, math, numgrad, own helpers."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.codegen.expression import Symbol
from numgrad.ops.core.declare import binary, unary
from numgrad.ops.core.domains import interval
from numgrad.ops.core.elementwise.formulas import rebound, try_out
from numgrad.ops.numpy.names import UFUNCS
from numgrad.ops.signatures.published import publish
from tests.cases import examples

NAME = "of_the_users"
pytestmark = pytest.mark.usefixtures("forgotten")
INSIDE = interval(0.2, 0.8)
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"}


def arity(function: Any) -> int:
    """Return how many numbers a function takes, 0 if none of one or two."""
    if isinstance(function, np.ufunc):
        return function.nin if function.nout == 1 else 0
    for count in (2, 1):
        try:
            function(*[0.5] * count)
        except (TypeError, ValueError):
            continue
        return count
    return 0


UFUNC = {name: getattr(np, name) for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
MATH = {name: getattr(math, name) for name in dir(math) if arity(getattr(math, name, None)) > 0}
ALL = [f"np.{name}" for name in UFUNC] + [f"math.{name}" for name in MATH]


def find(name: str) -> Any:
    module, _, rest = name.partition(".")
    return getattr(np if module == "np" else math, rest)


def calls(name: str) -> tuple[int, Callable[..., Any]]:
    """Return a formula that calls a function by the name of its module, and how many operands."""
    count = arity(find(name))
    source = f"lambda {', '.join(['input', 'other'][:count])}: "
    source += f"{name}({', '.join(['input', 'other'][:count])}) + 0.5"
    return count, eval(source, {"np": np, "math": math})


def works(name: str) -> bool:
    """Whether a formula may call a function."""
    count, formula = calls(name)
    try:
        try_out(NAME, "its formula", rebound(formula), ["input", "other"][:count], "f")
    except TypeError:
        return False
    return True


WORKING = [name for name in ALL if arity(find(name)) and works(name)]


# Functions of ours by the names of others, or of two results.
_NOT_FORMULAS = ("remainder", "isclose", "prod", "gcd", "frexp")


@pytest.mark.parametrize("name", [name for name in ALL if arity(find(name))])
def test_every_function_is_called_or_refused_when_it_is_declared(name: str) -> None:
    module, _, plain = name.partition(".")
    if module == "np":
        plain = find(name).__name__
        expected = plain in UFUNCS and plain not in ("matmul", "float_power", *BITS)
    else:
        expected = hasattr(ng, plain) and plain not in _NOT_FORMULAS
        expected = expected or plain in ("fabs", "degrees", "radians")
    assert (name in WORKING) == expected
    if name not in WORKING:
        count, formula = calls(name)
        with pytest.raises(TypeError, match="can't be computed element by element.*It may use"):
            declare(count, formula, lambda g: g)


def declare(count: int, formula: Any, rule: Any) -> Any:
    options: dict[str, Any] = {"formula": formula, "accepts": "f", "doc": "Return something."}
    if count == 1:
        return publish(unary(NAME, rule, domain=INSIDE, **options))
    return publish(binary(NAME, (rule, None), (INSIDE, INSIDE), **options))


@settings(max_examples=examples(30))
@given(
    name=st.sampled_from([n for n in WORKING if "cosh" not in n]),
    compiled=st.booleans(),
    seed=st.integers(0, 9),
)
def test_formulas_and_rules_call_numpys_and_maths_functions(
    name: str, compiled: bool, seed: int
) -> None:
    count, formula = calls(name)
    helper = numba.njit(formula) if compiled else formula
    names = ["input", "other"][:count]
    # The rule does not have to be the derivative: it is run, and compared with the function.
    rule = eval(f"lambda g, {', '.join(names)}: g * helper({', '.join(names)})", {"helper": helper})
    function = declare(count, (lambda input: helper(input)) if count == 1 else helper, rule)
    arrays = np.random.default_rng(seed).uniform(0.2, 0.8, (count, 3))
    expected = [float(find(name)(*each)) + 0.5 for each in arrays.T.tolist()]
    x, *others = [ng.tensor(array) for array in arrays]
    x.requires_grad_()
    result = function(x, *others)
    np.testing.assert_allclose(result.detach().numpy(), expected, 1e-12)
    jitted = ng.jit(lambda x, *others: function(x, *others))
    np.testing.assert_allclose(jitted(x.detach(), *others).numpy(), expected, 1e-12)
    if result.requires_grad:
        for create in (False, True):
            (slope,) = ng.autograd.grad(function(x, *others).sum(), x, create_graph=create)
            np.testing.assert_allclose(slope.detach().numpy(), expected, 1e-12)


SAMPLE = {"input": 0.3, "other": 0.7}


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("start", range(0, len(WORKING), 12))
def test_every_function_has_its_own_value(start: int) -> None:
    """Several in one formula, each with a factor of its own, so that few kernels are compiled."""
    names = {"np": np, "math": math}
    terms = []
    for place, name in enumerate(WORKING[start : start + 12]):
        operands = "input, other" if arity(find(name)) == 2 else "input"
        operands += " + 1" if "cosh" in name else ""  # inside of the domain of the inverse
        call = f"{name}({operands})"
        if not isinstance(eval(call, names, SAMPLE), (bool, np.bool_)):
            terms.append(f"{2**place} * {call}")
    formula = eval(f"lambda input, other: {' + '.join([*terms, '0 * other'])}", names)
    function = declare(2, formula, lambda g: g)
    pairs = np.random.default_rng(start).uniform(0.2, 0.8, (5, 2)).tolist()
    expected = [float(formula(*pair)) for pair in pairs]
    x, y = (ng.tensor(list(each), dtype=ng.float64) for each in zip(*pairs, strict=True))
    np.testing.assert_allclose(function(x, y).numpy(), expected, 1e-12)


@pytest.mark.parametrize("start", range(0, len(WORKING), 12))
def test_one_operand_may_be_a_number(start: int) -> None:
    names = {"np": np, "math": math}
    terms = []
    for place, name in enumerate(WORKING[start : start + 12]):
        if arity(find(name)) == 2:
            for call in (f"{name}(input, 0.75)", f"{name}(1.25, input)"):
                if not isinstance(eval(call, names, SAMPLE), (bool, np.bool_)):
                    terms.append(f"{2**place} * {call}")
    formula = eval(f"lambda input: {' + '.join([*terms, 'input'])}", names)
    function = declare(1, formula, lambda g: g)
    values = np.random.default_rng(start).uniform(0.2, 0.8, 5).tolist()
    expected = [float(formula(value)) for value in values]
    found = function(ng.tensor(values, dtype=ng.float64))
    np.testing.assert_allclose(found.numpy(), expected, 1e-12)


@numba.njit
def _scaled(x: float, scale: float = 1.0, shift: float = 0.0) -> float:
    return x * scale + shift


def _shifted(x: Any, *, shift: float = 0.0) -> Any:
    return np.sqrt(x) + shift


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (lambda input: _scaled(input, shift=2.0), lambda x: x + 2),
        (lambda input: _scaled(scale=3.0, x=input), lambda x: 3 * x),
        (lambda input: _shifted(x=input, shift=1), lambda x: np.sqrt(x) + 1),
        (lambda input: np.clip(input, a_max=0.5, a_min=0.3), lambda x: np.clip(x, 0.3, 0.5)),
        (lambda input: ng.clamp(input, min=0.3), lambda x: np.maximum(x, 0.3)),
        (lambda input: ng.clamp(input, max=0.3), lambda x: np.minimum(x, 0.3)),
        (lambda input: ng.clamp(input, max=0.5, min=0.3), lambda x: np.clip(x, 0.3, 0.5)),
        (lambda input: ng.add(input, other=1, alpha=2), lambda x: x + 2),
        (lambda input: ng.lerp(input, weight=0.25, end=2.0), lambda x: x + 0.25 * (2 - x)),
        (lambda input: ng.softplus(input, beta=2.0), lambda x: np.log1p(np.exp(2 * x)) / 2),
        (lambda input: ng.atan2(other=input, input=0.5), lambda x: np.arctan2(0.5, x)),
        (
            lambda input: ng.rsqrt(x=input) + 2 * ng.square(x=input) + 4 * ng.positive(x=input),
            lambda x: x**-0.5 + 2 * x**2 + 4 * x,
        ),
    ],
)
def test_operands_may_be_given_by_name(formula: Any, expected: Any) -> None:
    function = declare(1, formula, lambda g, input: g * formula(input))
    x = ng.tensor([0.2, 0.4, 0.7], dtype=ng.float64, requires_grad=True)
    found = function(x)
    np.testing.assert_allclose(found.detach().numpy(), expected(x.detach().numpy()), 1e-12)


@pytest.mark.parametrize(
    "formula",
    [
        lambda input: np.exp(input, dtype=np.float64),
        lambda input: np.clip(input, 0.0, 1.0, out=None, dtype=None),
        lambda input: np.round(input, 2),
        lambda input: ng.round(input, decimals=2),
        lambda input: ng.div(input, 2, rounding_mode="floor"),
        lambda input: ng.exp(input, input),
        lambda input: ng.exp(input, other=input),
        lambda input: ng.add(input, 2, other=3),
        lambda input: ng.clamp(input, least=2),
    ],
)
def test_options_that_are_no_operands_are_refused(formula: Any) -> None:
    with pytest.raises(TypeError, match="not among what there is for single elements"):
        declare(1, formula, lambda g: g)


@pytest.mark.parametrize(
    ("formula", "rule"),
    [
        (lambda input: input * 1j, lambda g: g),
        (lambda input: np.exp(input + 0.5j), lambda g: g),
        (lambda input: abs(input * 1j), lambda g: g),
        (lambda input: 1j, lambda g: g),
        (lambda input: input, lambda g: g * 1j),
        (lambda input: input, lambda g, input: g * np.angle(input * 2j)),
    ],
)
@pytest.mark.parametrize("accepts", ["f", "fc", "fciu"])
def test_complex_numbers_from_real_ones_are_refused(formula: Any, rule: Any, accepts: str) -> None:
    with pytest.raises(TypeError, match="with real operands it gives complex numbers"):
        unary(NAME, rule, INSIDE, formula=formula, accepts=accepts, doc="Return something.")


def test_operations_of_complex_numbers_compute_with_them() -> None:
    options: dict[str, Any] = {"accepts": "c", "doc": "Return something."}
    turned = publish(
        unary(NAME, lambda g: g * -1j, INSIDE, formula=lambda input: input * 1j, **options)
    )
    assert turned(ng.tensor([1 + 2j])).tolist() == [-2 + 1j]


WAYS_TO_READ = {
    "global": ("K", "K = 5.0"),
    "item": ("D['k']", "D['k'] = 5.0"),
    "element": ("L[0]", "L[0] = 5.0"),
    "array": ("A[0]", "A[0] = 5.0"),
    "class": ("C.k", "C.k = 5.0"),
    "namespace": ("N.k", "N.k = 5.0"),
    "nested": ("N.more['k']", "N.more['k'] = 5.0"),
    "module": ("M.k", "M.k = 5.0"),
    "module's function": ("M.f(1)", "M.f = lambda x: 5.0"),
    "helper": ("helper()", "K = 5.0"),
    "another helper": ("helper()", "helper = lambda: 5.0"),
    "compiled helper": ("compiled(1.0)", "K = 5.0"),
    "inner function": ("(lambda: D['k'])()", "D['k'] = 5.0"),
    "closure": ("cell", "set_cell(5.0)"),
    "default": ("default['k']", "D['k'] = 5.0"),
}


def test_objects_without_attributes_of_their_own_are_read_as_they_are() -> None:
    steps = range(2, 5)
    assert declare(1, lambda input: input * steps[1], lambda g: g * 3)(ng.ones(1)).item() == 3


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("way", WAYS_TO_READ)
@pytest.mark.parametrize("place", ["formula", "rule"])
def test_what_a_formula_reads_is_read_when_it_is_declared(way: str, place: str) -> None:
    """2.0 then; whoever runs it first after the change, all run the same."""
    read, change = WAYS_TO_READ[way]
    module = ModuleType("of_the_users")
    exec("k = 2.0\ndef f(x): return k * x", vars(module))
    names: dict[str, Any] = {"numba": numba, "np": np, "K": 2.0, "D": {"k": 2.0}, "L": [2.0]}
    names |= {"A": np.array([2.0]), "C": type("C", (), {"k": 2.0}), "M": module}
    names["N"] = SimpleNamespace(k=2.0, more={"k": 2.0})
    exec(
        f"""
def helper(): return K
@numba.njit
def compiled(x): return K * x
def make():
    cell = 2.0
    def set_cell(value):
        nonlocal cell
        cell = value
    formula = lambda input, default=D: input * ({read} if True else cell)
    rule = lambda g, input: g * ({read.replace("default", "D")} if True else cell) * input
    return formula, rule, set_cell
formula, rule, set_cell = make()
""",
        names,
    )
    plain = (lambda input: input * 2.0, lambda g, input: g * 2.0 * input)
    functions = (names["formula"], plain[1]) if place == "formula" else (plain[0], names["rule"])
    if functions[0] is names["formula"]:
        inner = functions[0]
        functions = (eval("lambda input: f(input)", {"f": inner}), functions[1])
    function = declare(1, *functions)
    exec(change, names)
    x = ng.tensor([0.5], dtype=ng.float64, requires_grad=True)
    (slope,) = ng.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = ng.autograd.grad(slope.sum(), x)
    jitted = ng.jit(ng.func.grad_and_value(lambda x: function(x).sum()))(x.detach())
    scalars = getattr(ng.math, NAME)(0.5), getattr(ng.math, f"{NAME}_vjp")(1.0, 0.5)
    found = [function(x).item(), slope.item(), second.item(), *[each.item() for each in jitted]]
    assert [*found, *map(float, scalars)] == [1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0]


@given(st.one_of(st.text(max_size=4), st.sampled_from([*keyword.kwlist, "match", "a b", "a.b"])))
def test_names_are_those_that_python_can_call(name: str) -> None:
    """Of the operation, of its function, of another name of it, and of its operands."""
    options: dict[str, Any] = {"formula": lambda *given: given[0] * 2, "doc": "Return something."}
    ways = [
        lambda: unary(name, None, INSIDE, **options),
        lambda: unary(NAME, None, INSIDE, function_name=name, **options),
        lambda: (
            binary(NAME, (None, None), (INSIDE, INSIDE), **options)
            if name == "other"
            else ng.ops.core.declare.elementwise(NAME, (name,), (None,), (INSIDE,), **options)
        ),
    ]
    if name.isidentifier() and not keyword.iskeyword(name):
        return  # declared ones stay for good, so one test may not declare hundreds
    for way in ways:
        with pytest.raises(ValueError, match="Python has no such names"):
            way()
    with pytest.raises(ValueError, match="Python has no such names"):
        publish(unary(NAME, None, INSIDE, **options), name)


@numba.njit
def _inner(x: float) -> float:
    return math.exp(-x) * x


@numba.vectorize
def _ufunc(x: float) -> float:
    return np.tanh(_inner(x))


def _outer(x: Any) -> Any:
    return ng.where(x > 0.5, _ufunc(x), np.where(x > 0.3, abs(-x), ng.square(x)) * np.pi)


def test_helpers_call_helpers() -> None:
    factor = math.sqrt(2.0)
    function = declare(1, lambda input: _outer(input) * factor, lambda g, input: g * input)
    x = np.linspace(0.1, 0.9, 9)
    inner = np.tanh(np.exp(-x) * x)
    expected = np.where(x > 0.5, inner, np.where(x > 0.3, x, x * x) * np.pi) * factor
    np.testing.assert_allclose(function(ng.tensor(x)).numpy(), expected, 1e-12)


def test_a_declaration_passes_the_checks() -> None:
    function = declare(
        1,
        lambda input: np.exp(input) + _inner(input),
        lambda g, input: g * (math.exp(input) + math.exp(-input) - _inner(input)),
    )
    assert "jit" in ng.utils.check_operation(function)


@pytest.mark.parametrize(
    "formula",
    [
        lambda input: input if input > 0 else -input,
        lambda input: np.sum(input),
        lambda input: np.linalg.norm(input),
        lambda input: "text",
        lambda input: math.floor(input) % 2,
        lambda input: [input],
        lambda input: input.exp(),
    ],
)
@pytest.mark.parametrize("place", ["formula", "rule"])
def test_what_is_no_formula_is_refused_when_it_is_declared(formula: Any, place: str) -> None:
    before = getattr(ng.Tensor, NAME, None)
    functions = (formula, lambda g: g)
    if place == "rule":
        functions = (lambda input: input, lambda g, input: g * formula(input))
    with pytest.raises(TypeError, match="of_the_users: .* can't be computed element by element"):
        declare(1, *functions)
    assert getattr(ng.Tensor, NAME, None) is before


def test_a_plus_in_front_is_no_operation() -> None:
    symbol = Symbol.input("input", is_complex=False)
    assert +symbol is symbol


class Line:
    """A class of the user's own, made of what a formula is given."""

    slope = 3.0

    def __init__(self, offset: Any) -> None:
        self.offset = offset


def test_classes_of_a_users_own_are_made_of_symbols_and_tensors() -> None:
    function = rebound(lambda x: Line(x).offset * Line.slope)
    found = function(Symbol.input("x", is_complex=False))
    assert found.operation == "mul" and found.arguments[0].operation == "input"
    assert function(ng.tensor([2.0])).tolist() == [6.0] and function(2.0) == 6.0
    Line.slope = 4.0  # it keeps what it was
    try:
        assert function(2.0) == 6.0
    finally:
        Line.slope = 3.0


def test_names_that_come_later_are_read_when_they_are_there() -> None:
    names: dict[str, Any] = {"math": math}
    exec("def rule(x): return later(x) * factor", names)
    exec(
        "def outer():\n"
        "    def inner(x): return unbound(x) + 1\n"
        "    yield inner\n"
        "    unbound = math.sqrt\n"
        "    yield inner\n",
        names,
    )
    steps = names["outer"]()
    early = rebound(next(steps))
    function = rebound(names["rule"])
    symbol = Symbol.input("x", is_complex=False)
    for each in (early, function):
        try_out("operation", "its rule", each, ["x"], "f")  # which is not known yet
        with pytest.raises(NameError):
            each(symbol)
    names |= {"later": np.exp, "factor": 2.0}
    assert function(symbol).arguments[0].operation == "exp"
    names["later"] = np.sin  # it was read
    assert function(symbol).arguments[0].operation == "exp" and function(0.0) == 2.0
    late = rebound(next(steps))
    assert late(symbol).arguments[0].operation == "sqrt" and late(4.0) == 3.0


def test_helpers_of_helpers_are_rebound_once() -> None:
    names: dict[str, Any] = {"np": np}
    exec(
        "def base(x): return np.tanh(x)\n"
        "def first(x, inner=base): return inner(x) + base(x)\n"
        "def second(x, *, inner=base): return inner(x) * base(x) + again(x, 0)\n"
        "def again(x, count): return x if count else again(first(x), count + 1)\n"
        "def whole(x): return second(x)\n",
        names,
    )
    function = rebound(names["whole"])
    inside = function.__globals__["second"].__globals__
    assert inside["base"] is function.__globals__["second"].__kwdefaults__["inner"]
    again = inside["again"]
    assert again.__globals__["again"] is again
    (inner,) = again.__globals__["first"].__defaults__
    assert inner is inside["base"] is again.__globals__["first"].__globals__["base"]
    x = np.array([0.25, -1.5])
    np.testing.assert_allclose(
        function(ng.tensor(x)).numpy(), np.tanh(x) ** 2 + 2 * np.tanh(x), 1e-12
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.clip(x, low=0.5),
        lambda x: np.sinc(y=x),
        lambda x: np.where(condition=x > 0, x=x, y=0.5),
        lambda x: np.isnat(x),
        lambda x: np.sum(x),
        lambda x: math.dist(x, x),
    ],
)
def test_what_numpy_does_to_numbers_alone_is_refused_for_symbols(function: Any) -> None:
    with pytest.raises(TypeError, match="is not among what there is for single elements"):
        rebound(function)(Symbol.input("x", is_complex=False))


def test_rules_on_tensors_call_what_there_is_for_tensors() -> None:
    x = ng.tensor([0.25, 0.5])
    assert rebound(lambda x: np.square(x))(x).tolist() == [0.0625, 0.25]
    assert rebound(lambda x: math.log(x, 2))(x).tolist() == [-2.0, -1.0]
    assert rebound(lambda x: math.log(x, x))(2.0) == 1.0
    for function in (lambda x: np.sum(x), lambda x: math.comb(x, x), lambda x: np.isnat(x)):
        with pytest.raises(TypeError, match=r"^(numpy|math)\.\w+ is not among what there is"):
            rebound(function)(x)
