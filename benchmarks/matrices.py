"""Linear algebra: a Gaussian process, batches of small matrices, a Kalman filter that solves.

``python -m benchmarks.matrices`` puts them beside PyTorch, in turns, where that is installed: user
CPU time, as other work on the machine does not count there. PyTorch runs on one thread.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import numgrad as ng

# Where tests run, cases have only to run.
SMALL = bool(os.environ.get("CI"))
POINTS = (20, 50) if SMALL else (20, 500)
COUNT = 10 if SMALL else 1000
STEPS = 10 if SMALL else 1000


def marginal_likelihood(m: ModuleType, size: int) -> Callable[[Any], Any]:
    """Return the negative logarithm of a Gaussian process's marginal likelihood."""
    random = np.random.default_rng(0)
    x, y = (m.from_numpy(random.standard_normal(shape)) for shape in ((size, 2), (size,)))
    ones = m.eye(size, dtype=m.float64)

    def loss(theta: Any) -> Any:
        distances = ((x[:, None] - x[None]) ** 2).sum(-1)
        smooth = theta[0].exp() * (-0.5 * theta[1].exp() * distances).exp()
        factor = m.linalg.cholesky(smooth + theta[2].exp() * ones)
        weights = m.cholesky_solve(y[:, None], factor)[:, 0]
        return 0.5 * y @ weights + factor.diagonal().log().sum()

    return loss


def process(m: ModuleType, size: int) -> Callable[[], Any]:
    """Return a call of the marginal likelihood and its gradient: here compiled."""
    loss = marginal_likelihood(m, size)
    theta = m.tensor([0.1, 0.2, -1.0], dtype=m.float64)
    if m is ng:
        both = ng.jit(ng.func.grad_and_value(loss))
        return lambda: both(theta)
    leaf = theta.requires_grad_()

    def run() -> None:
        leaf.grad = None
        loss(leaf).backward()

    return run


def batch(m: ModuleType, name: str) -> Callable[[], Any]:
    """Return a call of a function of linear algebra for many matrices of 4 x 4."""
    values = np.random.default_rng(0).standard_normal((COUNT, 4, 4))
    A = m.from_numpy(values @ values.swapaxes(-2, -1) + np.eye(4))
    B = m.from_numpy(np.ones((COUNT, 4, 1)))
    calls = {
        "solve": lambda: m.linalg.solve(A, B),
        "cholesky": lambda: m.linalg.cholesky(A),
        "inv": lambda: m.linalg.inv(A),
        "det": lambda: m.linalg.det(A),
        "lu_factor": lambda: m.linalg.lu_factor(A),
        "lstsq": lambda: m.linalg.lstsq(A, B),
        "eig": lambda: m.linalg.eig(A),
    }
    return calls[name]


BATCHES = ("solve", "cholesky", "inv", "det", "lu_factor", "lstsq", "eig")


def kalman_filter() -> Callable[[], Any]:
    """Return a compiled filter of two observations: a scan that solves a system each step."""
    motion = ng.tensor([[1.0, 0.1], [0.0, 1.0]], dtype=ng.float64)
    ones = ng.eye(2, dtype=ng.float64)
    observed = ng.from_numpy(np.random.default_rng(0).standard_normal((STEPS, 2)))

    def step(carry: Any, observation: Any) -> Any:
        mean, spread = carry
        mean, spread = motion @ mean, motion @ spread @ motion.T + 0.01 * ones
        gain = ng.linalg.solve(spread + 0.1 * ones, spread).T
        rest = observation - mean
        return (mean + gain @ rest, spread - gain @ spread), rest @ rest

    def loss(observed: Any) -> Any:
        start = ng.zeros(2, dtype=ng.float64), ones
        return ng.func.scan(step, start, observed)[1].sum()

    compiled = ng.jit(loss)
    return lambda: compiled(observed)


class Process:
    """Time of a marginal likelihood with its gradient, compiled."""

    params = POINTS
    param_names = ("points",)

    def setup(self, points: int) -> None:
        self.run = process(ng, points)
        self.run()

    def time_with_gradient(self, points: int) -> None:
        self.run()


class Batches:
    """Time of functions of many small matrices."""

    params = BATCHES
    param_names = ("function",)

    def setup(self, name: str) -> None:
        self.run = batch(ng, name)
        self.run()

    def time_batch(self, name: str) -> None:
        self.run()


class Filter:
    """Time of a Kalman filter that solves a system of two each step."""

    def setup(self) -> None:
        self.run = kalman_filter()
        self.run()

    def time_filter(self) -> None:
        self.run()


def _user() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def _times(runs: list[Callable[[], Any]], rounds: int) -> list[float]:
    """Return the median of what each run takes, several calls a time, in turns."""
    taken: list[list[float]] = [[] for _ in runs]
    counts = []
    for run in runs:
        run()
        begin, count = _user(), 0
        while _user() - begin < 0.02:
            run()
            count += 1
        counts.append(count)
    for _ in range(rounds):
        for run, count, times in zip(runs, counts, taken, strict=True):
            begin = _user()
            for _ in range(count):
                run()
            times.append((_user() - begin) / count)
    return [statistics.median(times) for times in taken]


def main() -> None:
    """Print the time of each case, and how many times PyTorch's that is."""
    import torch

    torch.set_num_threads(1)
    ng.set_num_threads(1)
    cases = [(f"process of {size}", process, size) for size in POINTS]
    cases += [(f"{name} of {COUNT}", batch, name) for name in BATCHES]
    for title, make, what in cases:
        ours, theirs = _times([make(m, what) for m in (ng, torch)], 9)
        sys.stdout.write(f"{title:18} {ours * 1e6:9.1f} us  {ours / theirs:5.2f} of PyTorch's\n")
    (own,) = _times([kalman_filter()], 9)
    sys.stdout.write(f"{'filter, a step':18} {own / STEPS * 1e6:9.1f} us\n")


if __name__ == "__main__":
    main()
