"""Loops over few numbers, with their gradients: what steppers, filters and samplers are made of.

Each program is written once, over a ``scan`` that it is given: `numgrad.func.scan`, or
`python_loop` below, which is a plain ``for``. The first argument is what to differentiate with
respect to. They run eagerly, some steps of each, and compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import numgrad as ng

STEPS = 20  # of the eager runs
Loss = Callable[..., Any]


def python_loop(f: Any, carry: Any, xs: Any = None, length: int = 0) -> tuple[Any, Any]:
    """Return what a scan does, written as a plain ``for``; `xs` is one tensor or None."""
    ys = []
    for row in [None] * length if xs is None else xs.unbind(0):
        carry, y = f(carry, row)
        ys.append(y)
    return carry, None if ys[0] is None else ng.stack(ys)


def lotka_volterra(rates: Any, state: Any) -> Any:
    """Return the derivative of prey and predators, from how they grow, are eaten, live and die."""
    prey, predators = state[0], state[1]
    return ng.stack(
        [
            rates[0] * prey - rates[1] * prey * predators,
            rates[2] * prey * predators - rates[3] * predators,
        ]
    )


def runge_kutta(rate: Callable[[Any], Any], state: Any, h: float) -> Any:
    """Return the state after one step of the classical method of fourth order."""
    k1 = rate(state)
    k2 = rate(state + h / 2 * k1)
    k3 = rate(state + h / 2 * k2)
    k4 = rate(state + h * k3)
    return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def populations(scan: Any, steps: int) -> Loss:
    """Return how far prey and predators get by Runge and Kutta's method, by their rates."""

    def loss(rates: Any, start: Any) -> Any:
        def step(state: Any, _: Any) -> tuple[Any, None]:
            return runge_kutta(lambda s: lotka_volterra(rates, s), state, 0.01), None

        return (scan(step, start, length=steps)[0] ** 2).sum()

    return loss


def kalman_filter(scan: Any, steps: int) -> Loss:
    """Return the log-likelihood of a series, from a model of four states and its noise."""

    def log_likelihood(parameters: Any, series: Any) -> Any:
        transition, noise = parameters["transition"], parameters["noise"]
        observed = ng.tensor([1.0, 0.0, 0.0, 0.0], dtype=ng.float64)

        def step(belief: Any, value: Any) -> tuple[Any, Any]:
            mean, covariance = belief
            mean = transition @ mean
            covariance = transition @ covariance @ transition.T + ng.diag(noise[:4] ** 2)
            toward = covariance @ observed
            variance = observed @ toward + noise[4] ** 2
            surprise = value - observed @ mean
            gain = toward / variance
            mean = mean + gain * surprise
            covariance = covariance - gain.unsqueeze(1) * toward
            return (mean, covariance), surprise**2 / variance + variance.log()

        start = ng.zeros(4, dtype=ng.float64), ng.eye(4, dtype=ng.float64)
        return -0.5 * scan(step, start, series)[1].sum()

    return log_likelihood


def heat(scan: Any, steps: int) -> Loss:
    """Return the energy of a rod whose ends are kept cold, by where it is warm and conducts."""

    def energy(conductivity: Any, start: Any) -> Any:
        def step(u: Any, _: Any) -> tuple[Any, None]:
            flow = conductivity * (u[1:] - u[:-1])
            return ng.cat([u[:1], u[1:-1] + flow[1:] - flow[:-1], u[-1:]]), None

        return (scan(step, start, length=steps)[0] ** 2).sum()

    return energy


def hamiltonian(scan: Any, steps: int, leaps: int = 100) -> Loss:
    """Return the mean of draws of a sampler, by the target's parameter, given its randomness.

    The rows of what is given are a draw's momenta, and last of all the number that decides whether
    it is taken.
    """

    def mean(curvature: Any, randomness: Any) -> Any:
        def energy(q: Any) -> Any:
            return 0.5 * q[0] ** 2 + curvature * (q[1] - q[0] ** 2) ** 2

        force = ng.func.grad(energy)

        def leap(state: Any, _: Any) -> tuple[Any, None]:
            q, p, pull = state
            p = p - 0.005 * pull
            q = q + 0.01 * p
            pull = force(q)
            return (q, p - 0.005 * pull, pull), None

        def draw(q: Any, row: Any) -> tuple[Any, Any]:
            p, u = row[:2], row[2]
            (end, momentum, _), _ = scan(leap, (q, p, force(q)), length=leaps)
            before = energy(q) + 0.5 * (p * p).sum()
            after = energy(end) + 0.5 * (momentum * momentum).sum()
            q = ng.where(u.log() < before - after, end, q)
            return q, q

        return scan(draw, ng.zeros(2, dtype=ng.float64), randomness)[1].mean()

    return mean


def kepler(scan: Any, steps: int) -> Loss:
    """Return the eccentric anomaly by Newton's method, differentiated through its steps."""

    def root(eccentricity: Any, anomaly: Any) -> Any:
        def miss(e: Any) -> Any:
            return e - eccentricity * e.sin() - anomaly

        def step(e: Any) -> Any:
            return e - miss(e) / (1 - eccentricity * e.cos())

        return ng.func.while_loop(lambda e: miss(e).abs() > 1e-12, step, anomaly + eccentricity)

    return root


def kepler_implicitly(scan: Any, steps: int) -> Loss:
    """Return the same, differentiated by one more step from the root, which is a constant."""
    root = kepler(scan, steps)

    def implicit(eccentricity: Any, anomaly: Any) -> Any:
        e = root(eccentricity.detach(), anomaly).detach()
        return e - (e - eccentricity * e.sin() - anomaly) / (1 - eccentricity * e.cos()).detach()

    return implicit


