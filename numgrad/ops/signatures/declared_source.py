"""The source of a declared function: straight Python, with a condition for what isn't plain.

For ``narrow(Tensor input, int dim, int length=1)`` that is

    def narrow(input=REQUIRED, dim=REQUIRED, length=1, *extra):
        if (
            extra
            or not isinstance(input, Tensor)
            or type(dim) is not int
            or type(length) is not int
        ):
            (input, dim, length) = read((input, dim, length, *extra), ())
        return rule(input, dim, length)

What is missing has a default of its own, and what is too much is taken, so that `read` can say
what is wrong with it. What stands before the last line where calls are remembered is in
`numgrad.ops.signatures.remembered_source`, and what several signatures of one name ask for in
`numgrad.ops.signatures.overload_source`.
"""

from __future__ import annotations

from numgrad.ops.calls.keys import in_int64
from numgrad.ops.signatures.argument_parser import NUMPY_NAMES
from numgrad.ops.signatures.declaration import FINISHED, Declaration
from numgrad.ops.signatures.kinds import KINDS, Kind
from numgrad.ops.signatures.overload_source import at_odds, given_at_least, moved, spread
from numgrad.ops.signatures.remembered_source import remembered_lines
from numgrad.ops.signatures.signature import ABSENT, REQUIRED, Parameter
from numgrad.ops.signatures.source_text import (
    default_text,
    handed_on,
    is_default,
    is_none,
    tuple_of,
)

__all__ = ["function_source"]


def function_source(declaration: Declaration) -> str:
    """Return the source of a declared function or method."""
    positional = declaration.signature.positional
    texts = {name: default_text(default) for name, default in declaration.defaults.items()}
    if declaration.spread:
        texts.update({each.name: "REQUIRED" for each in positional})
        head, given = ["*given"], "given"
        lines, conditions, local = spread(declaration)
    else:
        places = declaration.places
        names = [declaration.placed(at) for at in range(len(positional))]
        left_out = ["ABSENT" if at in places else texts[p.name] for at, p in enumerate(positional)]
        head = [f"{name}={text}" for name, text in zip(names, left_out, strict=True)]
        head.append("*extra")
        given = tuple_of([*names, "*extra"])
        lines, local = [], {}
        conditions = ["extra", *[f"{names[at]} is not ABSENT" for at in places]]
    named = declaration.named
    head += [f"{name}={texts.get(name, 'REQUIRED')}" for name in named]
    for name in [each for each in named if each not in texts]:  # NumPy's
        conditions.append(f"{name} is not REQUIRED")
        ours = next(each for each in texts if name in NUMPY_NAMES.get(each, ()))
        (parameter,) = [each for each in declaration.signature.parameters if each.name == ours]
        takes_int = parameter.kind != "int[]" or parameter.alone  # as an `axis` may be
        if not declaration.spread and takes_int:
            default = REQUIRED if texts[ours] == "REQUIRED" else declaration.defaults[ours]
            lines.append(f"    if {name} is not REQUIRED and {is_default(default, ours)}:")
            lines.append(f"        {ours}, {name} = {name}, REQUIRED")
    words = {each.name: each.word for each in declaration.signature.parameters}
    words = {name: word for name, word in words.items() if name != word}
    if words:  # which only ``**`` can give
        head.append("**others")
        ((name, word),) = words.items()
        values = f"{declaration.name!r}, {word!r}, {name}, {texts[name]}, others"
        lines[:0] = ["    if others:", f"        {name} = by_word({values})"]
    if not declaration.spread:
        lines += moved(declaration)
    if not declaration.spread or declaration.signature.variadic:
        conditions += at_odds(declaration, local)
    ways: list[list[str]] = []
    for way in declaration.ways:
        odd: list[str] = []
        for each in way.parameters:
            if way.variadic and each is positional[0]:
                continue
            if any(KINDS[kind].plain for kind in each.kinds):
                lines += _plain(declaration, each, local.get(each.name, each.name))
                local[each.name] = f"of_{each.name}"
            odd += _conditions(each, local.get(each.name, each.name))
        own = {each.name for each in way.parameters}
        for each in declaration.signature.parameters:
            if each.name not in own:
                odd.append(is_default(each.default, local.get(each.name, each.name), given=True))
        ways.append(odd)
    conditions += ways[0] if len(ways) == 1 else [" and ".join([_either(odd) for odd in ways])]
    if declaration.alike and len(declaration.signatures) > 1:
        conditions += given_at_least(declaration, local)
    targets = [local.get(name, name) for name in declaration.used]
    each_line = [f"({one})" if " and " in one else one for one in conditions]
    lines += [
        "    if (",
        *[f"        {'or ' * (at > 0)}{one}" for at, one in enumerate(each_line)],
        "    ):",
        *_converted(declaration),
        f"        {tuple_of(targets)} = read({given}, {tuple_of(named)})",
    ]
    if declaration.calls is not None:
        lines += remembered_lines(declaration, local)
    lines += _result(declaration, local)
    if declaration.bound:
        head.insert(0, "self")
    return "\n".join([f"def {declaration.name}({', '.join(head)}):", *lines]) + "\n"


