"""float16 among other dtypes: results and gradients lie as PyTorch's do."""

from __future__ import annotations

from itertools import product
from typing import Any

import numgrad as ng

LYING: dict[str, Any] = {
    "rows": lambda make: make(3, 4),
    "columns": lambda make: make(4, 3).t(),
    "row expanded": lambda make: make(1, 4).expand(3, 4),
    "column expanded": lambda make: make(3, 1).expand(3, 4),
    "one expanded": lambda make: make(1, 1).expand(3, 4),
    "steps": lambda make: make(8, 6).t()[::2, ::2],
}


def test_how_results_and_gradients_lie(torch: Any) -> None:
    dtypes = [("float16", other) for other in ("float16", "int64", "bool", "float32")]
    for first, second in product(LYING, LYING):
        for pair in (*dtypes, ("int64", "float16")):
            found = []
            for lib in (ng, torch):

                def made(lying: str, dtype: str, lib: Any = lib) -> Any:
                    each = LYING[lying](lambda *size: lib.ones(*size, dtype=getattr(lib, dtype)))
                    return each.requires_grad_() if "float" in dtype else each

                x, y = made(first, pair[0]), made(second, pair[1])
                leaves = [each for each in (x, y) if each.requires_grad]
                result = x * y
                root = result.sqrt()
                ones = lib.ones((), dtype=root.dtype).expand(3, 4)
                gradients = lib.autograd.grad(root, [result, *leaves], ones)
                found.append([each.stride() for each in (result, root, *gradients)])
            assert found[0] == found[1], (first, second, pair)
