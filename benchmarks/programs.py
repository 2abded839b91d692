"""Small programs beside PyTorch's: ``python benchmarks/programs.py [WORD ...]``.

What people compute on few numbers, call by call: forward alone, and with gradients of all
parameters. Both libraries run the same code. Prints a Markdown table of medians of processor time,
measured in turns on one thread. Words choose programs whose names hold one of them. It needs
``torch`` beside numgrad; asv measures numgrad alone.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))


class Program(NamedTuple):
    """A function of parameters.

    Attributes
    ----------
    loss : callable
        ``loss(*parameters)`` returns a number as a tensor.
    parameters : sequence of nested lists
    rate : float
        If not 0, the parameters descend by so much of their gradients.
    """

    loss: Callable[..., Any]
    parameters: Sequence[Any]
    rate: float = 0.0


PROGRAMS: dict[str, Callable[[Any], Program]] = {}


def program(make: Callable[[Any], Program]) -> Callable[[Any], Program]:
    """Enter a program."""
    PROGRAMS[make.__name__] = make
    return make


def _numbers(*shape: int, scale: float = 0.1) -> Any:
    """Return nested lists of numbers that look drawn: always the same ones of a shape."""
    return np.random.default_rng(shape).uniform(-scale, scale, shape).tolist()


@program
def projection(library: Any) -> Program:
    """Project 8 points into 8 cameras: the residuals of a bundle adjustment."""
    observed = library.tensor(_numbers(8, 2))

    def loss(cameras: Any, points: Any) -> Any:
        rotation, shift = cameras[:, :3], cameras[:, 3:6]
        focal, k1, k2 = cameras[:, 6], cameras[:, 7], cameras[:, 8]
        angle = (rotation * rotation).sum(1).sqrt()[:, None]
        axis = rotation / angle
        cosine, sine = angle.cos(), angle.sin()
        along = (axis * points).sum(1)[:, None]
        crossed = library.stack(
            [
                axis[:, 1] * points[:, 2] - axis[:, 2] * points[:, 1],
                axis[:, 2] * points[:, 0] - axis[:, 0] * points[:, 2],
                axis[:, 0] * points[:, 1] - axis[:, 1] * points[:, 0],
            ],
            1,
        )
        turned = points * cosine + crossed * sine + axis * along * (1 - cosine) + shift
        seen = -turned[:, :2] / turned[:, 2:]
        squared = (seen * seen).sum(1)
        distorted = focal * (1 + k1 * squared + k2 * squared * squared)
        residuals = seen * distorted[:, None] - observed
        return (residuals * residuals).sum()

    cameras = [[*row[:5], 5 + row[5], 1.0, 0.01, 0.001] for row in _numbers(8, 6, scale=0.5)]
    return Program(loss, [cameras, _numbers(8, 3)])


@program
def recurrent_cell(library: Any) -> Program:
    """Run a long short-term memory of 4 units over 20 steps."""
    series = library.tensor(_numbers(20, 3))

    def loss(from_input: Any, from_state: Any, bias: Any) -> Any:
        state = memory = library.zeros(4)
        for k in range(20):
            gates = series[k] @ from_input + state @ from_state + bias
            forget, admit, show, new = gates.chunk(4)
            memory = forget.sigmoid() * memory + admit.sigmoid() * new.tanh()
            state = show.sigmoid() * memory.tanh()
        return (state * state).sum()

    return Program(loss, [_numbers(3, 16), _numbers(4, 16), _numbers(16)])


@program
def lotka_volterra(library: Any) -> Program:
    """Integrate a prey and its predator over 20 steps of RK4."""

    def rates(state: Any, growth: Any) -> Any:
        prey, predator = state
        a, b, c, d = growth
        return library.stack([prey * (a - b * predator), predator * (c * prey - d)])

    def loss(growth: Any, state: Any) -> Any:
        step = 0.05
        for _ in range(20):
            k1 = rates(state, growth)
            k2 = rates(state + step / 2 * k1, growth)
            k3 = rates(state + step / 2 * k2, growth)
            k4 = rates(state + step * k3, growth)
            state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return (state * state).sum()

    return Program(loss, [[1.1, 0.4, 0.1, 0.4], [10.0, 5.0]])


@program
def kalman_filter(library: Any) -> Program:
    """Track position and speed by 20 measured positions; minus the log-likelihood."""
    measured = library.tensor(_numbers(20))
    observe = library.tensor([[1.0, 0.0]])
    step = library.tensor([[1.0, 0.1], [0.0, 1.0]])

    def loss(log_noise: Any, log_error: Any) -> Any:
        noise, error = log_noise.exp(), log_error.exp()
        mean = library.zeros(2)
        covariance = library.eye(2)
        total = library.zeros(())
        for k in range(20):
            mean = step @ mean
            covariance = step @ covariance @ step.T + library.diag(noise)
            surprise = measured[k] - (observe @ mean)[0]
            spread = (observe @ covariance @ observe.T)[0, 0] + error
            gain = (covariance @ observe.T / spread).squeeze(1)
            mean = mean + gain * surprise
            covariance = covariance - library.outer(gain, observe[0] @ covariance)
            total = total + 0.5 * (surprise * surprise / spread + spread.log())
        return total

    return Program(loss, [[-3.0, -2.0], -1.0])


@program
def written_tables(library: Any) -> Program:
    """Fill rotation matrices and a table of results, number by number."""
    points = library.tensor(_numbers(10, 3))

    def rotated(angle: Any, point: Any) -> Any:
        turn = library.zeros(3, 3)
        cosine, sine = angle.cos(), angle.sin()
        turn[0, 0] = cosine
        turn[0, 1] = -sine
        turn[1, 0] = sine
        turn[1, 1] = cosine
        turn[2, 2] = 1
        return turn @ point

    def loss(angles: Any) -> Any:
        table = library.zeros(10)
        for k in range(10):
            table[k] = rotated(angles[k], points[k]).sum()
        return (table * table).sum()

    return Program(loss, [_numbers(10)])


@program
def logistic_regression(library: Any) -> Program:
    """Descend one step of the logistic loss of 20 rows."""
    rows = library.tensor(_numbers(20, 3, scale=1.0))
    labels = library.tensor([float(k % 2) for k in range(20)])

    def loss(weights: Any, bias: Any) -> Any:
        chance = library.sigmoid(rows @ weights + bias)
        likely = labels * library.log(chance) + (1 - labels) * library.log(1 - chance)
        return -likely.mean() + 0.01 * (weights**2).sum()

    return Program(loss, [_numbers(3), 0.1], rate=1e-9)


@program
def gaussian_mixture(library: Any) -> Program:
    """Compute the log-likelihood of 10 points in the plane under 3 normal densities."""
    points = library.tensor(_numbers(10, 2, scale=2.0))

    def loss(weights: Any, means: Any, log_scales: Any) -> Any:
        shares = library.log_softmax(weights, 0)
        apart = (points[:, None, :] - means[None]) / log_scales.exp()[None]
        exponents = -0.5 * (apart * apart).sum(-1) - log_scales.sum(-1)
        return -library.logsumexp(shares + exponents, 1).sum()

    return Program(loss, [_numbers(3), _numbers(3, 2, scale=1.0), _numbers(3, 2)])


@program
def pendulum(library: Any) -> Program:
    """Swing a pendulum over 40 steps of Verlet's method, and sum up its energies."""

    def loss(angle: Any, speed: Any, length: Any) -> Any:
        step, energies = 0.02, []
        pull = -9.81 / length * library.sin(angle)
        for _ in range(40):
            half = speed + 0.5 * step * pull
            angle = angle + step * half
            pull = -9.81 / length * library.sin(angle)
            speed = half + 0.5 * step * pull
            energies.append(0.5 * (length * speed) ** 2 + 9.81 * length * (1 - library.cos(angle)))
        return library.stack(energies).mean()

    return Program(loss, [0.5, 0.0, 1.2])


