"""Random graphs, what is done with each again and again, and the operations that they are of."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import numgrad as ng

__all__ = [
    "HOOKS",
    "LEAVES",
    "PLAIN",
    "VIEWS",
    "Array",
    "Pass",
    "Program",
    "Round",
    "diamonds",
    "operations",
    "programs",
    "repetitions",
]

Array = np.ndarray[Any, Any]
LEAVES = 2  # the first tensors of a graph


class Operation(NamedTuple):
    """What computes a tensor of others: all are of 2 by 2 elements, and it is linear in each.

    Attributes
    ----------
    count : int
        Of how many tensors.
    forward : callable
        ``forward(lib, kept, *tensors)``; a Function of its own appends to `kept` what it gave.
    backward : callable
        Of the gradient, an array: those of the tensors.
    """

    count: int
    forward: Callable[..., Any]
    backward: Callable[[Array], tuple[Array, ...]]


@functools.cache
def operations(lib: Any) -> dict[str, Operation]:
    """Return the operations by their names, with Functions of the library."""

    class Shares(lib.autograd.Function):  # type: ignore[misc]
        """A sum that gives one tensor for two."""

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, kept: list[Any]) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            double = g * 2
            return double, double, None

    class Passes(Shares):
        """A sum that gives what it got."""

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g, None

    class Keeps(Shares):
        """A sum that keeps what it gives."""

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, kept: list[Any]) -> Any:
            ctx.kept = kept
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            double = g * 2
            ctx.kept.append(double)
            return double, g, None

    class Gives(Shares):
        """A sum that gives what nobody holds."""

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, (g * 3).view(4).view(2, 2), None

    class Turns(Shares):
        """A sum that gives a tensor, and a view of it."""

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            double = g * 2
            return double.t(), double, None

    class Spreads(Shares):
        """A sum that gives a row, and a column, several times."""

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (g * 2)[:1].expand(2, 2), (g * 3)[:, :1].expand(2, 2), None

    def written(lib: Any, kept: Any, a: Any, b: Any) -> Any:
        result = a.clone()
        result.add_(b)
        return result

    def written_row(lib: Any, kept: Any, a: Any, b: Any) -> Any:
        result = a.clone()
        result[0].add_(b[1])
        return result

    def mixed(lib: Any, kept: Any, a: Any, b: Any) -> Any:
        return lib.where(lib.tensor([[True, False], [False, True]]), a, b)

    def overwritten(how: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        def forward(lib: Any, kept: Any, a: Any, b: Any = None) -> Any:
            result = a * 1
            before = result * 2
            how(result, b)
            return result + before

        return forward

    zero, diagonal = np.zeros((1, 2)), np.eye(2)
    return {
        "sum": Operation(2, lambda m, k, a, b: a + b, lambda g: (g, g)),
        "difference": Operation(2, lambda m, k, a, b: a - b, lambda g: (g, -g)),
        "multiple": Operation(1, lambda m, k, a: a * 3, lambda g: (3 * g,)),
        "negative": Operation(1, lambda m, k, a: -a, lambda g: (-g,)),
        "copy": Operation(1, lambda m, k, a: a.clone(), lambda g: (g,)),
        "shift": Operation(1, lambda m, k, a: a + 1, lambda g: (g,)),
        "view": Operation(1, lambda m, k, a: a.unsqueeze(0).squeeze(0), lambda g: (g,)),
        "alias": Operation(1, lambda m, k, a: a[...], lambda g: (g,)),
        "transpose": Operation(1, lambda m, k, a: a.t(), lambda g: (g.T,)),
        "row": Operation(
            1, lambda m, k, a: a[:1].expand(2, 2), lambda g: (np.vstack([g.sum(0), zero]),)
        ),
        "total": Operation(
            2, lambda m, k, a, b: a.sum() + b, lambda g: (np.full((2, 2), g.sum()), g)
        ),
        "join": Operation(
            2,
            lambda m, k, a, b: m.cat([a[:1], b[1:]]),
            lambda g: (np.vstack([g[:1], zero]), np.vstack([zero, g[1:]])),
        ),
        "swap": Operation(1, lambda m, k, a: m.stack(a.unbind()[::-1]), lambda g: (g[::-1],)),
        "totals": Operation(
            2,
            lambda m, k, a, b: (a.sum() + b) + a.mean(),
            lambda g: (np.full((2, 2), 1.25 * g.sum()), g),
        ),
        "first": Operation(
            2, lambda m, k, a, b: a[0] + b, lambda g: (np.vstack([g.sum(0), zero]), g)
        ),
        "columns": Operation(
            2, lambda m, k, a, b: a.sum(0) + b, lambda g: (np.vstack([g.sum(0)] * 2), g)
        ),
        "floor": Operation(2, lambda m, k, a, b: a.floor() + b, lambda g: (0 * g, g)),
        "flat": Operation(1, lambda m, k, a: a.reshape(-1).reshape(2, 2), lambda g: (g,)),
        "lifted": Operation(
            2, lambda m, k, a, b: (a + b.unsqueeze(0)).squeeze(0), lambda g: (g, g)
        ),
        "real": Operation(1, lambda m, k, a: a.to(m.complex128).real, lambda g: (g,)),
        "mixed": Operation(2, mixed, lambda g: (g * diagonal, g * (1 - diagonal))),
        "picked": Operation(1, lambda m, k, a: a[[1, 0]], lambda g: (g[::-1],)),
        "running": Operation(
            1, lambda m, k, a: a.cumsum(0), lambda g: (np.vstack([g.sum(0), g[1:]]),)
        ),
        "written": Operation(2, written, lambda g: (g, g)),
        "written row": Operation(2, written_row, lambda g: (g, np.vstack([zero, g[:1]]))),
        "zeroed": Operation(1, overwritten(lambda a, b: a.zero_()), lambda g: (2 * g,)),
        "filled": Operation(
            1,
            overwritten(lambda a, b: a[:1].fill_(3)),
            lambda g: (np.vstack([2 * g[:1], 3 * g[1:]]),),
        ),
        "copied to": Operation(2, overwritten(lambda a, b: a.copy_(b)), lambda g: (2 * g, g)),
        "floored": Operation(1, overwritten(lambda a, b: a.floor_()), lambda g: (2 * g,)),
        "shares": Operation(2, lambda m, k, a, b: Shares.apply(a, b, k), lambda g: (2 * g, 2 * g)),
        "passes": Operation(2, lambda m, k, a, b: Passes.apply(a, b, k), lambda g: (g, g)),
        "keeps": Operation(2, lambda m, k, a, b: Keeps.apply(a, b, k), lambda g: (2 * g, g)),
        "gives": Operation(2, lambda m, k, a, b: Gives.apply(a, b, k), lambda g: (2 * g, 3 * g)),
        "spreads": Operation(
            2,
            lambda m, k, a, b: Spreads.apply(a, b, k),
            lambda g: (2 * g[:1] + 0 * g, 3 * g[:, :1] + 0 * g),
        ),
        "turns": Operation(2, lambda m, k, a, b: Turns.apply(a, b, k), lambda g: (2 * g.T, 2 * g)),
    }


# Most often those that hand a gradient on as it is, or make one that they do not keep.
NAMES = sorted(operations(ng)) + ["shift"] * 8 + ["multiple", "sum"] * 4
HOOKS = ["keep", "double", "before", "after", "after", "retain", "retain", "added"]
# Operations of one node, whose hooks see the gradient of each tensor.
PLAIN = {
    "sum",
    "difference",
    "multiple",
    "negative",
    "copy",
    "shift",
    "shares",
    "passes",
    "keeps",
    "gives",
}
# Those whose gradients are views of what they are given.
VIEWS = {"alias", "flat", "lifted", "transpose", "turns", "view"}


class Pass(NamedTuple):
    """One run of the engine, from one root or two."""

    accumulate: bool  # backward, not grad
    roots: tuple[int, ...]
    inputs: tuple[int, ...]  # none: everything
    create_graph: bool
    batch: int  # of the gradients that are given, the first element
    write: str  # what the user does then to the .grad of the leaves, or to what was captured


class Round(NamedTuple):
    """What is done with a graph; numbers are taken modulo how many there are to choose from."""

    hooks: tuple[tuple[str, int], ...]
    passes: tuple[Pass, ...]
    inference: bool = False  # whether the passes run in inference mode


class Program(NamedTuple):
    """A graph, made anew for each round."""

    nodes: tuple[tuple[str, int, int], ...]
    rounds: tuple[Round, ...]


_number = st.integers(0, 11)
_all = tuple(range(12))  # every tensor, some of them twice
_one = st.sampled_from(["shift"] * 4 + ["multiple"] * 4 + ["alias", "transpose"])
_two = st.sampled_from(["sum", "passes", "shares", "keeps", "gives", "written"])


def _diamond(a: str, b: str, c: str, d: str, e: str) -> tuple[tuple[str, int, int], ...]:
    """Return a graph in which a leaf's gradient comes in two parts, one over a longer way."""
    return ((a, 0, 0), (b, 0, 0), (c, 3, 0), (d, 4, 2), (e, 5, 0))


