"""Kinds of tensors: what keys of calls are made of is always that of the array that there is."""

from __future__ import annotations

import gc
import itertools
import pickle
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.graph.kinds import _KINDS, kind_for
from numgrad.graph.tensor import kind_of

MEMORY = b" " * 600

# What gives a tensor of 2 x 3, or one that was made of it, another array.
CHANGES = """
x.resize_(4, 5); x.resize_(3); x.t_(); x.transpose_(0, 1); x.unsqueeze_(0); x.squeeze_()
x.as_strided_((2,), (1,)); x.set_(ng.zeros(5)); x.set_(); x.data = ng.zeros(4)
ng.add(ng.ones(7), 1, out=x.resize_(0)); x.swapaxes_(0, 1)
"""
# What makes others of it.
OTHERS = """
x.view(ng.int32); x.clone(); x.contiguous(); x.detach(); x.data; x.t(); x + 1; x * x; x[0]; x[:, 1:]
x.sum(0); x.mean(); ng.stack([x, x]); x.expand(4, 2, 3); x.to(ng.float64); x.chunk(2)[0]
ng.ones_like(x); x.flip(0); x.reshape(3, 2); x.permute(1, 0).contiguous(); x.t() + x.t()
x.t().exp(); x.unbind()[1]; x.softmax(0); ng.cat([x, x], 1); x == x; x @ x.t(); x.double()
"""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.replace("\n", ";").split(";") if line.strip()]


def test_each_change_of_an_array_changes_the_kind() -> None:
    for line in _lines(CHANGES):
        for _ in range(4):  # the last ones by programs
            x = ng.ones(2, 3) * 1.0
            y = x + x
            kind_of(y)
            exec(line, {"ng": ng, "x": y})
            assert (y._kind or kind_for(y._array)) is kind_for(y._array), line
            assert (y + 1).shape == y.shape, line


def test_what_programs_make_has_the_kind_of_its_array() -> None:
    for line in _lines(OTHERS):
        for requires_grad in (False, True):
            x = (ng.ones(2, 3) * 1.0).requires_grad_(requires_grad)
            for _ in range(4):
                made = eval(line, {"ng": ng, "x": x})
                assert made._kind is None or made._kind is kind_for(made._array), line


def test_kinds_go_with_what_has_them() -> None:
    facts = (3, 1, 4, 1, 5), (1, 1, 1, 1, 1), np.dtype(np.int8)
    kind = kind_for(np.ndarray(*facts[:1], facts[2], b" " * 60, 0, facts[1]))
    assert kind_for(np.ndarray(*facts[:1], facts[2], b" " * 60, 0, facts[1])) is kind
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert facts in _KINDS
    del kind
    gc.collect()
    assert facts not in _KINDS


def test_an_array_of_the_users_can_take_another_shape() -> None:
    given = np.arange(4.0)
    x = ng.from_numpy(given)
    y = x * 2
    shown = y.numpy()
    given.resize(2, 2, refcheck=False)
    shown.resize(2, 2, refcheck=False)
    assert x.shape == y.shape == (4,)
    assert (x + y).tolist() == [0.0, 3.0, 6.0, 9.0]


def test_a_kind_lies_in_rows_where_numpy_says_so() -> None:
    lengths, steps = (0, 1, 2, 3), (0, 4, 8, 12, 24, -8)
    met = set()
    for rank in (0, 1, 2):
        for shape in itertools.product(lengths, repeat=rank):
            for strides in itertools.product(steps, repeat=rank):
                array: np.ndarray[Any, Any] = np.ndarray(shape, np.float64, MEMORY, 64, strides)
                kind = kind_for(array)
                assert (kind.shape, kind.strides, kind.dtype) == (shape, strides, np.float64)
                assert kind.lies_in_rows == array.flags.c_contiguous, (shape, strides)
                met.add((kind.lies_in_rows, 1 in shape, 0 in shape))
    assert len(met) == 6
    for shape in ((2, 1, 3), (1, 2, 3), (2, 3, 1)):
        for strides in itertools.product((8, 16, 24, 48), repeat=3):
            array = np.ndarray(shape, np.float64, MEMORY, 64, strides)
            assert kind_for(array).lies_in_rows == array.flags.c_contiguous, (shape, strides)
