"""Compiled functions beside hand-written Numba and other libraries: ``python benchmarks/peers.py``.

Each case is measured in turns within one run, and medians are compared. Every library has a process
of its own, which sleeps while others have their turn: threads of one library that wait awake for
more work would take the cores from the next. Libraries that are not installed are left out: PyTorch
(eager and compiled), JAX, PyTensor (Numba mode), HIPS autograd and MyGrad. Arguments choose cases
by name.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numba import njit, prange

import numgrad as ng
from numgrad.math import scalar

Call = Callable[[], Any]
CASES: dict[str, Callable[[], dict[str, Call]]] = {}
LIBRARIES = ("numgrad", "torch", "jax", "pytensor", "autograd", "mygrad")
SERVED = "NUMGRAD_PEERS_SERVE"  # the variable that tells a process which of them it measures
HAS = {name: name == os.environ.get(SERVED) for name in LIBRARIES}
if HAS["torch"]:
    import torch
if HAS["jax"]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
if HAS["autograd"]:
    import autograd
    import autograd.numpy as anp
if HAS["mygrad"]:
    import mygrad as mg
if HAS["pytensor"]:
    import pytensor
    import pytensor.tensor as pt


def case(function: Callable[[], dict[str, Call]]) -> Callable[[], dict[str, Call]]:
    """Enter a case; the docstring of its function says what it is."""
    CASES[function.__name__] = function
    return function


def torch_value_and_grad(function: Any, x: np.ndarray, *rest: Any, compiled: bool = False) -> Call:
    """Return a call of PyTorch's value and gradient with respect to the first argument."""
    leaf = torch.from_numpy(x).requires_grad_()
    if compiled:
        function = torch.compile(function)

    def call() -> Any:
        value = function(leaf, *rest)
        return value, torch.autograd.grad(value, leaf)[0]

    return call


def jax_call(function: Any, *arguments: np.ndarray) -> Call:
    """Return a call of a JAX function that waits for the result."""
    compiled = jax.jit(function)
    given = [jnp.asarray(argument) for argument in arguments]
    return lambda: jax.block_until_ready(compiled(*given))


def pytensor_function(build: Callable[..., Any], *arguments: np.ndarray) -> Callable[..., Any]:
    """Return a PyTensor function in Numba mode, for arguments like these."""
    inputs = [
        pt.TensorType(a.dtype.name, (None,) * a.ndim)(f"x{k}") for k, a in enumerate(arguments)
    ]
    compiled: Callable[..., Any] = pytensor.function(
        inputs, build(*inputs), mode="NUMBA", trust_input=True
    )
    return compiled


def pytensor_call(build: Callable[..., Any], *arguments: np.ndarray) -> Call:
    """Return a call of a PyTensor function in Numba mode."""
    compiled = pytensor_function(build, *arguments)
    return lambda: compiled(*arguments)


def mygrad_call(function: Any, *arguments: np.ndarray, moving: int = 1) -> Call:
    """Return a call of MyGrad's value and gradients with respect to the first arguments."""

    def call() -> Any:
        tensors = [mg.tensor(a) if k < moving else a for k, a in enumerate(arguments)]
        value = function(*tensors)
        value.backward()
        return value, [tensor.grad for tensor in tensors[:moving]]

    return call


# --- cases ----------------------------------------------------------------------------------------


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@njit
def rosenbrock_by_hand(x: Any) -> Any:
    gradient = np.zeros_like(x)
    value = 0.0
    for i in range(x.size - 1):
        a = x[i + 1] - x[i] * x[i]
        b = 1 - x[i]
        value += 100 * a * a + b * b
        gradient[i] -= 400 * a * x[i] + 2 * b
        gradient[i + 1] += 200 * a
    return value, gradient


