"""Reductions and scans of 16 million float32 numbers, along every axis of several layouts.

`compare.py` puts the same cases beside PyTorch and NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import numgrad as ng

Operation = Callable[[Any], Any]

# Where tests run, cases have only to run: to make 16 million numbers for each takes minutes.
SIDE = 64 if os.environ.get("CI") else 4096
SQUARE = (SIDE, SIDE)
CUBE = (16, 16, 16) if os.environ.get("CI") else (256, 256, 256)

# How a tensor of normal numbers lies in memory. Numbers stand for elements, so that a case is
# always about 16 million of them, wherever they are.
LAYOUTS: dict[str, tuple[tuple[int, ...], Operation]] = {
    "rows": (SQUARE, lambda x: x),
    "transposed": (SQUARE, lambda x: x.t()),
    "every other": ((SIDE, 2 * SIDE), lambda x: x[:, ::2]),
    "half a row": ((SIDE, 2 * SIDE), lambda x: x[:, :SIDE]),
    "expanded": ((SIDE, 1), lambda x: x.expand(SQUARE)),
    "cube": (CUBE, lambda x: x),
    "permuted cube": (CUBE, lambda x: x.permute(2, 0, 1)),
}


def gradient(operation: Operation) -> Operation:
    """Return what runs an operation and its way back to a leaf, from the sum of the result."""

    def run(x: Any) -> None:
        x.grad = None
        operation(x).sum().backward()

    return run


class Case:
    """An operation on a layout, in numgrad's and PyTorch's spelling, and perhaps in NumPy's."""

    def __init__(
        self, layout: str, run: Operation, numpy: Operation | None = None, grad: bool = False
    ) -> None:
        self.layout = layout
        self.run = gradient(run) if grad else run
        self.numpy = numpy
        self.grad = grad

    def operands(self, library: Any) -> Any:
        """Return what `run` takes, of a case with gradient a leaf; for NumPy an array."""
        shape, view = LAYOUTS[self.layout]
        values = np.random.default_rng(0).standard_normal(shape, np.float32)
        if library is np:  # the view is spelled for tensors
            return view(ng.from_numpy(values)).numpy()
        return view(library.from_numpy(values)).requires_grad_(self.grad)


def _numpy_softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _numpy_logsumexp(x: Any) -> Any:
    top = x.max(1, keepdims=True)
    return np.log(np.exp(x - top).sum(1)) + top[:, 0]


MAIN = {
    "sum()": Case("rows", lambda x: x.sum(), lambda x: x.sum()),
    "sum(0)": Case("rows", lambda x: x.sum(0), lambda x: x.sum(0)),
    "sum(1)": Case("rows", lambda x: x.sum(1), lambda x: x.sum(1)),
    "max(1)": Case("rows", lambda x: x.max(1), lambda x: (x.max(1), x.argmax(1))),
    "logsumexp(1)": Case("rows", lambda x: x.logsumexp(1), _numpy_logsumexp),
    "softmax(1)": Case("rows", lambda x: x.softmax(1), _numpy_softmax),
    "logsumexp(1).sum() and its gradient": Case("rows", lambda x: x.logsumexp(1), grad=True),
}

