"""Arguments at their ends: missing sizes, numbers that just fit a dtype, tensors for out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng


@pytest.fixture(params=["numgrad", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request: pytest.FixtureRequest) -> Any:
    return ng if request.param == "numgrad" else request.getfixturevalue("torch")


# Calls that take sizes or dims one by one or as one sequence, and what the argument is called.
TAKE_SIZES = """
torch.ones() -> size
torch.zeros() -> size
torch.empty() -> size
x.reshape() -> shape
x.expand() -> size
x.repeat() -> repeats
x.permute() -> dims
x.resize_() -> size
x.tile() -> dims
x.flip() -> dims
x.new_zeros() -> size
x.new_ones() -> size
x.broadcast_to() -> size
x.sum_to_size() -> size
"""


@pytest.mark.parametrize("line", TAKE_SIZES.strip().splitlines())
def test_sizes_may_not_be_missing(lib: Any, line: str) -> None:
    call, _, argument = line.partition(" -> ")
    with pytest.raises(TypeError) as error:
        eval(call, {"torch": lib, "x": lib.ones(2, 2)})
    name = call.partition(".")[2].removesuffix("()")
    missing = f'{name}() missing 1 required positional arguments: "{argument}"'
    assert str(error.value) == missing


# Ways to put a number into a tensor.
PUT: dict[str, Any] = {
    "full": lambda lib, zeros, number: lib.full((1,), number, dtype=zeros.dtype),
    "fill_": lambda lib, zeros, number: zeros.fill_(number),
    "masked_fill_": lambda lib, zeros, number: zeros.masked_fill_(zeros == 0, number),
    "set": lambda lib, zeros, number: (zeros.__setitem__(0, number), zeros)[1],
}


@pytest.mark.parametrize("way", PUT)
@pytest.mark.parametrize("bits", ["uint8", "int8", "int16", "int32"])
def test_numbers_at_the_ends_of_an_integer_dtype(lib: Any, bits: str, way: str) -> None:
    """A float is compared with the ends before it loses its fraction; no float wraps around."""
    dtype = getattr(lib, bits)
    low, high = int(np.iinfo(bits).min), int(np.iinfo(bits).max)
    for number in (low, high, low + 0.5, high - 0.5, float(low), float(high)):
        found = PUT[way](lib, lib.zeros(1, dtype=dtype), number)
        assert found.tolist() == [int(number)] and found.dtype == dtype, number
    outside = [high + 1, high + 1.0, high + 0.5, low - 0.5, low - 1.0, float("nan"), float("inf")]
    outside += [low - 1] if low else []  # an unsigned one takes some negative integers
    for number in outside:
        with pytest.raises(RuntimeError, match="value cannot be converted to type"):
            PUT[way](lib, lib.zeros(1, dtype=dtype), number)


OUT_FUNCTIONS = ["add", "sub", "mul", "div", "atan2", "maximum", "lt", "pow"]
# Where a result may be written to, given a memory whose elements from the second on are an operand.
TARGETS: dict[str, Any] = {
    "new": lambda memory, n: ng.zeros(n, n),
    "wider": lambda memory, n: ng.zeros(n, n, dtype=ng.float64),
    "complex": lambda memory, n: ng.zeros(n, n, dtype=ng.complex64),
    "half": lambda memory, n: ng.zeros(n, n, dtype=ng.float16),
    "turned": lambda memory, n: ng.zeros(n, n).t(),
    "wider and turned": lambda memory, n: ng.zeros(n, n, dtype=ng.float64).t(),
    "with gaps": lambda memory, n: ng.zeros(n, 2 * n)[:, ::2],
    "the operand": lambda memory, n: memory[1 : 1 + n * n].view(n, n),
    "the operand turned": lambda memory, n: memory[1 : 1 + n * n].view(n, n).t(),
    "behind": lambda memory, n: memory[2 : 2 + n * n].view(n, n),
    "before": lambda memory, n: memory[: n * n].view(n, n),
}
# Those in which an element of the operand lies where another one of the result does.
OVERLAPPING = ("the operand turned", "behind", "before")


@pytest.mark.filterwarnings("ignore:unsupported operation")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [1, 3, 70])
@pytest.mark.parametrize("watched", [False, True])
def test_out_gets_what_a_copy_of_the_result_is(watched: bool, n: int, target: str) -> None:
    """Whatever its dtype and layout, and where its memory is that of an operand.

    While somebody watches, as in anomaly mode, no short ways are taken.
    """
    for function in OUT_FUNCTIONS:
        for swapped in (False, True):
            memory = ng.arange(n * n + 5, dtype=ng.float32) % 11 + 1
            operands = [memory[1 : 1 + n * n].view(n, n), ng.arange(n * n).view(n, n) % 5 + 0.5]
            if swapped:
                operands.reverse()
            call = getattr(ng, function)
            expected = call(*[each.clone() for each in operands])
            out = TARGETS[target](memory, n)
            with ng.autograd.set_detect_anomaly(watched):
                if n > 1 and target in OVERLAPPING:
                    with pytest.raises(RuntimeError, match="refer to a single memory location"):
                        call(*operands, out=out)
                    continue
                assert call(*operands, out=out) is out
            assert ng.equal(out, expected.to(out.dtype)), function


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.view(2, 2.0), r"view\(\): argument 'size' failed .* at pos 2 with .* float"),
        (lambda x: x.view(1, 2, "a"), r"view\(\): argument 'size' failed .* at pos 3 with .* str"),
        (lambda x: x.resize_(2, 1.5), r"resize_\(\): argument 'size' .* at pos 2 with .* float"),
        (lambda x: x.flip(0, 1.5), r"flip\(\): argument 'dims' failed .* at pos 2 with .* float"),
        (
            lambda x: ng.zeros(2, 3, None),
            r"zeros\(\): argument 'size' .* at pos 3 with .* NoneType",
        ),
    ],
)
def test_what_is_no_size_is_named_by_its_place_from_one_on(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call(ng.ones(4))
