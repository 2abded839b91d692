"""``python -m numgrad``: a tour of numgrad on real numbers, and a report of where it runs."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
from numba import njit

import numgrad as ng
from numgrad.tools.cache_command import add_cache_command

WIDTH = 79  # columns


def heading(title: str) -> None:
    """Print the title of a section."""
    print(f"\n{title}\n{'-' * len(title)}")


def show(label: str, value: object) -> None:
    """Print one computed value beside the expression that it is the value of."""
    print(f"{label:<34} {value}")


def first_gradient() -> None:
    """Differentiate a product of two sums."""
    heading("A first gradient")
    w = ng.tensor([1.0], requires_grad=True)
    x = ng.tensor([2.0])
    y = (w + x) * (w + 1)
    show("w", w)
    show("x", x)
    show("y = (w + x) * (w + 1)", y)
    y.backward()
    show("w.grad after y.backward()", w.grad)
    show("2*w + x + 1, by hand", (2 * w + x + 1).detach())


def accumulation() -> None:
    """Show that gradients add up, and that a graph is freed unless it is retained."""
    heading("Gradients accumulate, and a graph is used up")
    x = ng.tensor([2.0], requires_grad=True)
    y = x**4
    show("y = x**4 at x", x)
    y.backward(retain_graph=True)
    show("x.grad after the first backward", x.grad)
    y.backward()
    show("x.grad after the second", x.grad)
    show_error("a third, the graph being freed", y.backward)


def second_derivative() -> None:
    """Differentiate a derivative."""
    heading("A derivative of a derivative")
    x = ng.tensor([0.0, 0.5, 1.0], dtype=ng.float64, requires_grad=True)
    y = ng.sin(x) * ng.exp(x)
    (first,) = ng.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = ng.autograd.grad(first.sum(), x)
    show("x", x.detach())
    show("y = sin(x) * exp(x)", y.detach())
    show("y'", first.detach())
    show("y''", second)
    show("2 * cos(x) * exp(x), by hand", (2 * ng.cos(x) * ng.exp(x)).detach())


def leaf_in_place() -> None:
    """Show the error of writing to a leaf, and the way that is allowed."""
    heading("A leaf that needs a gradient is not written to")
    w = ng.tensor([1.0], requires_grad=True)
    show_error("w.add_(1)", lambda: w.add_(1))
    with ng.no_grad():
        w.add_(1)
    show("w after the same under no_grad()", w)


def show_error(label: str, call: Callable[[], object]) -> None:
    """Make a call that must raise RuntimeError, and print what it raised."""
    try:
        call()
    except RuntimeError as error:
        said = textwrap.fill(f"RuntimeError: {error}", WIDTH - 4, break_on_hyphens=False)
        print(f"{label}:\n{textwrap.indent(said, '    ')}")
    else:
        raise AssertionError(f"{label}: this must raise RuntimeError, and did not")


@contextmanager
def double_precision() -> Iterator[None]:
    """Make float64 the default dtype for a while, so that it is not printed with every tensor."""
    before = ng.get_default_dtype()
    ng.set_default_dtype(ng.float64)
    try:
        yield
    finally:
        ng.set_default_dtype(before)


def least_squares(steps: int = 200, every: int = 40, rate: float = 0.5) -> None:
    """Fit the coefficients of a parabola to noisy points by gradient descent."""
    heading("A least-squares fit")
    generator = np.random.default_rng(0)
    truth = np.array([0.5, -1.0, 2.0])
    powers = np.vander(np.linspace(-1.0, 1.0, 200), 3, increasing=True)
    points = powers @ truth + 0.05 * generator.standard_normal(len(powers))
    exact = np.linalg.lstsq(powers, points, rcond=None)[0]

    design, target = ng.from_numpy(powers), ng.from_numpy(points)
    coefficients = ng.zeros(3, dtype=ng.float64, requires_grad=True)
    for step in range(steps + 1):
        loss = ((design @ coefficients - target) ** 2).mean()
        if step % every == 0:
            show(f"loss after {step} steps", f"{loss.item():.8f}")
        (gradient,) = ng.autograd.grad(loss, coefficients)
        with ng.no_grad():
            coefficients -= rate * gradient

    show("coefficients", coefficients.detach())
    show("NumPy's least-squares solution", ng.from_numpy(exact))
    show("the truth, before the noise", ng.from_numpy(truth))


def rosenbrock(x: Any) -> Any:
    """Return Rosenbrock's function, whose least value, 0, is at (1, 1, ...)."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def functions() -> None:
    """Transform a function into those of its derivatives."""
    heading("Functions that give derivatives: ng.func")
    show("f(x), Rosenbrock's function, at x", [-1.0, 1.5])
    value, gradient = ng.func.value_and_grad(rosenbrock)([-1.0, 1.5])
    show("func.value_and_grad(f)(x)", f"({value}, {gradient})")
    hessian = ng.func.hessian(rosenbrock)([-1.0, 1.5])
    show("func.hessian(f)(x), row by row", hessian[0])
    show("", hessian[1])
    show("func.grad(sin)(0.0)", ng.func.grad(ng.sin)(0.0))


