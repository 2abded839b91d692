"""Named tuples of results, as ``torch.return_types``."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

__all__ = ["aminmax", "cummax", "cummin", "max", "min", "return_type"]


def return_type(name: str, *fields: str) -> Any:
    """Return a class of named tuples that prints as ``torch.return_types.<name>``.

    Examples
    --------
    >>> pair = return_type("pair", "low", "high")
    >>> pair(1, 2)
    torch.return_types.pair(
    low=1,
    high=2)
    """
    base = namedtuple(name, fields)  # type: ignore[misc]

    def represent(self: tuple[Any, ...]) -> str:
        lines = [f"{field}={value!r}" for field, value in zip(fields, self, strict=True)]
        return f"torch.return_types.{name}(\n" + ",\n".join(lines) + ")"

    return type(name, (base,), {"__slots__": (), "__repr__": represent, "__module__": __name__})


max = return_type("max", "values", "indices")
min = return_type("min", "values", "indices")
cummax = return_type("cummax", "values", "indices")
cummin = return_type("cummin", "values", "indices")
aminmax = return_type("aminmax", "min", "max")
