"""Methods in place, all of them: result, dtype, node, what it saves, gradient, errors."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import numgrad as ng

ROOT = Path(__file__).parents[3]
# What draws numbers, and what changes memory or flags instead of elements.
OTHERS = (
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
)
OTHERS += (
    "uniform_",
    "requires_grad_",
    "resize_",
    "resize_as_",
    "set_",
    "share_memory_",
    "detach_",
)
# Forms of functions that are here, and are not yet themselves.
MISSING = {"cumprod_", "cumsum_"}
METHODS = sorted(
    name
    for name in dir(ng.Tensor)
    if re.fullmatch(r"[a-z]\w*[a-z0-9]_", name) and name not in OTHERS
)
ARGUMENTS = ("", "o", "i", "0.5", "2", "o, 0.5", "o, o", "0.25, 0.75", "max=0.5", "o, alpha=2")
ARGUMENTS += ("i > 1, 0.5", "0", "(3,)", "(3, 1), (1, 1)")


def seen(module: Any, call: str) -> list[Any]:
    """Return what there is to be seen of a call: a computed tensor y, or an integer one, i."""
    x = module.tensor([0.25, 0.5, 0.75], requires_grad=True)
    names = {"y": x.clone(), "i": module.tensor([1, 2, 3]), "o": module.tensor([0.3, 0.6, 0.9])}
    try:
        result = eval(call, names)
    except Exception as error:
        # The parser's words are compared elsewhere.
        return [type(error).__name__, "" if isinstance(error, TypeError) else str(error)]
    found = [result is names[call[0]], str(result.dtype), plain(result), result._version]
    if not result.requires_grad:
        return found
    node = result.grad_fn
    saved = [name for name in SAVED if hasattr(node, name)]
    found += [node.name(), saved]
    try:
        result.sum().backward()
    except RuntimeError as error:
        return [*found, str(error)]
    return [*found, plain(x.grad)]


SAVED = ("_saved_self", "_saved_other", "_saved_weight", "_saved_end", "_saved_alpha")
SAVED += ("_saved_value", "_saved_exponent", "_saved_min", "_saved_max", "_saved_mask")


def plain(tensor: Any) -> list[Any]:
    """Return elements as text that nan is equal in."""
    return [f"{each:.4g}" if isinstance(each, float) else each for each in tensor.tolist()]


def differs(call: str) -> bool:
    """Whether what PyTorch does is not to be had here, for a reason."""
    name = call[2:].partition("(")[0]
    arguments = call.partition("(")[2]
    return (
        # It has no derivative of these in place, and saves the input where the result would do.
        (name in NO_DERIVATIVE and arguments == ")")
        or (call == "y.sgn_()")  # it frees what it returns
        # It takes another number for alpha, and warns.
        or (name in ("add_", "sub_", "subtract_") and arguments.startswith("0.25"))
        # It takes tensors alone.
        or (name in TENSORS_ALONE and arguments[0] in "02")
        # Of two things that are wrong, it names the other one.
        or (name.startswith(INTEGER) and call[0] == "i" and arguments[:3] in ("o)", "0.5"))
        or (name == "ldexp_" and call[0] == "i")
        or (name in ("map_", "map2_") and call[0] == "y")
        or (name in ("clamp_", "clamp_max_", "clamp_min_", "clip_") and call[0] == "i")
        or name in ("addbmm_", "addmm_", "addr_", "baddbmm_", "masked_fill_")
        # It has no derivative of the first argument, of which ours is right elsewhere.
        or name in ("igamma_", "igammac_")
        # It saves the input in place, and says so by the node's number.
        or name == "polygamma_"
        or (name == "mvlgamma_" and call[0] == "i")
    )


INTEGER = ("bitwise_", "gcd_", "lcm_")
NO_DERIVATIVE = ("acosh_", "arccosh_", "asinh_", "arcsinh_", "atanh_", "arctanh_", "erfinv_")
TENSORS_ALONE = ("arctan2_", "atan2_", "hypot_", "logical_and_", "logical_or_", "logical_xor_")


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("name", METHODS)
def test_methods_in_place_are_pytorchs(torch, name: str) -> None:
    calls = [f"{tensor}.{name}({given})" for tensor in ("y", "i") for given in ARGUMENTS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            if not differs(call):
                assert seen(ng, call) == seen(torch, call), call


def test_every_function_has_its_method_in_place() -> None:
    """PyTorch's names are listed in a page that other tests compare with it."""
    page = (ROOT / "docs" / "pytorch-names.md").read_text()
    methods = page.partition("## Methods and attributes")[2].partition("\n## ")[0]
    names = {*re.findall(r"`(\w+_)`", methods)}
    assert len(names) > 100
    here = {name for name in names if hasattr(ng.Tensor, name[:-1]) or hasattr(ng, name[:-1])}
    assert {name for name in here if not hasattr(ng.Tensor, name)} <= MISSING


def test_no_number_of_a_wider_dtype_is_written_without_a_word() -> None:
    with pytest.raises(RuntimeError, match="has dtype Float but .* requires dtype Double"):
        ng.tensor([1.0]).float_power_(2)
    assert math.isclose(ng.tensor([3.0], dtype=ng.float64).float_power_(2).item(), 9.0)
