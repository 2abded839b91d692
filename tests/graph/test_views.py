"""Views: shared memory and versions, and histories that follow a write to any of them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given

import numgrad as ng
from numgrad.graph.tensor import has_lost_history
from tests.graph.programs import PROGRAMS, assert_same, run_program

MULTIPLE = (
    " This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)
NO_GRAD = (
    "A view was created in no_grad mode and {} modified inplace with grad mode enabled. Given that "
    "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
    "moving both the view and the inplace either both inside the no_grad block (if you don't want "
    "the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
INFERENCE = (
    "A view was created in inference mode and {} modified inplace in normal mode. Given that this "
    "use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
    "both the view and the inplace either both inside the inference_mode block (if you don't want "
    "the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
INDIRECT = "its base or another view of its base has been"


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values), requires_grad=True)


def test_random_programs_do_what_they_do_in_pytorch(torch: Any) -> None:
    """Values, gradients, versions, flags and node names, after every step."""

    @given(PROGRAMS)
    def check(program: Any) -> None:
        assert_same(run_program(ng, program), run_program(torch, program))

    check()


VIEWS = {
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1:],
    "step": lambda x: x[::2, ::2],
    "transpose": lambda x: x.t(),
    "view": lambda x: x.view(-1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "diagonal": lambda x: x.diagonal(),
    "chain": lambda x: x.t()[1:].unsqueeze(0)[:, :, 1],
    "narrow": lambda x: x.narrow(0, 1, 1),
    "permute": lambda x: x.permute(1, 0),
}


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_a_write_to_a_view_of_a_result(lib: Any, name: str) -> None:
    """Inside the view the gradient is that of the write, outside it goes on as it was."""
    w = lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    base = w * 2
    other = VIEWS[name](base)
    view = VIEWS[name](base)
    view.mul_(3)
    mask = lib.zeros(2, 3)
    VIEWS[name](mask).fill_(1.0)
    assert base.tolist() == (w * 2 * (1 + 2 * mask)).tolist()
    assert other.tolist() == view.tolist()
    assert base.grad_fn.name() == "torch::autograd::CopySlices"
    assert [t.grad_fn.name() for t in (view, other)] == ["AsStridedBackward0"] * 2
    assert (base._version, view._version, other._version) == (1, 1, 1)
    (inside,) = lib.autograd.grad(view.sum() + other.sum(), w, retain_graph=True)
    assert inside.tolist() == (mask * 12).tolist()
    base.sum().backward()
    assert w.grad.tolist() == (2 + 4 * mask).tolist()


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_a_write_to_the_base_reaches_its_views(lib: Any, name: str) -> None:
    w = lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    base = w * 2
    view = VIEWS[name](base)
    base.mul_(w)
    assert view.tolist() == VIEWS[name](w * w * 2).tolist()
    view.sum().backward()
    mask = lib.zeros(2, 3)
    VIEWS[name](mask).fill_(1.0)
    assert w.grad.tolist() == (mask * w * 4).tolist()


def test_views_of_a_constant_join_the_graph_when_one_is_written_to(lib: Any) -> None:
    w = leaf(lib, 5.0)
    base = lib.zeros(3)
    first, last = base[:2], base[2]
    first[1:].copy_(w)
    assert [t.requires_grad for t in (base, first, last)] == [True] * 3
    assert base.tolist() == [0.0, 5.0, 0.0]
    assert base.grad_fn.next_functions[0] == (None, 0)
    (first.sum() * 2 + last).backward()
    assert w.grad.tolist() == [2.0]


def test_several_writes_through_several_views(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0, 3.0, 4.0)
    base = w * 1
    square, tail = base.view(2, 2), base[2:]
    square[0] *= 10
    tail += base[0]
    square.t()[1] = tail * 2
    # base: 10 w0, 2 (w2 + 10 w0), w2 + 10 w0, 2 (w3 + 10 w0)
    assert base.tolist() == [10.0, 26.0, 13.0, 28.0]
    assert base._version == square._version == 4  # `square[0] *= 10` also assigns
    (square * lib.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert w.grad.tolist() == [10.0 + 40 + 30 + 80, 0.0, 4.0 + 3, 8.0]


def test_expanded_views_see_writes_to_their_base(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    base = w * 1
    wide = base.expand(3, 2)
    base.mul_(2)
    assert wide.tolist() == [[2.0, 4.0]] * 3
    wide.sum().backward()
    assert w.grad.tolist() == [6.0, 6.0]


def test_a_complex_base_written_to_through_its_parts(lib: Any) -> None:
    w = lib.tensor([1 + 2j, 3 - 1j], dtype=lib.complex128, requires_grad=True)
    base = w * 1
    parts = lib.view_as_real(base)
    parts[:, 1].mul_(3)
    assert base.tolist() == [1 + 6j, 3 - 3j]
    assert base.grad_fn.name() == "torch::autograd::CopySlices"
    (lib.view_as_real(base) * lib.tensor([1.0, 10.0])).sum().backward()
    assert w.grad.tolist() == [1 + 30j, 1 + 30j]


def test_a_second_backward_through_a_write_to_a_view_raises(lib: Any) -> None:
    base = leaf(lib, 1.0, 2.0) * 1
    base[0] = 3.0  # saves nothing, but PyTorch frees the operation itself
    base.sum().backward()
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        base.sum().backward()


def test_a_saved_result_of_a_write_to_a_view_is_differentiated_again(lib: Any) -> None:
    """Its node is then part of the graph twice: inside of the base's history, and as it is."""
    w = lib.tensor([0.5, 2.0], dtype=lib.float64, requires_grad=True)
    base = w * 1
    base[0].tanh_()
    (first,) = lib.autograd.grad(base.sum(), w, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), w)
    y = math.tanh(0.5)
    assert first.tolist() == pytest.approx([1 - y * y, 1.0])
    assert second.tolist() == pytest.approx([-2 * y * (1 - y * y), 0.0])


