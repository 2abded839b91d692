"""Numbers of an input that say where: whatever they are, no call ends the process.

Each call runs in a process of its own, eagerly, under `jit` and by the dispatcher, with gradients
where there are any, after numbers far outside, just outside, or none at all were put into an
operand. It may raise, or return what it likes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.children import run

# Calls, and operands that are hostile in turn: f3 is a float tensor of that shape, i3 one of
# integers below 2, u3 of uint8, r3 of int32; t is the library and F its functional.
CALLS = """
F.max_unpool1d(f4[None, None], i4[None, None], 2)
F.max_unpool2d(f1x2x2, i1x2x2, 2)
F.max_unpool3d(f1x2x2x2, i1x2x2x2, 2)
F.fractional_max_pool2d(f1x2x6x6, 2, 3, _random_samples=f1x2x2)
F.fractional_max_pool3d(f1x2x6x6x6, 2, 3, _random_samples=f1x2x3)
F.grid_sample(f1x2x3x3, f1x2x2x2)
F.grid_sample(f1x2x3x3, f1x2x2x2, 'nearest', 'border')
F.grid_sample(f1x2x3x3, f1x2x2x2, 'bicubic', 'reflection', True)
F.grid_sample(f1x2x3x3x3, f1x2x2x2x3, 'bilinear', 'reflection')
F.grid_sample(f1x2x3x3x3, f1x2x2x2x3, 'nearest', 'border', True)
F.embedding(i4, f3x2)
F.embedding(i4, f3x2, scale_grad_by_freq=True)
F.embedding(i4, f3x2, padding_idx=0)
F.embedding(i4, f3x2 * 1, max_norm=1.0)
F.embedding_bag(i4, f3x2, i2)
F.embedding_bag(r4, f3x2, r2)
F.embedding_bag(i4, f3x2, i3 * 2, mode='max')
F.embedding_bag(i4, f3x2, i3, mode='sum', per_sample_weights=f4, include_last_offset=True)
F.embedding_bag(i2x2, f3x2)
F.nll_loss(f4x2, i4)
F.nll_loss(f4x2, u4)
F.nll_loss(f4x2, i4, f2, reduction='none')
F.nll_loss(f1x2x2x2, i1x2x2, f2)
F.cross_entropy(f4x2, i4, label_smoothing=0.1)
F.cross_entropy(f4x2, i4, f2, ignore_index=1)
F.multi_margin_loss(f4x2, i4)
F.multilabel_margin_loss(f4x2, i4x2)
F.ctc_loss(f6x2x3.log_softmax(2), i2x2, i2 + 4, i2 + 1)
F.ctc_loss(f6x2x3.log_softmax(2), i4, r2 + 4, r2 + 1)
F.one_hot(i4, 3)
F.one_hot(i4)
t.gather(f3x2, 0, i3x2)
t.gather(f3x2, 1, r3x2)
t.scatter(f3x2, 0, i3x2, f3x2)
t.scatter(f3x2, 1, i3x2, 1.5)
t.scatter_add(f3x2, 0, i3x2, f3x2)
t.scatter_reduce(f3x2, 0, i3x2, f3x2, 'amax')
t.scatter_reduce(f3x2, 1, i3x2, f3x2, 'prod', include_self=False)
t.scatter_reduce(f3x2, 1, i3x2, f3x2, 'mean')
t.take(f3x2, i4)
t.take_along_dim(f3x2, i3x2, 1)
t.put(f3x2, i4, f4)
t.put(f3x2, i4, f4, True)
t.index_select(f3x2, 0, i4)
t.index_select(f3x2, 1, r4)
t.index_add(f3x2, 0, i3, f3x2)
t.index_copy(f3x2, 0, i2, f2x2)
t.index_fill(f3x2, 0, i4, 1.0)
t.index_reduce(f3x2, 0, i3, f3x2, 'prod')
t.index_reduce(f3x2, 0, i3, f3x2, 'amin', include_self=False)
t.index_put(f3x2, (i4,), f4x2)
t.index_put(f3x2, (i4, i4), f4, True)
f3x2[i4]
f3x2[r4]
f3x2[:, i4]
f3x2[i4, i4]
f3x2[i4, None, i2x2[:, :1]]
t.bincount(i4, minlength=3)
t.bincount(i4, f4)
t.multinomial(f4, 2)
t.multinomial(f3x2, 4, True)
t.repeat_interleave(f4, i4)
t.repeat_interleave(f4x2, i4, 0, output_size=4)
t.repeat_interleave(i4)
t.unravel_index(i4, (3, 2))
t.segment_reduce(f4, 'sum', lengths=i2 + 1, axis=0)
t.segment_reduce(f4, 'max', lengths=i2 + 1, axis=0, unsafe=True)
t.segment_reduce(f4, 'mean', offsets=i3, axis=0)
t.segment_reduce(f4, 'prod', offsets=i3, axis=0, unsafe=True)
t.lu_unpack(f3x3, r3)
t.linalg.lu_solve(f3x3, r3, f3x2)
t.linalg.ldl_solve(f3x3, i3, f3x2)
t.linalg.ldl_solve(f3x3, r3 - 2, f3x2)
t.linalg.householder_product(f3x3, f3)
t.ormqr(f3x3, f3, f3x3)
t.searchsorted(f4, f4, sorter=i4)
t.searchsorted(f4, f4)
t.bucketize(f4, f4)
t.histc(f4, 3, 0, 1)
t.histogram(f4, 3)
t.histogram(f4, f3)
t.histogramdd(f4x2, [2, 2])[0]
t.tensor_split(f4, i2)[0]
t.masked_scatter(f4, u4.bool(), f2)
t.triu_indices(3, 3)[:, i4]
t.quantile(f4, f2)
t.kthvalue(f4, 2)
t.mode(f4)
t.bernoulli(f4)
t.poisson(f4)
t.binomial(f4, f4)
t.nonzero_static(i4, size=2)
t.polygamma(2, f4)
t.bitwise_left_shift(i4, i4)
t.isin(i4, i2)
t.unique(i4, return_inverse=True, return_counts=True)[1]
t.func.vmap(lambda x, k: x[k])(f3x2, i3x2)
t.func.vmap(lambda x, k: x.gather(0, k))(f3x2, i3x2)
t.func.vmap(lambda x, k: t.index_select(x, 0, k))(f3x2, i3x2)
t.func.vmap(lambda x, k: x.index_add(0, k, x))(f3x2, i3x2)
t.func.vmap(lambda x, k: x.scatter(0, k, x))(f3x2, i3x2)
t.func.vmap(lambda x, k: t.take(x, k))(f3x2, i3x2)
t.func.vmap(lambda k: F.embedding(k, f3x2))(i3x2)
t.func.vmap(lambda x, k: F.nll_loss(x, k))(f3x4x2, i3x4)
""".strip().splitlines()
SCRIPT = """
import re, resource, sys
from contextlib import suppress
import numpy as np
import numgrad as t
F = t.nn.functional
WHOLE = [-1, 2, 3, 4, 6, -4, -7, 255, -100, 2**31, -(2**31) - 1, 2**40]
WHOLE += [-(2**62), -(2**63), 2**63 - 1]
FLOAT = [np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -7.5, 1.0, -0.01]
KINDS = {"f": np.float64, "i": np.int64, "r": np.int32, "u": np.uint8}

