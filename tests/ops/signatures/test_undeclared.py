"""Functions without a signature: those that are Python functions in PyTorch, too."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng
from numgrad.ops.core.registry import FUNCTIONS, METHODS
from numgrad.ops.signatures.declared import DECLARED

# What takes any number of tensors, or of shapes, and no signature of PyTorch's parser.
_MANY = "takes any number of tensors, and is a Python function in PyTorch; its words are those"
# What reads its arguments in Python in PyTorch, too: a signature would refuse what that takes.
_IN_PYTHON = "a Python function in PyTorch, which takes what this does and says what Python says"
_SWITCH = "a switch: a Python function in PyTorch, whose few words of its own are in it"
_GONE = "raises in any case, as in PyTorch, where it is a Python function"
UNDECLARED = {
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), _MANY),
    **dict.fromkeys(("block_diag", "broadcast_tensors", "cartesian_prod", "chain_matmul"), _MANY),
    **dict.fromkeys(("broadcast_shapes", "einsum", "meshgrid"), _MANY),
    **dict.fromkeys(("is_tensor", "tensordot", "typename", "unravel_index"), _IN_PYTHON),
    **dict.fromkeys(
        ("get_rng_state", "set_rng_state", "initial_seed", "manual_seed", "seed"), _SWITCH
    ),
    **dict.fromkeys(
        ("get_default_device", "set_default_device", "set_default_tensor_type"), _SWITCH
    ),
    **dict.fromkeys(("get_deterministic_debug_mode", "set_deterministic_debug_mode"), _SWITCH),
    **dict.fromkeys(("get_float32_matmul_precision", "set_float32_matmul_precision"), _SWITCH),
    **dict.fromkeys(("get_num_interop_threads", "set_flush_denormal"), _SWITCH),
    "are_deterministic_algorithms_enabled": _SWITCH,
    "is_deterministic_algorithms_warn_only_enabled": _SWITCH,
    "use_deterministic_algorithms": _SWITCH,
    **dict.fromkeys(("is_warn_always_enabled", "set_warn_always"), _SWITCH),
    **dict.fromkeys(("eig", "lstsq", "matrix_rank", "solve", "symeig"), _GONE),
    "from_numpy": "asks for an array in words of its own, as PyTorch's does without its parser",
}
METHODS_UNDECLARED = {
    **{name: UNDECLARED[name] for name in ("eig", "lstsq", "solve", "symeig")},
    "apply_": "takes one argument, a function, and in PyTorch no parser reads it",
    "detach": "takes nothing, and is called so often that there is to be nothing to look at",
    "dim_order": _IN_PYTHON,
    "new": "takes all that the constructor takes, and sorts that itself, as PyTorch's does",
    **dict.fromkeys(("resize", "resize_as"), _IN_PYTHON),
    "to": "its first argument's kind tells what the next ones are: with signatures for that, each "
    "call would be read the long way",
}


def test_all_others_have_a_signature() -> None:
    for table, undeclared in ((FUNCTIONS, UNDECLARED), (METHODS, METHODS_UNDECLARED)):
        found = {
            name
            for name, function in table.items()
            if function not in DECLARED and not isinstance(function, (type, property))
        }
        assert found == undeclared.keys(), "declare it by a signature, or say why it has none"


# Wrong calls of those that have words of their own.
WRONG = """
atleast_1d('a') | atleast_2d(None) | atleast_1d(x, 1) | atleast_3d([x, 1]) | atleast_2d(1)
block_diag(x, 'a') | cartesian_prod(x, 1) | broadcast_tensors(x, 1) | chain_matmul() | meshgrid()
broadcast_shapes(2.5) | broadcast_shapes((2, -1)) | broadcast_shapes((2,), (3,)) | einsum(x)
is_tensor(1, 2) | typename() | unravel_index(x, 3) | tensordot(x, x, 'a') | einsum('ij', 1)
get_rng_state(1) | set_rng_state(x) | initial_seed(1) | manual_seed('a') | manual_seed(2**70)
set_default_tensor_type(3)
set_default_tensor_type('torch.IntTensor') | set_default_tensor_type(torch.int64)
set_deterministic_debug_mode(7) | set_deterministic_debug_mode('a') | set_default_device(3)
set_deterministic_debug_mode(None) | set_float32_matmul_precision(3) | set_flush_denormal(1)
set_flush_denormal(None) | use_deterministic_algorithms(1) | get_default_device(1)
use_deterministic_algorithms(True, warn_only=1) | eig(1) | lstsq(x, x) | solve(x, x) | symeig(x)
from_numpy(1) | from_numpy([1.0]) | to_dlpack(1) | to_dlpack() | to_dlpack(x, 1) | matrix_rank(x)
x.resize(-1) | x.resize(2, 2) | x.resize_as(torch.ones(5)) | x.dim_order(ambiguity_check=3)
x.map_(1, 1) | x.map_(torch.ones(5), max) | x.map2_(1, 2, 3) | x.map2_(x, 2, 3) | x.map_(x)
x.map2_(x, torch.ones(4), sum) | x.apply_(1) | x.new('a') | x.type(3) | x.type('a')
x.type(torch.float64, 1) | x.type(torch.float64, False, 1) | x.float(1) | x.half(memory_format=3)
""".replace("\n", " | ")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [each for each in map(str.strip, WRONG.split("|")) if each])
def test_wrong_calls_are_told_what_pytorch_tells_them(torch: Any, call: str) -> None:
    words = []
    for library in (torch, ng):
        x = library.ones(2, 3)
        with pytest.raises(Exception) as error:
            eval(call if call.startswith("x.") else f"torch.{call}", {"torch": library, "x": x})
        words.append((error.type, str(error.value)))
    assert words[1] == words[0]


@pytest.mark.parametrize("arguments", [(1,), (), (None,), ("x",), ([1.0], 2)])
def test_detach_says_what_is_wrong(arguments: tuple[Any, ...], torch: Any) -> None:
    words = []
    for library in (torch, ng):
        with pytest.raises(TypeError) as error:
            library.detach(*arguments)
        words.append(str(error.value))
    assert words[0] == words[1]