@program
def rosenbrock(library: Any) -> Program:
    """Search along a line for a lower value of Rosenbrock's function of 4 numbers."""
    direction = library.tensor([0.4, -0.9, 0.2, 0.8])

    def value(x: Any) -> Any:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def loss(x: Any) -> Any:
        step, start = 1.0, value(x).item()
        new = value(x + step * direction)
        while new.item() > start and step > 0.01:
            step /= 2
            new = value(x + step * direction)
        return new

    return Program(loss, [[0.3, -0.2, 0.1, 0.4]])


@program
def network(library: Any) -> Program:
    """Train a network of 4, 16 and 3 units by one step on 8 rows."""
    rows = library.tensor(_numbers(8, 4, scale=1.0))
    labels = library.tensor([k % 3 for k in range(8)])

    def loss(first: Any, shift: Any, second: Any, offset: Any) -> Any:
        hidden = library.relu(rows @ first + shift)
        scores = library.log_softmax(hidden @ second + offset, 1)
        return -scores[library.arange(8), labels].mean()

    parameters = [_numbers(4, 16), _numbers(16), _numbers(16, 3), _numbers(3)]
    return Program(loss, parameters, rate=1e-9)


def runs_of(name: str, library: Any) -> dict[str, Callable[[], Any]]:
    """Return what runs a program forward, and with gradients."""
    loss, parameters, rate = PROGRAMS[name](library)
    constants = [library.tensor(each) for each in parameters]
    leaves = [library.tensor(each, requires_grad=True) for each in parameters]

    def gradient() -> Any:
        for leaf in leaves:
            leaf.grad = None
        loss(*leaves).backward()
        if rate:
            with library.no_grad():
                for leaf in leaves:
                    leaf.sub_(leaf.grad, alpha=rate)
        return [leaf.grad for leaf in leaves]

    return {"forward": lambda: loss(*constants), "with gradient": gradient}


