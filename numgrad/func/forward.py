"""Forward mode of whole functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.ops.tangents import transpose_jvp
from numgrad.tensor import Tensor

__all__ = ["jvp"]


def jvp(
    func: Callable[..., Any],
    primals: Sequence[Tensor],
    tangents: Sequence[Tensor],
) -> tuple[Any, Any]:
    """Return ``func(*primals)`` and its derivative in the direction of `tangents`.

    Mirrors ``torch.func.jvp``.

    Parameters
    ----------
    func : callable
        A function of tensors that returns a tensor or a tuple of tensors.
    primals : sequence of tensors
        Where to differentiate.
    tangents : sequence of tensors
        The direction: one tensor of each primal's shape and dtype.

    Returns
    -------
    output, tangent_output
        Both as `func` returns them.

    Raises
    ------
    RuntimeError
        If a tangent's shape is not its primal's.

    >>> import numgrad as ng
    >>> ng.func.jvp(lambda x: x**2, (ng.tensor([1.0, 3.0]),), (ng.tensor([1.0, 10.0]),))
    (tensor([1., 9.]), tensor([ 2., 60.]))
    """
    if len(primals) != len(tangents):
        raise RuntimeError(
            f"jvp: expected as many tangents as primals, got {len(tangents)} and {len(primals)}"
        )
    for primal, tangent in zip(primals, tangents, strict=True):
        if primal.shape != tangent.shape:
            raise RuntimeError(
                f"jvp: a tangent has shape {list(tangent.shape)}, its primal {list(primal.shape)}"
            )
    return transpose_jvp(func, primals, tangents)
