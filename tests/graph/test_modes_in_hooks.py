"""Modes that a hook enters and does not leave: what hooks of that node and of later ones see.

A mode lasts as long as its node runs, be it a leaf's that is fed amid the pass, and is nothing to
any other node.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import pytest

import numgrad as ng

LEAVES = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
MODES = {
    "no_grad": lambda m: m.no_grad(),
    "enable_grad": lambda m: m.enable_grad(),
    "inference_mode": lambda m: m.inference_mode(),
    "set_grad_enabled(False)": lambda m: m.set_grad_enabled(False),
    "set_grad_enabled(True)": lambda m: m.set_grad_enabled(True),
}
KEPT: list[Any] = []  # PyTorch's inference mode is left when nothing holds it
PLACES = [
    *("a", "a, after", "b", "b, after", "c", "c, after", "d", "d, after"),
    *("y", "y, before", "y, behind", "z", "z, before", "z, behind", "u", "u, before", "u, behind"),
]


# Which hooks there are: a pass looks for them when it comes to the first.
HOOKED = {"all": PLACES, "after": [place for place in PLACES if place.endswith("after")]}
HOOKED |= {"tensors": [place for place in PLACES if "," not in place]}
HOOKED |= {"a few": ["d, after", "z", "y, behind", "a, after", "b"]}
# The first is met amid the pass, once its leaf is complete, and the second right behind it.
HOOKED |= {"d, then z": ["d, after", "z"], "d, then z's node": ["d, after", "z, before"]}
HOOKED |= {"c, then y": ["c, after", "y"], "d, then a leaf": ["d, after", "c"]}


def seen(m: Any, place: str, mode: str, how: str, hooked: list[str]) -> list[Any]:
    """Return what the hooks of a pass see, one of which enters a mode."""
    found: list[Any] = []

    def hook(name: str) -> Any:
        def call(*_: Any) -> None:
            found.append((name, m.is_grad_enabled(), m.is_inference_mode_enabled()))
            if name == place:
                KEPT.append(MODES[mode](m))
                if not mode.startswith("set"):
                    KEPT[-1].__enter__()

        return call

    leaves = {name: m.tensor([at, 2.0], requires_grad=True) for name, at in LEAVES.items()}
    a, b, c, d = leaves.values()
    y = a * b
    z = y.exp() + c
    u = z * d + a
    for name, tensor in {**leaves, "y": y, "z": z, "u": u}.items():
        ways = {name: tensor.register_hook}
        if tensor.is_leaf:
            ways[f"{name}, after"] = tensor.register_post_accumulate_grad_hook
        else:
            ways[f"{name}, before"] = tensor.grad_fn.register_prehook
            ways[f"{name}, behind"] = tensor.grad_fn.register_hook
        for way, register in ways.items():
            if way in hooked:
                register(hook(way))
    loss = (u.sin() + b).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a graph that refers to itself
        if how == "grad":
            m.autograd.grad(loss, [a, c])
        elif how == "inputs":
            loss.backward(inputs=[a, d])
        else:
            loss.backward(create_graph=how == "create_graph")
    return [*found, m.is_grad_enabled(), m.is_inference_mode_enabled()]


@pytest.mark.parametrize("which", HOOKED)
@pytest.mark.parametrize("how", ["backward", "create_graph", "grad", "inputs"])
def test_hooks_see_the_modes_that_they_see_in_pytorch(torch: Any, how: str, which: str) -> None:
    for place, mode in product(HOOKED[which], MODES):
        found = [seen(m, place, mode, how, HOOKED[which]) for m in (ng, torch)]
        assert found[0] == found[1], (place, mode)


@pytest.mark.parametrize("way", ["hook", "post", "node before", "node after"])
@pytest.mark.parametrize("behind", ["nothing", "a product"])
def test_hooks_of_leaves_that_are_fed_at_once_see_no_mode_of_each_other(
    lib: Any, way: str, behind: str
) -> None:
    found: list[bool] = []
    nodes: list[Any] = []

    def note(*_: Any) -> None:
        found.append(lib.is_grad_enabled())
        lib.set_grad_enabled(True)

    leaves = [lib.ones(2, requires_grad=True) for _ in range(3)]
    for leaf in leaves:
        nodes.append(lib.autograd.graph.get_gradient_edge(leaf).node)
        register = {
            "hook": leaf.register_hook,
            "post": leaf.register_post_accumulate_grad_hook,
            "node before": nodes[-1].register_prehook,
            "node after": nodes[-1].register_hook,
        }[way]
        register(note)
    roots = leaves if behind == "nothing" else [leaf * 2 for leaf in leaves]
    with lib.no_grad():
        lib.autograd.backward(roots, [lib.ones(2)] * 3)
        assert not lib.is_grad_enabled()
    assert found == [False] * 3
