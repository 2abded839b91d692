"""Drawn programs of loops and branches within each other: traced, they do what they do eagerly.

Bodies close over vectors and counters from outside, give what they were given as it is, and
choose by numbers and by sums.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import func
from tests.cases import examples

D = ng.float64
X = ng.tensor([0.3, -0.8, 1.1], dtype=D)
W = ng.tensor([0.9, 0.4, -0.5], dtype=D)

# A program is called with the vectors and the counters that it can see.
Program = Callable[[list[Any], list[Any]], Any]

ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b / 2,
    "mul": lambda a, b: a * b / 2,
    "sin": lambda a: a.sin(),
    "tanh": lambda a: a.tanh(),
    "roll": lambda a: a.roll(1, 0),
    "cumsum": lambda a: a.cumsum(0) / 3,
}
CONTROL = "cond", "cond", "operands", "switch", "while", "for", "for", "scan", "rows"


class Draw:
    """Draws programs; each has one level less within than around."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def program(self, depth: int, vectors: int, counters: int) -> Program:
        """Return a program that gives a vector."""
        kind = self.random.random()
        if depth <= 0 or kind < 0.2:
            k = self.random.randrange(vectors)
            return lambda vs, ns: vs[k]
        if kind < 0.55:
            function = ELEMENTWISE[self.random.choice(list(ELEMENTWISE))]
            count = function.__code__.co_argcount
            inner = [self.program(depth - 1, vectors, counters) for _ in range(count)]
            return lambda vs, ns: function(*[each(vs, ns) for each in inner])
        n = self.random.randrange(counters)
        if kind < 0.6:
            a = self.program(depth - 1, vectors, counters)
            return lambda vs, ns: a(vs, ns) * W[ns[n].clamp(-3, 2)]
        name = self.random.choice(CONTROL)
        return getattr(self, f"{name}_")(depth, vectors, counters, n)

    def choice(self, vectors: int, counters: int) -> Program:
        """Return what says which branch is taken: by a counter, or by the sum of a vector."""
        n, bound = self.random.randrange(counters), self.random.randrange(4)
        if self.random.random() < 0.6:
            return lambda vs, ns: ns[n] < bound
        of = self.program(1, vectors, counters)
        return lambda vs, ns: of(vs, ns).sum() > 0.3

    def cond_(self, depth: int, vectors: int, counters: int, n: int) -> Program:
        which = self.choice(vectors, counters)
        a, b = (self.program(depth - 1, vectors, counters) for _ in range(2))
        return lambda vs, ns: func.cond(which(vs, ns), lambda: a(vs, ns), lambda: b(vs, ns))

    def operands_(self, depth: int, vectors: int, counters: int, n: int) -> Program:
        which, given = self.choice(vectors, counters), self.program(depth - 2, vectors, counters)
        a, b = (self.program(depth - 1, vectors + 1, counters) for _ in range(2))
        return lambda vs, ns: func.cond(
            which(vs, ns), lambda v: a([*vs, v], ns), lambda v: b([*vs, v], ns), given(vs, ns)
        )

    def switch_(self, depth: int, vectors: int, counters: int, n: int) -> Program:
        branches = [self.program(depth - 1, vectors, counters) for _ in range(3)]
        return lambda vs, ns: func.switch(
            ns[n], [lambda branch=branch: branch(vs, ns) for branch in branches]
        )

    def while_(self, depth: int, vectors: int, counters: int, n: int) -> Program:
        init = self.program(depth - 2, vectors, counters)
        body = self.program(depth - 1, vectors + 1, counters + 1)
        options: Any = {"checkpoint": "sqrt"} if self.random.random() < 0.3 else {}

        def program(vs: list[Any], ns: list[Any]) -> Any:
            return func.while_loop(
                lambda k, v: k < ns[n].clamp(0, 4),
                lambda k, v: (k + 1, body([*vs, v], [*ns, k])),
                (ng.tensor(0), init(vs, ns)),
                **options,
            )[1]

        return program

    def for_(self, depth: int, vectors: int, counters: int, n: int) -> Program:
        init = self.program(depth - 2, vectors, counters)
        body = self.program(depth - 1, vectors + 1, counters + 1)
        turns = self.random.randrange(4)
        return lambda vs, ns: func.fori_loop(
            0, turns, lambda k, v: body([*vs, v], [*ns, ng.as_tensor(k)]), init(vs, ns)
        )

    def scan_(self, depth: int, vectors: int, counters: int, n: int) -> Program:
        init = self.program(depth - 2, vectors, counters)
        carry, row = (self.program(depth - 1, vectors + 1, counters) for _ in range(2))
        turns, backwards = self.random.randrange(1, 4), self.random.random() < 0.3

        def program(vs: list[Any], ns: list[Any]) -> Any:
            last, rows = func.scan(
                lambda v, _: (carry([*vs, v], ns), row([*vs, v], ns)),
                init(vs, ns),
                None,
                length=turns,
                reverse=backwards,
            )
            return last + rows.sum(0) / 2

        return program

    def rows_(self, depth: int, vectors: int, counters: int, n: int) -> Program:
        init, first = (self.program(depth - 2, vectors, counters) for _ in range(2))
        carry, row = (self.program(depth - 1, vectors + 2, counters) for _ in range(2))
        backwards = self.random.random() < 0.3

        def program(vs: list[Any], ns: list[Any]) -> Any:
            last, rows = func.scan(
                lambda v, x: (carry([*vs, v, x], ns), row([*vs, v, x], ns)),
                init(vs, ns),
                ng.stack([first(vs, ns), vs[0], vs[0] / 2]),
                reverse=backwards,
            )
            return last + rows.sum(0) / 2

        return program


def recorded(f: Any, n: Any) -> Sequence[Any]:
    """Return the value, and the gradients for both vectors that `backward` gives."""
    x, w = X.clone().requires_grad_(), W.clone().requires_grad_()
    value = f(x, w, n).sum()
    if value.requires_grad:
        value.backward()
    return [value.detach(), x.grad, w.grad]


# Of a function of two vectors and a counter.
TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(lambda x, w, n: f(x, w, n).sum(), argnums=(0, 1)),
    "jvp": lambda f: lambda x, w, n: func.jvp(lambda x, w: f(x, w, n), (x, w), (w / 2, x + 1)),
    "hessian": lambda f: lambda x, w, n: [func.hessian(lambda x: f(x, w, n).sum())(x)],
    "rows": lambda f: (
        lambda x, w, n: [func.vmap(func.grad(lambda x: f(x, w, n).sum()))(ng.stack([x, w, x / 9]))]
    ),
}


def check(found: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    for pair in zip(found, expected, strict=True):
        one, other = (np.zeros(3) if each is None else each.detach().numpy() for each in pair)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=what)


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("seed", range(20))
def test_drawn_programs_do_what_they_do_eagerly(seed: int, traced: None) -> None:
    for number in range(examples(8, in_sample=1)):
        program = Draw(f"{seed} {number}").program(4, 2, 1)

        def f(x: Any, w: Any, n: Any, program: Program = program) -> Any:
            return program([x, w], [n])

        for n in (ng.tensor(0), ng.tensor(5)):
            expected = recorded(f, n)
            check(recorded(ng.jit(f), n), expected, f"{number} jit")
            captured = recorded(lambda x, w, n: ng.jit(lambda x: f(x, w, n))(x), n)
            check(captured, expected, f"{number} captured")
            for name, transformed in TRANSFORMED.items():
                g = transformed(f)
                check(ng.jit(g)(X, W, n), g(X, W, n), f"{number} {name}")
