"""Tensors as dictionary keys."""

from __future__ import annotations

from typing import Any


def test_a_tensor_is_found_by_identity(lib: Any) -> None:
    a, b = lib.ones(2), lib.ones(2)
    found = {a: "a", b: "b"}
    assert found[a] == "a"
    assert found[b] == "b"
    assert len({a, b, a}) == 2
