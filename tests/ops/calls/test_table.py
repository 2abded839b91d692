"""The table of what is remembered of calls."""

from __future__ import annotations

import pytest

from numgrad.ops.calls import table
from numgrad.ops.calls.table import Table


def test_a_table_holds_so_many_calls_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "REMEMBERED_CALLS", 4)
    made = Table()
    for key in range(20):
        assert made.keep(key, key * key) == key * key
        assert made[key] == key * key
        assert len(made) <= 4
    assert len(made) == 4
