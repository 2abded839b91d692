"""Views of what an index finds are read where it is found: the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples
from tests.jit.run_graph import run_traced

SIZES = (3, 4, 2)
PLACES = ("x[i]", "x[:, i]", "x[:, :, k]", "x[i, i]", "x[k, :, k]", "x[i, :, k]", "x[:, i, k]")
PLACES += ("x[i[:, None], :, k]", "x[i[:, None], k]", "x.index_select(1, i)", "x.gather(1, j)")
PLACES += ("x.take(j)", "x.index_select(-1, k)", "x[i, 1:]", "x[:, i, 0]", "x[0, i[:, None], k]")
VIEWS = (".flip(0)", ".select(-1, 1)", ".select(0, 1)", "[::2]", "[..., 1:]", ".movedim(0, -1)")
VIEWS += (
    ".diagonal(0, 0, -1)",
    ".t()",
    ".unfold(0, 2, 1)",
    ".unsqueeze(0)",
    ".reshape(-1)",
    "[-1:]",
)
VIEWS += (".expand(2, *y.shape)", ".diagonal(-1, -1, 0)", ".flip(-1)", ".reshape(-1)[1:4]")


@settings(max_examples=examples(150))
@given(st.sampled_from(PLACES), st.lists(st.sampled_from(VIEWS), min_size=1, max_size=4), st.data())
def test_views_of_gathers(place: str, views: list[str], data: st.DataObject) -> None:
    x = ng.arange(24.0, dtype=ng.float64).reshape(SIZES)
    i = ng.tensor(data.draw(st.lists(st.integers(0, 1), min_size=2, max_size=3)))
    k = ng.tensor(data.draw(st.lists(st.integers(0, 1), min_size=len(i), max_size=len(i))))
    j = ng.tensor(data.draw(st.lists(st.integers(0, 3), min_size=6, max_size=6))).reshape(3, 1, 2)

    def program(x: Any, i: Any, j: Any, k: Any) -> Any:
        y = eval(place)
        for view in views:
            try:
                y = eval(f"y{view}", {"y": y})
            except (RuntimeError, IndexError):  # it has not those dims
                continue
        return y + 0.0

    expected = program(x, i, j, k)
    np.testing.assert_array_equal(run_traced(program, x, i, j, k).numpy(), expected.numpy())
