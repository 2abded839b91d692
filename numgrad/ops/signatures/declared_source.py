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
what is wrong with it. Where calls are remembered (`numgrad.ops.calls.dispatch`), this comes before
the last line:

        if type(input) is Tensor and not call_interceptors:
            if input._base is not None: refresh_view(input)
            array_input = input._array
            needs_input = input._edge is not NO_EDGE
            key_ = (array_input.shape, ..., needs_input, needs_input and modes.grad, dim, length)
            program_ = find(key_)
            if program_ is None:
                return meet(key_, (input,), (dim, length), (input, dim, length))
            result_ = program_(input)
            if result_ is not None:
                return result_
"""

from __future__ import annotations

from typing import NamedTuple

from numgrad.ops.calls.keys import program_lines, tensor_lines, told_number, written_condition
from numgrad.ops.signatures.argument_parser import NUMPY_NAMES
from numgrad.ops.signatures.declaration import FINISHED, Declaration
from numgrad.ops.signatures.kinds import KINDS, Kind
from numgrad.ops.signatures.signature import REQUIRED, Parameter, Signature, is_covered

__all__ = ["WITHOUT_EFFECT", "check_remembered", "function_source"]

# There is one device, one layout and no pinned memory: these are checked, and that is all.
WITHOUT_EFFECT = ("layout", "device", "pin_memory", "non_blocking")


def function_source(declaration: Declaration) -> str:
    """Return the source of a declared function or method."""
    positional = declaration.signature.positional
    texts = {name: _text(default) for name, default in declaration.defaults.items()}
    if declaration.spread:
        texts.update({each.name: "REQUIRED" for each in positional})
        head, given = ["*given"], "given"
        lines, conditions, local = _spread(declaration)
    else:
        names = [each.name for each in positional]
        head = [*[f"{name}={texts[name]}" for name in names], "*extra"]
        given = _tuple([*names, "*extra"])
        lines, conditions, local = [], ["extra"], {}
    named = declaration.named
    head += [f"{name}={texts.get(name, 'REQUIRED')}" for name in named]
    for name in [each for each in named if each not in texts]:  # NumPy's
        conditions.append(f"{name} is not REQUIRED")
        ours = next(each for each in texts if name in NUMPY_NAMES.get(each, ()))
        (parameter,) = [each for each in declaration.signature.parameters if each.name == ours]
        takes_int = parameter.kind != "int[]" or parameter.alone  # as an `axis` may be
        if not declaration.spread and takes_int:
            same = "is" if texts[ours] in ("None", "REQUIRED") else "=="
            lines.append(f"    if {name} is not REQUIRED and {ours} {same} {texts[ours]}:")
            lines.append(f"        {ours}, {name} = {name}, REQUIRED")
    words = {each.name: each.word for each in declaration.signature.parameters}
    words = {name: word for name, word in words.items() if name != word}
    if words:  # which only ``**`` can give
        head.append("**others")
        ((name, word),) = words.items()
        values = f"{declaration.name!r}, {word!r}, {name}, {texts[name]}, others"
        lines[:0] = ["    if others:", f"        {name} = by_word({values})"]
    if not declaration.spread:
        lines += _moved(declaration)
    if not declaration.spread or declaration.signature.variadic:
        conditions += _at_odds(declaration, local)
    ways: list[list[str]] = []
    for way in declaration.ways:
        odd: list[str] = []
        for each in way.parameters:
            if way.variadic and each is positional[0]:
                continue
            if any(KINDS[kind].plain for kind in each.kinds):
                lines += _plain(declaration, each, local.get(each.name, each.name))
                local[each.name] = f"of_{each.name}"
            odd += _conditions(each, local.get(each.name, each.name), declaration.finish)
        ways.append(odd)
    conditions += ways[0] if len(ways) == 1 else [" and ".join([_either(odd) for odd in ways])]
    if declaration.alike and len(declaration.signatures) > 1:
        conditions += _given_at_least(declaration, local)
    targets = [local.get(name, name) for name in declaration.used]
    each_line = [f"({one})" if " and " in one else one for one in conditions]
    lines += [
        "    if (",
        *[f"        {'or ' * (at > 0)}{one}" for at, one in enumerate(each_line)],
        "    ):",
        *_converted(declaration),
        f"        {_tuple(targets)} = read({given}, {_tuple(named)})",
    ]
    if declaration.calls is not None:
        lines += _remembered(declaration, local)
    lines += _result(declaration, local)
    if declaration.bound:
        head.insert(0, "self")
    return "\n".join([f"def {declaration.name}({', '.join(head)}):", *lines]) + "\n"


def _tuple(names: list[str]) -> str:
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def _converted(declaration: Declaration) -> list[str]:
    """Return the lines that call the function anew with a number of Python's for one of NumPy's."""
    if declaration.spread:
        return []
    parameters = declaration.signature.parameters
    given = ["self"] * declaration.bound
    given += [f"{name}" for name in [each.name for each in declaration.signature.positional]]
    given += ["*extra", *[f"{name}={name}" for name in declaration.named]]
    lines = []
    for each in parameters:
        if "number" in each.kinds:
            named = f"{each.name}={each.name}" if each.keyword_only else each.name
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
    handed = [known.get(name, "None") for name in declaration.handed]
    if declaration.writes:
        return [f"    return perform({', '.join(['self', *handed])})"]
    call = f"rule({', '.join([*['self'] * declaration.bound, *handed])})"
    if declaration.finish is None:
        out = known.get("out")
        if out is None or "out" in declaration.handed:
            return [f"    return {call}"]
        lines = [f"    if {out} is None:", f"        return {call}"]
        if declaration.casts:
            lines += ["    if dtype is None:", f"        dtype = {out}.dtype"]
        return [*lines, f"    return write({declaration.name!r}, {call}, {out})"]
    options = [name for name in FINISHED if name in declaration.defaults]
    lines = []
    if "out" in options:  # which has the dtype unless one is asked for
        options.append("asked")
        lines = ["    asked = dtype", "    if out is not None and dtype is None:"]
        lines.append("        dtype = out.dtype")
    return [*lines, f"    return finish({declaration.name!r}, {', '.join([call, *options])})"]


def _conditions(parameter: Parameter, value: str, finish: object) -> list[str]:
    """Return what may hold of an argument that isn't plainly of its kind, so that it is read."""
    name, kinds = parameter.name, [KINDS[kind] for kind in parameter.kinds]
    if name in WITHOUT_EFFECT or (name == "out" and finish is not None):
        return [f"{name} is not {parameter.default}"]
    if any(kind.plain for kind in kinds):
        return [f"{value} is None" + f" and {name} is not None" * parameter.optional]
    odd = _odd(kinds, value)
    if not odd:
        return [f"{value} is REQUIRED"] if parameter.default is REQUIRED else []
    if parameter.default is None:
        odd = f"({odd})" if " or " in odd else odd
        return [f"{value} is not None and {odd}"]
    return [odd]


