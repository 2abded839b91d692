"""Which arguments of a call were given by name, read from the bytecode of who called.

A Python function can't tell ``f(x, dim=0)`` from ``f(x, 0)``, and PyTorch's words about a wrong
argument do. So where something is wrong, and only there, the caller's instruction is looked at.
"""

from __future__ import annotations

import dis
import sys
from collections import deque
from types import FrameType

__all__ = ["names_given"]


def names_given(file: str) -> tuple[str, ...]:
    """Return the names that stand in the call of the innermost function that is not of a file.

    Parameters
    ----------
    file : str
        What the names of files begin with (or the names of generated code) that hand calls on.

    Returns
    -------
    tuple of str
        In the order of the call; none where that can't be told, as in ``f(*args, **keywords)``, or
        where C code called.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((file, "<numgrad ")):
        frame = frame.f_back
    return () if frame is None else _names_at(frame)


def _names_at(frame: FrameType) -> tuple[str, ...]:
    """Return the names in the call instruction at which a frame is."""
    before: deque[dis.Instruction] = deque(maxlen=3)
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset > frame.f_lasti:
            break
        before.append(instruction)
    if not before or not before[-1].opname.startswith("CALL"):
        return ()
    # KW_NAMES, (PRECALL,) CALL up to Python 3.12; LOAD_CONST, CALL_KW from 3.13 on.
    wanted = "LOAD_CONST" if before[-1].opname == "CALL_KW" else "KW_NAMES"
    for instruction in list(before)[-2::-1]:
        if instruction.opname == wanted and instruction.arg is not None:
            found: tuple[str, ...] = frame.f_code.co_consts[instruction.arg]
            return found
        if instruction.opname != "PRECALL":
            break
    return ()