@case
def rosenbrock_4() -> dict[str, Call]:
    """Measure Rosenbrock's function of 4 float64, value and gradient, from Python."""
    x = np.array([0.3, -0.2, 0.1, 0.4])
    ours = ng.jit(ng.func.value_and_grad(rosenbrock))
    calls: dict[str, Call] = {
        "numgrad": lambda: ours(x),
        "hand": lambda: rosenbrock_by_hand(x),
    }
    if HAS["torch"]:
        calls["torch"] = torch_value_and_grad(rosenbrock, x)
        calls["torch.compile"] = torch_value_and_grad(rosenbrock, x, compiled=True)
    if HAS["jax"]:
        calls["jax"] = jax_call(jax.value_and_grad(rosenbrock), x)
    if HAS["pytensor"]:
        calls["pytensor"] = pytensor_call(lambda v: [rosenbrock(v), pt.grad(rosenbrock(v), v)], x)
    if HAS["autograd"]:
        theirs = autograd.value_and_grad(rosenbrock)
        calls["autograd"] = lambda: theirs(x)
    if HAS["mygrad"]:
        calls["mygrad"] = mygrad_call(rosenbrock, x)
    return calls


@case
def rosenbrock_1_000_000() -> dict[str, Call]:
    """Measure Rosenbrock's function of a million float64, value and gradient."""
    x = np.random.default_rng(1).random(1_000_000)
    ours = ng.jit(ng.func.value_and_grad(rosenbrock))
    calls: dict[str, Call] = {
        "numgrad": lambda: ours(x),
        "hand": lambda: rosenbrock_by_hand(x),
    }
    if HAS["torch"]:
        calls["torch"] = torch_value_and_grad(rosenbrock, x)
    if HAS["jax"]:
        calls["jax"] = jax_call(jax.value_and_grad(rosenbrock), x)
    return calls


def bag(table: Any, places: Any) -> Any:
    return (table[places] ** 2).sum()


@njit
def bag_by_hand(table: Any, places: Any) -> Any:
    gradient = np.zeros_like(table)
    value = 0.0
    for row in places:
        for place in row:
            for i in range(table.shape[1]):
                value += table[place, i] ** 2
                gradient[place, i] += 2 * table[place, i]
    return value, gradient


@case
def bag_256_16() -> dict[str, Call]:
    """Measure the sum of squares of 256 x 16 rows of a 1000 x 32 float64 table, with gradient."""
    random = np.random.default_rng(2)
    table, places = random.standard_normal((1000, 32)), random.integers(0, 1000, (256, 16))
    ours = ng.jit(ng.func.value_and_grad(bag))
    calls: dict[str, Call] = {
        "numgrad": lambda: ours(table, places),
        "hand": lambda: bag_by_hand(table, places),
    }
    if HAS["torch"]:
        calls["torch"] = torch_value_and_grad(bag, table, torch.from_numpy(places))
    if HAS["jax"]:
        calls["jax"] = jax_call(jax.value_and_grad(bag), table, places)
    return calls


def repeated(step: Any) -> Callable[[Any, int], Any]:
    """Return a compiled loop of gradient descent."""

    @njit
    def descend(x: Any, count: int) -> Any:
        for _ in range(count):
            _, gradient = step(x)
            x = x - 1e-4 * gradient
        return x

    return descend


@case
def rosenbrock_4_in_a_loop() -> dict[str, Call]:
    """Measure 1,000 steps of descent on the same, in an @njit loop."""
    x = np.array([0.3, -0.2, 0.1, 0.4])
    ours = repeated(ng.jit(ng.func.value_and_grad(rosenbrock)).lower(x).dispatcher)
    hand = repeated(rosenbrock_by_hand)
    return {"numgrad": lambda: ours(x, 1000), "hand": lambda: hand(x, 1000)}


def waves(np_like: Any) -> Callable[[Any], Any]:
    """Return sum(tanh(w) exp(-w w) + sin(w)) in a library's functions."""
    return lambda w: (np_like.tanh(w) * np_like.exp(-w * w) + np_like.sin(w)).sum()


@njit(parallel=True, fastmath=True, error_model="numpy")
def waves_by_hand(w: Any) -> Any:
    gradient = np.empty_like(w)
    value = 0.0
    for i in prange(w.size):
        x = w[i]
        t, e = scalar.tanh(x), scalar.exp(-x * x)
        value += t * e + scalar.sin_near(x)
        gradient[i] = e * (1 - t * t - 2 * x * t) + scalar.cos_near(x)
    return value, gradient


