"""What one public function was declared to be, and how a call of it is read."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numgrad.ops.calls.dispatch import Calls
from numgrad.ops.calls.table import Table
from numgrad.ops.signatures.argument_parser import (
    NUMPY_NAMES,
    Place,
    bind,
    find,
    fits_deprecated,
    given_at,
)
from numgrad.ops.signatures.call_sites import names_given
from numgrad.ops.signatures.kinds import KINDS, NAMES, as_given
from numgrad.ops.signatures.readings import Reading, pattern_of
from numgrad.ops.signatures.signature import (
    ABSENT,
    REQUIRED,
    Parameter,
    Signature,
    alternatives,
    merged,
)

__all__ = ["FINISHED", "Declaration"]

# Where functions hand calls on: this folder, and the files that do not exist in it.
_HERE = str(Path(__file__).parent)
# What `finish` is handed beside the rule's result.
FINISHED = ("requires_grad", "out")


class Declaration:
    """What one function or method was declared to be.

    Parameters
    ----------
    signatures : tuple of Signature
        The ways to call it.
    deprecated : tuple of Signature
        Those that PyTorch has not quite given up.
    rule : function
        What is computed of the arguments that it names.
    bound : bool
        Whether it is a method.
    special : dict
        For names of parameters, what to say of values that no tensor can have.
    finish : function or None
        What is made of the function's name, of the rule's result, and of `requires_grad`, `out`
        and `dtype`, as far as the signature has them.
    write : function or None
        What writes a result to `out`, of the function's name and the two, if the rule does not.
    casts : bool
        Whether the dtype is that of `out` where no other is asked for.
    perform : function or None
        Of what writes to its first tensor, what puts the rule's result there.
    calls : Calls or None
        The calls of the rule that are remembered.
    direct : bool
        Whether numbers in the place of tensors are operands of the one primitive that it applies.
    factors : tuple of str
        Numbers that are such operands where they are floats that every dtype holds.
    apart, in_step : tuple of str
        Tensors that share no memory with `out`, or only element for element.
    itself : str
        When calls return their first tensor as it is; see `declare`.
    """

    def __init__(
        self,
        signatures: tuple[Signature, ...],
        rule: Callable[..., Any],
        *,
        deprecated: tuple[Signature, ...] = (),
        bound: bool,
        special: dict[str, str],
        finish: Callable[..., Any] | None,
        write: Callable[..., Any] | None = None,
        casts: bool = False,
        perform: Callable[..., Any] | None = None,
        calls: Calls | None = None,
        direct: bool = False,
        factors: tuple[str, ...] = (),
        itself: str = "",
        apart: tuple[str, ...] = (),
        in_step: tuple[str | tuple[str, str], ...] = (),
    ) -> None:
        self.rule, self.bound, self.perform = rule, bound, perform
        if bound:
            signatures = tuple([each.of_method() for each in signatures])
            deprecated = tuple([each.of_method() for each in deprecated])
        elif perform is not None:
            signatures = tuple(dict.fromkeys([each.in_place() for each in signatures]))
        self.signatures, self.deprecated = signatures, deprecated
        self.special, self.finish, self.casts = special, finish, casts
        self.calls, self.direct, self.factors, self.itself = calls, direct, factors, itself
        self.apart, self.in_step = apart, in_step
        self.write = None if finish is not None or "out" in self.handed else write
        self.signature = merged(signatures)

    @property
    def name(self) -> str:
        """The name that messages give it."""
        return self.signature.name

    @property
    def writes(self) -> bool:
        """Whether it writes to its first tensor."""
        return self.perform is not None

    @property
    def written(self) -> str:
        """The name of the first tensor, which is written to if anything is."""
        return "self" if self.bound else self.signature.positional[0].name

    @property
    def spread(self) -> bool:
        """Whether what positions mean depends on how many are given."""
        return self.signature.variadic or not self.alike

    @functools.cached_property
    def alike(self) -> bool:
        """Whether every signature begins as the longest one does, but for what its kind tells."""
        return self.alternatives is not None

    @functools.cached_property
    def alternatives(self) -> dict[str, str] | None:
        """The parameters in whose place another one stands, and what that is."""
        return alternatives(self.signatures)

    @functools.cached_property
    def places(self) -> dict[int, list[str]]:
        """The positions at which calls differ by whether a name is given, and the names there.

        That is where the kind tells which of several parameters is meant, the usual one last, and
        where some signature takes what stands there by name alone. What is given by position goes
        by a name of its own in such a place.
        """
        if self.spread:
            return {}
        names = [each.name for each in self.signature.positional]
        found: dict[int, list[str]] = {}
        for name, usual in (self.alternatives or {}).items():
            found.setdefault(names.index(usual), []).append(name)
        for signature in self.signatures:
            for each in signature.parameters:
                if each.keyword_only and each.name in names:
                    found.setdefault(names.index(each.name), [])
        return {at: [*found[at], names[at]] for at in sorted(found)}

    def placed(self, at: int) -> str:
        """Return the name in sources of what is given at a position."""
        name = self.signature.positional[at].name
        return f"{name}_at_{at}" if at in self.places else name

    @functools.cached_property
    def sequence(self) -> Parameter | None:
        """The sequence of tensors that the function takes, if it takes one."""
        for each in self.signature.parameters:
            if each.kind == "Tensor[]" and each.name != "out":
                return each
        return None

    @functools.cached_property
    def ways(self) -> tuple[Signature, ...]:
        """The signatures whose kinds go with each other, the first of them `signature`.

        The others have parameters that it has, in the same places, and kinds that it leaves out.
        Where those are in the place of a list, calls are read the long way.
        """
        whole = self.signature
        kinds = {each.name: each.kinds for each in whole.parameters}
        return (
            whole,
            *[
                one
                for one in self.signatures
                if kinds.keys() >= {each.name for each in one.parameters}
                and one.begins(whole)
                and any(each.kind not in kinds[each.name] for each in one.parameters)
                and not any(KINDS[each.kind].plain for each in one.parameters)
                and not any(
                    KINDS[kind].plain
                    for each in one.parameters
                    if each.kind not in kinds[each.name]
                    for kind in kinds[each.name]
                )
            ],
        )

    def kinds_of(self, name: str) -> set[str]:
        """Return all kinds that a parameter has."""
        return {
            kind
            for one in (self.signature, *self.signatures)
            for each in one.parameters
            if each.name == name
            for kind in each.kinds
        }

    @functools.cached_property
    def handed(self) -> list[str]:
        """The parameters that the rule takes; of a method, without the tensor itself."""
        code = inspect.unwrap(self.rule).__code__
        return list(code.co_varnames[self.bound : code.co_argcount])

    def read(self, positional: tuple[Any, ...], named: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what the plain case has at hand already, of any call; raise what PyTorch does.

        Parameters
        ----------
        positional : tuple
            The values of the positional parameters, and what was given beyond them.
        named : tuple
            The values of the other parameters, and then those by NumPy's names.
        """
        given, count = (*positional, *named), len(positional)
        pattern = pattern_of(given, self._left_out(count))
        reading = None if pattern is None else self.readings.get(pattern)
        try:
            if reading is not None:
                return reading(given)
            signature, sources = self._parsed(given, count)
            reading = self._reading(given, signature, sources)
            if pattern is not None and signature in self.signatures:
                self.readings.keep(pattern, reading)
            return reading(given)
        except TypeError:
            names = names_given(_HERE)
            called = self._as_called(given, count, names) if names else None
            if called is not None:
                bind(self.signatures, *called)
            raise

    def _left_out(self, count: int) -> tuple[Any, ...]:
        """Return what a call with so many positional arguments has where nothing was given."""
        left_out = self._when_left_out.get(count)
        if left_out is None:
            positional = self.signature.positional
            of_these = [
                ABSENT if at in self.places else each.default for at, each in enumerate(positional)
            ]
            by_position = [each.name for each in positional] if self.spread else []
            left_out = (
                *([] if self.spread else of_these),
                *[REQUIRED] * (count if self.spread else count - len(positional)),
                *[
                    REQUIRED if name in by_position else self.defaults.get(name, REQUIRED)
                    for name in self.named
                ],
            )
            self._when_left_out[count] = left_out
        return left_out

    # Arguments are told below by where they stand in all that was given.

    def _given(
        self, given: tuple[Any, ...], count: int, *, by_name: bool = False
    ) -> tuple[list[int], dict[str, int]]:
        """Return the arguments that were given by position, as far as can be told, and others.

        What may have been given either way was by position, unless `by_name`.
        """
        left_out = self._left_out(count)
        keywords = {
            name: at
            for at, name in enumerate(self.named, count)
            if given[at] is not REQUIRED and given[at] is not left_out[at]
        }
        positional = [*range(count)]
        if self.spread:
            return positional, keywords
        if not by_name:
            self._move_back(given, positional, keywords)
        return self._by_position(given, positional, keywords), keywords

    def _parsed(
        self, given: tuple[Any, ...], count: int
    ) -> tuple[Signature, dict[str, int | tuple[int, ...]]]:
        """Return the signature that a call fits, and which arguments are its parameters'."""
        positional, keywords = self._given(given, count)
        called = _values(given, positional, keywords)
        try:
            signature, places = find(self.signatures, *called)
        except TypeError:
            for signature in self.deprecated:
                fitting = fits_deprecated(signature, self.signatures[0], *called)
                if fitting is not None:
                    return signature, _sources(fitting, positional, keywords)
            by_position = [at for at in self.places if given[at] is not ABSENT]
            if self.spread or by_position or count > len(self.signature.positional):
                raise
            try:  # what some signature takes by name alone may have been given by name
                positional, keywords = self._given(given, count, by_name=True)
                called = _values(given, positional, keywords)
                signature, places = find(self.signatures, *called)
            except TypeError:
                pass
            else:
                return signature, _sources(places, positional, keywords)
            raise
        return signature, _sources(places, positional, keywords)

    def _reading(
        self,
        given: tuple[Any, ...],
        signature: Signature,
        sources: Mapping[str, int | tuple[int, ...]],
    ) -> Reading:
        """Return what calls hand on that fit a signature in the same way."""
        constants = [*self.defaults.values(), None]
        found = dict(
            zip(self.defaults, range(len(given), len(given) + len(constants)), strict=False)
        )
        none = len(given) + len(constants) - 1
        conversions: list[tuple[int | slice, Callable[[Any], Any]]] = []
        for each in signature.parameters:
            source = sources.get(each.name)
            if source is None:
                continue
            at = source if isinstance(source, int) else slice(source[0], source[-1] + 1)
            convert = self._converts(each)
            if given[at] is None:
                found[each.name] = none
            elif convert is None and isinstance(at, int):
                found[each.name] = at
            else:
                conversions.append((at, convert or tuple))
                found[each.name] = none + len(conversions)
        return Reading(constants, conversions, [found[name] for name in self.used])

    def _as_called(
        self, given: tuple[Any, ...], count: int, names: tuple[str, ...]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return a call with those arguments by name that were; None if they are no such names."""
        arguments, keywords = _values(given, *self._given(given, count))
        positional = [] if self.spread else [each.name for each in self.signature.positional]
        known = dict(zip(positional, arguments, strict=False)) | keywords
        by_name: dict[str, Any] = {}
        for name in names:
            ours = next(
                (
                    each
                    for each in known
                    if name == each or (name not in known and name in NUMPY_NAMES.get(each, ()))
                ),
                None,
            )
            if ours is None:  # as what has its default, which is as if it was not given
                continue
            by_name[name] = known[ours]
            if ours in positional:
                arguments = arguments[: positional.index(ours)]
        return (arguments, by_name) if len(arguments) + len(by_name) == len(known) else None

    def _move_back(
        self, given: tuple[Any, ...], positional: list[int], keywords: dict[str, int]
    ) -> None:
        """Put what was told by its kind in the place that it has."""
        for at, names in self.places.items():
            for name in names:
                if given[positional[at]] is not ABSENT or name not in keywords:
                    continue
                kinds = [
                    KINDS[each.kind]
                    for one in self.signatures
                    for each in one.positional[at : at + 1]
                    if each.name == name
                ]
                if any(kind.accepts(given[keywords[name]]) for kind in kinds):
                    positional[at] = keywords.pop(name)

    def _by_position(
        self, given: tuple[Any, ...], positional: list[int], keywords: dict[str, int]
    ) -> list[int]:
        """Return what was given by position, as far as can be told; the rest becomes `keywords`."""
        parameters = self.signature.positional
        left_out = self._left_out(len(positional))
        last = len(positional)
        if last == len(parameters):  # what has its default may not have been given
            while last and given[positional[last - 1]] is left_out[last - 1]:
                last -= 1
        for at in range(last):
            if given[positional[at]] is REQUIRED or given[positional[at]] is ABSENT:
                break
        else:
            return positional[:last]
        for each, default, source in zip(
            parameters[at:], left_out[at:], positional[at:last], strict=False
        ):
            if given[source] is not REQUIRED and given[source] is not default:
                keywords[each.name] = source
        return positional[:at]

    @functools.cached_property
    def readings(self) -> Table:
        """The readings of calls that were parsed, under their patterns."""
        return Table()

    @functools.cached_property
    def _when_left_out(self) -> dict[int, tuple[Any, ...]]:
        return {}

    @functools.cached_property
    def defaults(self) -> dict[str, Any]:
        """The defaults of all parameters, `REQUIRED` for those that have none."""
        return {each.name: each.default for each in self.signature.parameters}

    @functools.cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters by their names."""
        return {each.name: each for each in self.signature.parameters}

    def not_given(self, name: str) -> str:
        """Return what stands in sources for a parameter that may be left out and was."""
        return "ABSENT" if self.defaults.get(name) is ABSENT else "None"

    @functools.cached_property
    def named(self) -> list[str]:
        """What the generated function has keywords for, and NumPy's names last."""
        names = list(self.defaults)
        if not self.spread:
            count = len(self.signature.positional)
            names = [*[names[at] for at in self.places], *names[count:]]
        for name in self.defaults:
            numpy_names = NUMPY_NAMES.get(name, ())
            names += [each for each in numpy_names if each not in {*names, *self.defaults}]
        return names

    @functools.cached_property
    def used(self) -> list[str]:
        """The parameters that the rule, `finish` or `write` is handed."""
        names = [*self.handed, *(FINISHED if self.finish is not None else ("out",))]
        return [name for name in dict.fromkeys(names) if name in self.defaults]

    def _converts(self, parameter: Parameter) -> Callable[[Any], Any] | None:
        """Return what makes of an accepted argument what is handed on; None if it is that."""
        where = (self.signature.name, parameter.name)
        kind = KINDS[parameter.kind]
        read: Callable[..., Any] = kind.read
        special = self.special.get(parameter.name)
        if read is as_given:
            return None
        details = () if special is None else (special,)
        if not kind.plain:
            return lambda value: read(where, value, *details)
        plain = NAMES[kind.plain]

        def converted(value: Any) -> Any:
            found = plain(value)
            return read(where, value, *details) if found is None else found

        return converted


def _values(
    given: tuple[Any, ...], positional: Sequence[int], keywords: Mapping[str, int]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple([given[at] for at in positional]), {n: given[at] for n, at in keywords.items()}


def _sources(
    places: Mapping[str, Place], positional: Sequence[int], keywords: Mapping[str, int]
) -> dict[str, int | tuple[int, ...]]:
    return {name: given_at(place, tuple(positional), keywords) for name, place in places.items()}
