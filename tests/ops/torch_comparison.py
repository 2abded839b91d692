"""Run the same call in both libraries, and compare all that can be seen of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng

# PyTorch's parser writes all signatures out: of its errors only the class is compared.
PARSER = "received an invalid combination of arguments"


def tensors_of(module: Any, arrays: tuple[Any, ...], requires_grad: bool) -> list[Any]:
    """Return arrays as tensors, those that can require grad doing so."""
    made = []
    for array in arrays:
        tensor = module.from_numpy(np.array(array))
        if requires_grad and np.asarray(array).dtype.kind in "fc":
            tensor.requires_grad_()
        made.append(tensor)
    return made


def parts_of(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple) else (result,)


def weights_like(module: Any, tensor: Any) -> Any:
    """Return a cotangent in which every element is different."""
    shape = tuple(tensor.shape)
    numbers = 0.5 + np.arange(int(np.prod(shape, dtype=int))).reshape(shape) / 4
    dtype = str(tensor.dtype).removeprefix("torch.")
    return module.from_numpy(np.asarray(numbers.astype(dtype)))


def numbers_of(tensor: Any) -> np.ndarray:
    array: np.ndarray = tensor.numpy(force=True)
    return array


def close(ours: Any, theirs: Any, rtol: float) -> None:
    """Compare dtype, shape and numbers of two tensors."""
    assert repr(ours.dtype) == repr(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(
        numbers_of(ours), numbers_of(theirs), rtol=rtol, atol=rtol, equal_nan=True
    )


def tolerance(inputs: Any, result: Any) -> float:
    """Return what the least precise of the tensors allows."""
    single = ("torch.float32", "torch.complex64")
    tensors = (*inputs, *parts_of(result))
    return 4e-6 if any(str(tensor.dtype) in single for tensor in tensors) else 1e-12


# What PyTorch says once a process; numgrad has no names that are to be removed.
SAID_ONCE = ("Casting complex", " is deprecated in favor of ")


def quiet(function: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return a result and the warnings' words, without where in C++ they come from."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    words = [
        str(warning.message).split(" (Triggered")[0]
        for warning in caught
        if not any(part in str(warning.message) for part in SAID_ONCE)
    ]
    return result, words


def compare(
    torch: Any,
    call: Callable[..., Any],
    *arrays: Any,
    order: int = 2,
    requires_grad: bool = True,
    exact_words: bool = True,
) -> None:
    """Compare ``call(module, *tensors)``: values, dtypes, nodes, warnings, errors, derivatives."""
    ours_in = tensors_of(ng, arrays, requires_grad)
    theirs_in = tensors_of(torch, arrays, requires_grad)
    try:
        theirs, their_words = quiet(lambda: call(torch, *theirs_in))
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            call(ng, *ours_in)
        words = str(error).split("\n")[0]
        if exact_words and PARSER not in words:
            assert str(caught.value) == words
        return
    ours, our_words = quiet(lambda: call(ng, *ours_in))
    assert our_words == their_words
    assert isinstance(ours, tuple) == isinstance(theirs, tuple)
    rtol = tolerance(theirs_in, theirs)
    for mine, reference in zip(parts_of(ours), parts_of(theirs), strict=True):
        close(mine, reference, rtol)
        assert mine.requires_grad == reference.requires_grad
        if reference.grad_fn is not None:
            assert mine.grad_fn.name() == reference.grad_fn.name()
    compare_derivatives(torch, parts_of(ours), parts_of(theirs), ours_in, theirs_in, order, rtol)


def compare_derivatives(
    torch: Any, ours: Any, theirs: Any, ours_in: Any, theirs_in: Any, order: int, rtol: float
) -> None:
    """Compare the derivatives of all outputs together, weighted, and then those of the squares."""
    for _ in range(order):
        theirs = [part for part in theirs if part is not None and part.requires_grad]
        ours = [part for part in ours if part is not None and part.requires_grad]
        if not theirs:
            return
        wanted = [tensor for tensor in theirs_in if tensor.requires_grad]
        mine_wanted = [tensor for tensor in ours_in if tensor.requires_grad]
        theirs = torch.autograd.grad(
            theirs,
            wanted,
            [weights_like(torch, part) for part in theirs],
            create_graph=True,
            allow_unused=True,
        )
        ours = ng.autograd.grad(
            ours,
            mine_wanted,
            [weights_like(ng, part) for part in ours],
            create_graph=True,
            allow_unused=True,
        )
        for mine, reference in zip(ours, theirs, strict=True):
            if reference is None:
                assert mine is None or not numbers_of(mine).any()
            elif mine is None:
                assert not numbers_of(reference).any()
            else:
                close(mine, reference, rtol)
