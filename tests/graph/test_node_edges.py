"""Nodes show the edges that PyTorch's show: none for masks, pivots, tolerances and lengths."""

from __future__ import annotations

from typing import Any

import pytest

from tests.graph.node_table import NODES
from tests.graph.test_node_names import node_of

# PyTorch's have an edge for the bound and the bias that were not given, and for the positions.
OTHER_EDGES = {
    "torch.clamp(m, min=h)",
    "F.conv2d(m.reshape(1, 1, 3, 4), s.reshape(1, 1, 3, 3), padding=1)",
    "torch.autograd.grad((m[[0, 1]] ** 2).sum(), m, create_graph=True)[0]",
}
# What has operands that nothing flows to, and for each that is shown whether something does.
UNSEEN = {
    "torch.where(m > 0, m, k)": [True, True],
    "torch.where(m > 0, m.detach(), k)": [False, True],
    "torch.linalg.pinv(P)": [True],
    "torch.linalg.pinv(P, rtol=torch.tensor(0.1))": [True],
    "torch.lu_unpack(P, torch.ones(3, dtype=torch.int32))[1]": [True],
    "torch.linalg.lu_solve(P, torch.ones(3, dtype=torch.int32), s)": [True, True],
    "torch.lu_solve(s.detach(), P, torch.ones(3, dtype=torch.int32))": [True, False],
}


def edges_of(node: Any) -> list[bool]:
    return [each is not None for each, _ in node.next_functions]


@pytest.mark.filterwarnings("ignore")
def test_edges_are_those_of_pytorchs_nodes(torch: Any) -> None:
    import numgrad as ng

    for line in NODES.keys() - OTHER_EDGES:
        expected = node_of(torch, line)
        if expected is not None:
            assert edges_of(node_of(ng, line)) == edges_of(expected), line


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", UNSEEN)
def test_users_see_no_operands_without_derivative(lib: Any, line: str) -> None:
    node = node_of(lib, line)
    shown = UNSEEN[line]
    assert edges_of(node) == shown
    g = lib.ones(3, 4 if "where" in line else 3, dtype=lib.float64)
    count = 2 if "unpack" in line else 1
    found = node(*[g] * count)
    found = found if isinstance(found, tuple) else (found,)
    assert [each is not None for each in found] == shown


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", UNSEEN)
def test_hooks_of_nodes_see_and_replace_as_many_gradients(lib: Any, line: str) -> None:
    node = node_of(lib, line)
    seen: list[Any] = []

    def hook(inputs: Any, outputs: Any) -> Any:
        seen.extend(each is not None for each in inputs)
        return tuple(each if each is None else each * 0 + 5 for each in inputs)

    node.register_hook(hook)
    edges = [lib.autograd.graph.GradientEdge(*edge) for edge in node.next_functions if edge[0]]
    g = lib.ones(3, 4 if "where" in line else 3, dtype=lib.float64)
    found = lib.autograd.grad([lib.autograd.graph.GradientEdge(node, 0)], edges, [g])
    assert seen == UNSEEN[line]
    assert all((each == 5).all() for each in found)
