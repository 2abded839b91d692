"""What every test file may rely on.

Comparisons with PyTorch
    PyTorch is no dependency. A test that compares with it asks for the ``torch`` fixture::

        def test_tanh_is_pytorchs(torch: ModuleType) -> None:
            assert ng.tensor(0.5).tanh().item() == torch.tensor(0.5).tanh().item()

    Where PyTorch is missing its recorded answers take its place (`tests.answers`); a test that has
    none, as one that draws its cases, is skipped, and the summary at the end of the run says how
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

import pytest
from hypothesis import HealthCheck, settings

from tests.answers import plugin

# pytest looks for fixtures and hooks here.
torch = plugin.torch
pytest_collection_modifyitems = plugin.pytest_collection_modifyitems
pytest_runtest_makereport = plugin.pytest_runtest_makereport
pytest_terminal_summary = plugin.pytest_terminal_summary

# The first example of a test compiles, so the time that examples take says nothing about them.
# The fixture `torch` keeps nothing from one example to the next.
settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    print_blob=True,
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "default")
)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises `KeyboardInterrupt`, here and in child processes.

    A shell that runs something in the background may have it ignored, and children inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