def _odd(kinds: list[Kind], value: str) -> str:
    """Return what holds of a value that is plainly of none of the kinds; "" for any value."""
    odd = [kind.odd.format(value) for kind in kinds if not kind.plain]
    return odd[0] if len(odd) == 1 else " and ".join([f"({each})" for each in odd])


def _plain(declaration: Declaration, parameter: Parameter, value: str) -> list[str]:
    """Return the lines that take a list in the plain case."""
    kinds = [KINDS[kind] for kind in parameter.kinds]
    (plain,) = {kind.plain for kind in kinds if kind.plain}
    plain = f"{plain}({value})"
    if parameter.alone:
        plain = f"({value},) if type({value}) is int else {plain}"
    elif len(kinds) > 1:
        plain = f"{plain} if {_odd(kinds, value)} else {value}"
    if parameter.optional:
        plain = f"None if {value} is None else {plain}"
    lines = []
    if declaration.calls is not None and parameter is declaration.sequence:
        lines.append(f"    facts_ = None if call_interceptors else facts_of({value})")
        plain = f"{plain} if facts_ is None else tuple({value})"
    return [*lines, f"    of_{parameter.name} = {plain}"]


# Of these kinds, values that are equal are the same.
_TELLING = {"int", "int[]", "size", "dtype", "str", "memory_format"}
_TENSORS = {"Tensor", "operand", "mask"}
_IN_KEYS = _TELLING | _TENSORS | {"bool", "float", "number"}


