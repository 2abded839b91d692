"""What is said of a saved tensor that was written to: how it was made, saved and written, drawn up.

Which operation the tensor is an output of by now, at which version, in the words of PyTorch: of
every kind of tensor, by every kind of write, and where all of it happens in anomaly mode or in a
function of `numgrad.func`, whose counters are others.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import pytest

import numgrad as ng

MADE = {
    "plain": "x = m.tensor([1.0, 2.0])",
    "leaf": "x = m.tensor([1.0, 2.0], requires_grad=True)",
    "result": "x = w * 1",
    "view": "x = (w * 1)[:]",
    "made without grad": "with m.no_grad(): x = w * 1",
    "detached": "x = (w * 1).detach()",
    "one of two results": "x = m.sort(w * 1)[0]",
    "written before": "x = (w * 1).neg_()",
}
SAVED = ["y = x * w", "y = x.exp()", "y = w.pow(x)", "y = (x * 2).mul_(x)", "y = m.atan2(x, w)"]
WRITES = [
    "x.add_(1)",
    "x.mul_(w.sum())",
    "x.copy_(w[0])",
    "x.detach().zero_()",
    "x.view(-1)[0].fill_(3.0)",
    "with m.no_grad(): x.sub_(1)",
    "m.neg(x.detach(), out=x.detach())",
    "x.data.neg_()",
    "x.requires_grad_()",
]
SITUATIONS = ["plain", "anomaly", "func"]


def after(m: Any, lines: list[str], situation: str) -> Any:
    """Return the gradient of `w`, or what the error says before its hint."""

    def loss(w: Any) -> Any:
        names = {"m": m, "w": w}
        exec("\n".join(lines), names)
        return names["y"].sum()

    w = m.tensor([1.0, 2.0], requires_grad=situation != "func")
    try:
        if situation == "func":
            return m.func.grad(loss)(w).tolist()
        with warnings.catch_warnings(), m.autograd.set_detect_anomaly(situation == "anomaly"):
            warnings.simplefilter("ignore")
            loss(w).backward()
        return None if w.grad is None else w.grad.tolist()
    except RuntimeError as error:
        return str(error).partition(" Hint: ")[0]


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("made", MADE)
def test_the_words_of_a_saved_tensor_that_was_written_to_are_pytorchs(
    torch: Any, made: str
) -> None:
    twice = [pair for number, pair in enumerate(product(WRITES, repeat=2)) if number % 4 == 0]
    for saved, writes in product(SAVED, [(each,) for each in WRITES] + twice):
        for situation in SITUATIONS if len(writes) == 1 else SITUATIONS[:1]:
            lines = [MADE[made], saved, *writes]
            found = [after(m, lines, situation) for m in (ng, torch)]
            assert found[0] == found[1], (lines, situation)


@pytest.mark.parametrize(
    "write",
    [
        "x.add_({})",
        "x[0] = {}",
        "m.full((2,), {}.0, out=x.detach())",
        "m.autograd.graph.increment_version(x)",
    ],
)
@pytest.mark.parametrize("saved_at", range(4))
@pytest.mark.parametrize("watched", ["all", "writes", "pass", "saving", "writes, by hooks"])
def test_the_hint_tells_the_write_that_came_next(saved_at: int, watched: str, write: str) -> None:
    """That after the tensor was saved, however many came before, if anomaly mode was on then."""
    writes = [write.format(number) for number in range(saved_at + 2)]
    lines = ["x = w * 1", *writes[:saved_at], "y = x * x", *writes[saved_at:]]
    names = {"m": ng, "w": ng.tensor([1.0, 2.0], requires_grad=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, line in enumerate(lines):
            is_write = line in writes
            wanted = {"all": True, "writes": is_write, "saving": line.startswith("y")}
            around: Any = ng.autograd.set_detect_anomaly(wanted.get(watched, False))
            if watched == "writes, by hooks" and is_write:  # which see writes, too
                around = ng.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
            with around:
                exec(compile("\n" * number + line, "<string>", "exec"), names)
        with ng.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError) as caught:
            names["y"].sum().backward()
    said = str(caught.value)
    assert f"is at version {saved_at + 2}; expected version {saved_at} instead" in said
    step = f"changed from version {saved_at} to {saved_at + 1} at File"
    place = f'{step} "<string>", line {saved_at + 3}, in <module>'
    assert (place in said) == (watched in ("all", "writes")), said
    assert watched in ("all", "writes") or "changed from version" not in said


def test_a_saved_output_that_is_asked_for_is_one_of_its_own_node(lib: Any) -> None:
    x = lib.ones(3, requires_grad=True)
    for call, name in ((lambda y: y.exp(), "Exp"), (lambda y: y.tanh(), "Tanh")):
        result = call(x)
        node = result.grad_fn
        assert node._saved_result.grad_fn is node and not node._saved_result.is_leaf
        result.add_(1)
        with pytest.raises(RuntimeError, match=f"which is output 0 of {name}, is at version 1"):
            _ = node._saved_result
    y = lib.ones(3, requires_grad=True) * 1
    node = (y * y).grad_fn
    y.add_(1)
    with pytest.raises(RuntimeError, match="which is output 0 of Add, is at version 1"):
        _ = node._saved_self
