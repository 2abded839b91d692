"""Making many objects without looking for garbage on the way: graphs, modules, kernels."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_collections"]

_OBJECTS_OF_LARGE_TRACES = 100_000  # objects that a trace of some thousand values makes


@contextmanager
def without_collections(*, lasting: bool = False) -> Iterator[None]:
    """Have Python look for no cycles of garbage meanwhile.

    A graph of thousands of values is in use as a whole, and so is what modules make when they are
    imported, and what the compiler works on: looking for what is not takes longer the more there
    is, half of the time that recording takes, a quarter of an import's and of compiling.

    Parameters
    ----------
    lasting : bool
        Whether most of what is made meanwhile stays, however much it is.

    Examples
    --------
    >>> import gc
    >>> with without_collections():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # To count what is frozen, one by one, takes longer than to look through a little.
            is_much = lasting or gc.get_count()[0] > _OBJECTS_OF_LARGE_TRACES
            if is_much and not gc.get_freeze_count():
                # All that was made counts as old, which it is: else it is looked through at once.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
