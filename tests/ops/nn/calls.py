"""Calls of nn.functional as lines, run by both libraries on the same operands and compared."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import numgrad as ng

__all__ = ["agree", "outcome"]


def outcome(module: Any, line: str, operands: dict[str, Any], weights: Any = None) -> Any:
    """Return what a line gives in one library: results, gradients, warnings, or its refusal."""
    names = {
        name: module.tensor(value.tolist(), dtype=getattr(module, str(value.dtype)))
        if isinstance(value, np.ndarray)
        else value
        for name, value in operands.items()
    }
    leaves = [
        each.requires_grad_()
        for name, each in names.items()
        if isinstance(each, module.Tensor) and each.is_floating_point() and name[0] != "_"
    ]
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            result = eval(line, {"torch": module, "F": module.nn.functional, **names})
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
            return type(error).__name__, str(error).splitlines()[0]
    said = sorted({str(each.message).splitlines()[0] for each in given})
    found = [result.detach().numpy(), str(result.dtype), tuple(result.stride()), said]
    if result.requires_grad:
        kinds = np.arange(1, result.numel() + 1).reshape(result.shape) / result.numel()
        cotangent = module.tensor(kinds.tolist(), dtype=result.dtype)
        gradients = module.autograd.grad(result, leaves, cotangent, allow_unused=True)
        found += [None if each is None else each.numpy() for each in gradients]
    return found


def agree(torch: Any, line: str, operands: dict[str, Any], rtol: float = 1e-12) -> None:
    """Check that both libraries give the same, or refuse in the same words."""
    ours, theirs = (outcome(module, line, operands) for module in (ng, torch))
    if isinstance(theirs, tuple) or isinstance(ours, tuple):
        assert ours == theirs, (line, ours, theirs)
        return
    assert ours[1] == theirs[1], line
    assert ours[3] == theirs[3], line
    assert len(ours) == len(theirs), line
    for mine, reference in zip([ours[0], *ours[4:]], [theirs[0], *theirs[4:]], strict=True):
        assert (mine is None) == (reference is None), line
        if mine is not None:
            exact = rtol if reference.dtype.itemsize > 4 else 2e-5
            np.testing.assert_allclose(mine, reference, rtol=exact, atol=exact, err_msg=line)
