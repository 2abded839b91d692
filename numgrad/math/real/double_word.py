"""Double-word arithmetic: error-free sums and products of two numbers.

Sources: T. J. Dekker, "A floating-point technique for extending the available precision",
Numerische Mathematik 18 (1971); D. E. Knuth, *The Art of Computer Programming*, volume 2, 4.2.2;
the product by a fused multiply-add is that of J.-M. Muller et al., *Handbook of Floating-Point
Arithmetic* (2018), 4.4.
"""

from __future__ import annotations

from numgrad.codegen.llvm.scalar_ir import branch_free
from numgrad.math.real.bits import fma

__all__ = ["fast_two_sum", "two_product", "two_sum"]


@branch_free
def two_sum(a, b):  # type: ignore[no-untyped-def]
    """Return ``a + b`` rounded, and what the rounding lost, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@branch_free
def fast_two_sum(a, b):  # type: ignore[no-untyped-def]
    """Return ``a + b`` rounded, and what the rounding lost, where abs(a) >= abs(b) or a is 0."""
    total = a + b
    return total, b - (total - a)


@branch_free
def two_product(a, b):  # type: ignore[no-untyped-def]
    """Return ``a * b`` rounded, and what the rounding lost, exactly (short of underflow)."""
    product = a * b
    return product, fma(a, b, -product)
