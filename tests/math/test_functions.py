"""Operations as functions of numbers give what they give on tensors, and so do their rules."""

from __future__ import annotations

import inspect
import json
import math as python_math
import os
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import NumbaError

import numgrad as ng
from numgrad import math
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.math.functions import FORMULAS
from numgrad.ops.core.primitive import CATALOGUE
from tests.cases import examples, thinned
from tests.children import ended_well

SPECIAL = [0.0, -0.0, 0.25, 1.0, -1.5, 2.0, 3.75, np.inf, -np.inf, np.nan, 1e-40, 800.0]
# One of each way to be declared; all of them where everything is run.
CHOSEN = ["addcmul", "atan2", "eq", "logit_clamped", "pow_tensors", "sin", "softplus", "where"]
EVERY = sorted(name for name, formula in FORMULAS.items() if "f" in formula.accepts)
NAMES = EVERY if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else CHOSEN


def operands_of(name: str, dtype: Any) -> list[np.ndarray]:
    """Return arrays of special values, in other orders for each operand."""
    random = np.random.default_rng(0)
    arrays = [
        random.permutation(np.array(SPECIAL, dtype)) for _ in range(len(FORMULAS[name].inputs))
    ]
    for position in CATALOGUE[name].masks:
        arrays[position] = arrays[position] > 0
    return arrays


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_a_function_of_numbers_has_the_bits_of_the_operation(name: str, dtype: str) -> None:
    primitive, function = CATALOGUE[name], getattr(math, name)
    arrays = operands_of(name, dtype)
    count = primitive.tensor_count
    rows = zip(*arrays, strict=True)
    for row in rows:
        tensors = [ng.from_numpy(np.array([number])) for number in row[:count]]
        expected = primitive(*tensors, *[number.item() for number in row[count:]]).numpy()
        found = np.array([function(*row)], expected.dtype)  # exactly: Numba returns Python's float
        assert expected.tobytes() == found.tobytes() or (
            np.isnan(expected[0]) and np.isnan(found[0])
        ), (row, expected, found)


@pytest.mark.parametrize("name", [name for name in NAMES if any(FORMULAS[name].rules)])
def test_a_rule_is_the_backward_pass(name: str) -> None:
    primitive, formula = CATALOGUE[name], FORMULAS[name]
    count, rule = primitive.tensor_count, getattr(math, f"{name}_vjp")
    moving = [k for k, declared in enumerate(formula.rules) if declared is not None]
    random = np.random.default_rng(1)
    for _ in range(5):
        numbers = [
            bool(random.integers(2)) if domain.is_mask else float(domain.draw((), random))
            for domain in primitive.domains
        ]
        tensors = [
            ng.tensor(number, dtype=None if k in primitive.masks else ng.float64)
            for k, number in enumerate(numbers[:count])
        ]
        for k in moving:
            tensors[k].requires_grad_()
        primitive(*tensors, *numbers[count:]).backward(ng.tensor(1.5, dtype=ng.float64))
        gradients = rule(1.5, *numbers)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        expected = [tensors[k].grad.item() for k in moving]
        np.testing.assert_allclose(gradients, expected, rtol=1e-14)


def test_functions_and_rules_are_called_from_compiled_code() -> None:
    @njit
    def newton(x: float) -> float:  # the root of tanh(x) - 1/2
        for _ in range(20):
            x -= (math.tanh(x) - 0.5) / math.tanh_vjp(1.0, x)
        return x

    assert newton(0.1) == pytest.approx(python_math.atanh(0.5), rel=1e-15)


def test_integers_and_complex_numbers() -> None:
    assert math.add(2, 3) == 5
    assert math.exp(1) == python_math.exp(1)
    assert math.sqrt(-4 + 0j) == 2j
    assert math.mul_vjp(1.0, 2.0, 3.0) == (3.0, 2.0)


def test_a_ufunc_broadcasts_casts_reduces_and_writes_where_it_is_told() -> None:
    hypot = math.ufunc("hypot")
    x, y = np.array([3.0, 5.0]), np.array([[4], [12]])
    np.testing.assert_array_equal(hypot(x, y), ng.hypot(ng.tensor(x), ng.tensor(y)).numpy())
    assert hypot(x.astype("float32"), x.astype("float32")).dtype == np.float32
    out = np.zeros(4)[::2]
    assert hypot(x, 4.0, out=out) is out and out[0] == 5
    assert hypot.reduce(np.array([2.0, 3.0, 6.0])) == pytest.approx(7)
    assert hypot.outer([3.0], [4.0, 0.0]).shape == (1, 2)