def check_remembered(declaration: Declaration) -> None:
    """Raise if calls can't be told apart by what the signature says of the arguments.

    Raises
    ------
    ValueError
        If the rule takes other things than tensors, numbers, strings and dtypes, or no tensor, or
        some in a sequence and others beside it.
    """
    kinds = {each: declaration.kinds_of(each) for each in declaration.handed if each != "out"}
    sequences = [each for each in kinds.values() if "Tensor[]" in each]
    tensors = [each for each in kinds.values() if each & _TENSORS]
    others = [each for each in kinds if not kinds[each] <= _IN_KEYS and kinds[each] != {"Tensor[]"}]
    if others:
        raise ValueError(f"{declaration.name}: calls can't be remembered by {', '.join(others)}")
    count = len(sequences) + bool(tensors or declaration.bound)
    if (
        count > 1
        or (count == 0 and declaration.finish is None)
        or (declaration.finish is not None and (sequences or declaration.bound))
    ):
        raise ValueError(
            f"{declaration.name}: calls are remembered of functions of tensors, of one sequence, "
            "or of functions that make tensors of none"
        )


class _Given(NamedTuple):
    """How the arguments of a call stand in its key.

    Attributes
    ----------
    arguments : list of str
        All that the rule is given.
    tensors, mixed : list of str
        Those that are tensors, and those that may be something else.
    factors : list of str
        Numbers, also among `mixed`, that are operands where they are floats of an ordinary size.
    statics, key : list of str
        The others, and what stands for them in the key.
    absent : list of str
        Conditions that hold for calls that have a key.
    """

    arguments: list[str]
    tensors: list[str]
    mixed: list[str]
    factors: list[str]
    statics: list[str]
    key: list[str]
    absent: list[str]


def _given(declaration: Declaration, local: dict[str, str]) -> _Given:
    """Return how the arguments of a function stand in the keys of its calls."""
    parameters = {each.name: each for each in declaration.signature.parameters}
    owner = ["self"] * declaration.bound
    given = _Given([*owner], [*owner], [], [], [], [], ["out is None"] * ("out" in parameters))
    # What stands for another argument is no rare thing, as what may be left out is.
    needed = {one for each in _given_at_least(declaration, local) for one in each.split(" and ")}
    for name in declaration.handed:
        value = local.get(name, name) if name in parameters else "None"
        given.arguments.append(value)
        if name not in parameters or name == "out" or parameters[name] is declaration.sequence:
            continue
        kinds = declaration.kinds_of(name)
        if name in declaration.factors:
            given.factors.append(value)
        are_tensors = kinds <= _TENSORS - {"operand"}
        if are_tensors and not parameters[name].optional:
            given.tensors.append(value)
        elif are_tensors and f"{value} is None" not in needed:
            given.absent.append(f"{value} is None")
        elif kinds & _TENSORS and declaration.finish is None:
            given.mixed.append(value)
            given.absent.append(f"(type({value}) is Tensor or not isinstance({value}, Tensor))")
        elif name not in declaration.factors:
            if kinds & _TENSORS:
                given.absent.append(f"not isinstance({value}, Tensor)")
            given.statics.append(value)
            telling = kinds <= _TELLING or kinds == {"bool"}
            given.key.extend([value] if telling else [told_number(value), f"type({value})"])
    return given