def compiled() -> Any:
    """Compile a gradient, and return it."""
    heading("The same, compiled: ng.jit")
    x = np.linspace(-0.5, 1.0, 4)
    eager = ng.func.value_and_grad(rosenbrock)
    fast = ng.jit(eager)
    print("fast = ng.jit(ng.func.value_and_grad(f)) fuses value and gradient into few")
    print("loops, which Numba compiles when it is first called.")
    show("fast(x), the value", fast(x)[0])
    show("without jit, the value", eager(x)[0])
    show("fast(x), the gradient", fast(x)[1])
    show("without jit, the gradient", eager(x)[1])
    return fast


def own_loop(fast: Any, steps: int = 20_000, rate: float = 1e-3) -> None:
    """Call a compiled gradient from a loop that is compiled, too."""
    heading("In a loop of your own: lower(x).dispatcher")
    x = np.linspace(-0.5, 1.0, 4)
    slope = fast.lower(x).dispatcher

    @njit
    def descend(x: Any, steps: int, rate: float) -> Any:
        for _ in range(steps):
            value, gradient = slope(x)
            x = x - rate * gradient
        return value, x

    print("slope = fast.lower(x).dispatcher is a function of arrays for @njit code:")
    print()
    print("    @njit")
    print("    def descend(x, steps, rate):")
    print("        for _ in range(steps):")
    print("            value, gradient = slope(x)")
    print("            x = x - rate * gradient")
    print("        return value, x")
    print()
    value, x = descend(x, steps, rate)
    show(f"f(x) after {steps} steps", f"{float(value):.2e}")
    show("descend(x, steps, rate), rounded", ng.from_numpy(x).round(decimals=3))
    show("the minimum", ng.ones(4))


# Where to go on, and what is there.
NEXT = {
    "README.md": "more of this, operations of your own, the cache",
    "docs/if-you-know-pytorch.md": "what is the same, what differs, what is missing",
    "docs/jit.md": "a sampler, a fit and an integrand, all compiled",
    "docs/pytorch-names.md": "every name of PyTorch's, and whether it is here",
    "help(ng.func.grad)": "and so on: every function has an example",
    "python -m numgrad cache warm": "compile the kernels now, not when they are used",
}


def what_next() -> None:
    """Print what to read next."""
    heading("What to read next")
    for place, what in NEXT.items():
        print(f"{place:<30}{what}")


def report() -> None:
    """Print versions, threads and the kernel cache."""
    heading("Where this ran")
    show("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    show("numgrad", ng.__version__)
    for distribution in ("numpy", "numba", "llvmlite"):
        show(distribution, version(distribution))
    show("threads", f"{ng.get_num_threads()} of {os.cpu_count()} processors")
    show("kernel cache", ng.cache_dir() or "off")


def tour() -> None:
    """Run every section in turn."""
    print(f"numgrad {ng.__version__}: every number below is computed now. The first run")
    print("compiles its kernels, later ones find them in the cache.")
    first_gradient()
    accumulation()
    with double_precision():
        second_derivative()
    leaf_in_place()
    with double_precision():
        least_squares()
        functions()
        own_loop(compiled())
    report()
    what_next()


# What the program can do: its name on the command line, the function, its line of help.
COMMANDS: dict[str, tuple[Callable[[], None], str]] = {
    "tour": (tour, "gradients on real numbers, then the report (the default)"),
    "report": (report, "only the versions, the threads and the kernel cache"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command that the arguments name, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m numgrad", description="Gradients of array programs on CPUs."
    )
    parser.add_argument("--version", action="version", version=f"numgrad {ng.__version__}")
    parser.set_defaults(run=tour)
    commands = parser.add_subparsers(title="commands", metavar="command")
    for name, (function, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, description=summary).set_defaults(run=function)
    add_cache_command(commands)
    options = parser.parse_args(arguments)
    if hasattr(options, "run_cache"):
        return int(options.run_cache(options))
    options.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