class Programs:
    """Every program, in numgrad."""

    params = (list(PROGRAMS), ("forward", "with gradient"))
    param_names = ("program", "what")

    def setup(self, name: str, what: str) -> None:
        """Compile what the program needs."""
        self.run = runs_of(name, importlib.import_module("numgrad"))[what]
        for _ in range(3):
            self.run()

    def time_program(self, name: str, what: str) -> None:
        """Time one run."""
        self.run()


def in_turns(
    functions: Sequence[Callable[[], object]], *, rounds: int, seconds: float
) -> list[list[float]]:
    """Return for each function the processor seconds of one call, in so many rounds, in turns."""
    for function in functions:
        for _ in range(40):  # until calls with floats are remembered
            function()
    begin = time.process_time()
    functions[0]()
    calls = max(1, round(seconds / (time.process_time() - begin)))
    series: list[list[float]] = [[] for _ in functions]
    for turn in range(rounds):
        for position in range(len(functions))[:: 1 if turn % 2 else -1]:
            function = functions[position]
            begin = time.process_time()
            for _ in range(calls):
                function()
            series[position].append((time.process_time() - begin) / calls)
    return series


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of programs' names; none: all")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--seconds", type=float, default=0.02, help="of a round")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    libraries = [importlib.import_module(name) for name in ("numgrad", "torch")]
    for library in libraries:
        library.set_num_threads(1)
    print("| program | what | numgrad | PyTorch | of PyTorch |")
    print("| --- | --- | ---: | ---: | ---: |")
    ratios = []
    for name in PROGRAMS:
        if options.words and not any(word in name for word in options.words):
            continue
        for what in ("forward", "with gradient"):
            runs = [runs_of(name, library)[what] for library in libraries]
            series = in_turns(runs, rounds=options.rounds, seconds=options.seconds)
            ours, theirs = map(statistics.median, series)
            ratios.append(ours / theirs)
            title = name.replace("_", " ")
            times = f"{ours * 1e6:.0f} us | {theirs * 1e6:.0f} us"
            print(f"| {title} | {what} | {times} | {ratios[-1]:.2f} |", flush=True)
    if ratios:
        print(f"\nmedian {statistics.median(ratios):.2f}, at most {max(ratios):.2f}")


if __name__ == "__main__":
    main()
