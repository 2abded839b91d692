"""Every loop and branch under every transformation: rows of derivatives, all at once.

What is expected is computed of a function in plain Python, eagerly, a row at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import func
from numgrad.autograd import functional
from numgrad.base.pytree import flatten
from numgrad.jit.front.trace_function import trace_function
from tests.jit.interpreter import interpret

Function = Callable[[Any], Any]

WEIGHT = ng.tensor([0.7, -0.4, 1.2], dtype=ng.float64)
ONE = ng.ones((), dtype=ng.float64)


def scanned(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = (carry * row).sin() + x[0]
        return carry, carry * row * WEIGHT[1]

    last, stacked = func.scan(step, x[1], x)
    return stacked * last


def scanned_by_python(x: Any) -> Any:
    carry, ys = x[1], []
    for row in x:
        carry = (carry * row).sin() + x[0]
        ys.append(carry * row * WEIGHT[1])
    return ng.stack(ys) * carry


def backwards(x: Any) -> Any:
    carry, ys = func.scan(lambda c, r: (c * r.cos(), c * r), x, x, reverse=True, checkpoint=2)
    return carry + ys[1]


def backwards_by_python(x: Any) -> Any:
    carry, ys = x, []
    for row in (x[2], x[1], x[0]):
        ys.append(carry * row)
        carry = carry * row.cos()
    return carry + ys[1]


def counted(x: Any) -> Any:
    return func.fori_loop(1, 4, lambda i, y: (y * x).sin() / i + y, x * WEIGHT)


def counted_by_python(x: Any) -> Any:
    y = x * WEIGHT
    for i in range(1, 4):
        y = (y * x).sin() / i + y
    return y


def turns(x: Any) -> Any:
    return (x.detach()[0] * 5).abs().clamp(0, 3).to(ng.int64)


def counted_by_numbers(x: Any) -> Any:
    return func.fori_loop(0, turns(x), lambda i, y: (y * x).sin() + i, x * WEIGHT)


def counted_by_numbers_by_python(x: Any) -> Any:
    y = x * WEIGHT
    for i in range(int(turns(x))):
        y = (y * x).sin() + i
    return y


def goes_on(x: Any) -> Any:
    found = func.while_loop(
        lambda k, y: k < turns(x) + 1, lambda k, y: (k + 1, (y * x).sin() + y), (0, x * WEIGHT)
    )
    return found[1] * x


def goes_on_by_python(x: Any) -> Any:
    y = x * WEIGHT
    for _ in range(int(turns(x)) + 1):
        y = (y * x).sin() + y
    return y * x


def mapped(x: Any) -> Any:
    return func.map(lambda row: (row * x).sin().sum() * row, x)


def mapped_by_python(x: Any) -> Any:
    return ng.stack([(row * x).sin().sum() * row for row in x])


def folded(x: Any) -> Any:
    return func.associative_scan(lambda a, b: a * b + b * WEIGHT[0], x.sin())


def folded_by_python(x: Any) -> Any:
    a, b, c = x.sin()
    # As a tree is: of three the last is the one before it with the third.
    first = a * b + b * WEIGHT[0]
    return ng.stack([a, first, first * c + c * WEIGHT[0]])


def branched(x: Any) -> Any:
    return func.cond(x.sum() > 0.25, lambda y: (y * x).sin(), lambda y: y * y * WEIGHT, x * 2)


def branched_by_python(x: Any) -> Any:
    y = x * 2
    return (y * x).sin() if x.sum() > 0.25 else y * y * WEIGHT


def switched(x: Any) -> Any:
    ways = [lambda y: y.sin(), lambda y: y * x * x, lambda y: x.cos()]
    return func.switch(turns(x) - 1, ways, x * WEIGHT)


def switched_by_python(x: Any) -> Any:
    y = x * WEIGHT
    return [y.sin, lambda: y * x * x, x.cos][max(int(turns(x)) - 1, 0)]()


def nested(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        inner = func.cond(row > 0.1, lambda: carry.sin() * x, lambda: carry * row)
        return func.fori_loop(0, 2, lambda i, y: y * x.cos() + row, inner), None

    return func.scan(step, x * WEIGHT, x)[0]


def nested_by_python(x: Any) -> Any:
    carry = x * WEIGHT
    for row in x:
        carry = carry.sin() * x if row > 0.1 else carry * row
        for _ in range(2):
            carry = carry * x.cos() + row
    return carry


def drawn(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return carry * row + ng.randn(3, dtype=ng.float64).mul(x).sin(), None

    ng.manual_seed(4)
    return func.scan(step, x, x)[0]


def drawn_by_python(x: Any) -> Any:
    ng.manual_seed(4)
    carry = x
    for row in x:
        carry = carry * row + ng.randn(3, dtype=ng.float64).mul(x).sin()
    return carry


PROGRAMS: dict[str, tuple[Function, Function]] = {
    "scan": (scanned, scanned_by_python),
    "reverse scan": (backwards, backwards_by_python),
    "fori_loop": (counted, counted_by_python),
    "fori_loop by numbers": (counted_by_numbers, counted_by_numbers_by_python),
    "while_loop": (goes_on, goes_on_by_python),
    "map": (mapped, mapped_by_python),
    "associative_scan": (folded, folded_by_python),
    "cond": (branched, branched_by_python),
    "switch": (switched, switched_by_python),
    "nested": (nested, nested_by_python),
    "random": (drawn, drawn_by_python),
}


def leaf(x: Any) -> Any:
    return x.detach().clone().requires_grad_()


def rows_of(function: Function, x: Any, unit: Any = None, again: bool = False) -> Any:
    """Return vectors times the Jacobian, as one batch; or the gradient of what that comes to."""
    x = leaf(x)
    y = function(x)
    unit = ng.eye(y.numel(), dtype=ng.float64).reshape(-1, *y.shape) if unit is None else unit
    (found,) = ng.autograd.grad(y, x, unit, is_grads_batched=True, create_graph=again)
    return ng.autograd.grad((found * found).sum(), x)[0] if again else found


def jacobian_by_rows(function: Function, x: Any, create_graph: bool = False) -> Any:
    x = leaf(x)
    y = function(x)
    found = [
        ng.autograd.grad(each, x, retain_graph=True, create_graph=create_graph, allow_unused=True)
        for each in y.reshape(-1)
    ]
    rows = [ng.zeros_like(x) if row is None else row for (row,) in found]
    return ng.stack(rows).reshape(*y.shape, *x.shape), x


def of_jacobian(function: Function, x: Any) -> Any:
    return jacobian_by_rows(function, x)[0]


def of_examples(function: Function, x: Any) -> Any:
    return ng.stack([function(each) for each in batch_of(x)])


def batch_of(x: Any) -> Any:
    return ng.stack([x, -x.flip(0), x * 0.3])


def gradient_of_sum(function: Function) -> Function:
    return lambda x: of_jacobian(lambda x: (function(x) * WEIGHT).sum().reshape(1), x)[0]


def hessian_by_rows(function: Function, x: Any) -> Any:
    def gradient(x: Any) -> Any:
        value = (function(x) * WEIGHT).sum()
        return ng.autograd.grad(value, x, create_graph=True)[0]

    return jacobian_by_rows(gradient, x)[0]


def squared_by_rows(function: Function, x: Any) -> Any:
    rows, x = jacobian_by_rows(function, x, create_graph=True)
    return ng.autograd.grad((rows * rows).sum(), x)[0]


def weighted(f: Function) -> Function:
    return lambda x: (f(x) * WEIGHT).sum()


# How it is transformed, and how a function in plain Python is.
WAYS: dict[str, tuple[Callable[[Function, Any], Any], Callable[[Function, Any], Any]]] = {
    "vmap": (
        lambda f, x: func.vmap(f, randomness="same")(batch_of(x)),
        of_examples,
    ),
    "vmap(grad)": (
        lambda f, x: func.vmap(func.grad(weighted(f)), randomness="same")(batch_of(x)),
        lambda f, x: of_examples(gradient_of_sum(f), x),
    ),
    "jacfwd": (lambda f, x: func.jacfwd(f)(x), of_jacobian),
    "jacrev": (lambda f, x: func.jacrev(f)(x), of_jacobian),
    "hessian": (lambda f, x: func.hessian(weighted(f))(x), hessian_by_rows),
    "jacobian": (lambda f, x: functional.jacobian(f, x, vectorize=True), of_jacobian),
    "forward": (
        lambda f, x: functional.jacobian(f, x, vectorize=True, strategy="forward-mode"),
        of_jacobian,
    ),
    "functional.hessian": (
        lambda f, x: functional.hessian(weighted(f), x, vectorize=True),
        hessian_by_rows,
    ),
    "is_grads_batched": (rows_of, of_jacobian),
    "of the rows": (lambda f, x: rows_of(f, x, again=True), squared_by_rows),
}


def as_jit(function: Function, points: list[Any]) -> list[Any]:
    compiled = ng.jit(function)
    return [compiled(x) for x in points]


def as_dispatcher(function: Function, points: list[Any]) -> list[Any]:
    dispatcher = ng.jit(function).lower(points[0].numpy()).dispatcher
    return [ng.tensor(dispatcher(x.numpy())[0]) for x in points]


def eagerly(function: Function, points: list[Any]) -> list[Any]:
    return [function(x) for x in points]


def interpreted(function: Function, points: list[Any]) -> list[Any]:
    """Return what a function is traced to gives, without a compiler."""
    leaves, spec = flatten(((points[0],), {}))
    trace = trace_function(function, spec, leaves)
    state = [source.words() for source in trace.sources]
    which = trace.outputs[0].which
    return [ng.tensor(interpret(trace.graph, [x.numpy(), *state])[which]) for x in points]


def check(name: str, way: str, run: Callable[[Function, list[Any]], list[Any]]) -> None:
    (function, by_python), (transform, by_rows) = PROGRAMS[name], WAYS[way]
    points = [ng.tensor(x, dtype=ng.float64) for x in ([0.4, -0.2, 0.7], [-0.3, 0.2, -0.5])]
    found = run(lambda x: transform(function, x), points)
    for x, each in zip(points, found, strict=True):
        wanted = by_rows(by_python, x).detach().numpy()
        np.testing.assert_allclose(each.detach().numpy(), wanted, 1e-9, 1e-11)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("run", [eagerly, interpreted])
def test_it_is_what_rows_are_one_by_one(run: Any, name: str, way: str) -> None:
    check(name, way, run)


@pytest.mark.parametrize(
    ("run", "name"), [(as_dispatcher, "reverse scan"), (as_jit, "cond"), (as_jit, "random")]
)
def test_compiled_rows(run: Any, name: str) -> None:
    check(name, "jacobian", run)
