"""The programs of `benchmarks.loops` written for JAX, as its users would: over ``lax.scan``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

if importlib.util.find_spec("jax") is not None:
    import jax
    import jax.numpy as jnp
    from jax import lax

__all__ = ["PROGRAMS"]


def runge_kutta(rate: Any, state: Any, h: float) -> Any:
    k1 = rate(state)
    k2 = rate(state + h / 2 * k1)
    k3 = rate(state + h / 2 * k2)
    k4 = rate(state + h * k3)
    return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def populations(steps: int) -> Any:
    def loss(r: Any, start: Any) -> Any:
        def rate(s: Any) -> Any:
            return jnp.stack([r[0] * s[0] - r[1] * s[0] * s[1], r[2] * s[0] * s[1] - r[3] * s[1]])

        def step(state: Any, _: Any) -> Any:
            return runge_kutta(rate, state, 0.01), None

        return (lax.scan(step, start, None, length=steps)[0] ** 2).sum()

    return loss


def kalman_filter(steps: int) -> Any:
    def log_likelihood(parameters: Any, series: Any) -> Any:
        transition, noise = parameters["transition"], parameters["noise"]
        observed = jnp.array([1.0, 0.0, 0.0, 0.0])

        def step(belief: Any, value: Any) -> Any:
            mean, covariance = belief
            mean = transition @ mean
            covariance = transition @ covariance @ transition.T + jnp.diag(noise[:4] ** 2)
            toward = covariance @ observed
            variance = observed @ toward + noise[4] ** 2
            surprise = value - observed @ mean
            gain = toward / variance
            belief = mean + gain * surprise, covariance - gain[:, None] * toward
            return belief, surprise**2 / variance + jnp.log(variance)

        return -0.5 * lax.scan(step, (jnp.zeros(4), jnp.eye(4)), series)[1].sum()

    return log_likelihood


def heat(steps: int) -> Any:
    def energy(conductivity: Any, start: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            flow = conductivity * (u[1:] - u[:-1])
            return jnp.concatenate([u[:1], u[1:-1] + flow[1:] - flow[:-1], u[-1:]]), None

        return (lax.scan(step, start, None, length=steps)[0] ** 2).sum()

    return energy


def hamiltonian(steps: int, leaps: int = 100) -> Any:
    def mean(curvature: Any, randomness: Any) -> Any:
        def energy(q: Any) -> Any:
            return 0.5 * q[0] ** 2 + curvature * (q[1] - q[0] ** 2) ** 2

        force = jax.grad(energy)

        def leap(state: Any, _: Any) -> Any:
            q, p, pull = state
            p = p - 0.005 * pull
            q = q + 0.01 * p
            pull = force(q)
            return (q, p - 0.005 * pull, pull), None

        def draw(q: Any, row: Any) -> Any:
            p, u = row[:2], row[2]
            (end, momentum, _), _ = lax.scan(leap, (q, p, force(q)), None, length=leaps)
            before = energy(q) + 0.5 * (p * p).sum()
            after = energy(end) + 0.5 * (momentum * momentum).sum()
            q = jnp.where(jnp.log(u) < before - after, end, q)
            return q, q

        return lax.scan(draw, jnp.zeros(2), randomness)[1].mean()

    return mean


def kepler(steps: int, most: int = 20) -> Any:
    """Differentiated through its steps: of a ``while_loop`` JAX has no reverse mode."""

    def root(eccentricity: Any, anomaly: Any) -> Any:
        def step(e: Any, _: Any) -> Any:
            miss = e - eccentricity * jnp.sin(e) - anomaly
            goes_on = jnp.abs(miss) > 1e-12
            return jnp.where(goes_on, e - miss / (1 - eccentricity * jnp.cos(e)), e), None

        return lax.scan(step, anomaly + eccentricity, None, length=most)[0]

    return root


def kepler_implicitly(steps: int) -> Any:
    def implicit(eccentricity: Any, anomaly: Any) -> Any:
        fixed = lax.stop_gradient(eccentricity)

        def miss(e: Any) -> Any:
            return e - fixed * jnp.sin(e) - anomaly

        e = lax.while_loop(
            lambda e: jnp.abs(miss(e)) > 1e-12,
            lambda e: e - miss(e) / (1 - fixed * jnp.cos(e)),
            anomaly + fixed,
        )
        return e - (e - eccentricity * jnp.sin(e) - anomaly) / (1 - fixed * jnp.cos(e))

    return implicit


def recurrent_net(steps: int) -> Any:
    def unit(weights: Any, state: Any, value: Any) -> Any:
        both = weights["in"] @ value + weights["bias"]
        back = weights["back"] @ state
        size = state.shape[0]
        reset = jax.nn.sigmoid(both[:size] + back[:size])
        update = jax.nn.sigmoid(both[size : 2 * size] + back[size : 2 * size])
        new = jnp.tanh(both[2 * size :] + reset * back[2 * size :])
        return update * state + (1 - update) * new

    def loss(layers: Any, rows: Any) -> Any:
        def step(states: Any, row: Any) -> Any:
            first = unit(layers[0], states[0], row[:-1])
            second = unit(layers[1], states[1], first)
            return (first, second), (second.sum() - row[-1]) ** 2

        start = tuple(jnp.zeros(layer["back"].shape[1]) for layer in layers)
        return lax.scan(step, start, rows)[1].mean()

    return loss


def neural_equation(steps: int) -> Any:
    def loss(weights: Any, start: Any) -> Any:
        def rate(state: Any) -> Any:
            return weights["out"] @ jnp.tanh(weights["in"] @ state + weights["bias"])

        def step(state: Any, _: Any) -> Any:
            return runge_kutta(rate, state, 0.05), None

        return (lax.scan(step, start, None, length=steps)[0] ** 2).sum()

    return loss


PROGRAMS: dict[str, Callable[[int], Any]] = {
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
