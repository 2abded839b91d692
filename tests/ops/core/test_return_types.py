"""Named results print as PyTorch's do."""

from __future__ import annotations

from types import ModuleType

import pytest

import numgrad as ng

CALLS = ("sort", "max", "min", "cummax", "cummin", "topk", "kthvalue")


@pytest.mark.parametrize("name", CALLS)
def test_they_print_their_fields(torch: ModuleType, name: str) -> None:
    said = []
    for library in (ng, torch):
        x = library.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
        arguments = (1,) if name in ("max", "min", "cummax", "cummin", "topk", "kthvalue") else ()
        said.append(repr(getattr(x, name)(*arguments)))
    assert said[0] == said[1]