_diamonds = st.builds(_diamond, _one, _one, _one, _two, _one)
_chains = st.lists(st.tuples(_one, st.just(1), st.just(0)), min_size=1, max_size=3).map(
    lambda steps: tuple([(name, 1 if i == 0 else i + 1, 0) for i, (name, _, _) in enumerate(steps)])
)
_graphs = st.lists(st.tuples(st.sampled_from(NAMES), _number, _number), min_size=1, max_size=6)
_rounds = st.builds(
    Round,
    st.one_of(
        st.sampled_from(HOOKS).map(lambda kind: tuple([(kind, at) for at in _all])),
        st.lists(st.tuples(st.sampled_from(HOOKS), _number), max_size=4).map(tuple),
    ),
    st.lists(
        st.builds(
            Pass,
            st.booleans(),
            st.lists(_number, min_size=1, max_size=2).map(tuple),
            st.one_of(st.just(()), st.just(_all), st.lists(_number, max_size=4).map(tuple)),
            st.sampled_from([False, False, False, True]),
            st.integers(1, 9),
            st.sampled_from(["", "", "", "fill", "forget", "assign", "capture"]),
        ),
        min_size=2,
        max_size=3,
    ).map(tuple),
    st.sampled_from([False, False, True]),
)


def _again_and_again(rounds: list[Round]) -> tuple[Round, ...]:
    """Return rounds of which the first is so often that what is remembered of it runs.

    The third time a call is remembered, and with it the rules of its node.
    """
    return (*rounds[:1] * 4, *rounds[1:])