def _remembered(declaration: Declaration, local: dict[str, str]) -> list[str]:
    """Return the lines that run a call by the program of its key, if it has one."""
    given = _given(declaration, local)
    if declaration.finish is not None:
        return _made(declaration, given)
    writes = declaration.writes
    look: list[str] = []
    if declaration.sequence is not None:
        handed = [local[declaration.sequence.name]]
        tensors, facts, conditions = handed[0], ["facts_"], ["facts_ is not None"]
    else:
        handed = list(dict.fromkeys([*given.tensors, *given.mixed, *given.factors]))
        by_type = declaration.direct
        look, facts = tensor_lines(given.tensors, given.mixed, by_type, given.factors, writes)
        tensors = _tuple(handed)
        conditions = [f"type({each}) is Tensor" for each in given.tensors]
        if not conditions:  # of these one is, if they are no symbols of a formula
            conditions = [f"({' or '.join([f'type({each}) is Tensor' for each in given.mixed])})"]
        conditions.append("not interceptors" if writes else "not call_interceptors")
    missed = f"meet(key_, {tensors}, {_tuple(given.statics)}, {_tuple(given.arguments)}"
    if given.mixed or given.factors:
        constants = [_is_constant(each, given, declaration.direct) for each in handed]
        missed += f", constants={_tuple(constants)}"
    lines = [f"key_ = {_tuple([*facts, *given.key])}", "program_ = find(key_)"]
    lines += program_lines(handed, f"{missed})")
    if writes:
        lines = [f"if {written_condition('self')}:", *[f"    {one}" for one in lines]]
    conditions += given.absent
    return [f"    if {' and '.join(conditions)}:", *[f"        {one}" for one in [*look, *lines]]]


def _is_constant(name: str, given: _Given, by_type: bool) -> str:
    """Return whether what a program is given is a number that stands in its key."""
    conditions = []
    if name in given.mixed and not by_type:
        conditions.append(f"type({name}) is not Tensor")
    if name in given.factors:
        conditions.append(f"fact_{name} is not float")
    return " and ".join(conditions) or "False"


def _made(declaration: Declaration, given: _Given) -> list[str]:
    """Return the lines that copy what a function made of the same arguments before."""
    finished = f"{declaration.name!r}, array_"
    if "requires_grad" in declaration.defaults:
        finished += ", requires_grad"
    missed = f"meet(key_, (), {_tuple(given.statics)}, {_tuple(given.arguments)})"
    return [
        f"    if {' and '.join(['not call_interceptors', *given.absent])}:",
        f"        key_ = {_tuple(['defaults.floating', *given.key])}",
        "        program_ = find(key_)",
        f"        array_ = {missed} if program_ is None else program_()",
        f"        if array_ is not None: return finish({finished})",
    ]


def _given_at_least(declaration: Declaration, local: dict[str, str]) -> list[str]:
    """Return what holds of calls with too few arguments for the plain case.

    What several signatures allow together, such as the kinds of one and the default of another,
    none of them needs to allow.
    """
    whole = declaration.signature
    least = len(whole.positional)
    while least and is_covered(whole, declaration.signatures, least - 1):
        least -= 1
    absent: dict[str, list[str]] = {
        each.name: [each.name] for each in whole.positional[:least] if each.default is None
    }
    for name, usual in (declaration.alternatives or {}).items():
        if usual in absent:
            absent[usual].append(name)
    return [
        " and ".join([f"{local.get(name, name)} is None" for name in names])
        for names in absent.values()
    ]


# --- where what a position means depends on the kind of what is there -----------------------------


def _is_default(parameter: Parameter, value: str = "", *, given: bool = False) -> str:
    """Return the condition that an argument, which has some name, was not given, or was."""
    default, name = parameter.default, value or parameter.name
    if default is None or default is REQUIRED or parameter.kind == "bool":
        return f"{name} is {'not ' * given}{_text(default)}"
    return f"{name} {'!=' if given else '=='} {default!r}"


def _text(default: object) -> str:
    return "REQUIRED" if default is REQUIRED else repr(default)


