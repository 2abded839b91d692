"""What waits for the numbers: checks and changes of arrays that a trace records and runs later."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import Traced
from numgrad.ops.calls.steps import read_array
from numgrad.ops.core.primitive import Primitive

__all__ = ["at_run_time"]


def at_run_time(
    function: Callable[..., Any] | None = None, *, quick: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Make a function of an array one that waits for the numbers; a decorator.

    It checks them, or changes some: the result has the array's shape and dtype.
    In a traced function there are none yet: there it is recorded, and runs in every call.

    Parameters
    ----------
    function : callable
    quick : callable, optional
        ``quick(function, **parameters)`` returns a function of an array that does with these
        parameters what the function does, with less around it; or None.
    """
    if function is None:
        return functools.partial(at_run_time, quick=quick)

    def computed(array: Any, **parameters: Any) -> Any:
        # What NumPy computes of an array without dims is a number: whoever reshaped it would get an
        # array on memory that nobody keeps.
        return np.asarray(function(array, **parameters))

    primitive = Primitive(
        function.__name__.strip("_"),
        "NotImplemented",
        computed,
        ["array"],
        [None],
        listed=False,
    )

    @functools.wraps(function)
    def run(array: Any, **parameters: Any) -> Any:
        if type(array) is Traced:
            known = array.storage.recorder.known(array)
            if known is None:
                return modes.trace.check(primitive, array, parameters)
            array = known
        return read_array(computed, array, quick=quick, **parameters)

    return run
