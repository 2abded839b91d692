"""Programs written for PyTorch run unchanged and print the same."""

from __future__ import annotations

import re
import warnings
from types import ModuleType
from typing import Any

import pytest

import numgrad as ng
from tests.docs.programs import PROGRAMS


def printed(library: Any, name: str, capsys: Any) -> str:
    """Return what a program prints, and which warnings it shows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PROGRAMS[name](library)
    told = [(each.category.__name__, str(each.message)) for each in caught]
    # What PyTorch says to itself when it first pushes a tangent.
    warned = [f"{kind}: {text}\n" for kind, text in told if "torch.jit.script" not in text]
    text: str = capsys.readouterr().out + "".join(sorted(warned))
    return re.sub(r"0x[0-9a-f]+", "0x", text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_prints_what_it_prints_in_pytorch(
    torch: ModuleType, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    expected = printed(torch, name, capsys)
    assert expected
    assert printed(ng, name, capsys) == expected
