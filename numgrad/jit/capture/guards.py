"""Guards: conditions, in generated Python, under which a trace may be used again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import is_
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ERRORS",
    "FUNCTIONS",
    "Guard",
    "Guards",
    "fill_of",
    "is_a",
    "is_number",
    "is_set",
    "own_dict",
    "same_function",
    "slots_of",
]

_NUMBERS = frozenset((int, float, complex, str, bytes))
FUNCTIONS = (FunctionType, functools.partial)
_UNBOUND = object()
_NO_NAMES: dict[str, Any] = {}


def is_a(value: Any, kinds: Any) -> bool:
    """Whether an object is of a class, as `isinstance` does, but without asking the object."""
    return issubclass(type(value), kinds)


def own_dict(value: Any) -> dict[str, Any]:
    """Return the ``__dict__`` of an object that is no class, without asking the object."""
    get: Any = type(value).__getattribute__
    if type(get) is FunctionType:
        get = object.__getattribute__
    try:
        found = get(value, "__dict__")
    except (AttributeError, TypeError):
        return _NO_NAMES
    return found if type(found) is dict else _NO_NAMES


def slots_of(value: Any) -> dict[str, MemberDescriptorType]:
    """Return the slots of an object that is no class, those with nothing in them, too."""
    found: dict[str, Any] = {}
    for each in type(value).__mro__:
        if "__slots__" in each.__dict__:
            for name, raw in each.__dict__.items():
                if type(raw) is MemberDescriptorType and not name.startswith("__"):
                    found.setdefault(name, raw)  # a class below comes first
    return found


def is_set(slot: MemberDescriptorType | None, value: Any) -> bool:
    """Whether an object has something in a slot."""
    try:
        return slot is not None and (slot.__get__(value), True)[1]
    except AttributeError:
        return False


def is_number(value: Any) -> bool:
    """Whether of a value only its type and what it says count, not which object it is."""
    kind = type(value)
    return kind in _NUMBERS or (issubclass(kind, np.generic) and kind.__module__ == "numpy")


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


def same_items(
    found: Iterable[Any], held: tuple[Any, ...], met: frozenset[Any] = frozenset()
) -> bool:
    """Whether a container has the same items, in the same order."""
    items = tuple(found)
    return len(items) == len(held) and all(map(_is_same, items, held, repeat(met)))


def same_keys(found: dict[Any, Any], held: tuple[Any, ...]) -> bool:
    """Whether a dict has the same keys and values, in the same order."""
    return (
        len(found) * 2 == len(held)
        and all(map(_is_same, found, held))
        and all(map(_is_same, found.values(), held[len(found) :]))
    )


def begins_with(found: dict[Any, Any], held: tuple[tuple[Any, ...], tuple[Any, ...]]) -> bool:
    """Whether the first entries of a dict are the very ones that they were."""
    keys, values = held
    return (
        len(found) >= len(keys)
        and all(map(is_, found, keys))
        and all(map(is_, found.values(), values))
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


def fill_of(found: Any) -> str:
    """Return what a masked array puts where something is masked, so that nan is nan."""
    return repr(np.asarray(found.fill_value).tolist())


def has_own(found: Any, name: str) -> bool:
    """Whether an object itself has an attribute, in a slot or not, and not its class."""
    return name in own_dict(found) or is_set(slots_of(found).get(name), found)


def same_function(found: Any, held: Any, met: frozenset[Any] = frozenset()) -> bool:
    """Whether two functions do the same: of one code, with the same variables and defaults.

    `met` has those that are being compared: a function may be a variable of its own.
    """
    pair = id(found), id(held)
    if found is held or pair in met:
        return True
    kind, met = type(held), met | {pair}
    if type(found) is not kind or kind not in FUNCTIONS:
        return False
    if kind is FunctionType:
        if found.__code__ is not held.__code__ or found.__globals__ is not held.__globals__:
            return False
    elif not _is_same(found.func, held.func, met):
        return False
    return same_items(_parts(found), _parts(held), met)


def _parts(function: Any) -> tuple[Any, ...]:
    """Return what makes a function of some code another than the next one of that code."""
    if type(function) is functools.partial:
        named = (function.keywords, vars(function))
        found = [*function.args, len(function.args)]
    else:
        named = (function.__kwdefaults__ or {}, vars(function))
        found = [*(function.__defaults__ or ())]
        for cell in function.__closure__ or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:  # it is not bound
                found.append(_UNBOUND)
    for table in named:
        found += [*table, *table.values()]
    return tuple(found)


def is_unbound(cell: CellType) -> bool:
    """Whether a variable of an enclosing function holds nothing."""
    try:
        cell.cell_contents  # noqa: B018 - which raises
    except ValueError:
        return True
    return False


def _is_same(found: Any, held: Any, met: frozenset[Any] = frozenset()) -> bool:
    if found is held:
        return True
    if type(held) in FUNCTIONS:
        return same_function(found, held, met)
    return is_number(held) and same_number(found, held)


_HELPERS: dict[str, Callable[..., Any]] = {
    "begins_with": begins_with,
    "fill_of": fill_of,
    "has_own": has_own,
    "is_unbound": is_unbound,
    "own_dict": own_dict,
    "same_function": same_function,
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
        thing = guard.object
        names = thing.__dict__ if is_a(thing, type) else own_dict(thing)
        return set(guard.value) <= names.keys()
    return "not in" in guard.text or "not has" in guard.text


class Guards:
    """Conditions, each once."""

    def __init__(self) -> None:
        self._found: dict[Any, Guard] = {}
        self._function: Callable[[], bool] | None = None

    def add(self, label: str, text: str, thing: Any, value: Any = None, key: Any = None) -> None:
        """Add a condition; of numbers and functions it is enough that they are equal."""
        if text.endswith(" is {v}"):
            found = text.removesuffix(" is {v}")
            if is_number(value):
                text = f"({text} or same_number({found}, {{v}}))"
            elif type(value) in FUNCTIONS:
                text = f"({text} or same_function({found}, {{v}}))"
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
        broken = self.all_broken()
        return bool(broken) and all(map(_grew, broken))

    def all_broken(self) -> list[Guard]:
        """Return those that do not hold."""
        return [guard for guard in list(self._found.values()) if not guard.holds()]

    def variables(self) -> list[tuple[CellType, Any]]:
        """Return the variables of enclosing functions, with what they hold if all is as it was."""
        found = [each for each in self._found.values() if type(each.object) is CellType]
        return [(each.object, each.value) for each in found]

    def broken(self) -> str | None:
        """Return the label of one that does not hold, None if all do."""
        if self.hold():
            return None
        broken = self.all_broken()
        return broken[0].label if broken else None
