"""Operands, `out=`, promotion and saved facts: what comes of short programs, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

import numgrad as ng
from tests import outcomes

ALIKE, OTHERWISE = outcomes.read(Path(__file__).with_name("outcomes.txt"))
LIBRARIES = ["numgrad", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.mark.parametrize("start", range(0, len(ALIKE), 25))
@pytest.mark.parametrize("library", LIBRARIES)
def test_programs_end_as_they_do_in_pytorch(
    request: pytest.FixtureRequest, library: str, start: int
) -> None:
    m = ng if library == "numgrad" else request.getfixturevalue("torch")
    for program, *expected in ALIKE[start : start + 25]:
        for _ in range(1 + 2 * (m is ng)):  # the third call is a remembered one
            assert outcomes.outcome(m, program) == tuple(expected), program


def test_programs_that_end_otherwise_in_pytorch() -> None:
    for program, *expected in OTHERWISE:
        assert outcomes.outcome(ng, program) == tuple(expected), program
