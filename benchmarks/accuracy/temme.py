"""Derive Temme's coefficients: ``python benchmarks/accuracy/temme.py > .../special/temme.py``.

Those of the uniform expansion of the incomplete gamma functions, as power series of eta, where
eta**2/2 = mu - ln(1 + mu): c_0 = 1/mu - 1/eta, and c_k is (1/eta) times the derivative of c_(k - 1)
plus that multiple of 1/mu which cancels the pole. All in fractions, rounded at the end.

Source: NIST Digital Library of Mathematical Functions, 8.12.9 to 8.12.11.
"""

from __future__ import annotations

from fractions import Fraction

ROWS, COLUMNS = 13, 20
LENGTH = COLUMNS + 2 * ROWS + 4  # a row costs two coefficients of the one before it


def ratio() -> list[Fraction]:
    """Return mu/eta: mu times its derivative is eta (1 + mu)."""
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, LENGTH + 1):
        known = sum((mu[i] * mu[n + 1 - i] for i in range(2, n)), Fraction(0))
        mu.append((Fraction(2, n + 1) * mu[n - 1] - known) / 2)
    return mu[1:]


def coefficients() -> list[list[Fraction]]:
    """Return the rows c_0, c_1, ..."""
    quotient = ratio()
    inverse = [Fraction(1)]  # eta/mu
    for n in range(1, LENGTH):
        inverse.append(-sum((quotient[i] * inverse[n - i] for i in range(1, n + 1)), Fraction(0)))
    rows = [inverse[1:]]
    while len(rows) < ROWS:
        slope = [n * c for n, c in enumerate(rows[-1])][1:]
        rows.append(
            [s - slope[0] * i for s, i in zip(slope[1:], inverse[1 : len(slope)], strict=True)]
        )
    return rows


def main() -> None:
    """Print the module."""
    print('"""Coefficients of Temme\'s uniform expansion of the incomplete gamma functions.\n')
    print('Written by benchmarks/accuracy/temme.py, which has the recurrences.\n"""\n')
    print("from __future__ import annotations\n\nimport numpy as np\n")
    print('__all__ = ["COEFFICIENTS", "RATIO"]\n')
    print("# mu/eta by powers of eta, where eta**2/2 = mu - ln(1 + mu).\nRATIO = np.array(\n    [")
    for value in ratio()[:COLUMNS]:
        print(f"        {float(value)!r},")
    print("    ]\n)\n# c_k by powers of eta, a row each.\nCOEFFICIENTS = np.array(\n    [")
    for row in coefficients():
        print("        [")
        for value in row[:COLUMNS]:
            print(f"            {float(value)!r},")
        print("        ],")
    print("    ]\n)")


if __name__ == "__main__":
    main()
