"""Write the table of Airy's function: ``python benchmarks/accuracy/airy.py``.

Ai and its derivative at the multiples of a half, and the coefficients of their series for large
arguments: NIST Digital Library of Mathematical Functions, 9.7.2. Writes
``numgrad/math/special/airy_tables.py``.
"""

from __future__ import annotations

from pathlib import Path

import mpmath
from mpmath import mp, mpf

mp.dps = 40
END = 20  # halves: from -10 to 10
TERMS = 22
TARGET = Path(__file__).parents[2] / "numgrad/math/special/airy_tables.py"


def coefficients() -> tuple[list[float], list[float]]:
    """Return u_k and v_k."""
    u = [mpf(1)]
    for k in range(1, TERMS):
        u.append(u[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    v = [c * mpf(6 * k + 1) / (1 - 6 * k) for k, c in enumerate(u)]
    return [float(c) for c in u], [float(c) for c in v]


def array(name: str, values: list[float]) -> str:
    """Return an array as source."""
    return (
        f"{name} = np.array(\n    [\n" + "".join(f"        {v!r},\n" for v in values) + "    ]\n)\n"
    )


def main() -> None:
    """Write the file."""
    points = [mpf(k) / 2 for k in range(-END, END + 1)]
    values = [float(mpmath.airyai(x)) for x in points]
    slopes = [float(mpmath.airyai(x, derivative=1)) for x in points]
    u, v = coefficients()
    head = (
        '"""Airy\'s function and its derivative at multiples of a half, and series far out.\n\n'
        'Written by benchmarks/accuracy/airy.py.\n"""\n\n'
        "from __future__ import annotations\n\nimport numpy as np\n\n"
        '__all__ = ["OF_SLOPE", "OF_VALUE", "SLOPES", "VALUES"]\n\n'
    )
    body = array("# From -10 to 10.\nVALUES", values) + array("SLOPES", slopes)
    body += array("# By powers of 1/zeta.\nOF_VALUE", u) + array("OF_SLOPE", v)
    TARGET.write_text(head + body)


if __name__ == "__main__":
    main()
