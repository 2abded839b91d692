"""A plugin of pytest that writes to a file which tests passed: ``--passed-to=FILE``."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the name of the file."""
    parser.addoption("--passed-to", type=Path)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the tests that passed, a line each."""
    names = [report.nodeid for report in terminalreporter.getreports("passed")]
    file = terminalreporter.config.getoption("--passed-to")
    file.write_text("".join(f"{name}\n" for name in names))
