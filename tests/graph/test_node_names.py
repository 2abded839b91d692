"""Nodes have PyTorch's names, and say under its names what they saved.

The table of names was printed by PyTorch 2.13, and is compared with PyTorch where that is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.saved_names import fact_properties
from tests.graph.node_table import NODES
from tests.rows import names_of, rows_of

_RANDOM = np.random.default_rng(0)
ARRAYS = {
    **{name: _RANDOM.normal(size=(3, 4)) for name in "mk"},
    "x": _RANDOM.normal(size=(2, 3, 4)),
    "y": _RANDOM.normal(size=(2, 4, 3)),
    "n": _RANDOM.normal(size=(4, 3)),
    "s": _RANDOM.normal(size=(3, 3)),
    "P": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]]),
    **{name: _RANDOM.normal(size=4) for name in "vw"},
    "u": _RANDOM.normal(size=3),
    "p": np.array(0.7),
    "h": _RANDOM.uniform(0.1, 0.9, (3, 4)),
    "c": _RANDOM.normal(size=(3, 4)) + 1j,
}
# What PyTorch's nodes save and ours do not keep, because our rules do not need it.
NOT_KEPT = {
    "ErfinvBackward0": "self",
    "LogSigmoidBackward0": "buffer",
    "DivBackward2": "other self",
    "ComplexBackward0": "imag real",
    "CummaxBackward0": "self",
    "CumminBackward0": "self",
    "MmBackward0": "mat2_sym_strides self_sym_strides",
    "AddmmBackward0": "mat1_sym_strides mat2_sym_strides",
    "GatherBackward0": "self",
    "TakeBackward0": "self",
    "MaskedSelectBackward0": "self",
    "IndexAddBackward0": "alpha source",
    "IndexCopyBackward0": "source",
    **rows_of("NOT_KEPT"),
}
# What ours keep besides.
KEPT_TOO = {
    "ErfinvBackward0": "result",
    "PolarBackward0": "angle",
    **rows_of("KEPT_TOO"),
}
# Attributes whose value is another one: PyTorch keeps dims as they were given (None for all of
# them, wrapped into an unsigned number where they were negative), and masks as masks.
OTHER_VALUES = {
    *(("VarBackward0", name) for name in ("dim", "correction")),
    *(("StdBackward0", name) for name in ("dim", "correction")),
    *((f"{name}Backward0", "dim") for name in ("LinalgVectorNorm", "Nansum", "Sort", "Topk")),
    *((f"{name}Backward0", "dim") for name in ("Kthvalue", "Min", "Max")),
    *(("SortBackward1", "dim"), ("SqueezeBackward2", "dim")),
    *(("TransposeBackward0", name) for name in ("dim0", "dim1")),
    *(("DiagEmbedBackward0", name) for name in ("dim1", "dim2")),
    *((f"{name}Backward0", "storage_offset") for name in ("AsStrided", "AsStridedScatter")),
    *((f"{name}Backward0", "indices") for name in ("Index", "IndexPut")),
    ("ThresholdBackwardBackward0", "self"),
    *names_of("OTHER_VALUES"),
}
# Nodes of primitives that are parts of others' derivatives, and never hang on a user's tensor
# except under create_graph.
PARTS = {"SliceBackwardBackward0", "PutBackward0", "ShiftBackward0", "LinearRecurrenceBackward0"}
PARTS |= {"LogSigmoidBackwardBackward0", "SpecialLogNdtrBackwardBackward0"} | names_of("PARTS")


def node_of(module: Any, line: str) -> Any:
    names = {name: module.from_numpy(a.copy()).requires_grad_() for name, a in ARRAYS.items()}
    result = eval(line, {"torch": module, "F": module.nn.functional, **names})
    while isinstance(result, (tuple, list)):
        result = result[0]
    return result.grad_fn


def saved_by(node: Any) -> set[str]:
    return {name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_")}


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("line", NODES)
def test_node_has_pytorchs_name_and_says_what_it_saved(line):
    name, saved = NODES[line]
    node = node_of(ng, line)
    assert (node is None) == (name == "None")
    if node is None:
        return
    assert node.name() == name
    assert type(node).__name__ == name.split("::")[-1]
    missing = set(NOT_KEPT.get(name, "").split())
    assert missing <= set(saved.split())
    assert saved_by(node) == set(saved.split()) - missing | set(KEPT_TOO.get(name, "").split())


# PyTorch says so once a process, in whichever test comes first.
@pytest.mark.sampled(0.11)
@pytest.mark.filterwarnings("ignore:.* is deprecated in favor of")
@pytest.mark.filterwarnings("ignore:.* is in beta")
@pytest.mark.parametrize("line", NODES)
def test_table_and_values_are_pytorchs(torch, line):
    theirs, ours = node_of(torch, line), node_of(ng, line)
    name, saved = NODES[line]
    if theirs is None:
        assert name == "None"
        return
    assert (theirs.name(), saved_by(theirs)) == (name, set(saved.split()))
    for attribute in sorted(set(saved.split()) & saved_by(ours)):
        if (name, attribute) in OTHER_VALUES:
            continue
        reference, mine = (getattr(node, f"_saved_{attribute}") for node in (theirs, ours))
        assert same(mine, reference), (attribute, mine, reference)


@pytest.mark.filterwarnings("ignore:.* is deprecated in favor of")
@pytest.mark.filterwarnings("ignore:.* is in beta")
def test_what_nodes_say_of_their_calls_is_pytorchs(torch):
    """Shapes, dims and flags: of every line that has some."""
    facts = {fact for name in CATALOGUE for fact in fact_properties(name)}
    for line, (name, saved) in NODES.items():
        if facts.isdisjoint(f"_saved_{each}" for each in saved.split()):
            continue
        theirs, ours = node_of(torch, line), node_of(ng, line)
        for attribute in sorted(set(saved.split()) & saved_by(ours)):
            mine = getattr(ours, f"_saved_{attribute}")
            if (name, attribute) not in OTHER_VALUES and not holds_tensors(mine):
                assert same(mine, getattr(theirs, f"_saved_{attribute}")), (line, attribute)


def holds_tensors(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(holds_tensors, value))
    return isinstance(value, ng.Tensor)


def same(mine: Any, reference: Any) -> bool:
    if isinstance(reference, (tuple, list)):
        return len(mine) == len(reference) and all(map(same, mine, reference))
    if hasattr(reference, "detach"):
        if isinstance(mine, ng.Tensor):
            mine, reference = mine.numpy(force=True), reference.detach().resolve_conj().numpy()
            return mine.shape == reference.shape and bool(
                np.allclose(mine, reference, equal_nan=True)
            )
        return False
    return bool(mine == reference)


def test_every_node_of_the_catalogue_is_in_the_table():
    known = {name.split("::")[-1] for name, _ in NODES.values()}
    recorded = {
        primitive.node_class.__name__
        for primitive in CATALOGUE.values()
        if any(rule is not None for rule in primitive.rules)
    }
    assert recorded - known <= PARTS


def test_what_was_saved_is_given_up_when_the_graph_is_freed():
    x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for y, name in ((x.exp(), "result"), (x * x, "self")):
        assert getattr(y.grad_fn, f"_saved_{name}").shape == (3,)
        y.sum().backward()
        with pytest.raises(RuntimeError, match="a second time"):
            getattr(y.grad_fn, f"_saved_{name}")
    total = x.sum()
    total.backward()
    assert total.grad_fn._saved_self_sym_sizes == (3,)


def test_saved_place_that_was_freed_takes_no_hooks():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    place = y.grad_fn._raw_saved_result
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        place.register_hooks(lambda t: t, lambda t: t)
