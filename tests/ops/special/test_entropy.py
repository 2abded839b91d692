"""Terms of entropies: special values, gradients, second derivatives, accuracy."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np
import pytest

import numgrad as ng

INF, NAN = float("inf"), float("nan")
VALUES = [0.0, -0.0, 0.5, 1.0, -1.0, -2.0, INF, -INF, NAN]


@pytest.mark.parametrize("form", ["tensors", "a number first", "a number second", "entr"])
def test_special_values_are_pytorchs(torch: Any, form: str) -> None:
    def run(library: Any, a: float, b: float) -> list[float]:
        x, y = (library.tensor([v], dtype=library.float64, requires_grad=True) for v in (a, b))
        special = library.special
        if form == "entr":
            z = special.entr(x)
        else:
            pair = {"tensors": (x, y), "a number first": (a, y), "a number second": (x, b)}[form]
            z = special.xlog1py(*pair)
        z.sum().backward()
        return [z.item(), *[NAN if v.grad is None else v.grad.item() for v in (x, y)]]

    for a, b in itertools.product(VALUES, VALUES[:1] if form == "entr" else VALUES):
        np.testing.assert_equal(run(ng, a, b), run(torch, a, b), err_msg=f"{a}, {b}")


def test_xlog1py_keeps_the_digits_of_small_arguments() -> None:
    x = ng.tensor([1e-20, -1e-12, 1e-5], dtype=ng.float64)
    wanted = [3 * float(mpmath.log1p(mpmath.mpf(v))) for v in x.tolist()]
    np.testing.assert_allclose(ng.special.xlog1py(3.0, x).numpy(), wanted, rtol=4e-16)
