"""What formulas and rules of a user's own operations call: NumPy, math, numgrad, own helpers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.core.declare import binary, unary
from numgrad.ops.core.domains import interval
from numgrad.ops.core.formulas import rebound, try_out
from numgrad.ops.core.registry import publish
from numgrad.ops.numpy.names import UFUNCS

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


@pytest.mark.parametrize("name", [name for name in ALL if arity(find(name))])
def test_every_function_is_called_or_refused_when_it_is_declared(name: str) -> None:
    module, _, plain = name.partition(".")
    if module == "np":
        plain = find(name).__name__
        expected = plain in UFUNCS and plain not in ("matmul", "float_power", *BITS)
    else:
        expected = hasattr(ng, plain) and plain not in ("remainder", "isclose", "prod", "gcd")
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


@settings(max_examples=12)
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
