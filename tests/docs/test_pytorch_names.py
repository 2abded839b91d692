"""The table of PyTorch's names is exact."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.docs.instead import group_of
from tests.docs.pytorch_names import (
    TABLE,
    VERSION,
    entries,
    installed,
    is_here,
    names_in_table,
    names_of_pytorch,
    write,
)

AGAIN = "run `python -m tests.docs.pytorch_names`"


@pytest.mark.parametrize("kind", ["Here", "Missing"])
def test_the_table_says_of_every_name_whether_it_is_here(kind: str) -> None:
    found = [(section, names) for section, said, names in entries() if said == kind]
    wrong = [
        f"{section}: {name}"
        for section, names in found
        for name in names
        if is_here(section, name) != (kind == "Here")
    ]
    assert len(found) > 5
    assert not wrong, AGAIN


def test_of_every_missing_name_it_is_said_what_to_use_instead() -> None:
    missing = {name for _, said, names in entries() if said == "Missing" for name in names}
    assert len(missing) > 100
    assert not {name for name in missing if group_of(name) is None}, "tests/docs/instead.py"


def test_the_table_is_what_is_written_of_its_names() -> None:
    assert TABLE.read_text() == write(names_in_table()), AGAIN


def test_the_table_has_every_public_name_of_pytorch_and_no_other(torch: ModuleType) -> None:
    if not installed():
        pytest.skip(f"the table is of PyTorch {VERSION}")
    assert names_in_table() == names_of_pytorch(), AGAIN