def _moved(declaration: Declaration) -> list[str]:
    """Return the lines that move an argument to the parameter that its kind tells.

    For ``max(Tensor input, Tensor other)`` and ``max(Tensor input, int dim)`` that is

        if isinstance(dim, Tensor) and other is None:
            other, dim = dim, None
    """
    whole, lines = declaration.signature, []
    for name, usual in (declaration.alternatives or {}).items():
        at = [each.name for each in whole.positional].index(usual)
        one = _with(declaration, name, at)
        kept = {each.name for each in one.positional}
        rest = [each for each in whole.parameters if each.name == name]
        rest += [each for each in whole.positional[at + 1 :] if each.name not in kept]
        plain = _plainly(one, name, usual)
        lines.append(f"    if {' and '.join([plain, *[_is_default(each) for each in rest]])}:")
        lines.append(f"        {name}, {usual} = {usual}, {_text(whole.positional[at].default)}")
    return lines


def _with(declaration: Declaration, name: str, at: int) -> Signature:
    """Return the signature that has a parameter at a place."""
    return next(
        each
        for each in declaration.signatures
        if len(each.positional) > at and each.positional[at].name == name
    )


def _plainly(signature: Signature, name: str, value: str) -> str:
    """Return the condition that a value is plainly of the kind of a parameter."""
    (kind,) = {KINDS[each.kind] for each in signature.positional if each.name == name}
    if kind.plain:
        return f"isinstance({value}, (tuple, list))"
    odd = kind.odd.format(value)
    return odd.removeprefix("not ") if odd.startswith("not ") else f"not ({odd})"


def _at_odds(declaration: Declaration, local: dict[str, str]) -> list[str]:
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
    anyway = _given_at_least(declaration, local)
    for at, each in enumerate(parameters):
        if len(rows[each.name]) == len(signatures):
            continue
        for other in parameters:
            with_other = [row for row in rows[each.name] if other.name in row]
            if not with_other and other in parameters[:at]:
                found.append(f"{given_one(each)} and {given_one(other)}")
            needed = [row[other.name] for row in with_other]
            if (
                other is not each
                and other.default is None
                and len(with_other) == len(rows[each.name])
                and all(one.default is REQUIRED and not one.optional for one in needed)
                and f"{local.get(other.name, other.name)} is None" not in anyway
            ):
                found.append(f"{given_one(each)} and {local.get(other.name, other.name)} is None")
    return found


# --- where what a position means depends on how many there are ------------------------------------


def _spread(declaration: Declaration) -> tuple[list[str], list[str], dict[str, str]]:
    """Return the lines, the conditions and the local names for arguments in ``*given``."""
    positional = declaration.signature.positional
    local = {each.name: f"of_{each.name}" for each in positional}
    if declaration.signature.variadic:
        (first,) = positional
        value = "given[0] if len(given) == 1 and type(given[0]) is not int else given"
        lines = []
        for name in declaration.alternatives or {}:
            told = _plainly(_with(declaration, name, 0), name, "given[0]")
            given_one = f"len(given) == 1 and {told}"
            lines.append(f"    if {given_one} and {name} is None:")
            lines.append(f"        {name}, given = given[0], ()")
        plain, none = f"{KINDS[first.kind].plain}({value})", f"of_{first.name} is None"
        absent = [f"{first.name} is not REQUIRED", none]
        if first.default is None:
            plain, absent[1] = f"{plain} if given else None", f"{none} and given"
        else:
            absent.append("not given")
        return [*lines, f"    of_{first.name} = {plain}"], absent, local
    absent = [f"{each.name} is REQUIRED" for each in positional]
    lines = [f"    count = len(given) if {' and '.join(absent)} else -1"]
    branch = "if"
    counts: dict[str, list[str]] = {each.name: [] for each in positional if each.default is None}
    for count in range(len(positional) + 1):
        one = _of_count(declaration, count)
        if one is None:
            continue
        names = [each.name for each in one.positional[:count]]
        lines.append(f"    {branch} count == {count}:")
        lines.append(f"        {_tuple([f'of_{name}' for name in names])} = given")
        lines += [
            f"        of_{each.name} = {declaration.defaults[each.name]!r}"
            for each in positional
            if each.name not in names
        ]
        branch = "elif"
        for name in counts.keys() & names:
            counts[name].append(f"count == {count}")
    lines += ["    else:", f"        {' = '.join([*local.values(), 'REQUIRED'])}"]
    # None stands for what is not given, and is not taken where it is.
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