@case
def ten_million() -> dict[str, Call]:
    """Measure sum(tanh(w) exp(-w w) + sin(w)) of 10 million float64, value and gradient."""
    w = np.random.default_rng(0).standard_normal(10_000_000)
    ours = ng.jit(ng.func.value_and_grad(waves(ng)))
    calls: dict[str, Call] = {"numgrad": lambda: ours(w), "hand": lambda: waves_by_hand(w)}
    if HAS["torch"]:
        calls["torch"] = torch_value_and_grad(waves(torch), w)
        calls["torch.compile"] = torch_value_and_grad(waves(torch), w, compiled=True)
    if HAS["jax"]:
        calls["jax"] = jax_call(jax.value_and_grad(waves(jnp)), w)
    if HAS["pytensor"]:
        calls["pytensor"] = pytensor_call(lambda v: [waves(pt)(v), pt.grad(waves(pt)(v), v)], w)
    if HAS["autograd"]:
        theirs = autograd.value_and_grad(waves(anp))
        calls["autograd"] = lambda: theirs(w)
    if HAS["mygrad"]:
        calls["mygrad"] = mygrad_call(waves(mg), w)
    return calls


def logistic(np_like: Any, features: Any, labels: Any) -> Callable[[Any], Any]:
    """Return the mean loss of a logistic regression as a function of the weights."""

    def loss(weights: Any) -> Any:
        margins = labels * (features @ weights)
        return np_like.log(1 + np_like.exp(-margins)).mean()

    return loss


def _regression() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    features = random.standard_normal((10_000, 50))
    weights = random.standard_normal(50) * 0.1
    labels = np.where(features @ random.standard_normal(50) > 0, 1.0, -1.0)
    return features, labels, weights


@case
def logistic_gradient() -> dict[str, Call]:
    """Measure logistic regression of 10,000 x 50, value and gradient."""
    features, labels, weights = _regression()
    ours = ng.jit(ng.func.value_and_grad(logistic(ng, *map(ng.from_numpy, (features, labels)))))
    calls: dict[str, Call] = {"numgrad": lambda: ours(weights)}
    if HAS["torch"]:
        theirs = logistic(torch, *map(torch.from_numpy, (features, labels)))
        calls["torch"] = torch_value_and_grad(theirs, weights)
        calls["torch.compile"] = torch_value_and_grad(theirs, weights, compiled=True)
    if HAS["jax"]:
        loss = logistic(jnp, jnp.asarray(features), jnp.asarray(labels))
        calls["jax"] = jax_call(jax.value_and_grad(loss), weights)
    if HAS["pytensor"]:
        symbolic = logistic(pt, pt.constant(features), pt.constant(labels))
        calls["pytensor"] = pytensor_call(lambda v: [symbolic(v), pt.grad(symbolic(v), v)], weights)
    if HAS["autograd"]:
        value_and_grad = autograd.value_and_grad(logistic(anp, features, labels))
        calls["autograd"] = lambda: value_and_grad(weights)
    if HAS["mygrad"]:
        calls["mygrad"] = mygrad_call(logistic(mg, features, labels), weights)
    return calls


@case
def logistic_hessian_vector() -> dict[str, Call]:
    """Measure its Hessian times a vector."""
    features, labels, weights = _regression()
    vector = np.random.default_rng(2).standard_normal(50)
    loss = logistic(ng, *map(ng.from_numpy, (features, labels)))
    ours = ng.jit(lambda w, v: ng.func.hvp(loss, (w,), (v,)))
    calls: dict[str, Call] = {"numgrad": lambda: ours(weights, vector)}
    if HAS["torch"]:
        theirs = logistic(torch, *map(torch.from_numpy, (features, labels)))
        w, v = torch.from_numpy(weights).requires_grad_(), torch.from_numpy(vector)

        def torch_call() -> Any:
            (gradient,) = torch.autograd.grad(theirs(w), w, create_graph=True)
            return torch.autograd.grad(gradient, w, v)[0]

        calls["torch"] = torch_call
    if HAS["jax"]:
        jax_loss = logistic(jnp, jnp.asarray(features), jnp.asarray(labels))
        calls["jax"] = jax_call(
            lambda w, v: jax.jvp(jax.grad(jax_loss), (w,), (v,))[1], weights, vector
        )
    if HAS["pytensor"]:
        symbolic = logistic(pt, pt.constant(features), pt.constant(labels))
        calls["pytensor"] = pytensor_call(
            lambda w, v: pt.grad((pt.grad(symbolic(w), w) * v).sum(), w), weights, vector
        )
    if HAS["autograd"]:
        product = autograd.hessian_vector_product(logistic(anp, features, labels))
        calls["autograd"] = lambda: product(weights, vector)
    return calls


