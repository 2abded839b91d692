"""The fixture that runs a test with numgrad and, to prove what it expects, with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad


@pytest.fixture(params=["numgrad", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request: pytest.FixtureRequest) -> Any:
    """Return numgrad, then PyTorch: what a test says of one has to hold for the other."""
    return numgrad if request.param == "numgrad" else request.getfixturevalue("torch")
