"""Docstrings of declared functions: what follows from the signature is added to the rule's own."""

from __future__ import annotations

import re

from numgrad.ops.signatures.kinds import KINDS
from numgrad.ops.signatures.signature import REQUIRED, Parameter, Signature

__all__ = ["complete", "of_method_in_place"]

# What parameters of these names are everywhere, unless the rule says something else.
_TEXTS = {
    "device": "There is one: the CPU.",
    "dtype": "Of the result; the default floating point dtype unless given.",
    "generator": "Where the numbers come from; the default generator unless given.",
    "layout": "There is one: strided memory.",
    "memory_format": "How the result lies in memory.",
    "out": "Where to write the result.",
    "pin_memory": "False: there is no device to pin memory for.",
    "requires_grad": "Whether gradients are to be accumulated for it.",
    "size": "The shape, as one sequence or int by int.",
    "keepdim": "Whether dims that are reduced stay, with length 1.",
    "window_length": "How many numbers there are.",
    "periodic": "Whether it goes on in the next period (the default) or ends as it began.",
}
_IN_PLACE = """In-place version of `{name}`: the result is written into this tensor.

{parameters}
    Raises
    ------
    RuntimeError
        If it is a leaf that requires grad (or a view of one) while grad mode is on, or if the
        result does not fit its shape and dtype.
    """
_SECTION = re.compile(r"^    (Returns|Raises|Examples|Notes)\n    -+$|^    >>> ", re.MULTILINE)
_ENTRY = re.compile(r"^    (\*{0,2}\w+(?:, \w+)*)( : .*)?$")


def complete(text: str | None, signature: Signature) -> str | None:
    """Return a docstring with all parameters of a signature, and with what is always raised."""
    if text is None:
        return None
    text, _, rest = _split(text)
    before, _, listed = text.partition("    Parameters\n    ----------\n")
    own = _entries(listed)
    lines = [before.rstrip()]
    if signature.parameters:
        lines += ["", "    Parameters", "    ----------"]
    said: set[str] = set()
    for each in signature.parameters:
        heading = next((names for names in own if each.name in names.split(", ")), None)
        if heading is None:
            lines.append(f"    {each.name} : {_kind(each)}")
            if each.name in _TEXTS:
                lines.append(f"        {_TEXTS[each.name]}")
        elif heading not in said:
            said.add(heading)
            kind, body = own[heading]
            lines += [f"    {heading} : {kind or _kind(each)}", *body]
    return "\n".join([*lines, "", ""]) + _with_type_errors(rest)


def of_method_in_place(text: str | None, name: str) -> str:
    """Return the docstring of a method in place, of that of what it writes, and of its name."""
    parameters = _split(text or "")[0].partition("    Parameters\n    ----------\n")
    return _IN_PLACE.format(name=name, parameters="".join(parameters[1:]))


def _split(text: str) -> tuple[str, str, str]:
    found = _SECTION.search(text)
    if found is None:
        return text, "", "    "
    return text[: found.start()], "", text[found.start() :]


def _entries(text: str) -> dict[str, tuple[str, list[str]]]:
    """Return what a section says, by the names of the parameters: their kind, and lines."""
    found: dict[str, tuple[str, list[str]]] = {}
    body: list[str] = []
    for line in text.splitlines():
        heading = _ENTRY.match(line)
        if heading is not None:
            body = []
            found[heading[1]] = ((heading[2] or "")[3:], body)
        elif line.strip():
            body.append(line)
    return found


def _kind(parameter: Parameter) -> str:
    text = " or ".join([KINDS[kind].text for kind in parameter.kinds])
    if parameter.alone:
        text = f"int or {text}"
    return text if parameter.default is REQUIRED else f"{text}, optional"


def _with_type_errors(rest: str) -> str:
    """Return the sections after the parameters, with what wrong kinds of arguments raise."""
    sentence = "    TypeError\n        If an argument is of another kind.\n"
    if "    Raises\n    ------\n" not in rest:
        head, mark, example = rest.partition("    >>> ")
        return f"{head}    Raises\n    ------\n{sentence}\n{mark}{example}" if mark else rest
    if "    TypeError\n" in rest:
        return rest
    return rest.replace("    Raises\n    ------\n", f"    Raises\n    ------\n{sentence}", 1)