@case
def hessian_50() -> dict[str, Call]:
    """Measure the Hessian of Rosenbrock's function of 50 float64."""
    x = np.random.default_rng(3).standard_normal(50)
    ours = ng.jit(ng.func.hessian(rosenbrock))
    calls: dict[str, Call] = {"numgrad": lambda: ours(x)}
    if HAS["torch"]:
        leaf = torch.from_numpy(x)
        calls["torch"] = lambda: torch.autograd.functional.hessian(rosenbrock, leaf)
        calls["torch.func"] = lambda: torch.func.hessian(rosenbrock)(leaf)
    if HAS["jax"]:
        calls["jax"] = jax_call(jax.hessian(rosenbrock), x)
    if HAS["pytensor"]:
        calls["pytensor"] = pytensor_call(lambda v: pt.hessian(rosenbrock(v), v), x)
    if HAS["autograd"]:
        theirs = autograd.hessian(rosenbrock)
        calls["autograd"] = lambda: theirs(x)
    return calls


def nested_sines(sin: Any) -> Callable[[Any], Any]:
    """Return the sum of 100 sines, each of the last."""

    def function(x: Any) -> Any:
        for _ in range(100):
            x = sin(x)
        return x.sum()

    return function


@case
def sines_100() -> dict[str, Call]:
    """Measure 100 nested sines of 4 float64, value and gradient."""
    x = np.array([0.3, -0.2, 0.1, 0.4])
    ours = ng.jit(ng.func.value_and_grad(nested_sines(ng.sin)))
    calls: dict[str, Call] = {"numgrad": lambda: ours(x)}
    if HAS["torch"]:
        calls["torch"] = torch_value_and_grad(nested_sines(torch.sin), x)
        calls["torch.compile"] = torch_value_and_grad(nested_sines(torch.sin), x, compiled=True)
    if HAS["jax"]:
        calls["jax"] = jax_call(jax.value_and_grad(nested_sines(jnp.sin)), x)
    if HAS["autograd"]:
        theirs = autograd.value_and_grad(nested_sines(anp.sin))
        calls["autograd"] = lambda: theirs(x)
    if HAS["pytensor"]:
        symbolic = nested_sines(pt.sin)
        calls["pytensor"] = pytensor_call(lambda v: [symbolic(v), pt.grad(symbolic(v), v)], x)
    if HAS["mygrad"]:
        calls["mygrad"] = mygrad_call(nested_sines(mg.sin), x)
    return calls


def perceptron(tanh: Any) -> Callable[..., Any]:
    """Return the mean square error of a network of one hidden layer."""

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
        hidden = tanh(x @ w1 + b1)
        return ((hidden @ w2 + b2 - y) ** 2).mean()

    return loss


@case
def network() -> dict[str, Call]:
    """Measure a network 64 x 16 - 32 - 1, float32: gradients of all parameters."""
    random = np.random.default_rng(4)
    shapes = ((16, 32), (32,), (32, 1), (1,), (64, 16), (64, 1))
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    ours = ng.jit(ng.func.grad(perceptron(ng.tanh), argnums=(0, 1, 2, 3)))
    calls: dict[str, Call] = {"numgrad": lambda: ours(*arrays)}
    if HAS["torch"]:
        tensors = [torch.from_numpy(a).requires_grad_(k < 4) for k, a in enumerate(arrays)]
        theirs = perceptron(torch.tanh)
        fast = torch.compile(theirs)
        calls["torch"] = lambda: torch.autograd.grad(theirs(*tensors), tensors[:4])
        calls["torch.compile"] = lambda: torch.autograd.grad(fast(*tensors), tensors[:4])
    if HAS["jax"]:
        gradient = jax.grad(perceptron(jnp.tanh), argnums=(0, 1, 2, 3))
        calls["jax"] = jax_call(gradient, *arrays)
    if HAS["pytensor"]:
        symbolic = perceptron(pt.tanh)
        calls["pytensor"] = pytensor_call(
            lambda *given: pt.grad(symbolic(*given), list(given[:4])), *arrays
        )
    if HAS["autograd"]:
        gradients = autograd.grad(perceptron(anp.tanh), (0, 1, 2, 3))
        calls["autograd"] = lambda: gradients(*arrays)
    if HAS["mygrad"]:
        calls["mygrad"] = mygrad_call(perceptron(mg.tanh), *arrays, moving=4)
    return calls


