"""Rows of divisors, and of parts and neighbours of numbers, in the tables of the catalogue."""

from __future__ import annotations

from typing import Any

import numgrad as ng

NODES = {
    "torch.ldexp(m, torch.tensor(2))": ("LdexpBackward0", "other result"),
    "torch.ldexp(m, k)": ("LdexpBackward0", "other result"),
    "torch.nextafter(m, k)": ("NextafterBackward0", "other self"),
    "torch.frexp(m)[0]": ("FrexpBackward0", "exponent"),
}
# PyTorch divides the least number by -1, which ends the process.
NOT_COMPARED = {"gcd", "gcd_", "lcm", "lcm_"}
ARGUMENTS = {
    **dict.fromkeys(["gcd", "lcm"], "@(k, k) | @(k, k[:1])"),
    **dict.fromkeys(["gcd_", "lcm_"], "@(k, k)"),
    "ldexp": "k",
    "ldexp_": "k",
    **dict.fromkeys(["nextafter", "nextafter_"], "y"),
    "frexp": " | @(m)",
}


def _whole(y: Any) -> Any:
    return (y * 4).to(ng.int64)


DISPATCH = {
    "frexp": lambda x, y: ng.frexp(x)[0],
    "gcd": lambda x, y: ng.gcd(_whole(x), _whole(y)),
    "lcm": lambda x, y: ng.lcm(_whole(x), _whole(y)),
    "ldexp": lambda x, y: ng.ldexp(x, _whole(y)) + x.ldexp(y),
    "nextafter": lambda x, y: x.nextafter(y),
}
TORCH = {
    "ldexp_of_power": lambda m, a, b: m.ldexp(a, b),
    "nextafter_half": lambda m, a, b: m.nextafter(a, b),
}
DIFFERENT_GRADIENTS = {
    "torch.nextafter(x, y)": "PyTorch's zeros lie as the other operand",
}
# PyTorch rounds 2**other to float16 before it multiplies.
HALF_ROUNDED = {"ldexp", "ldexp_of_power"}
REAL_ONLY = {"frexp"}
COMPLEX: dict[str, list[str]] = {"frexp": []}
