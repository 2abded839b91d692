"""Version counters: how often memory was written to, which saved tensors are checked by."""

from __future__ import annotations

from typing import Any

from numgrad.graph.modes.state import modes

__all__ = ["NoCounter", "level_counter", "new_counter"]


class NoCounter(list[Any]):
    """What inference tensors have in place of a version counter.

    Whoever saves a tensor for the backward pass reads its version. So that is what raises, and no
    operation has to look whether a tensor is one of these. Inside of the mode nobody saves, but for
    the functions of `numgrad.func`, which may. Writes are counted for who notes what a call does,
    and reads what any counter holds, with ``list.__getitem__``.
    """

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        if modes.inference or modes.covered:
            return 0
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make "
            "a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
            "instead of `torch.inference_mode()`."
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, super().__getitem__(index) + 1)


# The start of no level: what `numgrad.func` itself makes is none of a function's.
OUTSIDE = -1


def level_counter(start: int) -> list[Any]:
    """Return the version counter of memory made by a function that `numgrad.func` differentiates.

    Beside the version, and what writes note there, stands the start of the function's level: what
    functions inside of it made counts as made there.
    """
    return [0, "", None, start]


def new_counter() -> list[Any]:
    """Return the version counter of new memory; without `interceptors` it is ``[0]``."""
    level = modes.level
    if modes.inference:
        return NoCounter((0,) if level is None else level_counter(level.start))
    if level is not None:
        return [0, "", None, level.start]  # a `level_counter`
    return level_counter(OUTSIDE) if modes.covered else [0]
