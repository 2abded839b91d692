"""Loops may use the widest vectors that the processor has."""

from __future__ import annotations

import re

import numpy as np
import pytest
from llvmlite import binding, ir
from numba import njit

import numgrad as ng
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.llvm.width import advise, use_wide_vectors


@njit
def scaled(x, out):
    use_wide_vectors()
    for i in range(x.size):
        out[i] = x[i] * 3.0 + 1.0


def test_the_function_that_asks_for_it_has_the_attribute():
    scaled(np.ones(4), np.empty(4))
    assert '"prefer-vector-width"="512"' in scaled.inspect_llvm(scaled.signatures[0])


@pytest.mark.skipif(
    not binding.get_host_cpu_features().get("avx512f"), reason="the processor has no AVX-512"
)
def test_whole_registers_are_used():
    scaled(np.ones(4), np.empty(4))
    assert "zmm" in scaled.inspect_asm(scaled.signatures[0])


@kernel
def cubed(x, out):
    use_wide_vectors()
    for i in range(x.size):
        out[i] = x[i] * x[i] * x[i] + x[i] * x[i]


@pytest.mark.skipif(
    not binding.get_host_cpu_features().get("avx2"), reason="LLVM knows no vectors here"
)
def test_rounds_of_a_loop_are_computed_in_turns(monkeypatch: pytest.MonkeyPatch):
    # What comes from the disk has no LLVM to show.
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    cubed(np.ones(4), np.empty(4))
    llvm = cubed.inspect_llvm(cubed.signatures[0])
    body = llvm[llvm.index("vector.body:") :].split("\n\n")[0]
    # LLVM may write such turns out once more.
    accesses = "".join(re.findall(r"(load|store) <\d+ x double>", body))
    stores = re.findall("(?:store)+", accesses)
    assert stores and all(len(each) % (4 * len("store")) == 0 for each in stores)


@pytest.mark.parametrize(("rows", "dtype"), [(4, np.float64), (8, np.float32)])
@pytest.mark.parametrize("columns", [3, 5, 6, 7, 12])
def test_columns_of_short_rows_are_taken_out_of_the_right_places(rows, columns, dtype):
    """LLVM's code for AVX-512 mixed up what it took out of three registers at once."""
    x = np.random.default_rng(0).integers(-9, 9, (rows, columns)).astype(dtype)
    product = ng.jit(lambda x: x @ x.T).lower(x).dispatcher
    np.testing.assert_array_equal(product(x)[0], x @ x.T)


def nested_loops(name: str, module: ir.Module) -> ir.Function:
    """Add a function of two loops, one in the other, that returns the rounds of both."""
    integer = ir.IntType(32)
    function = ir.Function(module, ir.FunctionType(integer, [integer]), name)
    blocks = [function.append_basic_block(each) for each in ("start", "outer", "inner", "end")]
    ir.IRBuilder(blocks[0]).branch(blocks[1])
    ir.IRBuilder(blocks[1]).cbranch(ir.Constant(ir.IntType(1), 0), blocks[2], blocks[3])
    latch = [function.append_basic_block(each) for each in ("inner_back", "outer_back")]
    ir.IRBuilder(blocks[2]).cbranch(ir.Constant(ir.IntType(1), 0), *latch)
    ir.IRBuilder(latch[0]).branch(blocks[2])
    ir.IRBuilder(latch[1]).branch(blocks[1])
    ir.IRBuilder(blocks[3]).ret(function.args[0])
    return function


def test_each_loop_gets_wishes_of_its_own():
    module = ir.Module()
    set.add(nested_loops("wide", module).attributes, '"prefer-vector-width"="512"')
    nested_loops("other", module)
    advise(module)
    text = str(binding.parse_assembly(str(module)))
    nodes = dict(re.findall(r"^!(\d+) = (?:distinct )?!{(.*)}$", text, re.MULTILINE))
    (turns,) = (node for node, holds in nodes.items() if '"llvm.loop.interleave.count"' in holds)
    assert nodes[turns].endswith("i32 4")
    (rest,) = (node for node, holds in nodes.items() if '"llvm.loop.vectorize.followup' in holds)
    found = []
    for name, wishes in (("wide", f"!{rest}, !{turns}"), ("other", f"!{rest}")):
        function = text[text.index(f"@{name}(") :].split("\n}")[0]
        loops = re.findall(r"!llvm.loop !(\d+)", function)
        # LLVM takes only nodes that refer to themselves.
        assert [nodes[loop] for loop in loops] == [f"!{loop}, {wishes}" for loop in loops]
        found += loops
    assert len(found) == len(set(found)) == 4


@kernel
def raised(x, out):
    for i in range(x.size):
        out[i] = x[i] + 1.0


@pytest.mark.skipif(
    not binding.get_host_cpu_features().get("avx2"), reason="LLVM knows no vectors here"
)
def test_what_a_vectorised_loop_leaves_is_not_unrolled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    raised(np.ones(4), np.empty(4))
    llvm = raised.inspect_llvm(raised.signatures[0])
    assert llvm.count("fadd double") == 1 and "fadd <" in llvm
