"""What every test file may rely on.

Comparisons with PyTorch
    PyTorch is no dependency. A test that compares with it asks for the ``torch`` fixture::

        def test_tanh_is_pytorchs(torch: ModuleType) -> None:
            assert ng.tensor(0.5).tanh().item() == torch.tensor(0.5).tanh().item()

    Where PyTorch is missing its recorded answers take its place (`tests.answers`); a test that has
    none, as one that draws its cases, is left out, and the summary at the end of the run says how
    many were. Such tests carry the mark ``torch``: ``pytest -m torch`` runs only them, and
    ``-m "not torch"`` leaves them out. Don't import torch at the top of a test file, and don't skip
    by hand.

Hypothesis
    It draws new examples every time where tests are named, and with ``--cases=all``; the same ones
    in every sample, and in every run where the variable ``CI`` is set. How many goes by ``--cases``
    (see `tests.cases`): a test that wants more than others, or fewer, says so by
    ``@settings(max_examples=examples(200))``.

Jitted functions
    Compiling is most of what their tests do. One of what is decided while a function is traced asks
    for the fixture ``traced``, and in a sample runs what was traced by the kernels of eager mode.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

import numgrad
from numgrad.jit.front import compiled
from numgrad.ops import later
from tests.answers import plugin
from tests.cases import is_sample
from tests.jit.uncompiled import Uncompiled

later.load_all()  # tests come from the catalogue

# pytest looks for fixtures and hooks here.
torch = plugin.torch
pytest_runtest_makereport = plugin.pytest_runtest_makereport
pytest_sessionfinish = plugin.pytest_sessionfinish
pytest_testnodedown = plugin.pytest_testnodedown
pytest_terminal_summary = plugin.pytest_terminal_summary


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests for what they ask for: ``-m sampled`` has all that a sample does not do whole."""
    plugin.pytest_collection_modifyitems(config, items)
    for item in items:
        if "traced" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.sampled(1.0))


@pytest.fixture
def traced(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a sample, functions under `jit` are traced, but not compiled; with all cases they are.

    For tests of what is decided before there is anything to compile.
    """
    if is_sample(request.config):
        monkeypatch.setattr(compiled, "build", Uncompiled)


@pytest.fixture
def every_warning() -> Iterator[None]:
    """Have warnings given again that a process gives once."""
    before = numgrad.is_warn_always_enabled()
    numgrad.set_warn_always(True)
    yield
    numgrad.set_warn_always(before)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises `KeyboardInterrupt`, here and in child processes.

    A shell that runs something in the background may have it ignored, and children inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
