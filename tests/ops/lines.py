"""Lines of code that either library runs: what they give, raise and warn of, as a text to compare.

What a line does before its expression stands in front of ``->``.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

__all__ = ["answer"]

# What is said once a process stands in no answer: who says it depends on who came first.
ONCE = (
    "TypedStorage is deprecated",
    "This overload of",
    "The reduce argument of torch.scatter",
    "index_reduce() is in beta",
)


def answer(library: Any, code: str, setup: str = "") -> str:
    """Return what a line gives, or what it raises, and of what it warns."""
    names: dict[str, Any] = {"torch": library, "np": np}
    statements, _, expression = code.rpartition(" -> ")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(setup, names)
        try:
            exec(statements, names)
            found = repr(eval(expression.strip(), names))
        except Exception as error:
            found = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    said = [str(warning.message).split(" (Triggered")[0].split(". ")[0] for warning in caught]
    found = re.sub(r"\s+", " ", found).strip()
    return found + "".join(
        f" [{category}]" for category in dict.fromkeys(said) if not category.startswith(ONCE)
    )
