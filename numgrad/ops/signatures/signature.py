"""Signatures as data: ``"roll(Tensor input, int[1] shifts, int[1] dims=())"``, parsed.

The notation is that of PyTorch's parser. A parameter is a kind (of the table in
`numgrad.ops.signatures.kinds`), a ``?`` if None is taken too, a name, and a default. Those after
``*`` are keywords only.
"""

from __future__ import annotations

import ast
import functools
import itertools
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "ABSENT",
    "REQUIRED",
    "Parameter",
    "Signature",
    "alternatives",
    "is_covered",
    "merged",
    "parse",
]


class _Required:
    """What a parameter without a default is until it is given."""

    def __repr__(self) -> str:
        return "<required>"


class _Absent:
    """What a parameter is that one way to call a function has and the way that was called has not.

    It is no None: that would be an argument, and of a kind that nothing takes.
    """

    def __repr__(self) -> str:
        return "None"


REQUIRED: Any = _Required()
ABSENT: Any = _Absent()


class Parameter(NamedTuple):
    """One parameter of a signature.

    Attributes
    ----------
    kind : str
        The name of its kind, such as ``int[]``.
    name : str
    default : object
        `REQUIRED` if there is none.
    optional : bool
        Whether None is taken, too.
    keyword_only : bool
    alone : bool
        Whether one int stands for a list of them (``int[1]``).
    others : tuple of str
        Where signatures were merged, the kinds that it has in others.
    left_out : object
        Where the default is `ABSENT`, what the function itself is given in its place.
    """

    kind: str
    name: str
    default: Any = REQUIRED
    optional: bool = False
    keyword_only: bool = False
    alone: bool = False
    others: tuple[str, ...] = ()
    left_out: Any = None

    @property
    def shown(self) -> Any:
        """Its default as a caller knows it."""
        return self.left_out if self.default is ABSENT else self.default

    @property
    def word(self) -> str:
        """Its name as PyTorch has it: ``from`` for ``from_``, as no name in Python can be."""
        word = self.name.removesuffix("_")
        return word if keyword.iskeyword(word) else self.name

    @property
    def kinds(self) -> tuple[str, ...]:
        """All its kinds."""
        return (self.kind, *self.others)


@dataclass(frozen=True)
class Signature:
    """The name and the parameters of one way to call a function."""

    name: str
    parameters: tuple[Parameter, ...]

    @functools.cached_property
    def positional(self) -> tuple[Parameter, ...]:
        """The parameters that can be given by position."""
        return tuple([each for each in self.parameters if not each.keyword_only])

    @functools.cached_property
    def least(self) -> int:
        """How many arguments a call has to give."""
        return sum(each.default is REQUIRED for each in self.parameters)

    def most(self, without: tuple[str, ...] = ()) -> int:
        """How many arguments a call can give, `without` some."""
        return sum(each.name not in without for each in self.parameters)

    @functools.cached_property
    def variadic(self) -> bool:
        """Whether the ints of its one positional parameter may be given one by one."""
        positional = self.positional
        return len(positional) == 1 and positional[0].kind in ("int[]", "size")

    def begins(self, other: Signature) -> bool:
        """Whether its positional parameters are the first that another one has."""
        names = [each.name for each in self.positional]
        return names == [each.name for each in other.positional[: len(names)]]

    @property
    def itself(self) -> str:
        """The parameter that is the tensor itself in a method: ``input``, or else the first."""
        names = [each.name for each in self.parameters]
        return "input" if "input" in names else names[0]

    @property
    def has_method(self) -> bool:
        """Whether a tensor comes first, which has it as a method."""
        return self.parameters[0].kind in ("Tensor", "operand", "mask")

    def of_method(self) -> Signature:
        """Return the signature of the method: without the tensor itself, and without ``out``."""
        rest = [each for each in self.parameters if each.name not in (self.itself, "out")]
        return Signature(self.name, tuple(rest))

    def in_place(self) -> Signature:
        """Return the signature of the function that writes to its first tensor."""
        first, *rest = [each for each in self.parameters if each.name != "out"]
        return Signature(self.name, (first._replace(kind="Tensor"), *rest))

    def named(self, name: str) -> Signature:
        """Return the signature of a function of another name."""
        return Signature(name, self.parameters)


_SIGNATURE = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_PARAMETER = re.compile(r"(\w+)(\[\d?\])?(\?)?\s+(\w+)(?:\s*=\s*(.+))?", re.DOTALL)


@functools.lru_cache(None)
def parse(text: str) -> Signature:
    """Return the signature that a text stands for.

    Raises
    ------
    ValueError
        If it is not one.

    Examples
    --------
    >>> signature = parse("flatten(Tensor input, int start_dim=0, int end_dim=-1)")
    >>> signature.name, [each.default for each in signature.parameters[1:]]
    ('flatten', [0, -1])
    """
    found = _SIGNATURE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"not a signature: {text!r}")
    parameters: list[Parameter] = []
    keyword_only = False
    for part in re.split(r",\s*(?![^(]*\))", found[2]) if found[2] else ():
        if part == "*":
            keyword_only = True
            continue
        fields = _PARAMETER.fullmatch(part.strip())
        if fields is None:
            raise ValueError(f"not a parameter: {part!r} of {text!r}")
        kind, brackets, mark, name, text_of_default = fields.groups()
        default = _default_of(text_of_default)
        parameters.append(
            Parameter(
                kind + ("[]" if brackets else ""),
                name,
                default,
                mark is not None,
                keyword_only,
                brackets not in (None, "[]"),
            )
        )
    return Signature(found[1], tuple(parameters))