def test_unchanged_versions_leave_the_node_of_a_view(lib: Any) -> None:
    base = leaf(lib, 1.0, 2.0) * 1
    view = base[0]
    node = view.grad_fn
    assert node.name() == "SelectBackward0" and view.grad_fn is node
    with lib.no_grad():
        base.mul_(2)
    regenerated = view.grad_fn
    assert regenerated.name() == "AsStridedBackward0" and view.grad_fn is regenerated


# What may be written to


MAKE_VIEW = {
    "plain": lambda lib, b: b[0:1],
    "no_grad": lambda lib, b: under(lib.no_grad, lambda: b[0:1]),
    "inference": lambda lib, b: under(lib.inference_mode, lambda: b[0:1]),
    "several": lambda lib, b: b.split(1)[0],
    "several, no_grad": lambda lib, b: under(lib.no_grad, lambda: b.split(1)[0]),
    "view of several": lambda lib, b: b.split(1)[0].view(1),
    "view of no_grad": lambda lib, b: under(lib.no_grad, lambda: b[0:1]).view(1),
    "view of inference": lambda lib, b: under(lib.inference_mode, lambda: b[0:1]).view(1),
    "view, no_grad, of inference": lambda lib, b: under(
        lib.no_grad, lambda: under(lib.inference_mode, lambda: b[0:1]).view(1)
    ),
    "several of inference": lambda lib, b: under(lib.inference_mode, lambda: b[0:1]).split(1)[0],
    "inference of no_grad": lambda lib, b: under(
        lib.inference_mode, lambda: under(lib.no_grad, lambda: b[0:1]).view(1)
    ),
    "view of a view of a view": lambda lib, b: b.view(2, 1)[0:1].t()[0],
    "data, inference": lambda lib, b: under(lib.inference_mode, lambda: b.data)[0:1],
    "leaf": lambda lib, b: b[0:1].requires_grad_(),
    "detached": lambda lib, b: b.detach()[0:1],
    "data": lambda lib, b: b.data[0:1],
}
MAKE_BASE = {
    "constant": lambda lib: lib.ones(2),
    "leaf": lambda lib: lib.ones(2, requires_grad=True),
    "result": lambda lib: lib.ones(2, requires_grad=True) * 1,
}


def under(mode: Any, action: Any) -> Any:
    with mode():
        return action()