def operands(line, random):
    for name in sorted(set(re.findall(r"\\b[firu]\\d+(?:x\\d+)*\\b", line))):
        shape = [int(each) for each in name[1:].split("x")]
        made = random.random(shape) if name[0] == "f" else random.integers(0, 2, shape)
        yield name, made.astype(KINDS[name[0]])

def hostile(array, number):
    whole = np.full_like(array, number)
    first, last = array.copy(), array.copy()
    first.flat[0], last.flat[-1] = whole.flat[0], whole.flat[-1]
    return first, last, whole

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # what is asked for may be vast
np.seterr(all="ignore")
t.set_num_threads(1)

def derived_from(line, names):
    code = compile(line, "<line>", "eval")

    def derived(*arrays):
        inputs = [t.as_tensor(each).detach() for each in arrays]
        for each in inputs:
            each.requires_grad_(each.is_floating_point())
        result = eval(code, {"t": t, "F": F, **dict(zip(names, inputs))})
        results = result if isinstance(result, (tuple, list)) else [result]
        moving = [each for each in results if each.requires_grad]
        if not moving:
            return result
        leaves = [each for each in inputs if each.requires_grad]
        found = t.autograd.grad([each.sum() for each in moving], leaves, allow_unused=True)
        return [each for each in found if each is not None]

    return derived

def called(line, way):
    given = dict(operands(line, np.random.default_rng(len(line))))
    function = derived_from(line, list(given))
    if way != "eager":
        function = t.jit(function)
        with suppress(t.TraceError):  # what goes by numbers can't be traced
            function(*given.values())
            if way == "dispatcher":
                function = function.lower(*given.values()).dispatcher
                function(*given.values())
    for name, array in given.items():
        for number in FLOAT if array.dtype.kind == "f" else WHOLE:
            number = np.array(number).astype(array.dtype)
            for place in hostile(array, number):
                print(line, name, number, flush=True)
                with suppress(Exception):
                    function(*(given | {name: place}).values())

for line in sys.argv[2:]:
    called(line, sys.argv[1])
print("ended")
"""


def drawn() -> Iterator[Any]:
    lines = Random(39).sample(CALLS, len(CALLS))
    for way, many in (("eager", 8), ("jit", 2), ("dispatcher", 2)):
        for first in range(0, len(lines), many):
            yield pytest.param(way, lines[first : first + many], id=f"{way}-{lines[first]}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.sampled(0.05)
@pytest.mark.parametrize(("way", "lines"), list(drawn()))
def test_no_position_ends_the_process(way: str, lines: list[str]) -> None:
    done = run(SCRIPT, way, *lines)
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr[-500:])
    assert done.stdout.endswith("ended\n"), done.stderr
