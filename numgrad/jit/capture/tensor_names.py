"""Which functions and attributes of this package give tensors, and nothing else.

It is what they say of themselves that counts, or else being named here: one that is missing gives
something unknown, by which Python may go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from inspect import unwrap
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.jit.capture.guards import is_a

__all__ = ["gives_tensors", "is_of_tensors"]

_WORDS = frozenset(("Tensor", "tuple", "list", "Sequence", "None"))  # of annotations
# fmt: off
# What gives tensors, though it says nothing of that.
_TENSORS = frozenset((
    "add", "sub", "subtract", "div", "divide", "true_divide", "floor_divide", "float_power", "fmod",
    "pow", "remainder", "addcdiv", "addcmul", "aminmax", "argwhere", "conj", "cummax", "cummin",
    "kthvalue", "lerp",
    "max", "min", "neg", "negative", "nonzero", "rsub", "sort", "square", "topk", "where",
    "atleast_1d", "atleast_2d", "atleast_3d",
))
# fmt: on


@lru_cache(4096)
def is_of_tensors(name: str) -> bool:
    """Whether an attribute of tensors with this name is a tensor, or a method that gives some."""
    found: Any = getattr(Tensor, name, None)
    return name in _TENSORS or gives_tensors(found.fget if is_a(found, property) else found)


def gives_tensors(function: Any) -> bool:
    """Whether a function, or a class when it is called, gives tensors and nothing else."""
    if is_a(function, type):
        return issubclass(function, Tensor)
    if callable(function):
        function = unwrap(function)  # of a declared function, its rule
    said = str(getattr(function, "__annotations__", {}).get("return", ""))
    if said.startswith("Callable"):  # what it gives is what the functions give that it is given
        return True
    if said == "Any":
        name = getattr(function, "__name__", "")
        return getattr(function, "__module__", None) == "numgrad" or name in _TENSORS
    words = set(re.findall(r"\w+", said))
    return "Tensor" in words and words <= _WORDS
