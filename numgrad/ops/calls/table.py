"""The table of what is remembered of calls: for each key, what runs such a call.

Keys are made of kinds (`numgrad.graph.kinds`) and of what else decides what a call comes to.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numgrad.base.tuning import REMEMBERED_CALLS

__all__ = ["Table"]

T = TypeVar("T")


class Table(dict[Any, Any]):
    """A dict of so many calls at most: when there are more, all are found out anew.

    Examples
    --------
    >>> table = Table()
    >>> table.keep("key", "program")
    'program'
    >>> table.get("key")
    'program'
    """

    __slots__ = ()

    def keep(self, key: Any, program: T) -> T:
        """Remember something under a key, and return it."""
        if len(self) >= REMEMBERED_CALLS:
            self.clear()
        self[key] = program
        return program