def write_and_look(lib: Any, base_kind: str, view_kind: str, write: str) -> Any:
    """Write to a view; return what can be seen then, or the error."""
    w = lib.ones(1, requires_grad=True)
    base = MAKE_BASE[base_kind](lib)
    view = MAKE_VIEW[view_kind](lib, base)
    try:
        if write == "without grad":
            with lib.no_grad():
                view.mul_(w)
        else:
            view.mul_(w if write == "tensor" else 2)
        seen = [t.requires_grad for t in (view, base)]
        seen += [t.is_leaf for t in (view, base)]
        seen += [t.grad_fn and t.grad_fn.name() for t in (view, base)]
        seen += [view._version, base._version, view.tolist(), base.tolist()]
        (view.sum() + base.sum()).backward() if view.requires_grad or base.requires_grad else None
        return [*seen, None if w.grad is None else w.grad.tolist()]
    except RuntimeError as error:
        return str(error)


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize(
    ("base", "view", "write"),
    list(itertools.product(MAKE_BASE, MAKE_VIEW, ["number", "tensor", "without grad"])),
)
def test_what_may_be_written_to_is_what_pytorch_lets(
    torch: Any, base: str, view: str, write: str
) -> None:
    assert write_and_look(ng, base, view, write) == write_and_look(torch, base, view, write)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("several", "Output 0 of Split is a view and is being modified inplace." + MULTIPLE),
        ("view of several", "Output 0 of View is a view and is being modified inplace." + MULTIPLE),
        ("no_grad", NO_GRAD.format("is being")),
        ("inference", INFERENCE.format("is being")),
        ("several, no_grad", NO_GRAD.format("is being")),
    ],
)
@pytest.mark.parametrize("base", ["leaf", "result"])
def test_views_that_refuse_to_be_written_to(lib: Any, base: str, view: str, message: str) -> None:
    assert write_and_look(lib, base, view, "number") == message


def test_second_outputs_are_named_in_the_error(lib: Any) -> None:
    base = leaf(lib, 1.0, 2.0, 3.0) * 1
    for views, name in ((base.unbind(0), "Unbind"), (base.chunk(3), "Split")):
        with pytest.raises(RuntimeError) as error:
            views[2].zero_()
        assert str(error.value) == (
            f"Output 2 of {name} is a view and is being modified inplace." + MULTIPLE
        )
    assert base._version == 0


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("several", f"Output 0 of Split is a view and {INDIRECT} modified inplace." + MULTIPLE),
        ("no_grad", NO_GRAD.format(INDIRECT)),
        ("inference", INFERENCE.format(INDIRECT)),
    ],
)
@pytest.mark.parametrize("kind", ["leaf", "result"])
def test_views_that_have_no_history_after_a_write_to_their_base(
    lib: Any, kind: str, view: str, message: str
) -> None:
    base = MAKE_BASE[kind](lib)
    made = MAKE_VIEW[view](lib, base)
    with lib.no_grad():
        base.mul_(2)
    assert made.requires_grad and made.tolist() == [2.0]
    for use in (lambda: made.grad_fn, lambda: made.is_leaf, lambda: made * 2):
        with pytest.raises(RuntimeError) as error:
            use()
        assert str(error.value) == message
    with lib.no_grad():  # nothing is recorded, so nothing is asked
        assert (made * 2).tolist() == [4.0]