programs = st.builds(
    Program,
    st.one_of(_diamonds, _graphs.map(tuple), _chains, _graphs.map(tuple)),
    st.lists(_rounds, min_size=1, max_size=3).map(_again_and_again),
)


def diamonds(hook: str) -> Iterable[Program]:
    """Return a program for each small graph of two ways, all tensors of which have a hook."""
    hooks = tuple([(hook, at) for at in range(6)]) if hook else ()
    backward = Pass(True, (0,), (), False, 1, "")
    towards, grad = backward._replace(inputs=_all), Pass(False, (0,), _all, False, 2, "capture")
    recorded = backward._replace(create_graph=True)
    for ones in itertools.product(("shift", "multiple"), repeat=4):
        for two in ("sum", "passes", "shares", "keeps", "gives", "written"):
            nodes = _diamond(*ones[:3], two, ones[3])
            for passes in (
                (backward, backward),
                (grad, towards),
                (towards, grad._replace(write="")),
                (recorded, recorded),
            ):
                yield Program(nodes, (Round(hooks, passes),))


def repetitions(hook: str) -> Iterable[Program]:
    """Return programs of each operation, alone and beside others, one round like the next.

    Only then what is remembered of a call runs with what is remembered of the rules of its node.
    """
    hooks = tuple([(hook, at) for at in range(5)]) if hook else ()
    backward = Pass(True, (0,), (), False, 1, "")
    passes = (backward, Pass(False, (0,), _all, False, 2, "capture"), backward)
    for name in operations(ng):
        for nodes in (
            ((name, 0, 1),),
            (("multiple", 0, 0), (name, 2, 1), ("sum", 3, 2)),
            ((name, 0, 1), (name, 1, 0), ("sum", 2, 3)),
        ):
            for inference in (False, True):
                yield Program(nodes, (Round(hooks, passes, inference),) * 5)
