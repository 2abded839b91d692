"""Elementwise kernels: an expression becomes one loop over flat arrays.

An `Elementwise` computes one or several expressions of the same named inputs in one pass. Its loop
is emitted and compiled for each *pattern* of operands: which are arrays, which are single numbers
that every element meets, which are complex or bool. Numba specialises it for the dtypes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from numgrad.kernels.compile import compile_source
from numgrad.kernels.expression import Symbol, emit
from numgrad.kernels.memory import empty
from numgrad.kernels.threads import parallel_for

__all__ = ["Elementwise", "loop_source"]

Array = np.ndarray[Any, Any]
Number = bool | int | float | complex
Formula = Callable[[dict[str, Symbol]], Sequence[Symbol]]

# Elements a thread takes at a time. A dispatch costs about what 2**15 elements of an arithmetic
# operation do, so fewer than this many run where they are.
GRAIN = 1 << 17
# Up to this many elements, callers that know their operands to be plain call the loop themselves,
# and an operand that is one number spread out is written out, which spares a compiled variant.
SMALL = 1 << 12

FLOATING = frozenset((np.dtype("float32"), np.dtype("float64")))

# How an operand enters the loop: real array, complex array or bool array, and single numbers.
_ARRAY_LETTER = {"f": "a", "i": "a", "u": "a", "c": "A", "b": "b"}
_NUMBER_LETTER = {"a": "s", "A": "S", "b": "p"}
_ARRAYS = "aAb"


class Elementwise:
    """Expressions over named inputs, compiled on first use to one loop that computes them all.

    Parameters
    ----------
    name : str
        What the emitted source is called after.
    inputs : sequence of str
        The names of the operands, in the order of a call.
    formula : callable
        Given a symbol for each name, returns the symbols of the outputs.
    """

    def __init__(self, name: str, inputs: Sequence[str], formula: Formula) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.formula = formula
        self.loops: dict[str, Any] = {}
        self.entries: dict[tuple[str, np.dtype[Any]], Any] = {}

    def loop(self, pattern: str) -> Any:
        """Return the compiled loop for a pattern, such as ``"as"``: an array and a number."""
        loop = self.loops.get(pattern)
        if loop is None:
            source = loop_source(self.name, self.inputs, self.formula, pattern)
            loop = self.loops[pattern] = compile_source("loop", source)
        return loop

    def entry(self, pattern: str, dtype: np.dtype[Any], count: int) -> Any:
        """Return what calls the loop for flat contiguous arrays of one floating point dtype.

        It is the loop's compiled entry point: unlike the dispatcher it does not look at the types
        of its arguments, which takes longer than the work where they have a few elements. So
        arrays in all places of `pattern` that say so, and in those of the `count` outputs, must be
        C-contiguous with exactly one dimension and that dtype; numbers must be Python floats.
        """
        found = self.entries.get((pattern, dtype))
        if found is None:
            loop = self.loop(pattern)
            found = loop
            if hasattr(loop, "compile"):  # it is the plain function under NUMBA_DISABLE_JIT
                array = types.Array(from_dtype(dtype), 1, "C")
                mask = types.Array(types.boolean, 1, "C")
                of_letter = {"a": array, "b": mask, "s": types.float64, "p": types.boolean}
                signature = (*(of_letter[letter] for letter in pattern), *(array,) * count)
                loop.compile(signature)
                found = loop.overloads[signature].entry_point
            self.entries[pattern, dtype] = found
        return found

    def __call__(
        self,
        shape: tuple[int, ...],
        operands: Sequence[Array | Number],
        dtypes: Sequence[np.dtype[Any]],
        outputs: Sequence[Array] | None = None,
    ) -> list[Array]:
        """Compute the outputs for operands that broadcast to `shape`.

        Parameters
        ----------
        shape : tuple of int
            The shape of every output.
        operands : sequence of array or number
            One for each input.
        dtypes : sequence of numpy.dtype
            The dtype of each output.
        outputs : sequence of array, optional
            C-contiguous arrays to write to, instead of new ones.
        """
        if outputs is None:
            outputs = [empty(shape, dtype) for dtype in dtypes]
        pattern = ""
        flat_operands: list[Any] = []
        for operand in operands:
            letter, value = _flatten(operand, shape)
            pattern += letter
            flat_operands.append(value)
        if not any(letter in _ARRAYS for letter in pattern):  # every operand is one number
            pattern, flat_operands = _spread(operands, shape)
        flat_outputs = [output if output.ndim == 1 else output.ravel() for output in outputs]
        loop = self.loops.get(pattern) or self.loop(pattern)
        size = flat_outputs[0].size
        if size <= GRAIN:
            loop(*flat_operands, *flat_outputs)
        else:
            arguments = [*flat_operands, *flat_outputs]
            is_array = [isinstance(argument, np.ndarray) for argument in arguments]

            def task(start: int, stop: int) -> None:
                loop(
                    *(
                        argument[start:stop] if sliced else argument
                        for argument, sliced in zip(arguments, is_array, strict=True)
                    )
                )

            parallel_for(task, size, GRAIN)
        return list(outputs)


def _flatten(operand: Array | Number, shape: tuple[int, ...]) -> tuple[str, Any]:
    """Return an operand's letter, and it as a flat array or as a number."""
    if type(operand) is not np.ndarray:
        if isinstance(operand, bool):
            return "p", operand
        return ("S", operand) if isinstance(operand, complex) else ("s", operand)
    letter = _ARRAY_LETTER[operand.dtype.kind]
    if operand.shape == shape:
        if operand.size <= SMALL or any(operand.strides):
            return letter, operand.ravel()
        return _NUMBER_LETTER[letter], operand.flat[0].item()
    if operand.size == 1:
        return _NUMBER_LETTER[letter], operand.item()
    return letter, np.broadcast_to(operand, shape).ravel()


