"""`numgrad.masked` beside ``torch.masked``: values, layouts, gradients, nodes and words."""

from __future__ import annotations

import inspect
import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import masked

DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bool", "complex64", "complex128"]
SHAPES = [(4,), (3, 4), (2, 3, 4), (), (0, 3), (1, 4)]
DIMS: list[Any] = [0, -1, 1, None, (0, 1), (-1,), (), (1, 1), 5, (0, -2)]
SCANS = ("cumsum", "cumprod", "softmax", "log_softmax", "softmin")
ONE_DIM = (*SCANS, "median", "argmax", "argmin", "normalize")
ERRORS = (RuntimeError, IndexError, ValueError, AssertionError, NotImplementedError, TypeError)
ORDERS = [2.0, 1, 0, np.inf, -np.inf, 3.0]


def values(draw: random.Random, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(draw.randrange(100))
    array = np.asarray(rng.integers(-8, 9, shape) / 4)
    if dtype.startswith("complex"):
        array = array + 1j * np.asarray(rng.integers(-8, 9, shape) / 4)
    array = array * (4 if dtype[:3] in ("int", "uin") else 1)
    return np.array(array if dtype != "uint8" else np.abs(array), dtype)


def mask_for(draw: random.Random, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return a mask that expands to a shape, now and then one that does not, or is not of bools."""
    if draw.random() < 0.15:
        return None
    own = shape[draw.randrange(len(shape) + 1) :]
    own = tuple([1 if draw.random() < 0.2 else size for size in own])
    if draw.random() < 0.05:
        own = (2, *shape) if draw.random() < 0.5 else (*shape[:-1], 7)
    rng = np.random.default_rng(draw.randrange(100))
    mask = np.asarray(rng.random(own) < draw.choice([0.6, 0.6, 0.9, 0.0]))
    return mask if draw.random() < 0.9 else (np.asarray(mask * 2)).astype("int64")


def drawn(name: str, draw: random.Random) -> dict[str, Any]:
    """Return a call: its tensors, arguments and keywords."""
    shape = draw.choice(SHAPES)
    dtype = draw.choice([*DTYPES[:2], *DTYPES])
    call: dict[str, Any] = {
        "x": values(draw, shape, dtype),
        "turned": draw.random() < 0.3 and len(shape) > 1,
    }
    keywords: dict[str, Any] = {}
    if draw.random() < 0.2:
        wide = ["complex64", "complex128"] if dtype.startswith("complex") else DTYPES[:-2]
        keywords["dtype"] = draw.choice(wide)
    dim = draw.choice(DIMS[:3] if draw.random() < 0.9 else [5, None] if "arg" in name else [5])
    if name == "logaddexp":
        other = values(draw, shape[-1:] if draw.random() < 0.2 else shape, dtype)
        masks = {"other_mask": mask_for(draw, other.shape), "input_mask": mask_for(draw, shape)}
        return {**call, "arguments": [other], "keywords": keywords, "masks": masks}
    if name not in ONE_DIM:
        dim = draw.choice(DIMS)
    arguments = [dim]
    if name == "norm":
        arguments = [draw.choice(ORDERS), dim]
    elif name == "normalize":
        arguments = [draw.choice(ORDERS), dim]
        keywords["eps"] = draw.choice([1e-12, 0.5])
    elif name in ("var", "std"):
        if draw.random() < 0.4:
            arguments.append(draw.random() < 0.5)
        if draw.random() < 0.4:
            keywords["correction"] = draw.choice([0, 1, 2])
    if name not in (*SCANS, "normalize") and draw.random() < 0.5:
        keywords["keepdim"] = True
    masks = {"mask": mask_for(draw, shape)}
    return {**call, "arguments": arguments, "keywords": keywords, "masks": masks}


def outcome(m: ModuleType, name: str, call: dict[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """Return what a call gives: what has to be the same, and numbers that have to be near."""
    x = m.from_numpy(call["x"].copy())
    if call["turned"]:
        x = m.from_numpy(call["x"].T.copy()).permute(*reversed(range(x.ndim)))
    grad = call["x"].dtype.kind == "f" or (call["x"].dtype.kind == "c" and call["x"].size > 0)
    x.requires_grad_(grad)
    arguments = [
        m.from_numpy(each.copy()) if isinstance(each, np.ndarray) else each
        for each in call["arguments"]
    ]
    keywords = dict(call["keywords"])
    for key, mask in call["masks"].items():
        keywords[key] = None if mask is None else m.from_numpy(mask.copy())
    if "dtype" in keywords:
        keywords["dtype"] = getattr(m, keywords["dtype"])
    try:
        y = getattr(m.masked, name)(x, *arguments, **keywords)
        numbers = [y.detach().resolve_conj().numpy()]
        if y.requires_grad:
            sines = np.asarray(np.sin(np.arange(y.numel()) + 1.0).reshape(tuple(y.shape)))
            y.backward(m.from_numpy(sines).to(y.dtype))
            if x.grad is not None:
                numbers.append(x.grad.resolve_conj().numpy())
    except ERRORS as error:
        return (type(error).__name__, str(error).splitlines()[0]), []
    node = None if y.grad_fn is None else y.grad_fn.name()
    places = [step for step, size in zip(y.stride(), y.shape, strict=True) if size > 1]
    return (tuple(y.shape), places, str(y.dtype), node), numbers


@pytest.mark.sampled(0.075)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", masked.__all__)
def test_calls_are_pytorchs(torch: ModuleType, name: str, part: int) -> None:
    draw = random.Random(f"{name} {part}")
    for _ in range(15):
        call = drawn(name, draw)
        ours, found = outcome(ng, name, call)
        theirs, expected = outcome(torch, name, call)
        assert ours == theirs, call
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=str(call))


NARROWER = ("norm", "normalize", "median", "argmax", "argmin", "logaddexp")  # which can't be told


@pytest.mark.parametrize("dtype", ["float32", "float64", None])
@pytest.mark.parametrize("name", [each for each in masked.__all__ if each not in NARROWER])
def test_a_dtype_is_that_of_the_result(name: str, dtype: str | None) -> None:
    """Of every function that takes one, and may lose digits; without one it is the input's."""
    function, wanted = getattr(ng.masked, name), dtype and getattr(ng, dtype)
    if "dtype" not in inspect.signature(function).parameters:
        return
    x, more = ng.tensor(ROWS, dtype=ng.float64), OF_ROWS.get(name, (1,))
    mask, given = ng.tensor(KEPT), {} if dtype is None else {"dtype": wanted}
    found = function(x, *more, mask=mask, **given)
    assert found.dtype == (wanted or ng.float64)
    expected = function(x, *more, mask=mask)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)


ROWS = np.array([[1.0, -2.0, 0.5, 3.0], [0.25, 4.0, -1.0, 2.0], [1.5, 0.75, 2.5, -0.5]])
KEPT = np.array([[True, False, True, True], [True, True, True, True], [False, True, True, False]])
OF_ROWS = {"norm": (3.0, 1), "normalize": (2.0, 1), "logaddexp": (ng.ones(3, 4).double(),)}


def call_of(name: str, mask: Any) -> Any:
    """Return a function of a matrix, of the rows of which the mask leaves some elements."""
    rest = OF_ROWS.get(name, (1,))
    key = "input_mask" if name == "logaddexp" else "mask"
    return lambda x: getattr(masked, name)(x, *rest, **{key: mask})


@pytest.mark.parametrize("name", [n for n in masked.__all__ if n[:3] != "arg"])
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    x, call = ng.tensor(ROWS, requires_grad=True), call_of(name, ng.tensor(KEPT))
    chosen = (lambda x: call(x)[ng.tensor(KEPT)]) if name == "log_softmax" else call
    assert ng.autograd.gradcheck(chosen, x, check_forward_ad=True)
    assert ng.autograd.gradgradcheck(chosen, x)


@pytest.mark.parametrize("name", masked.__all__)
def test_batches_and_compiled_calls_are_eager_ones(name: str, traced: Any) -> None:
    x, mask = ng.tensor(ROWS), ng.tensor(KEPT)
    call = call_of(name, mask)
    rows = ng.stack([x, x * 0.5])
    batch = ng.func.vmap(call)(rows)
    for found, row in zip(batch, rows, strict=True):
        np.testing.assert_allclose(found.numpy(), call(row).numpy(), rtol=1e-12)
    masks = ng.stack([mask, ~mask])
    batch = ng.func.vmap(lambda mask: call_of(name, mask)(x))(masks)
    for found, each in zip(batch, masks, strict=True):
        expected = call_of(name, each)(x)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    np.testing.assert_allclose(ng.jit(call)(x).numpy(), call(x).numpy(), rtol=1e-14)


@pytest.mark.parametrize("name", masked.__all__)
def test_masks_leave_what_is_chosen_one_by_one(name: str) -> None:
    found = call_of(name, ng.tensor(KEPT))(ng.tensor(ROWS))
    for row, kept, left in zip(ROWS, KEPT, found.numpy(), strict=True):
        if name == "logaddexp":
            np.testing.assert_allclose(left, np.logaddexp(np.where(kept, row, -np.inf), 1.0))
            continue
        alone = call_of(name, None)(ng.tensor(row[None, kept])).numpy()[0]
        if name.startswith("arg"):
            alone = np.flatnonzero(kept)[int(alone)]
        np.testing.assert_allclose(left[kept] if left.shape else left, alone, rtol=1e-12)


def test_medians_of_integers_are_known_when_a_compiled_function_runs() -> None:
    median = ng.jit(lambda x, mask: masked.median(x, mask=mask))
    x = ng.tensor([[3, 1, 2], [4, 6, 5]])
    assert median(x, ng.tensor([[True, True, False], [True, True, True]])).tolist() == [1, 5]
    with pytest.raises(ValueError, match="no fully masked out rows"):
        median(x, ng.tensor([[True, True, False], [False, False, False]]))
