"""Custom Functions: operations whose derivative the user writes.

A `Function` is a class of static methods that is never instantiated. `Function.apply` runs its
forward pass without recording, and attaches one node to the results, which runs its backward pass.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from numgrad.autograd.function.batches import Batch, check_mapped, forward_of
from numgrad.autograd.function.context import FunctionCtx
from numgrad.autograd.function.node import NOTHING, DelayedError, FunctionNode, Kept
from numgrad.autograd.function.outputs import Call, describe_outputs, wrap_outputs
from numgrad.autograd.function.tangents import apply_observed
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.state import interceptors, modes, recording
from numgrad.graph.node import next_sequence
from numgrad.graph.saved_tensors import pack_tensor
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]

_new = object.__new__


class Function:
    """Base class of custom operations: subclass it, and call ``apply`` of the subclass.

    Mirrors ``torch.autograd.Function``. A subclass has static methods in one of two styles:
    ``forward(ctx, *args)`` and ``backward(ctx, *grad_outputs)``; or ``forward(*args)``,
    ``setup_context(ctx, inputs, output)`` and ``backward(ctx, *grad_outputs)``.

    The forward pass may be anything, such as a call of an ``@njit`` function of the user's own on
    ``x.detach().numpy()``. Where it consists of tensor operations it can be traced by `numgrad.jit`
    too, as can the backward pass; and if the backward pass does, it can be differentiated again.

    Attributes
    ----------
    clear_saved_tensors_on_access : bool
        Whether ``ctx.saved_tensors`` forgets the tensors when it returns them.
    boxed_grads_call : bool
        Whether ``backward`` gets its gradients as one list.
    generate_vmap_rule : bool
        Whether `numgrad.func.vmap` runs the methods on tensors of one example, in place of a `vmap`
        that the class has.

    Notes
    -----
    Both styles work in `numgrad.func`; PyTorch demands ``setup_context`` there. Without a ``jvp``,
    its forward mode transposes the backward pass; `numgrad.autograd.forward_ad` demands one.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Exp(ng.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (y,) = ctx.saved_tensors
    ...         return grad * y
    >>> x = ng.tensor([0.0, 1.0], requires_grad=True)
    >>> y = Exp.apply(x)
    >>> y
    tensor([1.0000, 2.7183], grad_fn=<ExpBackward>)
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.0000, 2.7183])

    Kernels of the user's own compute on the arrays:

    >>> import numpy as np
    >>> from numba import njit
    >>> @njit
    ... def logistic_map(x, rate, steps):
    ...     y, slope = x.copy(), np.ones_like(x)
    ...     for _ in range(steps):
    ...         slope *= rate * (1 - 2 * y)
    ...         y = rate * y * (1 - y)
    ...     return y, slope
    >>> class LogisticMap(ng.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, rate, steps):
    ...         y, slope = logistic_map(x.detach().numpy(), rate, steps)
    ...         ctx.save_for_backward(ng.from_numpy(slope))
    ...         return ng.from_numpy(y)
    ...
    ...     @staticmethod
    ...     @ng.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         (slope,) = ctx.saved_tensors
    ...         return grad * slope, None, None
    >>> x = ng.tensor([0.3], dtype=ng.float64, requires_grad=True)
    >>> ng.autograd.gradcheck(lambda x: LogisticMap.apply(x, 3.5, 4), x)
    True
    """

    clear_saved_tensors_on_access: ClassVar[bool] = False
    boxed_grads_call: ClassVar[bool] = False
    generate_vmap_rule: ClassVar[bool] = False
    _context_class: ClassVar[type[FunctionCtx]]
    _backward_cls: ClassVar[type[FunctionNode]]
    _generated_cls: ClassVar[type[FunctionNode]]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._make_classes()

    @classmethod
    def _make_classes(cls) -> None:
        """Make the classes of this Function's contexts and nodes."""
        name = f"{cls.__name__}Backward"
        cls._context_class = type(name, (FunctionCtx,), {"_forward_cls": cls})
        attributes = {"__slots__": (), "__module__": "torch.autograd.function", "function": cls}
        cls._backward_cls = type(name, (FunctionNode,), attributes)
        name = f"{cls.__name__}GeneratedBackward"  # of the calls in what `numgrad.func` transforms
        cls._generated_cls = type(name, (FunctionNode,), dict(attributes))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results: of ``(ctx, *args)``, or with `setup_context` of ``(*args)``."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what `backward` needs, given all arguments of `forward` and what it returned."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return one gradient (or None) for each argument of `forward`.

        Parameters
        ----------
        ctx : FunctionCtx
        *grad_outputs : Tensor or None
            The gradient of each output; None for what is no tensor.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangent (or None) of each output, given those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Return the results for a batch, and where its dim stands in them.

        Parameters
        ----------
        info : VmapInfo
            ``batch_size`` and ``randomness``.
        in_dims : tuple
            For each argument the dim of the batch; None for what is the same for all examples.
        *args
            The arguments of `forward`.

        Returns
        -------
        output, out_dims
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the forward pass, and record it where an argument requires grad.

        Parameters
        ----------
        *args, **kwargs
            What `forward` takes. Gradients flow to tensors among `args`, not to those in lists.

        Returns
        -------
        Whatever `forward` returns. An argument that was returned as it is comes back as a view, and
        one that was marked dirty as itself.

        Raises
        ------
        RuntimeError
            In PyTorch's words, for what was saved or marked and can't be, and for writes to a leaf
            that requires grad.
        """
        if interceptors:
            if modes.trace is not None:
                args = tuple(modes.trace.operands(args))
                check_mapped(cls, _NO_SETUP, _NO_VMAP)
            return apply_observed(cls, args, kwargs)
        return cls._call(args, kwargs, False, False)[0]

    @classmethod
    def _bound(
        cls, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call as the methods get them."""
        if cls.setup_context is _NO_SETUP:
            return args, kwargs
        return _with_defaults(cls.forward, args, kwargs)

    @classmethod
    def _call(
        cls, args: tuple[Any, ...], kwargs: dict[str, Any], observed: bool, moving: bool
    ) -> tuple[Any, Any]:
        """Do what `apply` does, and return the node, too.

        `observed` is whether somebody observes operations; there is always a node if an argument is
        `moving`, that is, has a tangent.
        """
        separate = cls.setup_context is not _NO_SETUP
        if separate:
            args, kwargs = _with_defaults(cls.forward, args, kwargs)
        recording = modes.grad
        edges: list[Edge] = []
        needs: list[bool] = []
        metas: list[Any] = []
        for argument in args:
            if isinstance(argument, Tensor):
                array = argument._array
                edge = gradient_edge(argument) if recording else NO_EDGE
                edges.append(edge)
                needs.append(edge is not NO_EDGE if recording else argument.requires_grad)
                metas.append((array.shape, array.dtype))
            else:
                needs.append(False)
                metas.append(None)
        ctx = _new(cls._context_class)
        ctx.needs_input_grad = tuple(needs)
        sequence = next_sequence()
        modes.grad = False
        try:
            if separate:
                forward = forward_of(cls) if observed else cls.forward
                output = forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        finally:
            modes.grad = recording
        made: FunctionNode | None = None
        recorded = recording and True in needs
        if recorded or moving:
            level = modes.level.keeper if observed and modes.level is not None else None
            made = _new(cls._backward_cls if level is None else cls._generated_cls)
            if level is not None:
                level.generated.append(weakref.ref(made))
            if len(edges) == 1:
                target, number = edges[0]
                made.targets, made.numbers = (target,), (number,)
            else:
                made.targets = tuple([target for target, _ in edges])
                made.numbers = tuple([number for _, number in edges])
            made.sequence = sequence
            made.attached = None
            made.saved = NOTHING
            made.saved_for_forward = None
            made.ctx = ctx
            made.input_metas = tuple(metas)
            ctx._node = weakref.ref(made)
        node = made if recorded else None
        is_new = True
        for argument in args:
            if argument is output:
                is_new = False
        if (
            is_new
            and node is not None
            and isinstance(output, Tensor)
            and output._base is None
            and output._edge is NO_EDGE
            and ctx.dirty_tensors is None
            and ctx.non_differentiable is None
            and output._array.dtype.kind in "fc"
        ):  # nearly every call
            node.num_outputs = 1
            node.output_metas = ((output._array.shape, output._array.dtype),)
            output._edge = (node, 0)
        elif isinstance(output, tuple):
            output = wrap_outputs(Call(args, edges, ctx, node), output)
        else:
            (output,) = wrap_outputs(Call(args, edges, ctx, node), (output,))
        if made is not None and node is None:
            describe_outputs(made, output if isinstance(output, tuple) else (output,))
        if ctx.to_save is not None:
            _save(ctx, made, observed)
        if ctx.saved_for_forward is not None:
            if made is not None and cls._has_jvp():
                made.saved_for_forward = _kept(ctx.saved_for_forward, made, ())
            ctx.saved_for_forward = None
        return output, made

    @classmethod
    def _backward_rule(cls) -> Callable[..., Any]:
        """Return `backward` or `vjp`, whichever the user wrote."""
        backward, vjp = cls.backward, cls.vjp
        if vjp is _NO_BACKWARD:
            return backward
        if backward is not _NO_BACKWARD:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return vjp

    @classmethod
    def _of_batch(cls, batch: Batch) -> type[Function]:
        """Return the Function of a batch of this one."""
        methods = {
            name: staticmethod(getattr(batch, name))
            for name in ("forward", "setup_context", "backward")
        }
        if cls._has_jvp():
            methods["jvp"] = staticmethod(batch.jvp)
        attributes = {**methods, "generate_vmap_rule": True, "__module__": cls.__module__}
        return type(f"Vmapped{cls.__name__}", (Function,), attributes)

    @classmethod
    def _has_jvp(cls) -> bool:
        return cls.jvp is not _NO_JVP


Function._make_classes()
_NO_SETUP = Function.setup_context
_NO_BACKWARD = Function.backward
_NO_JVP = Function.jvp
_NO_VMAP = Function.vmap


@functools.lru_cache(maxsize=256)
def _signature(forward: Callable[..., Any]) -> tuple[inspect.Signature, int]:
    """Return a function's signature, and of how many arguments if it takes only those, else -1."""
    signature = inspect.signature(forward)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature.parameters.values()
    only = all(parameter.kind in positional for parameter in parameters)
    return signature, len(parameters) if only else -1


def _with_defaults(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call's arguments with the defaults of those that were left out."""
    signature, count = _signature(forward)
    if len(args) == count and not kwargs:
        return args, kwargs
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _save(ctx: FunctionCtx, node: FunctionNode | None, observed: bool) -> None:
    """Move what is to be saved from the context to the node, or forget it if there is none."""
    saved = ctx.to_save
    if not isinstance(saved, tuple):
        raise RuntimeError(
            "autograd internal error: to_save attribute is expected to be a tuple but is "
            f"{type(saved).__name__}"
        )
    for tensor in saved:
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                "save_for_backward can only save variables, but argument "
                f"{[each is tensor for each in saved].index(True)} is of type "
                f"{type(tensor).__name__}"
            )
    ctx.to_save = None
    if node is None:
        return
    hooks = modes.saved_hooks if observed and node.is_reached() else ()
    node.saved = _kept(saved, node, hooks)
    if hooks:
        node.attach()  # the engine tells nodes with something attached in which pass they run


