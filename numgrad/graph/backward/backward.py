"""`backward` and `grad`: check the arguments, start the engine, return the gradients."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.backward.cotangents import GradientEdge, as_tuple, check_batches, roots_of
from numgrad.graph.backward.engine import run
from numgrad.graph.modes.state import interceptors, is_transformed
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor
from numgrad.graph.upward import upward
from numgrad.graph.warned import is_due
from numgrad.runtime.frames import user_frame

__all__ = ["backward", "grad"]


_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter "
    "and its gradient which can cause a memory leak. We recommend using autograd.grad when "
    "creating the graph to avoid this. If you have to use this function, make sure to reset the "
    ".grad fields of your parameters to None after use to break the cycle and avoid the leak."
)
Tensors = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensors | None = None,
) -> None:
    """Compute the gradients of `tensors` and add them to the ``.grad`` of the leaves.

    Mirrors ``torch.autograd.backward``.

    Parameters
    ----------
    tensors : tensor, GradientEdge, or sequence of them
        What to differentiate.
    grad_tensors : tensor, None, or sequence of them
        The cotangent of each tensor, of its shape; None stands for 1 where a tensor has one
        element.
    retain_graph : bool, optional
        Keep what the graph saved, so that it can be run again. Defaults to `create_graph`.
    create_graph : bool
        Record the backward pass, so that gradients can be differentiated.
    inputs : tensor, GradientEdge, or sequence of them, optional
        Accumulate only into these.

    Raises
    ------
    RuntimeError
        If a tensor does not require grad; if a cotangent is missing or has the wrong shape; if the
        graph was freed by an earlier call; if a saved tensor was modified in place.

    Warns
    -----
    UserWarning
        With `create_graph`, once in a process (see `numgrad.set_warn_always`): the leaves'
        gradients hold graphs that lead to the leaves, so that only Python's garbage collector
        frees them.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> ng.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if interceptors and is_transformed():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "functorch.grad or functorch.vjp instead or call backward() outside of functorch "
            "transforms."
        )
    outputs = as_tuple(tensors)
    if inputs is not None:
        inputs = as_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = roots_of(outputs, grad_tensors)
    keep_graph = create_graph if retain_graph is None else retain_graph
    edges = None
    if inputs is not None:
        for tensor in inputs:
            if isinstance(tensor, Tensor) and not (tensor.is_leaf and tensor.requires_grad):
                tensor.retain_grad()  # where the engine leaves the gradient of a non-leaf
        edges = [_input_edge(tensor) for tensor in inputs]
    if create_graph and is_due(_CYCLE):
        _warn_of_cycle()
    run(roots, keep_graph=keep_graph, create_graph=create_graph, inputs=edges)


def _warn_of_cycle() -> None:
    """Tell the user's line that a leaf will hold a graph that leads to it."""
    frame = user_frame()
    if frame is None:
        warnings.warn(_CYCLE, UserWarning, stacklevel=3)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    # A module that is None would have the warning dropped.
    file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
    warnings.warn_explicit(_CYCLE, UserWarning, file, frame.f_lineno, module, registry)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Return the gradients of the sum of `outputs` with respect to `inputs`.

    Mirrors ``torch.autograd.grad``. No ``.grad`` changes.

    Parameters
    ----------
    outputs : tensor, GradientEdge, or sequence of them
        What to differentiate.
    inputs : tensor, GradientEdge, or sequence of them
        With respect to what; leaves or not.
    grad_outputs : tensor, None, or sequence of them
        The cotangent of each output, of its shape; None stands for 1 for outputs of one element.
    retain_graph, create_graph : bool
        As in `backward`.
    allow_unused : bool, optional
        Give None for inputs that the outputs do not depend on, instead of raising. Defaults to
        `materialize_grads`.
    is_grads_batched : bool
        The cotangents have one dimension more, in front, and so have the results. One backward
        pass runs for all entries, as `numgrad.func.vmap` runs functions: what hooks and custom
        Functions see is a batch.
    materialize_grads : bool
        Give zeros instead of None.

    Returns
    -------
    tuple of Tensor
        One gradient for each input, of its shape and dtype.

    Raises
    ------
    RuntimeError
        As `backward`; and if an input is unused and that is not allowed. Of a batch also if a hook
        or custom Function does what is none of `vmap`'s: asks for numbers, or draws some.

    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> (dy,) = ng.autograd.grad(x**2, x, create_graph=True)
    >>> ng.autograd.grad(dy, x)
    (tensor(2.),)
    """
    targets = as_tuple(inputs)
    sources = as_tuple(outputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    keep_graph = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        results = _batched(sources, grad_outputs, targets, keep_graph, create_graph)
    else:
        results = run(
            roots_of(sources, grad_outputs),
            keep_graph=keep_graph,
            create_graph=create_graph,
            inputs=[_input_edge(tensor) for tensor in targets],
            accumulate=False,
        )
    for position, (tensor, result) in enumerate(zip(targets, results, strict=True)):
        if result is not None:
            continue
        if not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {position} appears to not have been used in "
                "the graph. Set allow_unused=True if this is the desired behavior."
            )
        if isinstance(tensor, GradientEdge) and materialize_grads:
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge"
            )
        if materialize_grads:
            results[position] = upward.zeros_like(tensor, requires_grad=create_graph)
    return tuple(results)  # type: ignore[arg-type]


def _batched(
    outputs: tuple[Any, ...],
    grad_outputs: Any,
    inputs: tuple[Any, ...],
    keep_graph: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """Run one backward pass for all entries of batched cotangents."""
    if grad_outputs is None:
        grad_outputs = (None,) * len(outputs)
    batches = as_tuple(grad_outputs)
    check_batches(outputs, batches)
    roots = roots_of(outputs, [batch[0] for batch in batches])
    fitting = [
        batch if batch._array.dtype == first._array.dtype else batch.to(first.dtype)
        for batch, (_, first) in zip(batches, roots, strict=True)
    ]
    found: list[Tensor | None] = upward.batched_gradients(
        [edge for edge, _ in roots],
        fitting,
        [_input_edge(tensor) for tensor in inputs],
        keep_graph=keep_graph,
        create_graph=create_graph,
    )
    return found


def _input_edge(tensor: Any) -> Edge:
    """Return where the gradient of an input arrives, or raise if it takes none."""
    if isinstance(tensor, GradientEdge):
        return tensor.node, tensor.output_nr
    if not isinstance(tensor, Tensor):
        raise RuntimeError(
            f"all inputs have to be Tensors or GradientEdges, but got {type(tensor).__name__}"
        )
    edge = gradient_edge(tensor)
    if edge is NO_EDGE:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge
