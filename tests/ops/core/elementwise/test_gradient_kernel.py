"""Gradient kernels of few elements: what is made once gives what is looked for in each call."""

from __future__ import annotations

import numpy as np

from numgrad.codegen.expression import Symbol
from numgrad.ops.core.primitive import CATALOGUE

_RANDOM = np.random.default_rng(3)


def test_what_is_found_out_once_gives_the_same() -> None:
    float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
    lying = {
        "rows": lambda a: a,
        "columns": lambda a: np.asfortranarray(a),
        "one": lambda a: np.broadcast_to(a[0, 0], a.shape),
        "gaps": lambda a: np.repeat(a, 2, 1)[:, ::2],
    }
    met = 0
    for name in ("mul", "true_divide", "atan2", "maximum"):
        kernel = CATALOGUE[name].plan(3, "tt").kernel
        count = len(kernel.inputs) - 1
        outputs = [float32] * len(
            kernel.formula({n: Symbol.input(n, False) for n in kernel.inputs})
        )
        for first, lie_first in lying.items():
            for second, lie_second in lying.items():
                g = lie_first(_RANDOM.normal(size=(3, 4)).astype(float32))
                rest = [_RANDOM.normal(size=(3, 4)).astype(float32) + 3 for _ in range(count)]
                rest[0] = lie_second(rest[0])
                if name == "mul" and first != "one":
                    rest[-1] = rest[-1][:1]  # a row that is broadcast
                if name == "true_divide" and second == "rows":
                    rest[0] = rest[0].astype(float64)  # to be cast
                casts = [float32] * (count + 1)
                run = kernel.function_for(g.shape, [g, *rest], casts, outputs)
                met += 1
                wanted = kernel(g.shape, [g, *[e.astype(float32) for e in rest]], outputs)
                for one, other in zip(run(g, *rest), wanted, strict=True):
                    assert one.tobytes() == other.tobytes(), (name, first, second)
                    assert one.strides == other.strides, (name, first, second)
    assert met == 64