def _kept(
    tensors: tuple[Tensor | None, ...], node: FunctionNode, hooks: tuple[Any, ...]
) -> tuple[Kept | None, ...]:
    """Return what to keep of tensors: of outputs no reference, they have one to the node."""
    kept: list[Kept | None] = []
    for tensor in tensors:
        if tensor is None:
            kept.append(None)
            continue
        value: Any = tensor
        edge = tensor._edge
        where: Edge | int = NO_EDGE
        if edge is not None and edge[0] is node:
            value, where = tensor._array, edge[1]
        elif hooks and edge is not NO_EDGE:
            where = gradient_edge(tensor)
        counter = tensor._counter
        if hooks:
            value = pack_tensor(tensor, hooks[-1])
        kept.append((value, counter, counter[0], where))
    return tuple(kept)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Say that the backward pass of a `Function` can't be differentiated; a decorator.

    Mirrors ``torch.autograd.function.once_differentiable``. The pass then runs without recording,
    and whoever differentiates what it returned gets a RuntimeError.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Double(ng.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @ng.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = ng.tensor(1.0, requires_grad=True)
    >>> ng.autograd.grad(Double.apply(x), x)
    (tensor(2.),)
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with recording(False):
            outputs = backward(ctx, *args, **kwargs)
        if not modes.grad or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        results: list[Any] = []
        for output in (outputs,) if single else outputs:
            results.append(output.detach().requires_grad_() if output is not None else None)
        edges = [NO_EDGE if result is None else gradient_edge(result) for result in results]
        node = DelayedError(
            edges,
            "trying to differentiate twice a function that was marked with @once_differentiable",
        )
        delayed = [None if r is None else r.detach() for r in results]
        for number, result in enumerate(delayed):
            if result is not None:
                result._base, result._edge = None, (node, number)
        return delayed[0] if single else tuple(delayed)

    return wrapper


class InplaceFunction(Function):
    """A `Function` whose instances remember ``inplace``; only for old code."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
