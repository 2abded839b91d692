"""Calls on few elements beside PyTorch's: ``python benchmarks/few_elements.py [WORD ...]``.

Of a call on a handful of numbers nearly all is what is around the kernel. Prints a Markdown table
of medians of processor time, measured in turns on one thread, the slowest beside PyTorch first.
Words choose cases that hold one of them. It needs ``torch`` beside numgrad; asv measures numgrad
alone.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

programs = importlib.import_module("benchmarks.programs")

# x is 2 x 3 and y its transpose in memory of its own, `row` and `column` broadcast to x, v has four
# elements, `mask` says of each whether it is large, and `order` are positions in `row`. What ends
# in "_g" requires grad.
CASES = """
v + v; v + 1; v * 0.5; v ** 2; v / v; -v; x + row; x + column; x * zero_d; x.t() + y; x.t().exp()
v.exp(); v.relu(); v.sigmoid(); v.clamp(0, 1); torch.where(mask, v, v); torch.maximum(v, v)
v > 0; v == v; torch.isnan(v); mask.any(); v.masked_fill(mask, 0.0); v.add_(0)
v.sum(); x.sum(0); x.sum(1); v.mean(); v.max(); x.max(1); v.argmax(); v.var(); v.std(); v.norm()
v.prod(); v.cumsum(0); x.logsumexp(1); x.softmax(1); x.log_softmax(1); v.sort()
x @ y; x @ row; v @ v; x @ y + row[:2]; torch.outer(v, v); torch.einsum('ij,j->i', x, row)
x[1]; x[:, 1]; x[0, 1]; v[1:3]; v[mask]; row[order]; torch.gather(row, 0, order)
x.reshape(3, 2); x.view(-1); x.t(); x.permute(1, 0); v.unsqueeze(0); column.expand(2, 3)
torch.cat([v, v]); torch.stack([v, v]); v.split(2); v.clone(); v.detach(); v.double()
torch.tensor([1.0, 2.0]); torch.zeros(3); torch.ones_like(v); torch.arange(5); torch.randn(3)
torch.full((3,), 2.0); torch.linspace(0, 1, 5); torch.eye(3); v.tolist(); zero_d.item()
(v_g * v_g).sum().backward(); (x_g + row_g).sum().backward(); (x_g @ w_g).sum().backward()
(x_g @ w_g + row_g[:2]).relu().sum().backward(); x_g.softmax(1)[0, 0].backward()
x_g.logsumexp(1).sum().backward(); v_g.mean().backward(); v_g.var().backward(); v_g[1].backward()
v_g[1:3].sum().backward(); torch.cat([v_g, v_g]).sum().backward(); v_g.norm().backward()
x_g.max(1)[0].sum().backward(); torch.where(mask, v_g, v_g).sum().backward()
v_g.clamp(0, 0.6).sum().backward(); v_g.cumsum(0).sum().backward()
"""
NAMES = [name.strip() for line in CASES.split("\n") for name in line.split(";") if name.strip()]


def call_of(name: str, library: Any) -> Callable[[], object]:
    """Return what runs a case."""
    tensor = library.tensor
    x = tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    v = tensor([0.5, 0.6, 0.7, 0.8])
    names = {
        "torch": library,
        "x": x,
        "y": x.t().contiguous(),
        "row": tensor([1.0, 2.0, 3.0]),
        "column": tensor([[1.0], [2.0]]),
        "zero_d": tensor(2.0),
        "v": v,
        "mask": v > 0.6,
        "order": tensor([0, 2, 1]),
        "x_g": x.clone().requires_grad_(),
        "v_g": v.clone().requires_grad_(),
        "row_g": tensor([1.0, 2.0, 3.0], requires_grad=True),
        "w_g": tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], requires_grad=True),
    }
    call: Callable[[], object] = eval(f"lambda: {name}", names)
    return call


class FewElements:
    """Every case, in numgrad."""

    params = (NAMES,)
    param_names = ("call",)

    def setup(self, name: str) -> None:
        """Compile what the case needs."""
        self.call = call_of(name, importlib.import_module("numgrad"))
        self.call()

    def time_call(self, name: str) -> None:
        """Time one call."""
        self.call()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of cases; none: all")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--seconds", type=float, default=0.002, help="of a round")
    options = parser.parse_args()
    libraries = [importlib.import_module(name) for name in ("numgrad", "torch")]
    for library in libraries:
        library.set_num_threads(1)
    rows = []
    for name in NAMES:
        if options.words and not any(word in name for word in options.words):
            continue
        calls = [call_of(name, library) for library in libraries]
        series = programs.in_turns(calls, rounds=options.rounds, seconds=options.seconds)
        ours, theirs = map(statistics.median, series)
        rows.append((ours / theirs, name, ours, theirs))
    print("| call | numgrad | PyTorch | of PyTorch |")
    print("| --- | ---: | ---: | ---: |")
    for ratio, name, ours, theirs in sorted(rows, reverse=True):
        print(f"| `{name}` | {ours * 1e6:.1f} us | {theirs * 1e6:.1f} us | {ratio:.2f} |")
    median = statistics.median(row[0] for row in rows)
    print(f"\n{sum(row[0] <= 1 for row in rows)} of {len(rows)} at most 1, median {median:.2f}")


if __name__ == "__main__":
    main()
