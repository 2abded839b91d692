"""Tensors as dictionary keys."""

from __future__ import annotations

import numgrad as ng


def test_a_tensor_is_found_by_identity():
    a, b = ng.ones(2), ng.ones(2)
    found = {a: "a", b: "b"}
    assert found[a] == "a"
    assert found[b] == "b"
    assert len({a, b, a}) == 2
