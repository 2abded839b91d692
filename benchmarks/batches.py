"""Batches: gradients of the examples, one by one, of a model of 21 parameters.

``python -m benchmarks.batches`` compares with ``torch.func.vmap`` where PyTorch is installed, in
turns, and prints the medians. `Examples` is for asv.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import numgrad as ng

EXAMPLES = 10_000
ROUNDS = 30


def loss_of(library: Any) -> Callable[..., Any]:
    """Return the squared error of a small net for one example; `library` is one of the two."""

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        weights, bias, last, offset = parameters
        hidden = library.tanh(x @ weights + bias)
        return ((hidden * last).sum() + offset - y) ** 2

    return loss


def arguments_of(convert: Callable[..., Any], examples: int) -> tuple[Any, Any, Any]:
    """Return parameters, inputs and targets, as what `convert` makes of arrays."""
    random = np.random.default_rng(0)
    shapes = ((2, 5), (5,), (5,), ())
    parameters = tuple([convert(np.asarray(random.standard_normal(shape))) for shape in shapes])
    inputs, targets = random.standard_normal((examples, 2)), random.standard_normal(examples)
    return parameters, convert(inputs), convert(targets)


def gradients_of(library: Any) -> Callable[..., Any]:
    """Return the function that computes the gradient of every example."""
    gradient = library.func.grad(loss_of(library))
    mapped: Callable[..., Any] = library.func.vmap(gradient, in_dims=(None, 0, 0))
    return mapped


class Examples:
    """Gradients of 10,000 examples, one by one."""

    warmup_time = 0.5

    def setup(self) -> None:
        self.arguments = arguments_of(ng.tensor, EXAMPLES)
        self.eager = gradients_of(ng)
        self.compiled = ng.jit(self.eager)
        self.compiled(*self.arguments)

    def time_eager(self) -> None:
        self.eager(*self.arguments)

    def time_compiled(self) -> None:
        self.compiled(*self.arguments)


def main() -> None:
    """Print the medians, of calls in turns, for few examples and for many."""
    try:
        import torch
    except ImportError:
        torch = None
    for examples in (4, EXAMPLES):
        own = arguments_of(ng.tensor, examples)
        mapped = gradients_of(ng)
        calls: dict[str, tuple[Any, Any]] = {
            "numgrad, eager": (mapped, own),
            "numgrad, jit": (ng.jit(mapped), own),
        }
        if torch is not None:
            calls["torch.func"] = (gradients_of(torch), arguments_of(torch.tensor, examples))
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, (function, arguments) in calls.items():
                start = time.perf_counter()
                function(*arguments)
                times[name].append(time.perf_counter() - start)
        print(f"{examples} examples")
        for name, found in times.items():
            print(f"  {name:16} {1e6 * statistics.median(found[5:]):9.0f} us")


if __name__ == "__main__":
    main()
