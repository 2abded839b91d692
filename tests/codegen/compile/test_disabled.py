"""With ``NUMBA_DISABLE_JIT=1``, as people set it to look for an error in a program of theirs."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from numgrad.ops.core.primitive import CATALOGUE
from tests import children
from tests.cases import examples

# Everything that a few operations give, in every way of running them.
EVERYTHING = """
import json, sys, warnings
import numpy as np
import numgrad as ng
from numgrad.base.dtypes import float64, int64
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.sample_calls import REFUSALS, sample_calls
from numgrad.ops.later import load_all

load_all()
warnings.simplefilter("ignore")

def told(value):
    if isinstance(value, Tensor):
        array = value.detach().resolve_conj().numpy(force=True)
        return [str(array.dtype), array.shape, array.tobytes().hex()]
    if isinstance(value, (tuple, list)):
        return [told(each) for each in value]
    return repr(value)

def attempt(function):
    try:
        return told(function())
    except REFUSALS as error:
        return type(error).__name__

found = {}
for name in sys.argv[1:]:
    if name.startswith(("empty", "rand", "new_empty")):
        continue
    for dtype in (float64, int64):
        for number, call in enumerate(list(sample_calls(name, dtype))[:1]):
            def run(*tensors, call=call):
                ng.manual_seed(0)
                result = call.function(*tensors, **call.keywords)
                roots = [y for y in (result if isinstance(result, (tuple, list)) else [result])
                         if isinstance(y, Tensor) and y.requires_grad]
                leaves = [x for x in tensors if isinstance(x, Tensor) and x.requires_grad]
                if not roots or not leaves:
                    return result
                seeds = [ng.ones_like(y) for y in roots]
                return result, ng.autograd.grad(roots, leaves, seeds, allow_unused=True)
            found[f"{name} {dtype} {number}"] = attempt(lambda: run(*call.operands))
            found[f"jit {name} {dtype} {number}"] = attempt(lambda: ng.jit(run)(*call.operands))

compiled = ng.jit(lambda x, y: ((x * y).sin().cumsum(0), (x + y).sum()))
numbers = np.linspace(0.0, 1.0, 5), np.linspace(2.0, 1.0, 5)
dispatcher = compiled.lower(*map(ng.from_numpy, numbers)).dispatcher
results = dispatcher(*numbers)
found["dispatcher"] = [np.asarray(result).tolist() for result in results]
print(json.dumps(found))
"""

OWN = """
import sys
import numba
import numpy as np
import numgrad as ng

gradient = ng.jit(ng.func.grad(lambda x: (x**3).sum())).lower(ng.ones(3)).dispatcher
seen = []

@numba.njit
def descend(x):
    seen.append(sys._getframe().f_lineno)  # what no compiled function can do
    (slope,) = gradient(x)
    return x - np.float32(0.1) * slope

print(descend(np.ones(3, np.float32)).tolist(), len(seen))
"""


def run(script: str, *arguments: str, disabled: bool) -> str:
    ended = children.run(
        script, *arguments, fresh=disabled, timeout=600, NUMBA_DISABLE_JIT=str(int(disabled))
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.sampled(1.0)
def test_a_sample_of_the_catalogue_gives_the_same_bits() -> None:
    drawn = random.Random(7 if "CI" in os.environ else None)
    names = drawn.sample(sorted(CATALOGUE), examples(5, 2))
    found: dict[str, Any] = json.loads(run(EVERYTHING, *names, disabled=True))
    assert found == json.loads(run(EVERYTHING, *names, disabled=False)), names
    assert "dispatcher" in found


def test_functions_of_ones_own_are_plain_python_around_compiled_ones() -> None:
    numbers, calls = run(OWN, disabled=True).rsplit(" ", 1)
    assert json.loads(numbers) == pytest.approx([0.7] * 3)
    assert int(calls) == 1
