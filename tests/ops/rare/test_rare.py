"""What programs seldom use beside PyTorch's: results, memory, warnings, refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng

LINES = """
torch.range(0, 4)
torch.range(1, 4, 0.5)
torch.range(1, 4, 2, dtype=torch.int64)
torch.range(4)
torch.range(3, 0)
torch.range(3, 0, -1)
torch.range(0, 3, 0)
torch.range(0, float('inf'))
y.unsafe_chunk(2, 1)[0].contiguous()
torch.unsafe_split(y, 2, 1)[1].contiguous()
torch.unsafe_split_with_sizes(y, (1, 2), 1)[1].contiguous()
torch.unsafe_split_with_sizes(y, (1, 1), 1)
torch.unsafe_split(y, (1, 2), 1)
torch.empty_permuted((2, 3, 4), (1, 2, 0)).zero_()
torch.empty_permuted((2, 3, 4), (1, 2))
torch.empty_permuted((2, 3, 4), (1, 1, 0))
torch.empty_permuted((2, 3, 4), (1, -1, 0))
torch.empty_permuted((), (), dtype=torch.int32).zero_()
torch.frombuffer(memory, dtype=torch.int16)
torch.frombuffer(memory, dtype=torch.int16, count=2, offset=3)
torch.frombuffer(memory, dtype=torch.int16, count=20)
torch.frombuffer(memory, dtype=torch.int16, count=0)
torch.frombuffer(memory, dtype=torch.int16, offset=16)
torch.frombuffer(memory, dtype=torch.int64, offset=3)
torch.frombuffer(memory)
torch.frombuffer(3, dtype=torch.int8)
torch.typename(y)
torch.typename(3)
torch.typename(torch.float32)
torch.nonzero_static(y, size=3)
torch.nonzero_static(y, size=8, fill_value=7)
torch.nonzero_static(y, size=-1)
torch.nonzero_static(y[0, 1], size=2).shape
y.clone().fill_diagonal_(7)
torch.zeros(7, 3).fill_diagonal_(1, True)
torch.zeros(4, 3).fill_diagonal_(1, True)
torch.zeros(3, 7).fill_diagonal_(1, True)
torch.zeros(3, 3, 3, dtype=torch.int32).fill_diagonal_(1.5)
torch.zeros(3, 2, 3).fill_diagonal_(1)
torch.zeros(3).fill_diagonal_(1)
y.clone().apply_(lambda v: v * 2)
x.apply_(lambda v: v * 2)
y.clone().map_(y[0], lambda a, b: a + b)
y.clone().map_(y.int(), lambda a, b: a + b)
x.map_(y, lambda a, b: a + b)
y.clone().map2_(y, y, lambda a, b, c: a + b + c)
y.__reversed__()
y[0, 0].__reversed__()
y.__rmatmul__(y.T)
y.__div__(2)
(y + 1).__rdiv__(2)
y.clone().__idiv__(2)
y[0, 1].__long__()
y[0, 1].__nonzero__()
y.__nonzero__()
y.get_device()
torch.get_device(y)
torch.is_distributed(y)
y.is_pinned()
[y.is_nested, y.is_mkldnn, y.is_xla, y.name]
y.dense_dim()
y.sparse_dim()
y.to_dense() is y
y.resize(3, 2)
y.resize_as(y.T)
y[None, torch.newaxis].shape
torch.hash_tensor(y)
torch.hash_tensor(y, 1, keepdim=True)
torch.hash_tensor(y.int(), 0)
torch.hash_tensor(y, mode=1)
torch.hash_tensor(y + 1j)
torch.are_deterministic_algorithms_enabled()
torch.use_deterministic_algorithms(3)
torch.set_deterministic_debug_mode('abc')
torch.set_deterministic_debug_mode(5)
torch.get_deterministic_debug_mode()
torch.set_default_device('abc')
torch.get_default_device()
torch.set_float32_matmul_precision('abc')
torch.get_float32_matmul_precision()
torch.set_flush_denormal(False)
torch.set_warn_always('abc')
torch.set_warn_always(1)
torch.set_warn_always()
torch.is_warn_always_enabled()
""".strip().splitlines()


def outcome(module: Any, line: str) -> Any:
    """Return what a line gives in one library, or its refusal, and whether it warns."""
    y = module.arange(6.0).reshape(2, 3)
    names = {"y": y, "x": y.clone().requires_grad_(), "memory": bytearray(range(16))}
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            found = eval(line, {"torch": module, **names})
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            return type(error).__name__, str(error).splitlines()[0]
    if isinstance(found, module.Tensor):
        found = found.tolist(), str(found.dtype), tuple(found.stride())
    return str(found), len(given) > 0


def test_results_and_refusals_are_pytorchs(torch):
    for line in LINES:
        assert outcome(ng, line) == outcome(torch, line), line


def test_a_buffer_and_a_file_share_their_memory(tmp_path):
    memory = bytearray(8)
    x = ng.frombuffer(memory, dtype=ng.float32, requires_grad=True)
    x.detach().fill_(1.0)
    assert np.frombuffer(memory, np.float32).tolist() == [1.0, 1.0] and x.requires_grad
    with pytest.warns(UserWarning, match="not writable"):
        ng.frombuffer(b"abcd", dtype=ng.uint8)
    name = str(tmp_path / "numbers")
    with pytest.raises(RuntimeError, match="unable to open file <.*> in read-only mode"):
        ng.from_file(name, size=3)
    assert ng.from_file(name, True).shape == (0,) and not (tmp_path / "numbers").exists()
    ng.from_file(name, True, 3).fill_(2.0)
    again = ng.from_file(name, size=3)
    assert again.tolist() == [2.0] * 3
    again.zero_()  # of this one alone
    assert ng.from_file(name, size=3).tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="smaller than the required"):
        ng.from_file(name, size=9)


def test_gradients_flow_past_a_filled_diagonal_and_through_parts():
    x = ng.arange(6.0).reshape(2, 3).requires_grad_()
    filled = (x * 2).fill_diagonal_(7.0)
    (filled * x.detach()).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 4.0], [6.0, 0.0, 10.0]]
    x.grad = None
    one, two = x.unsafe_split(2, 1)
    one.mul_(3.0)
    (one.sum() + two.sum()).backward()
    assert x.grad.tolist() == [[3.0, 3.0, 1.0]] * 2
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.fill_diagonal_(1.0)


def test_positions_of_a_size_can_be_traced():
    found = ng.jit(lambda x: ng.nonzero_static(x, size=2) * 2)(ng.tensor([0.0, 1.0, 1.0, 1.0]))
    assert found.tolist() == [[2], [4]]


def test_random_numbers_are_as_if_a_block_had_not_been_there():
    ng.manual_seed(3)
    expected = ng.rand(2)
    ng.manual_seed(3)
    with ng.random.fork_rng():
        ng.rand(5)
    assert (ng.rand(2) == expected).all()
    with ng.random.fork_rng(enabled=False):
        ng.random.manual_seed(3)
    assert (ng.rand(2) == expected).all() and ng.random.initial_seed() == 3
    assert ng.default_generator.initial_seed() == 3


def test_switches_say_what_they_were_told():
    ng.set_deterministic_debug_mode("warn")
    assert ng.get_deterministic_debug_mode() == 1
    assert ng.is_deterministic_algorithms_warn_only_enabled()
    ng.use_deterministic_algorithms(False)
    ng.set_default_device("cpu")
    with pytest.raises(AssertionError, match="CUDA"):
        ng.set_default_device("cuda")
    assert ng.get_default_device() == ng.device("cpu")
