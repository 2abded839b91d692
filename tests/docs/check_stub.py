"""Compare numgrad/__init__.pyi with what there is, as stubtest sees it: `make types` runs this.

`tests.docs.stubs` writes the file from signatures; mypy's stubtest imports numgrad and looks at
what can really be called. What it finds and is meant stands in `EXPECTED`, with the reason.
"""

from __future__ import annotations

import re
import subprocess
import sys

import numgrad
from tests.docs.stubs import has_ways

__all__ = ["EXPECTED", "unexpected"]

# What is named, what is said of it, and why it is so.
EXPECTED = [
    (
        r"numgrad\.(?!graph\.tensor\.Tensor\.)\w+\..+",
        r".*",
        "sources stand for themselves, and mypy checks them: decorators hide their signatures",
    ),
    (
        r".*",
        r"runtime does not have parameter \"(axis|axes|keepdims)\"",
        "NumPy's names are taken as PyTorch takes them, which signatures don't tell",
    ),
    (
        r"numgrad\.graph\.tensor\.Tensor\.\w+",
        r"stub parameter \"self\" differs from runtime parameter \"(input|tensor)\"",
        "methods are the functions",
    ),
    (
        r".*Tensor\.(__abs__|__neg__)",
        r"stub does not have parameter \"out\"",
        "operators are the functions",
    ),
    (
        r".*Tensor\.__i(ge|gt|le|lt)__",
        r"not present in stub",
        "PyTorch has them as names; no statement of Python's calls them",
    ),
    (
        r".*Tensor\.__(delitem|getattr|new)__",
        r".*",
        "they raise, are for names that mypy does not see, or take what `tensor` takes",
    ),
    (
        r"numgrad\.__all__",
        r"not present in stub",
        "every name of the stub that has no underscore is public",
    ),
]


def _has_ways(name: str) -> bool:
    """Whether the stub has a declaration for each signature of a function.

    Stubtest makes one of them all, and `inspect` another, with None for what some of them lack.
    `test_each_way_to_call_is_a_signature` finds out whether they are the signatures.
    """
    owner, _, attribute = name.rpartition(".")
    function = getattr(numgrad.Tensor if owner.endswith("Tensor") else numgrad, attribute, None)
    return owner in ("numgrad", "numgrad.graph.tensor.Tensor") and has_ways(function)


def unexpected(lines: list[str]) -> list[str]:
    """Return which of the findings are not expected.

    >>> unexpected(["numgrad.exp is inconsistent, runtime does not have parameter \\"axis\\""])
    []
    >>> unexpected(["numgrad.exp is not present at runtime"])
    ['numgrad.exp is not present at runtime']
    """

    def is_expected(line: str) -> bool:
        name, _, words = line.partition(" ")
        return _has_ways(name) or any(
            re.fullmatch(of, name) and re.search(said, words) for of, said, _ in EXPECTED
        )

    return [line for line in lines if not is_expected(line)]


if __name__ == "__main__":
    command = [sys.executable, "-m", "mypy.stubtest", "numgrad", "--concise"]
    command += ["--mypy-config-file", "pyproject.toml"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("numgrad.")]
    found = unexpected(lines)
    if not lines:  # it could not begin
        found = [ended.stdout, ended.stderr]
    print(*found, sep="\n")
    sys.exit(f"{len(found)} of {len(lines)} findings are not expected" if found else 0)
