"""segment_reduce beside PyTorch's: values, gradients and words; and its other derivatives."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng

MODES = ["sum", "prod", "mean", "max", "min", "amax", "amin"]
DTYPES = ["float64", "float64", "float32", "float16", "int64", "bool", "complex64"]


def drawn(draw: random.Random) -> dict[str, Any]:
    """Return a call, now and then one that is wrong."""
    rng = np.random.default_rng(draw.randrange(1000))
    shape = draw.choice([(5,), (2, 5), (5, 2), (2, 3, 4), (0, 2)])
    axis = 0 if len(shape) == 1 or shape[0] in (0, 5) else draw.randrange(len(shape) - 1) + 1
    axis = min(axis, len(shape) - 1)
    count = shape[axis]
    segments = draw.choice([1, 2, 3, 3, 7])
    cuts = np.sort(rng.integers(0, count + 1, (*shape[:axis], segments - 1)), -1)
    starts = np.concatenate([np.zeros((*shape[:axis], 1), int), cuts], -1)
    ends = np.concatenate([cuts, np.full((*shape[:axis], 1), count)], -1)
    dtype = draw.choice(DTYPES[:2] if draw.random() < 0.8 else DTYPES)
    data = np.asarray(rng.integers(-3, 4, shape) / 2).astype(dtype)
    lengths = ends - starts
    keywords: dict[str, Any] = {"lengths": lengths, "axis": axis}
    if draw.random() < 0.4:
        offsets = np.concatenate([starts, ends[..., -1:]], -1)
        keywords = {"offsets": offsets, "axis": axis}
    elif draw.random() < 0.3:
        keywords |= {"unsafe": True, "lengths": np.where(lengths == 1, 0, lengths)}
    if draw.random() < 0.3:
        keywords["initial"] = draw.choice([2, -1.5, 0.0])
    wrong = draw.random()
    if wrong < 0.05:
        keywords["lengths"] = lengths - draw.choice([0, 1])
    elif wrong < 0.08:
        keywords["axis"] = draw.choice([-1, 3, 1, 0])
    elif wrong < 0.1 and "lengths" in keywords:
        keywords["lengths"] = lengths.astype(draw.choice(["int32", "int16", "float32"]))
    elif wrong < 0.12:
        keywords["indices"] = lengths
    elif wrong < 0.14:
        keywords = {"axis": axis}
    mode = draw.choice(MODES) if draw.random() < 0.97 else "median"
    return {"data": data, "mode": mode, "keywords": keywords, "turned": draw.random() < 0.2}


def outcome(m: ModuleType, call: dict[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """Return what a call gives: what has to be the same, and numbers that have to be near."""
    data = call["data"]
    x = m.from_numpy(data.copy())
    if call["turned"]:
        x = m.from_numpy(data.T.copy()).permute(*reversed(range(data.ndim)))
    x.requires_grad_(data.dtype.kind in "fc")
    keywords = {
        name: m.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
        for name, value in call["keywords"].items()
    }
    try:
        y = m.segment_reduce(x, call["mode"], **keywords)
    except (RuntimeError, IndexError, NotImplementedError) as error:
        return (type(error).__name__, str(error).splitlines()[0]), []
    weights = np.asarray(np.sin(np.arange(y.numel()) + 1.0).reshape(tuple(y.shape)))
    y.backward(m.from_numpy(weights).to(y.dtype))
    return (tuple(y.shape), y.stride(), str(y.dtype)), [y.detach().numpy(), x.grad.numpy()]


def test_values_gradients_and_words_are_pytorchs(torch: ModuleType) -> None:
    draw = random.Random(5)
    for _ in range(150):
        call = drawn(draw)
        ours, found = outcome(ng, call)
        theirs, expected = outcome(torch, call)
        assert ours == theirs, call
        # By offsets, and of several dims, PyTorch doesn't always share gradients among ties.
        simple = "offsets" not in call["keywords"] and call["data"].ndim == 1
        shared = simple or call["mode"] in MODES[:3]
        for one, other in zip(found[: 1 + shared], expected, strict=shared):
            near = 1e-2 if one.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(one, other, rtol=near, atol=near, err_msg=str(call))


CUTS = [[0, 2, 2, 5], [0, 1, 4, 5]]


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("mode", MODES[:5])
def test_derivatives_of_any_order_forward_batched_and_compiled(mode: str) -> None:
    rng = np.random.default_rng(2)
    x = ng.tensor(rng.permutation(20).reshape(2, 5, 2) / 4 + 0.5, requires_grad=True)
    lengths = ng.tensor(np.diff(CUTS))

    def found(x: Any, lengths: Any = lengths, axis: int = 1) -> Any:
        return ng.segment_reduce(x, mode, lengths=lengths, axis=axis, initial=0.25) * x.sum()

    assert ng.autograd.gradcheck(found, x, check_forward_ad=True)
    assert ng.autograd.gradgradcheck(found, x, fast_mode=True)
    x = x.detach()
    expected = [found(x[k], lengths[k], 0).numpy() for k in range(2)]
    batch = ng.func.vmap(lambda x, lengths: found(x, lengths, 0))(x, lengths)
    np.testing.assert_allclose(batch.numpy(), expected, rtol=1e-12)
    compiled = ng.jit(lambda x, lengths: found(x, lengths))(x, lengths)
    np.testing.assert_allclose(compiled.numpy(), found(x).numpy(), rtol=1e-12)


def test_lengths_are_checked_when_a_compiled_function_runs() -> None:
    total = ng.jit(lambda x, lengths: ng.segment_reduce(x, "sum", lengths=lengths))
    x = ng.ones(4)
    assert total(x, ng.tensor([1, 3])).tolist() == [1, 3]
    with pytest.raises(RuntimeError, match="sum to data.size"):
        total(x, ng.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="negative value"):
        total(x, ng.tensor([5, -1]))


def test_what_is_in_no_segment_has_no_gradient() -> None:
    for mode, slope in (("max", [0, 0.5, 0.5, 0]), ("sum", [0, 1, 1, 0]), ("prod", [0, 2, 2, 0])):
        x = ng.tensor([3.0, 2.0, 2.0, 1.0], requires_grad=True)
        ng.segment_reduce(x, mode, offsets=ng.tensor([1, 3])).sum().backward()
        assert x.grad.tolist() == slope
    assert ng.segment_reduce(x, "sum", lengths=ng.tensor([1]), unsafe=True).tolist() == [3]


def test_rows_need_segments_of_their_own() -> None:
    with pytest.raises(RuntimeError, match=r"Expected lengths of the shape \[2, '\*'\]"):
        ng.segment_reduce(ng.ones(2, 5), "sum", lengths=ng.tensor([[2, 3]]), axis=1)
