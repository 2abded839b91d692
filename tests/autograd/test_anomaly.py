"""Anomaly mode: what it raises, and where its warnings and errors say that things were done."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

import numgrad as ng
from numgrad.graph.modes.state import interceptors


@pytest.fixture(autouse=True)
def mode_is_off_afterwards() -> Iterator[None]:
    yield
    ng.set_anomaly_enabled(False)
    assert not interceptors


def line_of(marker: str) -> int:
    """Return the line of this file that ends in a comment."""
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()  # type: ignore[arg-type]
    (number,) = [n for n, line in enumerate(lines, 1) if line.endswith(f"# {marker}")]
    return number


def messages(library: Any, program: Any) -> tuple[list[str], str]:
    """Return the warnings of a program without their tracebacks' lines, and its error."""
    error = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program(library)
        except (RuntimeError, ZeroDivisionError) as raised:
            error = str(raised)
    texts = [str(each.message).partition(" (Triggered")[0] for each in caught]
    return [re.sub(r'  File "[\s\S]*', "", text) for text in texts], error


@contextmanager
def recorded() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def nan_in_backward(torch: Any) -> None:
    with torch.autograd.set_detect_anomaly(True):
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        (x.sqrt() * 0).sum().backward()


def nan_that_is_not_looked_for(torch: Any) -> None:
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        (x.sqrt() * 0).sum().backward()


def nan_without_the_mode(torch: Any) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    (x.sqrt() * 0).sum().backward()


def forward_without_the_mode(torch: Any) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = (x.sqrt() * 0).sum()
    with torch.autograd.set_detect_anomaly(True):
        y.backward()


def nan_in_double_backward(torch: Any) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = (x**1.5).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (g * 0).sum().backward()


def induced_by_an_unknown(torch: Any) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = (x**1.5).sum()
    with torch.autograd.set_detect_anomaly(True):
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (g * 0).sum().backward()


def announced(torch: Any) -> None:
    with torch.autograd.detect_anomaly():
        assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled()


def nested(torch: Any) -> None:
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        with torch.autograd.set_detect_anomaly(False):
            assert not torch.is_anomaly_enabled()
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()


@pytest.mark.parametrize(
    "program",
    [
        nan_in_backward,
        nan_that_is_not_looked_for,
        nan_without_the_mode,
        forward_without_the_mode,
        nan_in_double_backward,
        induced_by_an_unknown,
        announced,
        nested,
    ],
)
def test_warns_and_raises_what_pytorch_does(torch: ModuleType, program: Any) -> None:
    assert messages(ng, program) == messages(torch, program)


@pytest.mark.parametrize("arguments", [(3,), (True, 3)])
def test_switches_take_bools(torch: ModuleType, arguments: Any) -> None:
    for library in (ng, torch):
        with pytest.raises(TypeError, match="must be bool, not int"):
            library.autograd.set_detect_anomaly(*arguments)


def root(x: Any) -> Any:
    return x.sqrt()  # the root


def test_warning_shows_the_users_frames_down_to_the_call() -> None:
    x = ng.tensor([0.0], requires_grad=True)
    with ng.autograd.set_detect_anomaly(True), recorded() as caught:
        y = (root(x) * 0).sum()  # the call
        with pytest.raises(RuntimeError, match="SqrtBackward0"):
            y.backward()  # the backward
    text = str(caught[0].message)
    frames = re.findall(r'File "(.*)", line (\d+), in (\w+)', text)
    assert frames[-1] == (__file__, str(line_of("the root")), "root")
    assert frames[-2][:2] == (__file__, str(line_of("the call")))
    assert (caught[0].filename, caught[0].lineno) == (__file__, line_of("the backward"))


def test_warnings_show_where_the_induced_calculation_began() -> None:
    x = ng.tensor([0.0], requires_grad=True)
    with ng.autograd.set_detect_anomaly(True), recorded() as caught:
        y = (x**1.5).sum()  # the power
        (g,) = ng.autograd.grad(y, x, create_graph=True)  # the gradient
        with pytest.raises(RuntimeError, match="nan"):
            (g * 0).sum().backward()
    found = [re.findall(r"line (\d+)", str(warning.message))[-1] for warning in caught]
    assert found == [str(line_of("the gradient")), str(line_of("the power"))]


def test_write_to_a_saved_tensor_is_shown_by_its_line() -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    with ng.autograd.set_detect_anomaly(True), recorded() as warned:
        z = x * 2
        y = z * z
        z[1:].add_(1)  # the write
        z.mul_(3)
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
    assert "MulBackward0" in str(warned[0].message)
    message = str(caught.value)
    assert "is at version 2; expected version 0 instead" in message
    place = f'from version 0 to 1 at File "{__file__}", line {line_of("the write")}'
    assert place in message
    assert message.endswith("z[1:].add_(1)  # the write")


@pytest.mark.parametrize(
    "write",
    [
        lambda z: z.add_(1),
        lambda z: z.detach().fill_(3),
        lambda z: z.__setitem__(0, 5.0),
        lambda z: z.detach().copy_(ng.zeros(2)),
        lambda z: ng.exp(ng.zeros(2), out=z.detach()),
        lambda z: ng.stack([ng.ones(()), ng.ones(())], out=z.detach()),
    ],
)
def test_every_kind_of_write_is_noted(write: Any) -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    with ng.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = x * 2
        y = z * z
        write(z)
        with pytest.raises(RuntimeError, match=r"was changed from version 0 to 1 at File"):
            y.sum().backward()


def test_error_without_the_mode_says_how_to_turn_it_on() -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    z = x * 2
    y = z * z
    z.add_(1)
    with pytest.raises(RuntimeError, match=r"Hint: enable anomaly detection"):
        y.sum().backward()


def test_metadata_is_pytorchs(torch: ModuleType) -> None:
    def metadata(library: Any) -> Any:
        x = library.tensor([1.0], requires_grad=True)
        with library.autograd.set_detect_anomaly(True):
            (g,) = library.autograd.grad((x**3).sum(), x, create_graph=True)
        return {key: type(value).__name__ for key, value in g.grad_fn.metadata.items()}

    assert metadata(ng) == metadata(torch)


def test_results_are_the_same_with_the_mode() -> None:
    def derivatives() -> Any:
        x = ng.tensor([0.5, 2.0, 1.5], requires_grad=True)
        y = (x.sin() * x[1:].prod()).cumsum(0)
        y[0].mul_(2)
        (g,) = ng.autograd.grad(y.sum(), x, create_graph=True)
        g.exp().sum().backward()
        return g.tolist(), x.grad.tolist()

    alone = derivatives()
    with ng.autograd.set_detect_anomaly(True):
        assert derivatives() == alone
