"""Checkpointing: keep less for the backward pass, and compute it again there."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from numgrad.autograd.function.function import Function
from numgrad.graph.backward.backward import backward
from numgrad.graph.modes.grad_modes import enable_grad, no_grad
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.generator import default_generator
from numgrad.runtime.frames import where_user_is
from numgrad.utils.recomputation import CheckpointError, Frame, GraphExecGroup, metadata_of

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "GraphExecGroup",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]

_DETERMINISM_CHECKS: dict[str, Callable[[Tensor], Any] | None] = {
    "default": metadata_of,
    "none": None,
}


class _Settings:
    """What the two contexts below set for everybody; None leaves it to each call."""

    debug: bool | None = None
    early_stop: bool | None = None


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Set whether errors of checkpoints say where tensors were saved, in place of ``debug``.

    >>> import numgrad as ng
    >>> with ng.utils.checkpoint.set_checkpoint_debug_enabled(True):
    ...     pass
    """
    previous = _Settings.debug
    _Settings.debug = enabled
    try:
        yield
    finally:
        _Settings.debug = previous


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Set whether the second run of a function ends early, in place of ``early_stop``.

    It has to be active while the forward pass runs.

    >>> import numgrad as ng
    >>> with ng.utils.checkpoint.set_checkpoint_early_stop(False):
    ...     pass
    """
    previous = _Settings.early_stop
    _Settings.early_stop = enable
    try:
        yield
    finally:
        _Settings.early_stop = previous


def noop_context_fn() -> Contexts:
    """Return two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what was given with tensors detached, as leaves that require grad as they did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    found: list[Any] = []
    for value in inputs:
        if isinstance(value, Tensor):
            detached = value.detach()
            detached.requires_grad = value.requires_grad
            found.append(detached)
        else:
            found.append(value)
    return tuple(found)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor requires grad."""
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


class CheckpointFunction(Function):
    """Runs a function without recording, and again, with recording, in the backward pass."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random = default_generator.snapshot() if preserve_rng_state else None
        ctx.inputs = [None if isinstance(value, Tensor) else value for value in args]
        ctx.positions = [k for k, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.save_for_backward(*[args[k] for k in ctx.positions])
        with no_grad():
            return run_function(*args)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the forward pass."""
        outputs = super().apply(*args, **kwargs)
        for output in outputs if isinstance(outputs, tuple) else (outputs,):
            node = output.grad_fn if isinstance(output, Tensor) else None
            if node is not None:
                node.attach()  # so that the backward pass knows what it is part of
                break
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the function again and go back through it."""
        if modes.task is not None and modes.task.request.needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for position, tensor in zip(ctx.positions, ctx.saved_tensors, strict=True):
            inputs[position] = tensor
        detached = detach_variable(tuple(inputs))
        with _random_numbers_of(ctx.random), enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [
            (output, grads[k])
            for k, output in enumerate(outputs)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([output for output, _ in pairs], [gradient for _, gradient in pairs])
        return (None, None, *(v.grad if isinstance(v, Tensor) else None for v in detached))


@contextlib.contextmanager
def _random_numbers_of(snapshot: Any) -> Iterator[None]:
    """Have the random numbers that followed a snapshot come again, and then go on as before."""
    if snapshot is None:
        yield
        return
    now = default_generator.snapshot()
    default_generator.restore(snapshot)
    try:
        yield
    finally:
        default_generator.restore(now)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function whose intermediate results are not kept, but computed again when needed.

    Mirrors ``torch.utils.checkpoint.checkpoint``.

    Parameters
    ----------
    function : callable
        Has to compute the same when it is called again.
    *args, **kwargs
        What to call it with; keyword arguments only without `use_reentrant`.
    use_reentrant : bool
        False, which is advised, records the graph and computes again what its nodes had saved.
        True calls the function without recording, and starts another backward pass within the
        backward pass; then only `backward` without ``inputs`` works. Leaving it out warns.
    context_fn : callable, optional
        Returns two contexts, for the first and for the second run of the function.
    determinism_check : {"default", "none"}
        Whether shapes and dtypes of what both runs save are compared.
    debug : bool
        Whether errors say where both runs save tensors.
    early_stop : bool
        Whether the second run ends as soon as it has saved everything.
    preserve_rng_state : bool
        Whether the second run draws the same random numbers; True by default.

    Returns
    -------
    Whatever `function` returns.

    Raises
    ------
    ValueError
        For arguments that do not go together.
    CheckpointError
        In the backward pass, if the second run saves something else than the first did.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> y = ng.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad
    tensor([ 1.2534, -1.0331])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if _Settings.debug is not None:
        debug = _Settings.debug
    if _Settings.early_stop is not None:
        early_stop = _Settings.early_stop
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _DETERMINISM_CHECKS:
        raise ValueError(
            f"determinism_check should be one of {list(_DETERMINISM_CHECKS)}, but got "
            f"{determinism_check}"
        )
    forward_context, recompute_context = context_fn()
    random = default_generator.snapshot() if preserve_rng_state else None
    if not modes.grad:
        return function(*args, **kwargs)

    def first() -> Any:
        if context_fn is noop_context_fn:
            return function(*args, **kwargs)
        with forward_context:
            return function(*args, **kwargs)
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an "
            "exception raised during the checkpointed forward. This is not supported because "
            "checkpoint cannot return a value for a failed forward."
        )

    def recompute(*arguments: Any) -> None:
        with _random_numbers_of(random), recompute_context:
            function(*arguments, **kwargs)

    frame = Frame(
        recompute,
        early_stop,
        _DETERMINISM_CHECKS[determinism_check],
        where_user_is if debug else None,
    )
    frame.keep_arguments(args)
    return frame.run(first)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call functions one after the other, all but the last of `segments` parts checkpointed.

    Mirrors ``torch.utils.checkpoint.checkpoint_sequential``.

    Parameters
    ----------
    functions : sequence of callables
        Or something with a method ``children`` that returns them.
    segments : int
        Into how many parts to divide them.
    input : Tensor
        What the first one gets.
    use_reentrant : bool
        As of `checkpoint`.
    preserve_rng_state : bool
        As of `checkpoint`.

    Returns
    -------
    Tensor
        What the last one returns.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> steps = [ng.sin, ng.exp, ng.tanh, ng.cos]
    >>> y = ng.utils.checkpoint.checkpoint_sequential(steps, 2, x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad
    tensor([-0.0395,  0.0237])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
            "the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children() if hasattr(functions, "children") else functions)
    length = len(steps) // segments

    def chain(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return run

    end = 0
    for start in range(0, length * (segments - 1), length):
        end = start + length
        input = checkpoint(
            chain(start, end),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return chain(end, len(steps))(input)
