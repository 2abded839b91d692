"""Products of a run of numbers as LLVM vector instructions, in the order that PyTorch has.

Number i goes to lane ``i % lanes`` of so many as four vectors of 32 bytes hold, and each lane is
multiplied from its first number on. Of the four vectors the first is multiplied with the second,
the third with the fourth, and these two; then the lanes of what is left, from the first one on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from numgrad.codegen.llvm.quick_calls import DATA
from numgrad.codegen.llvm.vector_ir import Place, halves, integer, loop, paired

__all__ = ["product_lanes", "product_of_lanes"]

VECTORS, BYTES = 4, 32


def product_lanes(dtype: np.dtype[Any]) -> int:
    """Return how many lanes there are.

    Examples
    --------
    >>> [product_lanes(np.dtype(name)) for name in ("float32", "float64", "complex128")]
    [32, 16, 8]
    """
    return VECTORS * BYTES // dtype.itemsize


class _Lanes:
    """Vectors of numbers: complex ones are all real parts and then all imaginary ones."""

    def __init__(self, builder: Any, is_complex: bool) -> None:
        self.builder, self.is_complex = builder, is_complex

    def read(self, place: Place, index: Any) -> Any:
        """Return the numbers of all lanes, of which `index` is the first real number."""
        width = VECTORS * BYTES * 8 // place.dtype.bitwidth
        numbers = place.read(index, width)
        if not self.is_complex:
            return numbers
        return self.taken(numbers, [*range(0, width, 2), *range(1, width, 2)])

    def taken(self, vector: Any, places: list[int]) -> Any:
        """Return what is at some places of a vector."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
        return self.builder.shuffle_vector(vector, vector, mask)

    def times(self, x: Any, y: Any) -> Any:
        """Return x times y."""
        builder = self.builder
        if not self.is_complex:
            return builder.fmul(x, y)
        (a, b), (c, d) = halves(builder, x), halves(builder, y)
        real = builder.fsub(builder.fmul(a, c), builder.fmul(b, d))
        imag = builder.fadd(builder.fmul(a, d), builder.fmul(b, c))
        return paired(builder, real, imag)

    def split(self, vector: Any) -> tuple[Any, Any]:
        """Return the first half of the lanes and the second."""
        builder = self.builder
        if not self.is_complex:
            return halves(builder, vector)
        real, imag = (halves(builder, part) for part in halves(builder, vector))
        return paired(builder, real[0], imag[0]), paired(builder, real[1], imag[1])

    def joined(self, vector: Any) -> list[Any]:
        """Return the product of all lanes: a number, or its two parts."""
        first, second = (self.times(*self.split(half)) for half in self.split(vector))
        vector = self.times(first, second)
        parts = 2 if self.is_complex else 1
        lanes = vector.type.count // parts
        numbers = [
            self.taken(vector, [part * lanes + lane for part in range(parts)])
            for lane in range(lanes)
        ]
        total = numbers[0]
        for number in numbers[1:]:
            total = self.times(total, number)
        places = [ir.Constant(ir.IntType(32), part) for part in range(parts)]
        return [self.builder.extract_element(total, place) for place in places]


def _product_of_lanes(typing_context: Any, a: Any, first: Any, count: Any) -> Any:
    """Return the product of `count` elements from number `first` on: some for each lane."""
    if not (isinstance(a, types.Array) and isinstance(first, types.Integer)):
        return None
    is_complex = isinstance(a.dtype, types.Complex)
    real = a.dtype.underlying_float if is_complex else a.dtype

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        parts = integer(2 if is_complex else 1)
        start, length = (
            builder.mul(context.cast(builder, number, kind, types.int64), parts)
            for number, kind in zip(arguments[1:], signature.args[1:], strict=True)
        )
        data = builder.extract_value(arguments[0], DATA)
        place, lanes = Place(context, builder, real, data, start), _Lanes(builder, is_complex)
        width = VECTORS * BYTES * 8 // real.bitwidth
        beginning = lanes.read(place, integer(0))
        with loop(builder, builder.sub(length, integer(width)), width, beginning) as turn:
            following = lanes.read(place, builder.add(turn[0], integer(width)))
            turn[1] = lanes.times(turn[1], following)
        found = lanes.joined(turn[1])
        if not is_complex:
            return found[0]
        number = context.make_complex(builder, a.dtype)
        number.real, number.imag = found
        return number._getvalue()

    return a.dtype(a, first, count), lower


product_of_lanes: Any = intrinsic(_product_of_lanes)