def mixture(np_like: Any, weights: Any, means: Any) -> Callable[[Any], Any]:
    """Return the negative logarithm of a mixture of normal densities, but for a constant."""

    def potential(x: Any) -> Any:
        squares = ((x - means) ** 2).sum(axis=1)
        return -np_like.log((weights * np_like.exp(-0.5 * squares)).sum())

    return potential


@njit(error_model="numpy")
def mixture_by_hand(x: Any, weights: Any, means: Any) -> Any:
    gradient = np.zeros(x.size)
    total = 0.0
    for k in range(weights.size):
        squares = 0.0
        for i in range(x.size):
            squares += (x[i] - means[k, i]) ** 2
        part = weights[k] * np.exp(-0.5 * squares)
        total += part
        for i in range(x.size):
            gradient[i] += part * (x[i] - means[k, i])
    return -np.log(total), gradient / total


def leapfrogs(slope: Any) -> Callable[..., Any]:
    """Return a compiled loop of leapfrog steps, which writes into its arrays."""

    @njit
    def run(x: Any, momentum: Any, weights: Any, means: Any, step: float, count: int) -> Any:
        x, momentum = x.copy(), momentum.copy()
        _, gradient = slope(x, weights, means)
        for _ in range(count):
            for i in range(x.size):
                momentum[i] -= 0.5 * step * gradient[i]
                x[i] += step * momentum[i]
            _, gradient = slope(x, weights, means)
            for i in range(x.size):
                momentum[i] -= 0.5 * step * gradient[i]
        return x, momentum

    return run


def leapfrogs_by_arrays(slope: Any) -> Callable[..., Any]:
    """Return the same loop with arrays for operands, each result of which is a new array."""

    @njit
    def run(x: Any, momentum: Any, weights: Any, means: Any, step: float, count: int) -> Any:
        _, gradient = slope(x, weights, means)
        for _ in range(count):
            momentum = momentum - 0.5 * step * gradient
            x = x + step * momentum
            _, gradient = slope(x, weights, means)
            momentum = momentum - 0.5 * step * gradient
        return x, momentum

    return run


def python_leapfrogs(gradient: Any, x: Any, momentum: Any, step: float, count: int) -> Any:
    """Take leapfrog steps in Python."""
    slope = gradient(x)
    for _ in range(count):
        momentum = momentum - 0.5 * step * slope
        x = x + step * momentum
        slope = gradient(x)
        momentum = momentum - 0.5 * step * slope
    return x, momentum


@case
def leapfrog_10_000() -> dict[str, Call]:
    """Measure 10,000 leapfrog steps on a mixture of 5 normal densities of 10 float64."""
    random = np.random.default_rng(5)
    weights, means = np.full(5, 0.2), random.standard_normal((5, 10))
    x, momentum = random.standard_normal((2, 10))
    step, count = 0.1, 10_000

    def given(x: Any, weights: Any, means: Any) -> Any:
        return mixture(ng, weights, means)(x)

    example = (x, weights, means)
    slope = ng.jit(ng.func.value_and_grad(given)).lower(*example).dispatcher
    calls: dict[str, Call] = {}
    for name, run in {
        "numgrad": leapfrogs(slope),
        "numgrad, new arrays": leapfrogs_by_arrays(slope),
        "hand": leapfrogs(mixture_by_hand),
        "hand, new arrays": leapfrogs_by_arrays(mixture_by_hand),
    }.items():
        calls[name] = partial(run, x, momentum, weights, means, step, count)
    if HAS["torch"]:
        theirs = mixture(torch, *map(torch.from_numpy, (weights, means)))

        def torch_gradient(point: Any) -> Any:
            leaf = point.detach().requires_grad_()
            return torch.autograd.grad(theirs(leaf), leaf)[0]

        tensors = torch.from_numpy(x), torch.from_numpy(momentum)
        calls["torch"] = lambda: python_leapfrogs(torch_gradient, *tensors, step, count)
    if HAS["jax"]:
        jax_gradient = jax.grad(mixture(jnp, jnp.asarray(weights), jnp.asarray(means)))

        def jax_run(x: Any, momentum: Any) -> Any:
            def leap(_: Any, state: Any) -> Any:
                x, momentum, slope = state
                momentum = momentum - 0.5 * step * slope
                x = x + step * momentum
                slope = jax_gradient(x)
                return x, momentum - 0.5 * step * slope, slope

            return jax.lax.fori_loop(0, count, leap, (x, momentum, jax_gradient(x)))

        calls["jax"] = jax_call(jax_run, x, momentum)
    if HAS["pytensor"]:
        symbolic = mixture(pt, pt.constant(weights), pt.constant(means))
        compiled = pytensor_function(lambda v: [pt.grad(symbolic(v), v)], x)
        calls["pytensor"] = lambda: python_leapfrogs(
            lambda v: compiled(v)[0], x, momentum, step, count
        )
    if HAS["autograd"]:
        gradient = autograd.grad(mixture(anp, weights, means))
        calls["autograd"] = lambda: python_leapfrogs(gradient, x, momentum, step, count)
    if HAS["mygrad"]:
        function = mixture(mg, weights, means)

        def mygrad_gradient(point: Any) -> Any:
            tensor = mg.tensor(point)
            function(tensor).backward()
            return tensor.grad

        calls["mygrad"] = lambda: python_leapfrogs(mygrad_gradient, x, momentum, step, count)
    return calls


