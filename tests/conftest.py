"""What every test file may rely on.

Comparisons with PyTorch
    PyTorch is no dependency. A test that compares with it asks for the ``torch`` fixture::

        def test_tanh_is_pytorchs(torch: ModuleType) -> None:
            assert ng.tensor(0.5).tanh().item() == torch.tensor(0.5).tanh().item()

    Where PyTorch is missing the test is skipped, and the summary at the end of the run says how
    many were. Such tests carry the mark ``torch``: ``pytest -m torch`` runs only them, and
    ``-m "not torch"`` leaves them out. Don't import torch at the top of a test file, and don't skip
    by hand.

Hypothesis
    No deadline, because the first example of a test may compile a kernel. ``HYPOTHESIS_PROFILE``
    picks the profile: ``default`` draws new examples every time; ``ci`` (chosen where the variable
    ``CI`` is set) draws the same ones in every run; ``thorough`` draws ten times as many.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

NO_TORCH = "PyTorch is not installed"

# The first example of a test compiles, so the time that examples take says nothing about them.
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "default")
)


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """PyTorch, to compare with; where it is missing, the test is skipped and counted."""
    module = pytest.importorskip("torch", reason=NO_TORCH)
    # The tests' arrays are small, and one thread a worker keeps parallel runs from crowding.
    module.set_num_threads(1)
    return module


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises `KeyboardInterrupt`, here and in child processes.

    A shell that runs something in the background may have it ignored, and children inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for the fixture, directly or through another one."""
    for item in items:
        if "torch" in getattr(item, "fixturenames", ()):
            item.add_marker("torch")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many comparisons with PyTorch did not run, so that their absence is not silent."""
    skipped = sum(
        isinstance(report.longrepr, tuple) and NO_TORCH in report.longrepr[2]
        for report in terminalreporter.getreports("skipped")
    )
    if skipped:
        terminalreporter.write_line(
            f"{skipped} comparisons with PyTorch were skipped: {NO_TORCH}.", yellow=True
        )
