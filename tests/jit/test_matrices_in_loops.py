"""Linear algebra in compiled functions: as eager mode has it, and small matrices without Python."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import func

Step = Callable[[Any, Any], Any]


def _regular(A: Any) -> Any:
    """Return a matrix that is far from singular ones, whose pivots are off the diagonal."""
    size = A.shape[-1]
    return A.tanh() * 0.3 + ng.eye(size, dtype=A.dtype).flip(0) * 2


def _positive(A: Any) -> Any:
    return (A.tanh() + A.tanh().mT) * 0.2 + ng.eye(A.shape[-1], dtype=A.dtype) * 2


# A step takes a square matrix and a vector, of batches of one shape, and gives a matrix.
STEPS: dict[str, Step] = {
    "solve": lambda A, b: ng.linalg.solve(_regular(A), A.mT),
    "solve on the right": lambda A, b: ng.linalg.solve(_regular(A), A, left=False),
    "solve of vectors": lambda A, b: A + ng.linalg.solve(_regular(A), b).unsqueeze(-1),
    "solve_ex": lambda A, b: ng.linalg.solve_ex(_regular(A).mT, A).result,
    "inv": lambda A, b: ng.linalg.inv(_regular(A)),
    "det": lambda A, b: A * ng.linalg.det(_regular(A)).unsqueeze(-1).unsqueeze(-1),
    "slogdet": lambda A, b: A + ng.linalg.slogdet(_regular(A)).logabsdet[..., None, None],
    "logdet": lambda A, b: A + ng.logdet(_positive(A))[..., None, None],
    "cholesky": lambda A, b: ng.linalg.cholesky(_positive(A)),
    "cholesky upper": lambda A, b: ng.linalg.cholesky(_positive(A), upper=True),
    "cholesky_solve": lambda A, b: ng.cholesky_solve(A, ng.linalg.cholesky(_positive(A))),
    "solve_triangular": lambda A, b: (
        ng.linalg.solve_triangular(_positive(A), b.unsqueeze(-1), upper=True) * A
    ),
    "solve_triangular right": lambda A, b: ng.linalg.solve_triangular(
        _positive(A).mT, A, upper=False, left=False
    ),
    "unit": lambda A, b: ng.linalg.solve_triangular(A, A.mT, upper=True, unitriangular=True),
    "lu_factor": lambda A, b: ng.linalg.lu_factor(_regular(A)).LU,
    "lu_solve": lambda A, b: ng.linalg.lu_solve(*ng.linalg.lu_factor(_regular(A)), A),
    "product": lambda A, b: A @ A.mT,
}
KEYS = list(STEPS)


def _arguments(drawn: random.Random, batch: tuple[int, ...], size: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(drawn.randrange(1 << 30))
    dtype = drawn.choice([np.float64, np.float64, np.float32])
    return tuple(
        ng.from_numpy(rng.standard_normal(shape).astype(dtype))
        for shape in ((*batch, size, size), (*batch, size))
    )


def _program(drawn: random.Random, names: list[str], around: str) -> Callable[[Any, Any], Any]:
    """Return a function of a matrix and a vector that takes some steps, in a loop or not."""

    def step(A: Any, b: Any) -> Any:
        for name in names:
            A = STEPS[name](A, b).sin()
        return A

    def in_scan(A: Any, b: Any) -> Any:
        rows = ng.linspace(0.5, 1.0, 3, dtype=A.dtype)
        last, all = func.scan(lambda A, row: (step(A * row, b), A.sum()), A, rows)
        return last.sum() + all.sum()

    def in_while(A: Any, b: Any) -> Any:
        def turn(count: Any, A: Any) -> Any:
            return count + 1, step(A, b)

        _, A = func.while_loop(lambda count, A: count < 2, turn, (ng.tensor(0), A))
        return (A * A).sum()

    def in_cond(A: Any, b: Any) -> Any:
        chosen = func.cond(b.sum() > 0, lambda A: step(A, b), lambda A: step(A.mT, b), A)
        return chosen.sum() + step(A, b).sum()

    return {
        "scan": in_scan,
        "while": in_while,
        "cond": in_cond,
        "none": lambda A, b: (step(A, b) ** 2).sum(),
    }[around]


def _close(found: Any, expected: Any, dtype: Any, much: float = 1.0) -> None:
    small = 2e-3 if dtype == ng.float32 else 1e-9
    np.testing.assert_allclose(
        np.asarray(found), np.asarray(expected), rtol=small, atol=small * much
    )


@pytest.mark.sampled(0.024)
@pytest.mark.parametrize("around", ["scan", "while", "cond", "none"])
@pytest.mark.parametrize("seed", range(6))
def test_compiled_programs_are_as_eager_ones(around: str, seed: int) -> None:
    drawn = random.Random(f"{around}{seed}")
    size = drawn.choice([1, 2, 2, 3, 5])  # of 4 x 4 there is much to compile
    batch = drawn.choice([(), (), (2,), (3, 1)])
    names = [KEYS[(3 * seed + k * 5 + len(around)) % len(KEYS)] for k in range(drawn.randint(1, 2))]
    loss = _program(drawn, names, around)
    A, b = _arguments(drawn, batch, size)
    both = func.value_and_grad(loss, argnums=(0, 1))
    value, gradients = both(A, b)
    compiled = ng.jit(both)
    for _ in range(2):
        found, found_gradients = compiled(A, b)
        _close(found, value, A.dtype)
        for one, other in zip(found_gradients, gradients, strict=True):
            _close(one, other, A.dtype, max(1.0, float(other.abs().max())))
    dispatcher = compiled.lower(A, b).dispatcher
    for one, other in zip(dispatcher(A.numpy(), b.numpy()), (value, *gradients), strict=True):
        _close(one, other, A.dtype, max(1.0, float(other.abs().max())))


# Derivatives of the second order along one direction, by reverse and forward mode.
ORDERS: dict[str, Callable[..., Any]] = {
    "reverse over reverse": lambda loss, v: func.grad(
        lambda A, b: (func.grad(loss)(A, b) * v).sum()
    ),
    "forward over reverse": lambda loss, v: (
        lambda A, b: func.jvp(lambda A: func.grad(loss)(A, b), (A,), (v,))[1]
    ),
    "reverse over forward": lambda loss, v: func.grad(
        lambda A, b: func.jvp(lambda A: loss(A, b), (A,), (v,))[1]
    ),
    "a row of the Hessian each": lambda loss, v: (
        lambda A, b: (func.hessian(loss)(A, b) * v).flatten(-v.ndim).sum(-1)
    ),
}


@pytest.mark.sampled(0.03)
@pytest.mark.parametrize("seed", range(len(KEYS)))
def test_second_derivatives_are_as_eager_ones_and_as_finite_differences(seed: int) -> None:
    drawn = random.Random(f"second {seed}")
    around = drawn.choice(["scan", "while", "cond", "none"])
    order = ORDERS[drawn.choice(list(ORDERS))]
    loss = _program(drawn, [KEYS[seed % len(KEYS)]], around)
    A, b = (each.double() for each in _arguments(drawn, (), drawn.choice([1, 2, 2])))
    v = ng.from_numpy(np.random.default_rng(seed).standard_normal(A.shape))
    function = order(loss, v)
    expected = function(A, b)
    much = max(1.0, float(expected.abs().max()))
    compiled = ng.jit(function)
    _close(compiled(A, b), expected, A.dtype, much)
    (found,) = compiled.lower(A, b).dispatcher(A.numpy(), b.numpy())
    _close(found, expected, A.dtype, much)
    gradient, h = func.grad(loss), 1e-5
    difference = (gradient(A + h * v, b) - gradient(A - h * v, b)) / (2 * h)
    np.testing.assert_allclose(expected, difference, rtol=1e-5, atol=1e-5 * much)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_small_matrices_need_no_interpreter(batch: tuple[int, ...]) -> None:
    names = [name for name in KEYS if name != "lu_solve" and not (batch and "vector" in name)]
    A, b = (each.double() for each in _arguments(random.Random(0), batch, 2))
    dispatcher = ng.jit(lambda A, b: [STEPS[name](A, b) for name in names]).lower(A, b).dispatcher
    for name, found in zip(names, dispatcher(A.numpy(), b.numpy()), strict=True):
        expected = STEPS[name](A, b).numpy()
        if name == "product":  # which BLAS rounds otherwise
            np.testing.assert_allclose(found, expected, rtol=1e-13)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=name)
    source = "".join(linecache.getlines(dispatcher.py_func.__code__.co_filename))
    assert "with objmode" not in source


CALLS: dict[str, Callable[[Any], Any]] = {
    "solve": lambda A: ng.linalg.solve(A, A),
    "inv": ng.linalg.inv,
    "cholesky": ng.linalg.cholesky,
    "lu_factor_ex": lambda A: ng.linalg.lu_factor_ex(A, check_errors=True).LU,
    "cholesky_ex": lambda A: ng.linalg.cholesky_ex(A, check_errors=True).L,
}


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("solve", ()),
        ("solve", (2, 2)),
        ("inv", (3,)),
        ("cholesky", (3,)),
        ("cholesky_ex", ()),
        ("lu_factor_ex", (2,)),
    ],
)
def test_compiled_code_raises_as_eager_mode_does(name: str, batch: tuple[int, ...]) -> None:
    numbers = np.broadcast_to(np.eye(3), (*batch, 3, 3)).copy()
    numbers[(1,) * len(batch)][2, 2] = 0
    A = ng.from_numpy(numbers)
    with pytest.raises(RuntimeError) as expected:
        CALLS[name](A)
    rows = ng.ones(2, dtype=ng.float64)

    def loop(A: Any) -> Any:
        return func.scan(
            lambda total, row: (total + CALLS[name](A * row).sum(), None), A.sum(), rows
        )

    for function in (ng.jit(CALLS[name]), ng.jit(loop), ng.jit(CALLS[name]).lower(A).dispatcher):
        with pytest.raises(type(expected.value)) as found:
            function(A if hasattr(function, "lower") else numbers)
        assert str(found.value) == str(expected.value)


@pytest.mark.sampled(0.15)
@pytest.mark.parametrize(
    ("size", "batch"),
    [(0, ()), (0, (2,)), (1, (2,)), (2, (0,)), (3, (2,)), (4, ()), (5, (2,)), (6, ())],
)
def test_sizes_from_nothing_on(size: int, batch: tuple[int, ...]) -> None:
    A, _ = _arguments(random.Random(1), batch, size)
    A = _positive(A.double())

    def all_of_it(A: Any) -> Any:
        found = (
            ng.linalg.cholesky_ex(A),
            ng.linalg.solve_ex(A, A.mT),
            ng.linalg.slogdet(A),
            ng.linalg.inv_ex(A),
            ng.linalg.det(A),
        )
        return [each for part in found[:4] for each in part] + [found[4]]

    expected = all_of_it(A)
    found = ng.jit(all_of_it)(A)
    in_dispatcher = ng.jit(all_of_it).lower(A).dispatcher(A.numpy())
    for one, two, other in zip(found, in_dispatcher, expected, strict=True):
        assert one.dtype == other.dtype and one.stride() == other.stride()
        np.testing.assert_array_equal(one.numpy(), other.numpy())
        np.testing.assert_array_equal(two, other.numpy())
