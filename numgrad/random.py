"""Seeds and states of random numbers, as ``torch.random``.

>>> import numgrad as ng
>>> with ng.random.fork_rng():
...     first = ng.manual_seed(0) and ng.rand(2)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numgrad.ops.creation.generator import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, _caller: str = "", _devices_kw: str = ""
) -> Iterator[None]:
    """Draw within a block as if it had not been there behind it: the state is put back.

    Parameters
    ----------
    devices
        Not used: there is the CPU alone.
    enabled
        If not, nothing is put back.

    >>> import numgrad as ng
    >>> generator = ng.manual_seed(1)
    >>> with ng.random.fork_rng():
    ...     first = ng.rand(2)
    >>> bool((first == ng.rand(2)).all())
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
