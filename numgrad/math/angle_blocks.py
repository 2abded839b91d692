"""Sines, cosines and tangents of a block of angles, for generated loops to call.

A block is computed as if no angle were far from 0, which vectorises, and anew if one was.
"""

from __future__ import annotations

from typing import Any

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.dispatchers import inline
from numgrad.codegen.llvm.pointers import element, store
from numgrad.codegen.llvm.width import use_wide_vectors
from numgrad.codegen.loop_runtime import distinct
from numgrad.math import scalar

__all__ = ["near_cos", "near_sin", "near_sin_cos", "near_tan"]


def _make_blocked(name: str, function: Any, near: Any) -> Any:
    """Return a kernel of its own: compiled once, where the nest that calls it is compiled often.

    It writes the function of `count` angles from `start` on to another array: as if no angle were
    far, and anew if one was.
    """

    def fill(angles, start, count, out):  # type: ignore[no-untyped-def]
        distinct()
        use_wide_vectors()
        far = False
        for i in range(count):
            angle = element(angles, start + i)
            far = far | scalar.is_far(angle)
            store(out, i, near(angle))
        if far:
            for i in range(count):
                store(out, i, function(element(angles, start + i)))

    fill.__name__ = name
    fill.__qualname__ = f"_make_blocked.{name}"  # equal names would have to mean equal code
    return kernel(fill)


# A dispatcher itself, where these are handed on, would put its address into the machine code.
@inline
def _sin_apart(x):  # type: ignore[no-untyped-def]
    return scalar.sin_apart(x)


@inline
def _cos_apart(x):  # type: ignore[no-untyped-def]
    return scalar.cos_apart(x)


@inline
def _tan_apart(x):  # type: ignore[no-untyped-def]
    return scalar.tan_apart(x)


@inline
def _sin_near(x):  # type: ignore[no-untyped-def]
    return scalar.sin_near(x)


@inline
def _cos_near(x):  # type: ignore[no-untyped-def]
    return scalar.cos_near(x)


@inline
def _tan_near(x):  # type: ignore[no-untyped-def]
    return scalar.tan_near(x)


_FUNCTIONS = {
    "sin": (_sin_apart, _sin_near),
    "cos": (_cos_apart, _cos_near),
    "tan": (_tan_apart, _tan_near),
}
near_sin, near_cos, near_tan = (
    _make_blocked(f"near_{name}", *_FUNCTIONS[name]) for name in _FUNCTIONS
)


@kernel
def near_sin_cos(angles, start, count, sines, cosines):  # type: ignore[no-untyped-def]
    """Write the sines and the cosines of angles, as above, both of one reduction."""
    distinct()
    use_wide_vectors()
    far = False
    for i in range(count):
        angle = element(angles, start + i)
        far = far | scalar.is_far(angle)
        sine, cosine = scalar.sin_cos_near(angle)
        store(sines, i, sine)
        store(cosines, i, cosine)
    if far:
        for i in range(count):
            angle = element(angles, start + i)
            store(sines, i, scalar.sin_apart(angle))
            store(cosines, i, scalar.cos_apart(angle))
