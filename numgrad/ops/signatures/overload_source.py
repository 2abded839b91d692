"""The source of functions of several signatures: which of them a call is meant for.

What an argument means can depend on its kind, as in ``max(Tensor input, Tensor other)`` and
``max(Tensor input, int dim)``, or on how many there are, as in ``arange(start, end)`` and
``arange(end)``.
"""

from __future__ import annotations

from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.kinds import KINDS
from numgrad.ops.signatures.signature import ABSENT, REQUIRED, Parameter, Signature, is_covered
from numgrad.ops.signatures.source_text import default_text, is_default, tuple_of

__all__ = ["at_odds", "given_at_least", "moved", "spread"]


def given_at_least(declaration: Declaration, local: dict[str, str]) -> list[str]:
    """Return what holds of calls with too few arguments for the plain case.

    What several signatures allow together, such as the kinds of one and the default of another,
    none of them needs to allow.
    """
    whole = declaration.signature
    least = len(whole.positional)
    while least and is_covered(whole, declaration.signatures, least - 1):
        least -= 1
    absent: dict[str, list[str]] = {
        each.name: [each.name]
        for each in whole.positional[:least]
        if each.default is None or each.default is ABSENT
    }
    for name, usual in (declaration.alternatives or {}).items():
        if usual in absent:
            absent[usual].append(name)
    return [
        " and ".join(
            [f"{local.get(name, name)} is {declaration.not_given(name)}" for name in names]
        )
        for names in absent.values()
    ]


# --- where what a position means depends on the kind of what is there -----------------------------


def _is_default(parameter: Parameter, value: str = "", *, given: bool = False) -> str:
    """Return the condition that an argument, which has some name, was not given, or was."""
    return is_default(parameter.default, value or parameter.name, given=given)


def moved(declaration: Declaration) -> list[str]:
    """Return the lines that move an argument to the parameter that its kind tells.

    For ``max(Tensor input, Tensor other)`` and ``max(Tensor input, int dim)`` that is

        if dim_at_1 is not ABSENT:
            if isinstance(dim_at_1, Tensor) and other is ABSENT:
                other, dim_at_1 = dim_at_1, ABSENT
            elif type(dim_at_1) is int and dim is ABSENT:
                dim, dim_at_1 = dim_at_1, ABSENT

    What is plainly none of them stays, and has the call read; so does what no flag follows that is
    to be one.
    """
    whole, lines = declaration.signature, []
    for at, names in declaration.places.items():
        place, branch = declaration.placed(at), "if"
        lines.append(f"    if {place} is not ABSENT:")
        for name in names:
            ones = _with(declaration, name, at)
            kept = {each.name for one in ones for each in one.parameters if each.name != name}
            rest = [each for each in whole.parameters if each.name not in kept]
            plainly = _plainly(ones[0], name, place)
            told = " and ".join(
                [plainly, *map(_is_default, rest), *_others_fit(declaration, ones, at)]
            )
            lines.append(f"        {branch} {told}:")
            lines.append(f"            {name}, {place} = {place}, ABSENT")
            branch = "elif"
    return lines


def _others_fit(declaration: Declaration, ones: list[Signature], at: int) -> list[str]:
    """Return what holds of the arguments around a place where just these signatures are meant."""
    fit = []
    for each in ones[0].positional[:at]:
        kinds = {one.kind for way in ones for one in way.positional if one.name == each.name}
        if kinds < declaration.kinds_of(each.name):
            fit.append(_plainly(ones[0], each.name, each.name))
    for each in declaration.signature.positional[at + 1 :]:
        if any(one.name == each.name and one.kind == "bool" for one in ones[0].positional):
            plainly = f"not ({KINDS['bool'].odd.format(each.name)})"
            told = isinstance(each.default, bool)
            fit.append(plainly if told else f"({_is_default(each)} or {plainly})")
    return fit


def _with(declaration: Declaration, name: str, at: int) -> list[Signature]:
    """Return the signatures that have a parameter at a place."""
    return [
        each
        for each in declaration.signatures
        if len(each.positional) > at and each.positional[at].name == name
    ]


def _plainly(signature: Signature, name: str, value: str) -> str:
    """Return the condition that a value is plainly of the kind of a parameter."""
    (each,) = [each for each in signature.positional if each.name == name]
    kind = KINDS[each.kind]
    odd = kind.odd.format(value)
    told = [f"isinstance({value}, (tuple, list))"] if kind.plain else []
    told += [f"type({value}) is int"] * each.alone + [f"{value} is None"] * each.optional
    if not kind.plain:
        plain_not = odd.startswith("not ") and " and " not in odd
        told.append(odd.removeprefix("not ") if plain_not else f"not ({odd})")
    return told[0] if len(told) == 1 else f"({' or '.join(told)})"


