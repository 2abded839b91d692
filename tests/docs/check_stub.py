"""Compare numgrad/__init__.pyi with what there is, as stubtest sees it: `make types` runs this.

`tests.docs.stubs` writes the file from signatures; mypy's stubtest imports numgrad and looks at
what can really be called. What it finds and is meant stands in `EXPECTED`, with the reason.
"""

from __future__ import annotations

import re
import subprocess
import sys

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
        r"stub parameter \"self\" differs from runtime parameter",
        "methods are the functions",
    ),
    (
        r"(numgrad|.*Tensor)\.(max|min|median|nanmedian|size|stride|type|nonzero|where)",
        r".*",
        "each way to call them has its own types (`test_each_way_to_call_a_function`)",
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
        r"(numgrad\.\w+_copy|.*Tensor\.(narrow_copy|(as_strided|squeeze|swapaxes|swapdims|t|transpose|unsqueeze)_))",
        r"(args|arguments|keywords|parameter) ",
        "copies of views and their in-place forms hand on what they are given",
    ),
    (
        r"numgrad\.__all__",
        r"not present in stub",
        "every name of the stub that has no underscore is public",
    ),
]


def unexpected(lines: list[str]) -> list[str]:
    """Return which of the findings are not expected.

    >>> unexpected(["numgrad.sum is inconsistent, runtime does not have parameter \\"axis\\""])
    []
    >>> unexpected(["numgrad.sum is not present at runtime"])
    ['numgrad.sum is not present at runtime']
    """

    def is_expected(line: str) -> bool:
        name, _, words = line.partition(" ")
        return any(re.fullmatch(of, name) and re.search(said, words) for of, said, _ in EXPECTED)

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
