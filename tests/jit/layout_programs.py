"""Random programs whose results follow from how their tensors lie in memory.

Some of what they make are views or copies by the strides of something; they write through one and
read through another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import numgrad as ng

__all__ = ["LAYOUTS", "Program", "laid_out", "programs"]

Array = np.ndarray[Any, Any]
Step = tuple[str, tuple[int, ...]]  # an operation, and numbers that it makes its choices by


def laid_out(values: Array, layout: str) -> Array:
    """Return an array of the shape of another one that lies in memory in some way.

    It has the same values but where elements share memory.
    """
    dims = values.ndim
    if not dims:
        return values.copy()
    if layout == "fortran":
        return np.asfortranarray(values)
    if layout == "permuted":
        order = [*range(1, dims), 0]
        return np.ascontiguousarray(values.transpose(order)).transpose(np.argsort(order))
    if layout == "stepped":
        window = tuple([slice(0, 2 * n, 2) for n in values.shape])
        array = np.zeros([2 * n for n in values.shape], values.dtype)[window]
        array[...] = values
        return array
    if layout == "rows":  # whose ends were cut off
        larger = np.zeros([n + 1 for n in values.shape], values.dtype)
        array = larger[tuple([slice(1, None)] * dims)]
        array[...] = values
        return array
    if layout == "flipped":
        return np.ascontiguousarray(values[::-1])[::-1]
    if layout == "expanded" and values.size:
        return np.broadcast_to(values[:1].copy(), values.shape)
    if layout == "overlapping" and values.size:
        memory = values.ravel()[: sum(values.shape) - dims + 1].copy()
        memory = np.resize(memory, sum(values.shape) + 1)
        return np.lib.stride_tricks.as_strided(memory, values.shape, [memory.itemsize] * dims)
    return values.copy()


LAYOUTS = (
    "contiguous",
    "fortran",
    "permuted",
    "stepped",
    "rows",
    "flipped",
    "expanded",
    "overlapping",
)


def _dim(x: Any, n: int) -> int:
    return n % max(1, x.dim())


def _slice(x: Any, a: int, b: int, _: int) -> Any:
    if not x.dim():
        return x
    return x.narrow(_dim(x, a), min(1, x.shape[_dim(x, a)]), max(0, x.shape[_dim(x, a)] - 1))


def _step(x: Any, a: int, b: int, _: int) -> Any:
    return x[(slice(None),) * _dim(x, a) + (slice(b % 2, None, 2),)] if x.dim() else x


def _select(x: Any, a: int, b: int, _: int) -> Any:
    dim = _dim(x, a)
    return x.select(dim, b % x.shape[dim]) if x.dim() and x.shape[dim] else x


def _expand(x: Any, a: int, b: int, _: int) -> Any:
    return x.expand([3 if n == 1 else n for n in x.shape])


def _split(x: Any, a: int, b: int, _: int) -> Any:
    for dim, n in enumerate(x.shape):
        if n and n % 2 == 0:
            return x.reshape(*x.shape[:dim], 2, n // 2, *x.shape[dim + 1 :])
    return x.reshape(x.shape)


def _flatten(x: Any, a: int, b: int, _: int) -> Any:
    first, last = sorted((_dim(x, a), _dim(x, b)))
    return x.flatten(first, last)


# Each takes a tensor and three numbers. What they return may be a view of it.
VIEWS: dict[str, Callable[..., Any]] = {
    "transpose": lambda x, a, b, c: x.transpose(_dim(x, a), _dim(x, b)) if x.dim() else x,
    "permute": lambda x, a, b, c: x.permute([(d + a) % x.dim() for d in range(x.dim())]),
    "slice": _slice,
    "step": _step,
    "select": _select,
    "expand": _expand,
    "unsqueeze": lambda x, a, b, c: x.unsqueeze(_dim(x, a)) if x.dim() < 4 else x,
    "squeeze": lambda x, a, b, c: x.squeeze(),
    "diagonal": lambda x, a, b, c: x.diagonal() if x.dim() > 1 and x.numel() else x,
    "unfold": lambda x, a, b, c: x.unfold(0, 2, 1) if x.dim() in (1, 2) and x.shape[0] > 1 else x,
    "detach": lambda x, a, b, c: x[...],
    "reshape": lambda x, a, b, c: x.reshape(-1),
    "split": _split,
    "flatten": _flatten,
    "ravel": lambda x, a, b, c: x.ravel(),
    "contiguous": lambda x, a, b, c: x.contiguous(),
    "to": lambda x, a, b, c: x.to(x.dtype),
    "view": lambda x, a, b, c: x.view(-1),
    "view_as": lambda x, a, b, c: x.view_as(x.reshape(-1)),
}
COPIES: dict[str, Callable[..., Any]] = {
    "clone": lambda x, a, b, c: x.clone(),
    "in order": lambda x, a, b, c: x.clone(memory_format=ng.contiguous_format),
    "mul": lambda x, a, b, c: x * 2,
    "sin": lambda x, a, b, c: x.sin(),
    "cast": lambda x, a, b, c: x.to(ng.float32).to(ng.float64),
    "copy": lambda x, a, b, c: x.to(ng.float64, copy=True),
    "sum": lambda x, a, b, c: x.sum(_dim(x, a), keepdim=bool(b % 2)) if x.dim() else x * 1,
    "flip": lambda x, a, b, c: x.flip(0) if x.dim() else x * 1,
    "cat": lambda x, a, b, c: ng.cat([x, x], _dim(x, a)) if x.dim() else x * 1,
    "outer": lambda x, a, b, c: x.unsqueeze(0) - x.unsqueeze(-1) if x.dim() < 3 else x * 1,
    "zeros_like": lambda x, a, b, c: ng.zeros_like(x) + 1,
    "where": lambda x, a, b, c: ng.where(x > 0, x, -x),
    "triu": lambda x, a, b, c: x.triu() if x.dim() > 1 else x * 1,
    "cumsum": lambda x, a, b, c: x.cumsum(_dim(x, a)) if x.dim() else x * 1,
}
WRITES: dict[str, Callable[..., Any]] = {
    "fill": lambda x, a, b, c: x.fill_(0.5 + c),
    "mul": lambda x, a, b, c: x.mul_(1.5 + c),
    "zero": lambda x, a, b, c: x.zero_(),
    "item": lambda x, a, b, c: x[..., :1].add_(c + 1) if x.dim() else x.add_(1),
    "double": lambda x, a, b, c: x.add_(x.sin()),
}
QUESTIONS: dict[str, Callable[..., Any]] = {
    "is_contiguous": lambda x: x.is_contiguous(),
    "stride": lambda x: [s for s, n in zip(x.stride(), x.shape, strict=True) if n > 1],
}


class Program(NamedTuple):
    """A function of one tensor, and what it was drawn from."""

    steps: tuple[Step, ...]
    asks: bool  # whether the answers to questions are among its results

    def __call__(self, x: Any) -> list[Any]:
        """Return all tensors that were made, as they are at the end, and answers."""
        pool, answers = [x, x * 3], []
        may_be_given = [True, False]  # whether it is a view of an argument in some layout
        for name, (which, a, b, c) in self.steps:
            kind, operation = name.split(": ")
            k = len(pool) - 1 - which % len(pool) if which < 6 else which % len(pool)
            found = pool[k]
            if kind == "view" or kind == "copy":
                pool.append((VIEWS if kind == "view" else COPIES)[operation](found, a, b, c))
                may_be_given.append(kind == "view" and may_be_given[k])
            elif kind == "write" and not may_be_given[k]:
                WRITES[operation](found, a, b, c)
            elif kind == "ask" and self.asks and found.numel():
                answers.append(QUESTIONS[operation](found))
        return [*pool[1:], *answers]

    def __repr__(self) -> str:
        """Return the steps, a line each."""
        lines = "\n".join(f"    {name} {numbers}" for name, numbers in self.steps)
        return f"Program(asks={self.asks}):\n{lines}"


NAMES = [
    *(f"view: {name}" for name in VIEWS),
    *(f"copy: {name}" for name in COPIES),
    *(f"write: {name}" for name in WRITES for _ in range(2)),
    *(f"ask: {name}" for name in QUESTIONS),
]


def programs(names: Sequence[str] = tuple(NAMES)) -> st.SearchStrategy[Program]:
    """Return a strategy of programs."""
    number = st.integers(0, 3)
    step = st.tuples(st.sampled_from(names), st.tuples(st.integers(0, 9), number, number, number))
    return st.builds(Program, st.lists(step, min_size=2, max_size=8).map(tuple), st.booleans())