def _converted(declaration: Declaration) -> list[str]:
    """Return the lines that call the function anew with a number of Python's for one of NumPy's."""
    if declaration.spread:
        return []
    parameters = declaration.signature.parameters
    given = ["self"] * declaration.bound
    positional = [declaration.placed(at) for at in range(len(declaration.signature.positional))]
    given += [*positional, "*extra", *[f"{name}={name}" for name in declaration.named]]
    lines = []
    for each in parameters:
        if "number" in each.kinds:
            named = each.name if each.name in positional else f"{each.name}={each.name}"
            anew = named.removesuffix(each.name) + f"as_number({each.name})"
            again = ", ".join([anew if one == named else one for one in given])
            lines.append(f"        if type({each.name}) in NUMPY_NUMBERS:")
            lines.append(f"            return again({again})")
    return lines


def _either(conditions: list[str]) -> str:
    return f"({' or '.join([f'({one})' if ' and ' in one else one for one in conditions])})"


def _result(declaration: Declaration, local: dict[str, str]) -> list[str]:
    """Return the lines that call the rule, and make of its result what the function returns."""
    # A method's rule may name what only the function takes, `out` for one.
    known = {name: local.get(name, name) for name in declaration.defaults}
    handed = [
        handed_on(declaration.parameters.get(name), known.get(name, "None"))
        for name in declaration.handed
    ]
    arguments = ", ".join([*["self"] * declaration.bound, *handed])
    if declaration.writes:
        return [f"    return perform({arguments})"]
    call, out = f"rule({arguments})", known.get("out")
    checks = []
    if out is not None and (declaration.apart or declaration.in_step):
        read = [
            tuple_of([_tensor_read(declaration, known, n) for n in each])
            for each in (declaration.apart, declaration.in_step)
        ]
        checks = [f"check_out_overlap({', '.join([out, *read])})"]
    if declaration.finish is None:
        if out is None or "out" in declaration.handed:
            left_out = checks and is_none(declaration.parameters["out"], str(out))
            checked = [f"    if not ({left_out}):", f"        {checks[0]}"] if checks else []
            return [*checked, f"    return {call}"]
        lines = [f"    if {is_none(declaration.parameters['out'], out)}:", f"        return {call}"]
        lines += [f"    {each}" for each in checks]
        if declaration.casts:
            lines += ["    if dtype is None:", f"        dtype = {out}.dtype"]
        return [*lines, f"    return write({declaration.name!r}, {call}, {out})"]
    options = [name for name in FINISHED if name in declaration.defaults]
    lines = []
    if "out" in options:  # which has the dtype unless one is asked for
        options.append("asked")
        lines = ["    asked = dtype", "    if out is not None and dtype is None:"]
        lines.append("        dtype = out.dtype")
    known = {name: handed_on(each, name) for name, each in declaration.parameters.items()}
    handed_to = ", ".join([call, *[known.get(name, name) for name in options]])
    return [*lines, f"    return finish({declaration.name!r}, {handed_to})"]


def _tensor_read(
    declaration: Declaration, known: dict[str, str], which: str | tuple[str, str]
) -> str:
    """Return a tensor that is read; None where the parameter is left out that goes with it."""
    if isinstance(which, str):
        return known[which]
    name, other = which
    return f"({known[name]} if {known[other]} is not {declaration.not_given(other)} else None)"


def _conditions(parameter: Parameter, value: str) -> list[str]:
    """Return what may hold of an argument that isn't plainly of its kind, so that it is read."""
    name, kinds = parameter.name, [KINDS[kind] for kind in parameter.kinds]
    if any(kind.plain for kind in kinds):
        return [f"{value} is None" + f" and {name} is not None" * parameter.optional]
    odd = _odd(kinds, value)
    if not odd:
        return [f"{value} is REQUIRED"] if parameter.default is REQUIRED else []
    if parameter.default is None or parameter.default is ABSENT:
        odd = f"({odd})" if " or " in odd else odd
        others = [None, parameter.default] if parameter.optional else [parameter.default]
        left_out = [f"{value} is not {default_text(each)}" for each in dict.fromkeys(others)]
        return [" and ".join([*left_out, odd])]
    return [odd]


def _odd(kinds: list[Kind], value: str) -> str:
    """Return what holds of a value that is plainly of none of the kinds; "" for any value."""
    odd = [kind.odd.format(value) for kind in kinds if not kind.plain]
    return odd[0] if len(odd) == 1 else " and ".join([f"({each})" for each in odd])


def _plain(declaration: Declaration, parameter: Parameter, value: str) -> list[str]:
    """Return the lines that take a list in the plain case."""
    kinds = [KINDS[kind] for kind in parameter.kinds]
    plain = " or ".join(sorted({f"{kind.plain}({value})" for kind in kinds if kind.plain}))
    if parameter.alone:
        fits = f"type({value}) is int and {in_int64(value)}"
        plain = f"({value},) if {fits} else {plain}"
    elif len(kinds) > 1:
        plain = f"{plain} if {_odd(kinds, value)} else {value}"
    others = [None] * parameter.optional + [ABSENT] * (parameter.default is ABSENT)
    if others:
        left_out = " or ".join([f"{value} is {default_text(each)}" for each in others])
        plain = f"{value} if {left_out} else {plain}"
    lines = []
    if declaration.calls is not None and parameter is declaration.sequence:
        lines.append(f"    facts_ = None if call_interceptors else facts_of({value})")
        plain = f"{plain} if facts_ is None else tuple({value})"
    return [*lines, f"    of_{parameter.name} = {plain}"]