def at_odds(declaration: Declaration, local: dict[str, str]) -> list[str]:
    """Return what holds of calls with arguments that no signature takes together."""

    def given_one(one: Parameter) -> str:
        return _is_default(one, local.get(one.name, ""), given=True)

    signatures = declaration.signatures
    parameters = declaration.signature.parameters
    rows: dict[str, list[dict[str, Parameter]]] = {}
    for signature in signatures:
        row = {each.name: each for each in signature.parameters}
        for name in row:
            rows.setdefault(name, []).append(row)
    found: list[str] = []
    anyway = given_at_least(declaration, local)
    for at, each in enumerate(parameters):
        if len(rows[each.name]) == len(signatures):
            continue
        for other in parameters:
            with_other = [row for row in rows[each.name] if other.name in row]
            if not with_other and other in parameters[:at]:
                found.append(f"{given_one(each)} and {given_one(other)}")
            needed = [row[other.name] for row in with_other]
            narrower = _narrower(declaration, each, other, needed)
            if narrower:
                found.append(
                    f"{given_one(each)} and {narrower.format(local.get(other.name, other.name))}"
                )
            if (
                other is not each
                and (other.default is None or other.default is ABSENT)
                and len(with_other) == len(rows[each.name])
                and all(one.default is REQUIRED for one in needed)
            ):
                left_out = (
                    f"{local.get(other.name, other.name)} is {declaration.not_given(other.name)}"
                )
                if left_out not in anyway:
                    found.append(f"{given_one(each)} and {left_out}")
    return found


def _narrower(
    declaration: Declaration, each: Parameter, other: Parameter, needed: list[Parameter]
) -> str:
    """Return what holds of a value that plainly is of a kind that `other` has without `each` only.

    Of ``where`` numbers are taken, but not together with ``out``.
    """
    kinds = dict.fromkeys([one.kind for one in needed])
    if (
        not needed
        or other is each
        or kinds.keys() >= declaration.kinds_of(other.name)
        or any(KINDS[kind].plain or not KINDS[kind].odd for kind in kinds)
    ):
        return ""
    odd = [f"({KINDS[kind].odd})" for kind in kinds]
    if other.default is None or other.default is ABSENT:
        odd.insert(0, _is_default(other, "{0}", given=True))
    return " and ".join(odd)


# --- where what a position means depends on how many there are ------------------------------------


def spread(declaration: Declaration) -> tuple[list[str], list[str], dict[str, str]]:
    """Return the lines, the conditions and the local names for arguments in ``*given``."""
    positional = declaration.signature.positional
    local = {each.name: f"of_{each.name}" for each in positional}
    if declaration.signature.variadic:
        (first,) = positional
        value = "given[0] if len(given) == 1 and type(given[0]) is not int else given"
        lines = []
        for name in declaration.alternatives or {}:
            told = _plainly(_with(declaration, name, 0)[0], name, "given[0]")
            given_one = f"len(given) == 1 and {told}"
            lines.append(f"    if {given_one} and {name} is {declaration.not_given(name)}:")
            lines.append(f"        {name}, given = given[0], ()")
        by_name, some = f"{first.name} is not REQUIRED", f"(given or {first.name} is not REQUIRED)"
        value = f"{first.name} if {by_name} else {value}"
        plain, none = f"{KINDS[first.kind].plain}({value})", f"of_{first.name} is None"
        absent = [f"{by_name} and given", none]
        if first.default is None or first.default is ABSENT:
            left_out = default_text(first.default)
            plain, absent[1] = f"{plain} if {some} else {left_out}", f"{none} and {some}"
        else:
            absent.append(f"not {some}")
        return [*lines, f"    of_{first.name} = {plain}"], absent, local
    absent = [f"{each.name} is REQUIRED" for each in positional]
    lines = [f"    count = len(given) if {' and '.join(absent)} else -1"]
    branch = "if"
    counts: dict[str, list[str]] = {each.name: [] for each in positional if each.optional}
    for count in range(len(positional) + 1):
        one = _of_count(declaration, count)
        if one is None:
            continue
        names = [each.name for each in one.positional[:count]]
        lines.append(f"    {branch} count == {count}:")
        lines.append(f"        {tuple_of([f'of_{name}' for name in names])} = given")
        lines += [
            f"        of_{each.name} = {default_text(declaration.defaults[each.name])}"
            for each in positional
            if each.name not in names
        ]
        branch = "elif"
        for name in counts.keys() & names:
            counts[name].append(f"count == {count}")
    unread = f"{' = '.join([*local.values(), 'REQUIRED'])}"
    lines += [f"    {unread}"] if branch == "if" else ["    else:", f"        {unread}"]
    # None may stand for what is not given, and be taken by one signature alone.
    odd = [f"of_{name} is None and ({' or '.join(where)})" for name, where in counts.items()]
    return lines, odd, local


def _of_count(declaration: Declaration, count: int) -> Signature | None:
    """Return the first signature that so many arguments fit, if its kinds are the usual ones."""
    usual = {each.name: each.kinds for each in declaration.signature.positional}
    for one in declaration.signatures:
        rest = [*one.positional[count:], *[each for each in one.parameters if each.keyword_only]]
        if count <= len(one.positional) and all(each.default is not REQUIRED for each in rest):
            plain = all(each.kind in usual[each.name] for each in one.positional[:count])
            return one if plain else None
    return None