def _spread(operands: Sequence[Array | Number], shape: tuple[int, ...]) -> tuple[str, list[Any]]:
    """Return the pattern and flat operands with the first array operand written out in full."""
    pattern, flat = "", []
    for operand in operands:
        letter, value = _flatten(operand, shape)
        if type(operand) is np.ndarray and not any(one in _ARRAYS for one in pattern):
            letter = _ARRAY_LETTER[operand.dtype.kind]
            value = np.broadcast_to(operand, shape).ravel()
        pattern += letter
        flat.append(value)
    return pattern, flat


def loop_source(name: str, inputs: Sequence[str], formula: Formula, pattern: str) -> str:
    """Return the Python source of the loop that computes `formula` for a pattern of operands."""
    symbols = {
        input_name: Symbol.input(
            f"{input_name}_i" if letter in _ARRAYS else f"{input_name}_s", letter in "AS"
        )
        for input_name, letter in zip(inputs, pattern, strict=True)
    }
    outputs = formula(symbols)
    lines, results, functions, constants = emit(outputs)
    output_names = [f"out{position}" for position in range(len(results))]
    letters = dict(zip(inputs, pattern, strict=True))
    # Constants take the dtype of the arrays they meet: numpy.float32 with a Python number would
    # silently become float64 in Numba.
    typed = [n for n in inputs if letters[n] == "a"] + [n for n in inputs if letters[n] == "A"]
    of_type = f"{typed[0] if typed else output_names[0]}.dtype.type"
    body = [f'"""{name}, for operands {pattern}."""', "", "import numpy as np", ""]
    if functions:
        body += ["from numgrad.kernels import scalar", ""]
    body += ["", f"def loop({', '.join([*inputs, *output_names])}):"]
    for constant, text in constants.items():
        body.append(
            f"    {constant} = {text if text in ('True', 'False') else f'{of_type}({text})'}"
        )
    for input_name, letter in letters.items():
        if letter == "s":
            body.append(f"    {input_name}_s = {of_type}({input_name})")
        elif letter in "pS":
            body.append(f"    {input_name}_s = {input_name}")
    steps = [f"{n}_i = {n}[i]" for n, letter in letters.items() if letter in _ARRAYS]
    steps += lines
    steps += [f"{out}[i] = {name}" for out, name in zip(output_names, results, strict=True)]
    angles = {n for n, letter in letters.items() if letter == "a"}
    body += [f"    {line}" for line in _looped(steps, f"{output_names[0]}.size", angles)]
    return "\n".join(body) + "\n"


_WAVE = re.compile(r"scalar\.(sin|cos|tan)\((\w+)_i\)")
_BLOCK = 1 << 10  # elements that one look decides about; they stay in the nearest cache


def _looped(steps: list[str], size: str, operands: set[str]) -> list[str]:
    """Write the loop that does `steps` for every element.

    If they have sin, cos or tan of an operand in them, there are two, with branches for angles that
    are far from 0, and without. Which of the two runs is decided, block by block, by one look at
    the operand's elements. An element has the same value in both.
    """
    angles = sorted({match[2] for step in steps for match in _WAVE.finditer(step)} & operands)
    if not angles:
        return [f"for i in range({size}):", *_indented(steps)]
    # Of an index that may be negative Numba makes a choice, which LLVM does not vectorise.
    head = "for i in range(np.uintp(start), np.uintp(stop)):"
    block = [f"stop = min(start + {_BLOCK}, {size})", "far = False", head]
    block += [f"    far = far | scalar.is_far({angle}[i])" for angle in angles]
    near = [_WAVE.sub(r"scalar.\1_near(\2_i)", step) for step in steps]
    block += ["if far:", *_indented([head, *_indented(steps)])]
    block += ["else:", *_indented([head, *_indented(near)])]
    return [f"for start in range(0, {size}, {_BLOCK}):", *_indented(block)]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