# --- measuring ------------------------------------------------------------------------------------


TURN, PAUSE = 2e-3, 5e-3  # seconds of calls that are timed together, and between two turns
LONG = 5e-2  # a call that takes so many seconds needs no calls before it to be at speed


def serve(connection: Connection) -> None:
    """Measure calls of one library on request: a case's name, and a call's or None for all names.

    Answers with the names of the calls, or with the time that one takes among others like it: after
    a pause, the first calls wake threads and cores.
    """
    library = os.environ[SERVED]
    own = ("numgrad", "hand") if library == "numgrad" else (library,)
    calls: dict[str, Call] = {}
    once: dict[str, float] = {}
    while (request := connection.recv()) is not None:
        case, name = request
        if name is None:
            calls = {k: v for k, v in CASES[case]().items() if k.startswith(own)}
            for each, call in calls.items():
                call()
                once[each] = max(1e-7, min(timed(call, 1) for _ in range(5)))
            connection.send(list(calls))
            continue
        repeats = max(1, int(TURN / once[name]))
        if once[name] < LONG:
            timed(calls[name], 2 * repeats)
        connection.send(timed(calls[name], repeats))


def timed(call: Call, count: int) -> float:
    """Return the seconds that one of some calls takes."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def start() -> list[Connection]:
    """Start a process for each library that is installed."""
    connections = []
    context = multiprocessing.get_context("spawn")
    for library in LIBRARIES:
        if importlib.util.find_spec(library) is not None:
            os.environ[SERVED] = library
            here, there = context.Pipe()
            context.Process(target=serve, args=(there,), daemon=True).start()
            connections.append(here)
    return connections


def measure(case: str, connections: list[Connection], seconds: float) -> dict[str, float]:
    """Return the median time of each call of a case, taken in turns."""
    calls: list[tuple[str, Connection]] = []
    for connection in connections:
        connection.send((case, None))
        calls += [(name, connection) for name in connection.recv()]
    times: dict[str, list[float]] = {name: [] for name, _ in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["numgrad"]) < 5:
        for name, connection in calls:
            time.sleep(PAUSE)
            connection.send((case, name))
            times[name].append(connection.recv())
    return {name: statistics.median(each) for name, each in times.items()}


def spelled(seconds: float) -> str:
    """Return a time with a unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def described(name: str) -> str:
    """Return what a case measures."""
    return (CASES[name].__doc__ or name).removeprefix("Measure ").rstrip(".")


def main() -> None:
    """Measure the cases that were asked for, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all if none")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each case")
    options = parser.parse_args()
    if unknown := set(options.cases).difference(CASES):
        parser.error(f"no case is called {', '.join(sorted(unknown))}")
    connections = start()
    print("| case | library | time | of ours |\n| --- | --- | ---: | ---: |")
    for name in options.cases or CASES:
        found = measure(name, connections, options.seconds)
        for library, seconds in found.items():
            print(
                f"| {described(name)} | {library} | {spelled(seconds)} | "
                f"{seconds / found['numgrad']:.2f} |",
                flush=True,
            )
    for connection in connections:
        connection.send(None)


if __name__ == "__main__":
    main()