def test_views_made_and_written_to_without_grad_mode(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    with lib.no_grad():
        for view in w.unbind(0):
            view.mul_(3)
        w[0].add_(1)
        w.view(2, 1)[1].sub_(1)
    assert w.tolist() == [4.0, 5.0] and w._version == 4 and w.is_leaf


def test_a_view_made_without_grad_mode_requires_grad_but_lets_none_through(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    with lib.no_grad():
        view = w[0:1]
    assert view.requires_grad and view.is_leaf and view.grad_fn is None
    result = view * 2
    assert result.requires_grad and result.grad_fn.next_functions[0] == (None, 0)
    result.sum().backward()
    assert w.grad is None and view.grad is None


def test_a_view_tells_its_history_although_none_is_recorded(lib: Any) -> None:
    """Whoever asks for it first, after a write to the base."""
    w = lib.ones(3, requires_grad=True)
    base = lib.ones(3)
    view = base[1:]
    base.mul_(w)
    with lib.no_grad():
        asked = view.grad_fn.name(), view.is_leaf, view.requires_grad
    assert asked == ("AsStridedBackward0", False, True)
    view.sum().backward()
    assert w.grad.tolist() == [0, 1, 1]


def test_a_view_that_is_a_leaf_of_its_own(lib: Any) -> None:
    base = lib.zeros(2)
    view = base[0:1].requires_grad_()
    assert view.is_leaf and not base.requires_grad
    base.add_(1)
    assert view.is_leaf and view.requires_grad and view._version == 1
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3.0]
    base.mul_(leaf(lib, 4.0, 5.0))  # now it is a view of a result
    assert not view.is_leaf and view.grad_fn.name() == "AsStridedBackward0"


@pytest.mark.parametrize("asked", ["history first", "flags first"])
@pytest.mark.parametrize("written", ["leaf", "view", "base", "view of the base"])
@pytest.mark.parametrize("kind", ["index", "t", "slice of a slice", "flatten"])
def test_a_view_of_a_leaf_that_is_a_view_stays_a_result(
    lib: Any, kind: str, written: str, asked: str
) -> None:
    """After a write that nobody records its node is one of the base, which leads nowhere."""
    base = lib.ones(8)
    w = base[:6].view(2, 3).requires_grad_()
    view = {
        "index": lambda: w[0],
        "t": lambda: w.t(),
        "slice of a slice": lambda: w[:, 1:][1:],
        "flatten": lambda: w.view(6),
    }[kind]()
    target = {"leaf": w, "view": view, "base": base, "view of the base": base[2:]}[written]
    with lib.no_grad():
        target.mul_(2)
    for _ in range(2):
        if asked == "history first":
            assert view.grad_fn.name() == "AsStridedBackward0"
        assert view.requires_grad and not view.is_leaf
        assert view.grad_fn.name() == "AsStridedBackward0"
        assert view.grad_fn.next_functions == ((None, 0),)
        assert w.requires_grad and w.is_leaf and not base.requires_grad
    view.retain_grad()
    (view * 3).sum().backward()
    assert w.grad is None and set(view.grad.flatten().tolist()) == {3.0}
    (w * 2).sum().backward()
    assert w.grad.tolist() == [[2.0] * 3] * 2
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(2)


LOST = """
v.requires_grad
v.is_leaf
v.grad_fn
v.requires_grad_().requires_grad
v.requires_grad_(False)
v.retain_grad()
v.retain_grad() ; v.retains_grad
v.detach().requires_grad
v * 2
v.tolist()
""".strip().splitlines()
MADE = {
    "before a write to the base": "with torch.no_grad(): v = b[:1]\nb.mul_(2)",
    "before no write": "with torch.no_grad(): v = b[:1]",
    "before a write to itself without grad mode": (
        "with torch.no_grad():\n    v = b[:1]\n    v.mul_(2)"
    ),
    "in grad mode": "v = b[:1]\nb.mul_(2)",
}


@pytest.mark.parametrize("made", MADE)
def test_views_that_were_made_without_grad_mode_are_pytorchs(torch: Any, made: str) -> None:
    """Whose base was written to since has no history, and says so only where it is asked for."""
    for line in LOST:
        found: list[Any] = []
        for m in (ng, torch):
            names: dict[str, Any] = {"torch": m}
            exec("b = torch.ones(2, requires_grad=True) * 2\n" + MADE[made], names)
            *statements, expression = line.split(" ; ")
            try:
                for each in statements:
                    exec(each, names)
                value = eval(expression, names)
                found.append(type(value).__name__ if not isinstance(value, bool) else value)
            except RuntimeError as error:
                found.append(str(error)[:60])
        assert found[0] == found[1], line


@pytest.mark.parametrize("requires", [False, True])
@pytest.mark.parametrize("made", ["no_grad", "one of several", "plain"])
def test_views_whose_base_was_written_to_require_grad_as_it_does(
    lib: Any, made: str, requires: bool
) -> None:
    base = lib.ones(4, requires_grad=requires) * 1
    with lib.set_grad_enabled(made != "no_grad"):
        view = base.split(2)[0] if made == "one of several" else base[:2]
    hides = made != "plain"
    leaf = not requires or made == "no_grad"
    assert (view.requires_grad, view.is_leaf) == (requires, leaf)
    if lib is ng:
        assert not has_lost_history(view) and not has_lost_history(base)
    with lib.no_grad():
        base.add_(1)
    if lib is ng:
        assert has_lost_history(view) == (requires and made == "no_grad")
    base.mul_(lib.ones(4, requires_grad=True))
    assert view.requires_grad
    if hides:
        for ask in (lambda: view.grad_fn, lambda: view.is_leaf):
            with pytest.raises(RuntimeError, match="has been modified inplace"):
                ask()
    else:
        assert not view.is_leaf and view.grad_fn is not None
    if lib is ng:
        lost = hides and (made == "no_grad" or not requires)
        assert has_lost_history(view) == lost and not has_lost_history(base)