def _default_of(text: str | None) -> Any:
    """Return the default that a text stands for; ``ABSENT`` is for what counts once it is given."""
    if text is None or text == "ABSENT":
        return REQUIRED if text is None else ABSENT
    return ast.literal_eval(text)


def merged(signatures: tuple[Signature, ...]) -> Signature:
    """Return one signature that takes what each of several does, and perhaps more.

    A parameter that one of them does without gets the default `ABSENT`; one that is a keyword only
    in one of them is that, if others stand in its place. The kinds are those of the last of the
    signatures with most arguments, and of the others where any of them go with each other.
    What is told by its kind (`alternatives`) has a place of its own only by name.
    """
    if len(signatures) == 1:
        return signatures[0]
    longest = _longest(signatures)
    replacing = alternatives(signatures) or {}
    by_name = replacing.keys() - {each.name for each in longest.positional}
    named: dict[str, Parameter] = {}
    for signature in reversed(sorted(signatures, key=lambda each: len(each.positional))):  # noqa: C413
        for each in signature.parameters:
            keyword_only = each.keyword_only or each.name in by_name
            named.setdefault(each.name, each._replace(keyword_only=keyword_only))
    for signature in signatures:
        of_this = {each.name: each for each in signature.parameters}
        for name, each in named.items():
            here = of_this.get(name)
            if here is None and each.default is REQUIRED:
                named[name] = each._replace(default=ABSENT)
            elif here is not None and here.default is not REQUIRED and each.default is REQUIRED:
                optional = each.optional or here.optional
                named[name] = each._replace(default=here.default, optional=optional)
            if here is not None and here.keyword_only and not signature.begins(longest):
                named[name] = named[name]._replace(keyword_only=True)
    ordered = sorted(_told(signatures, named), key=lambda each: each.keyword_only)
    count = sum(not each.keyword_only for each in ordered)
    whole = Signature(signatures[0].name, tuple(ordered))
    # Of all of them, or of those that begin as that one does.
    alike = [each for each in signatures if each.parameters[:1] == whole.parameters[:1]]
    for some in ((longest,),) if replacing else (signatures, alike):
        parameters = list(whole.parameters)
        for at, kinds in enumerate(zip(*kinds_of_calls(some, count), strict=True)):
            others = tuple([each for each in dict.fromkeys(kinds) if each != parameters[at].kind])
            parameters[at] = parameters[at]._replace(others=others)
        several = Signature(whole.name, tuple(parameters))
        if is_covered(several, signatures, count):
            return several
    return whole


def _told(signatures: tuple[Signature, ...], named: dict[str, Parameter]) -> list[Parameter]:
    """Return parameters of which it counts whether they were given, were it their default.

    That is so of what some of the signatures lack: ``sum(x, keepdim=False)`` fits none.
    """
    return [
        each._replace(default=ABSENT, left_out=each.default)
        if each.default is not REQUIRED
        and each.default is not ABSENT
        and not all(any(one.name == name for one in way.parameters) for way in signatures)
        else each
        for name, each in named.items()
    ]


def _longest(signatures: tuple[Signature, ...]) -> Signature:
    """Return the last of the signatures with most positional arguments."""
    return max(reversed(signatures), key=lambda each: len(each.positional))


# Kinds of which an argument may plainly be two.
_OVERLAPPING = (
    {"int", "float", "number", "operand"},
    {"int[]", "size"},
    {"Tensor", "operand", "mask"},
    {"bool", "mask"},
)


def _are_told_apart(kind: str, other: str) -> bool:
    if kind == other or "object" in (kind, other):
        return False
    return not any({kind, other} <= each for each in _OVERLAPPING)


def alternatives(signatures: tuple[Signature, ...]) -> dict[str, str] | None:
    """Return the parameters in whose place the longest signature has another one.

    They stand last, or before what both have.

    The kind of the argument tells which of the two it is. None if that can't be told, and it is the
    number of arguments that says what each of them means.

    Examples
    --------
    >>> alternatives((parse("f(Tensor input, Tensor other)"), parse("f(Tensor input, int dim)")))
    {'other': 'dim'}
    """
    longest = _longest(signatures)
    found: dict[str, str] = {}
    for one in reversed(signatures):
        for at, (its, usual) in enumerate(zip(one.positional, longest.positional, strict=False)):
            if its.name == usual.name:
                continue
            rest, others = one.positional[at + 1 :], longest.positional[at + 1 :]
            if (rest and rest != others) or not _are_told_apart(its.kind, usual.kind):
                return None
            found[its.name] = usual.name
    return found


def kinds_of_calls(signatures: Sequence[Signature], count: int) -> list[tuple[str, ...]]:
    """Return the kinds of `count` arguments by position, for each signature that takes so many."""
    return [
        tuple([each.kind for each in one.positional[:count]])
        for one in signatures
        if len(one.positional) >= count
        and all(each.default is not REQUIRED for each in one.positional[count:])
    ]


def is_covered(whole: Signature, signatures: tuple[Signature, ...], count: int) -> bool:
    """Whether any `count` arguments of the kinds of `whole` fit one of the signatures."""
    kinds = [each.kinds for each in whole.positional[:count]]
    return {*itertools.product(*kinds)} <= {*kinds_of_calls(signatures, count)}