def recurrent_net(scan: Any, steps: int) -> Loss:
    """Return the squared error of two layers of gated recurrent units, by their weights."""

    def unit(weights: Any, state: Any, value: Any) -> Any:
        both = weights["in"] @ value + weights["bias"]
        back = weights["back"] @ state
        size = state.shape[0]
        reset = (both[:size] + back[:size]).sigmoid()
        update = (both[size : 2 * size] + back[size : 2 * size]).sigmoid()
        new = (both[2 * size :] + reset * back[2 * size :]).tanh()
        return update * state + (1 - update) * new

    def loss(layers: Any, rows: Any) -> Any:
        def step(states: Any, row: Any) -> tuple[Any, Any]:
            first = unit(layers[0], states[0], row[:-1])
            second = unit(layers[1], states[1], first)
            return (first, second), (second.sum() - row[-1]) ** 2

        start = tuple(ng.zeros(layer["back"].shape[1], dtype=ng.float64) for layer in layers)
        return scan(step, start, rows)[1].mean()

    return loss


def neural_equation(scan: Any, steps: int) -> Loss:
    """Return how far a state gets whose rate is a net with one layer of 32, by its weights."""

    def loss(weights: Any, start: Any) -> Any:
        def rate(state: Any) -> Any:
            return weights["out"] @ (weights["in"] @ state + weights["bias"]).tanh()

        def step(state: Any, _: Any) -> tuple[Any, None]:
            return runge_kutta(rate, state, 0.05), None

        return (scan(step, start, length=steps)[0] ** 2).sum()

    return loss


def arguments(name: str, steps: int, cells: int = 1_000) -> tuple[Any, ...]:
    """Return what to call a program's function with: trees of NumPy arrays."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return rng.standard_normal(shape) / np.sqrt(shape[-1])

    if name == "populations":
        return np.array([1.1, 0.4, 0.1, 0.4]), np.array([10.0, 5.0])
    if name == "kalman_filter":
        noise = np.array([0.3, 0.2, 0.1, 0.1, 0.5])
        return {"transition": 0.9 * np.eye(4) + 0.05, "noise": noise}, weights(steps, 1)[:, 0]
    if name == "heat":
        return np.full(cells - 1, 0.25), np.sin(np.linspace(0, 3 * np.pi, cells))
    if name == "hamiltonian":
        uniform = rng.uniform(size=(steps, 1))
        return np.array(0.5), np.concatenate([rng.standard_normal((steps, 2)), uniform], 1)
    if name.startswith("kepler"):
        return np.array(0.6), np.array(0.9)
    if name == "recurrent_net":
        layers = [
            {"in": weights(48, width), "back": weights(48, 16), "bias": weights(48)}
            for width in (4, 16)
        ]
        return tuple(layers), weights(steps, 5)
    return (
        {"in": weights(32, 4), "bias": weights(32), "out": weights(4, 32)},
        rng.standard_normal(4),
    )


PROGRAMS: dict[str, Callable[..., Loss]] = {
    program.__name__: program
    for program in (
        populations,
        kalman_filter,
        heat,
        hamiltonian,
        kepler,
        kepler_implicitly,
        recurrent_net,
        neural_equation,
    )
}


def tensors(tree: Any) -> Any:
    """Return a tree of arrays as one of tensors."""
    if isinstance(tree, dict):
        return {name: tensors(each) for name, each in tree.items()}
    if isinstance(tree, tuple):
        return tuple(tensors(each) for each in tree)
    return ng.from_numpy(np.asarray(tree))


class ValueAndGradient:
    """20 steps of each program, eagerly."""

    params = tuple(PROGRAMS)
    param_names = ("program",)

    def setup(self, program: str) -> None:
        steps = 1 if program == "hamiltonian" else STEPS
        self.function = ng.func.value_and_grad(PROGRAMS[program](ng.func.scan, steps))
        self.arguments = tensors(arguments(program, steps))
        self.function(*self.arguments)

    def time_value_and_grad(self, program: str) -> None:
        self.function(*self.arguments)


class Compiled:
    """200 steps of each program, compiled: as a ``scan``, and for some as a plain ``for``."""

    params = tuple(PROGRAMS) + tuple(f"{name}, for" for name in ("populations", "recurrent_net"))
    param_names = ("program",)
    steps = 200

    def setup(self, program: str) -> None:
        name, _, kind = program.partition(", ")
        steps = 10 if name == "hamiltonian" else self.steps
        scan = python_loop if kind else ng.func.scan
        self.function = ng.jit(ng.func.value_and_grad(PROGRAMS[name](scan, steps)))
        self.arguments = tensors(arguments(name, steps))
        self.function(*self.arguments)

    def time_value_and_grad(self, program: str) -> None:
        self.function(*self.arguments)


class Checkpoints:
    """A gradient through 200 small steps, by what is kept of them."""

    params = ("everything", "sqrt", "log", "few")
    param_names = ("kept",)

    def setup(self, kept: str) -> None:
        policies = {"everything": None, "few": ng.func.Binomial(4)}
        policy = policies.get(kept, kept)

        def loss(x: Any) -> Any:
            def step(c: Any, _: Any) -> tuple[Any, None]:
                return (c * 1.5).tanh() + x, None

            return ng.func.scan(step, x, length=200, checkpoint=policy)[0].sum()

        self.gradient = ng.func.grad(loss)
        self.x = ng.linspace(-1, 1, 1_000)
        self.gradient(self.x)

    def time_gradient(self, kept: str) -> None:
        self.gradient(self.x)

    def peakmem_gradient(self, kept: str) -> None:
        self.gradient(self.x)
