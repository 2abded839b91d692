"""Rules that look at the input beside the output: as good without it, wherever it is not to be had.

It is kept beside what PyTorch saves, and is gone where hooks pack what is saved, and where the
input was written to, by the operation itself or later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.core.catalogue import CATALOGUE

CLOSER = [name for name, each in CATALOGUE.items() if getattr(each, "closer", None) is not None]
POINTS = np.linspace(-2.0, 3.0, 8)


def written_after(x: Any, name: str) -> Any:
    between = x * 1
    result = getattr(ng, name)(between)
    between.add_(1)
    return result


def packed(x: Any, name: str) -> Any:
    with ng.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), ng.from_numpy):
        return getattr(ng, name)(x)


WAYS: dict[str, Callable[[Any, str], Any]] = {
    "input there": lambda x, name: getattr(ng, name)(x),
    "in place": lambda x, name: getattr(x * 1, f"{name}_")(),
    "written after": written_after,
    "packed": packed,
    "broadcast": lambda x, name: getattr(ng, name)(x.expand(1, *x.shape)),
}


@pytest.mark.parametrize("name", CLOSER)
def test_gradients_are_those_of_the_output_alone(name: str) -> None:
    for repeats in (1, 700):  # few elements, and many
        points = np.tile(POINTS, repeats)
        step = 1e-6
        ends = [getattr(ng, name)(ng.tensor(points + at)).numpy() for at in (step, -step)]
        slope = (ends[0] - ends[1]) / (2 * step)
        for way, call in WAYS.items():
            for create_graph in (False, True):
                for _ in range(3):  # the third call is a remembered one
                    x = ng.tensor(points, requires_grad=True)
                    total = call(x, name).sum()
                    (found,) = ng.autograd.grad(total, x, create_graph=create_graph)
                    np.testing.assert_allclose(
                        found.detach().numpy(), slope, 1e-6, 1e-8, err_msg=f"{way} {create_graph}"
                    )


def test_what_functions_of_func_are_differentiated_at_is_not_lost() -> None:
    """To which the memory belongs that they make."""

    def slope(x: Any) -> Any:
        return ng.func.grad(lambda x: ng.sigmoid(x * 1).sum())(x)

    points = ng.tensor([20.0, 36.0], dtype=ng.float64)
    for found in (slope(points), ng.jit(slope)(points)):
        np.testing.assert_allclose(found.numpy(), np.exp([-20.0, -36.0]), 1e-8)


def test_some_have_such_rules() -> None:
    assert {"sigmoid", "expm1"} <= {*CLOSER}