def test_reductions_by_ufuncs_begin_with_what_numpys_begin_with() -> None:
    named = [(name, op) for name, op in SCALAR_OPS.items() if op.identity is not None]
    for name, op in thinned(named, 8):
        its = getattr(np, {"mul": "multiply"}.get(name, name)).identity
        assert math.ufunc(name).identity == its == op.identity
        of_nothing = math.ufunc(name).reduce(np.empty(0, bool if op.is_truth else int))
        assert of_nothing == its, name
    assert math.ufunc("maximum").identity is None


def drawn_view(data: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Draw an array that broadcasts to a shape: transposed, flipped, by steps, of few dims."""
    own = [data.draw(st.sampled_from([length, 1])) for length in shape]
    own = own[data.draw(st.integers(0, len(own))) :]
    order = data.draw(st.permutations(range(len(own))))
    steps = [data.draw(st.sampled_from([1, 2, -1, -3])) for _ in own]
    room = [own[dim] * abs(steps[dim]) for dim in order]
    numbers = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=room).astype(dtype)
    view = numbers.transpose(np.argsort(order))
    return view[tuple(slice(None, None, step) for step in steps)]


@settings(max_examples=examples(100))
@given(st.data(), st.sampled_from(["add", "hypot", "tanh"]))
def test_a_ufunc_has_the_bits_of_the_operation_for_all_layouts(data: Any, name: str) -> None:
    ufunc, count = math.ufunc(name), len(FORMULAS[name].inputs)
    shape = tuple(data.draw(st.lists(st.integers(1, 5), max_size=3)))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    arrays = [drawn_view(data, shape, dtype) for _ in range(count)]
    expected = CATALOGUE[name](*(ng.tensor(array) for array in arrays)).numpy()
    found = np.asarray(ufunc(*arrays))
    assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()

    mask = drawn_view(data, shape, dtype) > 0
    full = np.broadcast_to(expected, np.broadcast_shapes(expected.shape, mask.shape))
    out = np.full(full.shape, 7, dtype)[::-1] if full.ndim else np.full((), 7, dtype)
    assert ufunc(*arrays, where=mask, **data.draw(ways_of_out(out))) is out
    assert out.tobytes() == np.where(mask, full, np.asarray(7, dtype)).tobytes()
    fresh = ufunc(*arrays, where=mask)
    assert fresh.shape == full.shape and fresh.dtype == full.dtype
    chosen = np.broadcast_to(mask, full.shape)
    assert fresh[chosen].tobytes() == full[chosen].tobytes()


def ways_of_out(out: np.ndarray) -> Any:
    return st.sampled_from([{"out": out}, {"out": (out,)}])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"where": np.array([0.5, 1.0]), "out": None}, TypeError),
        ({"where": np.ones(3, bool), "out": None}, ValueError),
        ({"where": np.ones((2, 2), bool), "out": np.zeros(2)}, ValueError),
        ({"where": np.array([True, False]), "out": np.zeros(2, int)}, TypeError),
    ],
)
def test_a_mask_or_output_that_does_not_fit_is_refused(options: Any, error: Any) -> None:
    calls = (math.ufunc("hypot"), np.hypot)  # ours, and one of NumPy's own
    for ufunc in calls:
        with pytest.raises(error):
            ufunc(np.ones(2), np.ones(2), **options)


@pytest.mark.sampled(0.3)
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", ["tanh", "hypot", "addcmul", "pow_tensors"])
def test_a_ufunc_of_tensors_is_the_operation(name: str) -> None:
    ufunc, count = math.ufunc(name), len(FORMULAS[name].inputs)
    tensors = [ng.tensor([0.5, 2.0], requires_grad=True) for _ in range(count)]
    expected = CATALOGUE[name](*tensors)
    for operands in (tensors, [tensors[0], *[np.float32([0.5, 2.0])] * (count - 1)]):
        found = ufunc(*operands)
        assert found.tolist() == expected.tolist()
        assert found.grad_fn.name() == expected.grad_fn.name()
    assert ng.jit(lambda *given: ufunc(*given))(*tensors).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda f, t: f.reduce(t), "reduce"),
        (lambda f, t: f.outer(t, t), "outer"),
        (lambda f, t: f.accumulate(t), "accumulate"),
        (lambda f, t: f(t, t, out=np.ones(2)), "out="),
        (lambda f, t: f(t, t, where=np.array([True, False])), "where="),
        (lambda f, t: f(np.ones(2), np.ones(2), out=t), "out="),
    ],
)
def test_what_a_ufunc_does_not_do_to_tensors_is_said(call: Any, what: str) -> None:
    with pytest.raises(TypeError, match=rf"numgrad.math.ufunc\('hypot'\).*{what}"):
        call(math.ufunc("hypot"), ng.ones(2))


def _in_compiled_code(function: Any) -> Any:
    count = len(inspect.signature(function.py_func).parameters)
    names = ", ".join(f"x{k}" for k in range(count))
    return njit(eval(f"lambda {names}: f({names})", {"f": function}))


NO_NUMBERS = [
    "a",
    b"a",
    None,
    (1.0, 2.0),
    np.ones(2),
    np.array(1.0),
    np.datetime64("2020"),
]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("compiled", [False, True], ids=["called", "compiled"])
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["tanh", "atan2", "clamp", "tanh_vjp"])
def test_what_is_no_number_is_refused_in_our_words(name: str, value: Any, compiled: bool) -> None:
    function = getattr(math, name)
    count = len(inspect.signature(function.py_func).parameters)
    call = _in_compiled_code(function) if compiled else function
    for place in range(count):
        given = [0.5] * count
        given[place] = value
        with pytest.raises(TypeError, match=f"^{name} is a function of numbers") as caught:
            call(*given)
        assert not isinstance(caught.value, NumbaError)
        assert ("math.ufunc" in str(caught.value)) == isinstance(value, np.ndarray)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("bitwise_and", (1.0, 2), "bitwise_and takes numbers of these kinds: integers, bools; not"),
        ("atan2", (1j, 2.0), "atan2 takes numbers of these kinds: floats; not complex128"),
        ("atan2_vjp", (1.0, 1j, 2.0), "atan2_vjp takes numbers of these kinds"),
    ],
)
def test_numbers_of_other_kinds_are_refused(name: str, given: Any, words: str) -> None:
    for call in (getattr(math, name), _in_compiled_code(getattr(math, name))):
        with pytest.raises(TypeError, match=words):
            call(*given)


def test_small_integers_wrap_and_bools_stay_bools() -> None:
    assert math.add(np.uint8(255), np.uint8(2)) == 1
    assert math.add(np.int8(127), np.int8(1)) == -128
    assert math.add(True, True) is True
    add = math.ufunc("add")
    assert add(np.uint8([255]), np.uint8([2])).dtype == np.uint8


def test_functions_go_to_other_processes() -> None:
    tanh = math.tanh
    twice = njit(lambda x: 2 * tanh(x))
    data = pickle.dumps([tanh, twice, math.ufunc("tanh")])
    script = f"import pickle\nprint([float(f(0.25)) for f in pickle.loads({data!r})])"
    assert json.loads(ended_well(script)) == [tanh(0.25), twice(0.25), tanh(0.25)]


def test_functions_are_compiled_where_numba_is_disabled() -> None:
    script = """
    from numba import njit
    from numgrad import math
    print(njit(lambda x: math.tanh(x) - math.tanh(x))(0.5))
    """
    assert ended_well(script, fresh=True, NUMBA_DISABLE_JIT="1") == "0.0\n"


def test_unknown_names() -> None:
    for name in ("nonsense", "nonsense_vjp", "isnan_vjp"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(math, name)
    with pytest.raises(AttributeError, match="no elementwise operation 'sum'"):
        math.ufunc("sum")


def test_all_that_is_listed_can_be_written_and_called() -> None:
    listed = dir(math)
    assert "tanh" in listed
    assert "tanh_vjp" in listed
    for name in listed:
        assert name.isidentifier()
        assert callable(getattr(math, name))
    for name in set(FORMULAS) - set(listed):
        with pytest.raises(AttributeError):
            getattr(math, name)


@given(
    st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9).filter(bool)), min_size=1
    )
)
@settings(max_examples=examples(40), deadline=None)
def test_quotients_of_large_integers_are_exact(pairs: Any) -> None:
    a, b = (ng.tensor([pair[k] for pair in pairs]) for k in (0, 1))
    down = [(x // y + 2**63) % 2**64 - 2**63 for x, y in pairs]
    toward = [((abs(x) // abs(y)) * (-1 if (x < 0) != (y < 0) else 1)) for x, y in pairs]
    toward = [(each + 2**63) % 2**64 - 2**63 for each in toward]
    assert (a // b).tolist() == down
    assert a.div(b, rounding_mode="trunc").tolist() == toward
