"""Elementwise operations: functions of 10 million numbers, and operands that do not lie flat.

`compare.py` puts the same cases beside PyTorch and NumPy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import numgrad as ng

Operation = Callable[..., Any]

# Where tests run, cases have only to run.
MILLIONS = 10_000 if os.environ.get("CI") else 10_000_000
DTYPES = ("float64", "float32")
SIZES = (10**2, 10**3) if os.environ.get("CI") else (10**3, 10**5, 10**7)


class Case:
    """A call on operands made of normal or positive numbers, for several libraries.

    Parameters
    ----------
    shapes : list of tuple of int
        Of the arrays that the operands are views of.
    run : callable
        The call, in numgrad's and PyTorch's spelling.
    numpy : callable, optional
        It in NumPy's.
    views : list of callable, optional
        What makes the operands of the arrays.
    gradient : bool
        Whether to run the way back of `run`, recorded once, instead.
    """

    def __init__(
        self,
        shapes: list[tuple[int, ...]],
        run: Operation,
        numpy: Operation | None = None,
        *,
        dtype: str = "float64",
        views: list[Operation] | None = None,
        gradient: bool = False,
    ) -> None:
        self.shapes, self.dtype, self.function = shapes, dtype, run
        self.views = views or [lambda x: x] * len(shapes)
        self.gradient = gradient
        self.numpy = None if numpy is None else lambda operands: numpy(*operands)

    def operands(self, library: Any) -> Any:
        """Return the arguments of the call: tensors, or arrays for NumPy."""
        random = np.random.default_rng(0)
        arrays = [random.uniform(0.5, 2, shape).astype(self.dtype) for shape in self.shapes]
        if library is np:
            return [view(array) for view, array in zip(self.views, arrays, strict=True)]
        leaves = [
            view(library.from_numpy(array)).requires_grad_(self.gradient)
            for view, array in zip(self.views, arrays, strict=True)
        ]
        if not self.gradient:
            return leaves
        result = self.function(*leaves)
        return [*leaves, result, library.ones_like(result)]

    def run(self, operands: Any) -> None:
        """Call it."""
        if not self.gradient:
            self.function(*operands)
            return
        *leaves, result, cotangent = operands
        for leaf in leaves:
            leaf.grad = None
        result.backward(cotangent, retain_graph=True)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


_FUNCTIONS: dict[str, tuple[int, Operation, Operation | None]] = {
    "copy": (1, lambda x: x.clone(), lambda x: x.copy()),
    "exp": (1, lambda x: x.exp(), np.exp),
    "log": (1, lambda x: x.log(), np.log),
    "tanh": (1, lambda x: x.tanh(), np.tanh),
    "sin": (1, lambda x: x.sin(), np.sin),
    "cos": (1, lambda x: x.cos(), np.cos),
    "sigmoid": (1, lambda x: x.sigmoid(), _sigmoid),
    "erf": (1, lambda x: x.erf(), None),
    "pow(2.5)": (1, lambda x: x.pow(2.5), lambda x: x**2.5),
    "sqrt": (1, lambda x: x.sqrt(), np.sqrt),
    "add": (2, lambda x, y: x + y, np.add),
    "mul": (2, lambda x, y: x * y, np.multiply),
    "expm1": (1, lambda x: x.expm1(), np.expm1),
    "log1p": (1, lambda x: x.log1p(), np.log1p),
    "tan": (1, lambda x: x.tan(), np.tan),
    "atan": (1, lambda x: x.atan(), np.arctan),
    "asin": (1, lambda x: (x - 1).asin(), None),
    "sinh": (1, lambda x: x.sinh(), np.sinh),
    "asinh": (1, lambda x: x.asinh(), np.arcsinh),
    "erfc": (1, lambda x: x.erfc(), None),
    "atan2": (2, lambda x, y: x.atan2(y), np.arctan2),
    "hypot": (2, lambda x, y: x.hypot(y), np.hypot),
    "pow(y)": (2, lambda x, y: x.pow(y), np.power),
}

FUNCTIONS = {
    f"{name}, {dtype}": Case([(MILLIONS,)] * count, run, numpy, dtype=dtype)
    for name, (count, run, numpy) in _FUNCTIONS.items()
    for dtype in DTYPES
}


def _same(x: Any) -> Any:
    return x


def _layouts(size: int) -> dict[str, tuple[list[tuple[int, ...]], list[Operation]]]:
    side, edge = math.isqrt(size), max(2, round(size**0.2))
    square, row, column = (side, side), (1, side), (side, 1)
    return {
        "row + column": ([row, column], [_same, _same]),
        "matrix + row": ([square, (side,)], [_same, _same]),
        "matrix + column": ([square, column], [_same, _same]),
        "narrow matrix + row": ([(size // 3, 3), (3,)], [_same, _same]),
        "transposed + transposed": ([square, square], [lambda x: x.T, lambda x: x.T]),
        "matrix + transposed": ([square, square], [_same, lambda x: x.T]),
        "every second of both": (
            [(2 * side, 2 * side), square],
            [lambda x: x[::2, ::2], _same],
        ),
        "every second column": (
            [(side, 2 * side)] * 2,
            [lambda x: x[:, ::2], lambda x: x[:, 1::2]],
        ),
        "five dims": (
            [(edge, 1, edge, 1, edge), (1, edge, edge, edge, 1)],
            [_same, _same],
        ),
    }


LAYOUTS = {
    f"{name}, {size:,} {dtype}": Case(shapes, lambda x, y: x + y, np.add, dtype=dtype, views=views)
    for size in SIZES
    for dtype in DTYPES
    for name, (shapes, views) in _layouts(size).items()
}

GRADIENTS = {
    f"gradient of matrix * {name}, {size:,} {dtype}": Case(
        [(math.isqrt(size), math.isqrt(size)), shape(math.isqrt(size))],
        lambda x, y: x * y,
        dtype=dtype,
        gradient=True,
    )
    for size in SIZES[1:]
    for dtype in DTYPES
    for name, shape in {
        "row": lambda side: (side,),
        "column": lambda side: (side, 1),
        "number": lambda side: (1, 1),
    }.items()
}

CASES = FUNCTIONS | LAYOUTS | GRADIENTS


# What asv tracks; the comparison has them all.
TRACKED = [
    *list(FUNCTIONS)[: 2 * list(_FUNCTIONS).index("expm1")],
    *(name for name in LAYOUTS if name.endswith(("100,000 float64", "10,000,000 float32"))),
    *(name for name in GRADIENTS if name.endswith("10,000,000 float32")),
]


class Elementwise:
    """Cases by numgrad."""

    params = (TRACKED,)
    param_names = ("case",)
    number = 1
    rounds = 1
    repeat = (3, 9, 0.5)
    warmup_time = 0.01  # that is one call, which compiles
    timeout = 300

    def setup(self, case: str) -> None:
        self.operands = CASES[case].operands(ng)

    def time_case(self, case: str) -> None:
        CASES[case].run(self.operands)
