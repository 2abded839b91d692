"""Guards: conditions, in generated Python, under which a trace may be used again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Guard", "Guards", "is_number"]

_NUMBERS = (int, float, complex, str, bytes, np.generic)


def is_number(value: Any) -> bool:
    """Whether of a value only its type and what it says count, not which object it is."""
    return isinstance(value, _NUMBERS) and type(value) is not bool


class Guard(NamedTuple):
    """A condition.

    Attributes
    ----------
    label : str
        What is not what it was if it does not hold.
    text : str
        A Python expression of ``{o}``, the object that is looked at, ``{k}``, a key, and ``{v}``,
        what was found there. It may raise where there is nothing any more.
    object, key, value : Any
        These three.
    """

    label: str
    text: str
    object: Any
    key: Any
    value: Any

    def holds(self) -> bool:
        """Whether it holds."""
        names = {**_HELPERS, "o": self.object, "k": self.key, "v": self.value}
        try:
            return bool(eval(self.text.format(o="o", k="k", v="v"), names))
        except ERRORS:
            return False


def same_items(found: Iterable[Any], held: tuple[Any, ...]) -> bool:
    """Whether a container has the same items, in the same order."""
    items = tuple(found)
    return len(items) == len(held) and all(map(_is_same, items, held))


def same_keys(found: dict[Any, Any], held: tuple[Any, ...]) -> bool:
    """Whether a dict has the same keys and values, in the same order."""
    return (
        len(found) * 2 == len(held)
        and all(map(_is_same, found, held))
        and all(map(_is_same, found.values(), held[len(found) :]))
    )


def same_names(found: dict[str, Any], held: tuple[str, ...]) -> bool:
    """Whether an object has the same attributes, whatever they are."""
    return tuple(found) == held


def same_number(found: Any, held: Any) -> bool:
    """Whether two numbers or strings are the same: of one type, 0.0 not -0.0, nan as nan."""
    if type(found) is not type(held):
        return False
    is_nan = found != found and held != held
    return is_nan or (bool(found == held) and repr(found) == repr(held))


def same_value(found: Any, held: Any) -> bool:
    """Whether what is made anew whenever it is asked for is what it was."""
    return type(found) is type(held) and bool(found == held)


def has_own(found: Any, name: str) -> bool:
    """Whether an object itself has an attribute, and not its class."""
    return name in getattr(found, "__dict__", ())


def _is_same(found: Any, held: Any) -> bool:
    return found is held or (is_number(held) and same_number(found, held))


_HELPERS: dict[str, Callable[..., Any]] = {
    "has_own": has_own,
    "same_items": same_items,
    "same_keys": same_keys,
    "same_names": same_names,
    "same_number": same_number,
    "same_value": same_value,
}
ERRORS = (AttributeError, LookupError, TypeError, ValueError)  # where there is nothing any more


def _grew(guard: Guard) -> bool:
    """Whether a condition does not hold because there is more than there was."""
    if guard.text.startswith("same_keys"):
        found: dict[Any, Any] = guard.object
        held = guard.value[: len(guard.value) // 2]
        values = guard.value[len(held) :]
        return all(k in found and _is_same(found[k], v) for k, v in zip(held, values, strict=True))
    if guard.text.startswith("same_names"):
        return set(guard.value) <= vars(guard.object).keys()
    return "not in" in guard.text or "not has" in guard.text


class Guards:
    """Conditions, each once."""

    def __init__(self) -> None:
        self._found: dict[Any, Guard] = {}
        self._function: Callable[[], bool] | None = None

    def add(self, label: str, text: str, thing: Any, value: Any = None, key: Any = None) -> None:
        """Add a condition; of numbers it is enough that they are equal."""
        if is_number(value) and text.endswith(" is {v}"):
            found = text.removesuffix(" is {v}")
            text = f"({text} or same_number({found}, {{v}}))"
        guard = Guard(label, text, thing, key, value)
        # One that does not hold now never will: what makes up the answer is watched in its place.
        if (text, id(thing), repr(key)) not in self._found and guard.holds():
            self._found[text, id(thing), repr(key)] = guard
            self._function = None

    def __len__(self) -> int:
        return len(self._found)

    def conditions(self) -> tuple[list[str], dict[str, Any]]:
        """Return them as source, and what the names in that mean."""
        found: list[str] = []
        names = dict(_HELPERS)
        for k, guard in enumerate(self._found.values()):
            found.append(guard.text.format(o=f"object_{k}", k=f"key_{k}", v=f"value_{k}"))
            names[f"object_{k}"], names[f"value_{k}"] = guard.object, guard.value
            names[f"key_{k}"] = guard.key
        return found, names

    def hold(self) -> bool:
        """Whether all hold."""
        if self._function is None:
            found, names = self.conditions()
            lines = ["def hold():", f"    return {' and '.join(found) or True}"]
            exec("\n".join(lines), names)
            self._function = names["hold"]
        try:
            return bool(self._function())
        except ERRORS:
            return False

    def only_grew(self) -> bool:
        """Whether nothing was replaced, but attributes and entries are there that were not."""
        broken = [guard for guard in list(self._found.values()) if not guard.holds()]
        return bool(broken) and all(map(_grew, broken))

    def broken(self) -> str | None:
        """Return the label of one that does not hold, None if all do."""
        if self.hold():
            return None
        broken = [guard.label for guard in list(self._found.values()) if not guard.holds()]
        return broken[0] if broken else None
