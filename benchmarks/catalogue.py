"""Every operation of the catalogue, at three sizes, in float32 where it takes that.

Nothing here names an operation: whatever enters the catalogue is measured, but for `calls.PARTS`.
"""

from __future__ import annotations

from .calls import make_call, names

# What one measurement is: asv prepares the operands anew for each, so where a call takes
# microseconds a measurement has to be many calls.
SIZES = {
    "200 calls at 4 elements": (4, 200),
    "10 calls at 10^4 elements": (10_000, 10),
    "1 call at 10^7 elements": (10_000_000, 1),
}


class _Sizes:
    """What the classes below have in common."""

    param_names = ("operation", "size")
    number = 1
    rounds = 1
    repeat = (1, 5, 1.0)
    warmup_time = 0.01  # that is one call, which compiles
    timeout = 300


class _Forward(_Sizes):
    def setup(self, operation: str, size: str) -> None:
        elements, self.calls = SIZES[size]
        self.run = make_call(operation, elements, requires_grad=False).forward

    def time_forward(self, operation: str, size: str) -> None:
        run = self.run
        for _ in range(self.calls):
            run()


class _Backward(_Sizes):
    def setup(self, operation: str, size: str) -> None:
        elements, self.calls = SIZES[size]
        self.run = make_call(operation, elements, requires_grad=True).with_cotangents()

    def time_forward_and_backward(self, operation: str, size: str) -> None:
        run = self.run
        for _ in range(self.calls):
            run()


class Elementwise(_Forward):
    """Elementwise operations, without gradients."""

    params = (list(names(elementwise=True)), list(SIZES))


class ElementwiseGradient(_Backward):
    """Elementwise operations that have a derivative: the call, and the way back."""

    params = (list(names(elementwise=True, with_rule=True)), list(SIZES))


class Array(_Forward):
    """Other operations, without gradients; at 4 elements stands the smallest sample of each."""

    params = (list(names(elementwise=False)), list(SIZES))


class ArrayGradient(_Backward):
    """Other operations that have a derivative: the call, and the way back."""

    params = (list(names(elementwise=False, with_rule=True)), list(SIZES))
