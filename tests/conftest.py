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
    It draws new examples every time, and the same ones in every run where the variable ``CI`` is
    set. How many goes by ``--cases`` (see `tests.cases`): a test that wants more than others, or
    fewer, says so by ``@settings(max_examples=examples(200))``.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.answers import plugin

# pytest looks for fixtures and hooks here.
torch = plugin.torch
pytest_collection_modifyitems = plugin.pytest_collection_modifyitems
pytest_runtest_makereport = plugin.pytest_runtest_makereport
pytest_terminal_summary = plugin.pytest_terminal_summary


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises `KeyboardInterrupt`, here and in child processes.

    A shell that runs something in the background may have it ignored, and children inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
