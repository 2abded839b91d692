"""Tables of what is declared by its name; what is declared later is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Declared"]


class Declared(dict[str, Any]):
    """What was declared, by name. ``table[name]`` loads a name that is declared later.

    All else of it, ``in``, `get` and the loops over it, sees what has been declared.

    Attributes
    ----------
    later : dict
        What loads the names that need not be declared yet.

    Examples
    --------
    >>> table = Declared(one=1)
    >>> table.later["two"] = lambda: table.update(two=2)
    >>> "two" in table, table.has("two"), table["two"], "two" in table
    (False, True, 2, True)
    """

    __slots__ = ("later",)

    def __init__(self, **declared: Any) -> None:
        super().__init__(**declared)
        self.later: dict[str, Callable[[], Any]] = {}

    def __missing__(self, name: str) -> Any:
        load = self.later.get(name)
        if load is not None:
            load()
        if name not in self:
            raise KeyError(name)
        return self[name]

    def has(self, name: str) -> bool:
        """Whether there is one of a name, declared or to be."""
        return name in self or name in self.later

    def find(self, name: str) -> Any:
        """Return what has a name, loaded if need be; None if nothing has it."""
        return self[name] if self.has(name) else None