OTHERS = {
    "mean(1)": Case("rows", lambda x: x.mean(1), lambda x: x.mean(1)),
    "prod(1)": Case("rows", lambda x: x.prod(1), lambda x: x.prod(1)),
    "amax()": Case("rows", lambda x: x.amax(), lambda x: x.max()),
    "amax(0)": Case("rows", lambda x: x.amax(0), lambda x: x.max(0)),
    "amax(1)": Case("rows", lambda x: x.amax(1), lambda x: x.max(1)),
    "argmax()": Case("rows", lambda x: x.argmax(), lambda x: x.argmax()),
    "argmax(0)": Case("rows", lambda x: x.argmax(0), lambda x: x.argmax(0)),
    "argmin(1)": Case("rows", lambda x: x.argmin(1), lambda x: x.argmin(1)),
    "max(0)": Case("rows", lambda x: x.max(0), lambda x: (x.max(0), x.argmax(0))),
    "var()": Case("rows", lambda x: x.var(), lambda x: x.var(ddof=1)),
    "var(0)": Case("rows", lambda x: x.var(0), lambda x: x.var(0, ddof=1)),
    "std(1)": Case("rows", lambda x: x.std(1), lambda x: x.std(1, ddof=1)),
    "norm()": Case("rows", lambda x: x.norm(), lambda x: np.linalg.norm(x)),
    "norm(p=1, dim=1)": Case("rows", lambda x: x.norm(1, 1), lambda x: np.linalg.norm(x, 1, 1)),
    "all()": Case("rows", lambda x: x.all(), lambda x: x.all()),
    "any(1)": Case("rows", lambda x: x.any(1), lambda x: x.any(1)),
    "logsumexp(0)": Case("rows", lambda x: x.logsumexp(0)),
    "softmax(0)": Case("rows", lambda x: x.softmax(0)),
    "log_softmax(1)": Case("rows", lambda x: x.log_softmax(1)),
    "softmax(1) and its gradient": Case("rows", lambda x: x.softmax(1), grad=True),
    "log_softmax(1) and its gradient": Case("rows", lambda x: x.log_softmax(1), grad=True),
    "max(1).values and its gradient": Case("rows", lambda x: x.max(1).values, grad=True),
    "var(1) and its gradient": Case("rows", lambda x: x.var(1), grad=True),
    "cumsum(0)": Case("rows", lambda x: x.cumsum(0), lambda x: x.cumsum(0)),
    "cumsum(1)": Case("rows", lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
    "cumprod(1)": Case("rows", lambda x: x.cumprod(1), lambda x: x.cumprod(1)),
    "cummax(0)": Case("rows", lambda x: x.cummax(0)),
    "cummax(1)": Case("rows", lambda x: x.cummax(1)),
    "logcumsumexp(0)": Case("rows", lambda x: x.logcumsumexp(0)),
    "logcumsumexp(1)": Case("rows", lambda x: x.logcumsumexp(1)),
}

BY_LAYOUT = {
    f"{layout}: {name}": Case(layout, run, numpy)
    for layout in ("transposed", "every other", "half a row", "expanded")
    for name, run, numpy in [
        ("sum()", lambda x: x.sum(), lambda x: x.sum()),
        ("sum(0)", lambda x: x.sum(0), lambda x: x.sum(0)),
        ("sum(1)", lambda x: x.sum(1), lambda x: x.sum(1)),
        ("max(1)", lambda x: x.max(1), lambda x: (x.max(1), x.argmax(1))),
        ("logsumexp(1)", lambda x: x.logsumexp(1), _numpy_logsumexp),
        ("softmax(1)", lambda x: x.softmax(1), _numpy_softmax),
    ]
} | {
    f"{layout}: {name}": Case(layout, run, numpy)
    for layout in ("cube", "permuted cube")
    for name, run, numpy in [
        ("sum(0)", lambda x: x.sum(0), lambda x: x.sum(0)),
        ("sum(1)", lambda x: x.sum(1), lambda x: x.sum(1)),
        ("sum((0, 2))", lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2))),
        ("amax((0, 1))", lambda x: x.amax((0, 1)), lambda x: x.max((0, 1))),
        ("var((0, 2))", lambda x: x.var((0, 2)), lambda x: x.var((0, 2), ddof=1)),
        ("max(1)", lambda x: x.max(1), lambda x: (x.max(1), x.argmax(1))),
        ("logsumexp((0, 2))", lambda x: x.logsumexp((0, 2)), None),
        ("softmax(1)", lambda x: x.softmax(1), _numpy_softmax),
    ]
}

CASES = MAIN | OTHERS | BY_LAYOUT


class Reductions:
    """Each case, by numgrad."""

    params = ([*MAIN, *OTHERS],)  # the comparison has them all
    param_names = ("case",)
    number = 1
    rounds = 1
    repeat = (3, 9, 2.0)
    warmup_time = 0.01  # that is one call, which compiles
    timeout = 300

    def setup(self, case: str) -> None:
        self.operands = CASES[case].operands(ng)

    def time_case(self, case: str) -> None:
        CASES[case].run(self.operands)
