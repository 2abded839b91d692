"""Public functions made from signatures.

`declare` stands above the rule of a function, which says what is computed of arguments that are
checked and converted. From the signature follow the Python function and the method, the reading of
their arguments, PyTorch's words for what is wrong with these, NumPy's names for them, the
parameters of the docstring and the types of the stub:

    @declare("unsqueeze(Tensor input, int dim)")
    def unsqueeze(input: Tensor, dim: int) -> Tensor:
        ...

A function is a few lines of straight Python (`numgrad.ops.signatures.declared_source`), written and
compiled when it is called for the first time: a condition that holds for whatever is not plainly as
declared, the key of the call and what that leads to, where calls are remembered
(`numgrad.ops.calls.dispatch`), and the call of the rule. Only where the condition holds,
`numgrad.ops.signatures.argument_parser` reads the call as PyTorch would.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from numgrad.codegen.define import define
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.math.functions import OTHER_NAMES
from numgrad.ops.calls.dispatch import Calls
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.out_argument import check_out_overlap, write_result
from numgrad.ops.core.registry import public
from numgrad.ops.signatures import methods
from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.declared_docs import complete, of_method_in_place
from numgrad.ops.signatures.declared_source import function_source
from numgrad.ops.signatures.in_place_names import IN_PLACE_FUNCTIONS
from numgrad.ops.signatures.kinds import KINDS, NAMES
from numgrad.ops.signatures.plain_front import plain_front
from numgrad.ops.signatures.remembered_source import check_remembered
from numgrad.ops.signatures.signature import REQUIRED, Parameter, merged, parse

__all__ = ["DECLARED", "declare", "declared_function", "handing_on"]

# What every declared function and method was made from.
DECLARED: dict[Callable[..., Any], Declaration] = {}
# Files that do not exist, in this package: what runs in them is none of the user's code.
_FILES = Path(__file__).parent / "declared"


# --- the function --------------------------------------------------------------------------------


def _first_call(*arguments: Any, **keywords: Any) -> Any:
    """Stand in for a declared function until it is called."""
    return complete_function()(*arguments, **keywords)  # type: ignore[name-defined]  # noqa: F821


def declared_function(declaration: Declaration, module: str) -> Callable[..., Any]:
    """Return a function that writes and compiles itself when it is called first.

    Pickles find it in the module, by the name that messages give it.
    """
    names: dict[str, Any] = {"__name__": declaration.rule.__module__}

    def own(name: str, default: Any) -> Any:
        return default if default is REQUIRED else declaration.defaults.get(name, default)

    def complete_function() -> Callable[..., Any]:
        source = function_source(declaration)
        kind = "method" if declaration.bound else "function"
        file = str(_FILES / f"{kind}_{declaration.name}.py")
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        names.update(NAMES, REQUIRED=REQUIRED, rule=declaration.rule, finish=declaration.finish)
        names.update(read=declaration.read, write=declaration.write, again=function)
        names.update(perform=declaration.perform, check_out_overlap=check_out_overlap)
        if declaration.calls is not None:
            names.update(declaration.calls.names)
        made: dict[str, Any] = {}
        exec(compile(source, file, "exec"), names, made)
        (written,) = made.values()
        # The very objects of the declaration: told from what a caller gives, were it equal.
        code = written.__code__
        given = written.__defaults__ or ()
        by_name = dict(zip(code.co_varnames[code.co_argcount - len(given) :], given, strict=False))
        function.__defaults__ = tuple([own(name, value) for name, value in by_name.items()])
        named = (written.__kwdefaults__ or {}).items()
        function.__kwdefaults__ = {name: own(name, value) for name, value in named}
        function.__code__ = code  # last: other threads may be calling
        return function

    names["complete_function"] = complete_function
    function = FunctionType(_first_call.__code__, names, declaration.name)
    function.__module__ = module
    function.__qualname__ = declaration.name  # errors of Python's own say it
    text = declaration.rule.__doc__
    if declaration.writes and declaration.rule.__name__ != declaration.name:
        text = of_method_in_place(text, declaration.name[:-1])
    function.__doc__ = complete(text, declaration.signature)
    function.__dict__["__signature__"] = _PythonSignature(declared=declaration)
    function.__dict__["__wrapped__"] = declaration.rule
    return function


class _PythonSignature(inspect.Signature):
    """The signature of a declared function for `inspect`, made when somebody asks for it."""

    __slots__ = ("_declared",)

    def __init__(
        self, *arguments: Any, declared: Declaration | None = None, **options: Any
    ) -> None:
        self._declared = declared
        if declared is None:
            super().__init__(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name not in ("_parameters", "_return_annotation") or self._declared is None:
            raise AttributeError(name)
        declared = self._declared
        annotations = declared.rule.__annotations__
        returned = annotations.get("return", inspect.Signature.empty)
        if declared.finish is not None or declared.writes:
            returned = "Tensor"
        super().__init__(_parameters_of(declared), return_annotation=returned)
        return getattr(self, name)


def _parameters_of(declaration: Declaration) -> list[inspect.Parameter]:
    kinds = inspect.Parameter
    found: list[inspect.Parameter] = []
    if declaration.bound:
        found.append(kinds("self", kinds.POSITIONAL_OR_KEYWORD, annotation="Tensor"))
    signature = declaration.signature
    for each in signature.parameters:
        annotation = _annotation(declaration, each)
        default = kinds.empty if each.default is REQUIRED else each.shown
        kind = kinds.KEYWORD_ONLY if each.keyword_only else kinds.POSITIONAL_OR_KEYWORD
        if declaration.spread and not each.keyword_only:
            if each is signature.positional[0]:
                many = "int | Sequence[int]" if signature.variadic else _any_positional(declaration)
                name = "sizes" if signature.variadic else "arguments"
                found.append(kinds(name, kinds.VAR_POSITIONAL, annotation=many))
            kind, default = kinds.KEYWORD_ONLY, None
        if each.optional or default is None:
            annotation += " | None"
        found.append(kinds(each.name, kind, default=default, annotation=annotation))
    return found


def _any_positional(declaration: Declaration) -> str:
    """Return the types that some signature takes for some parameter that is no keyword only."""
    types: list[str] = []
    for each in declaration.signature.parameters:
        if not each.keyword_only:
            types += _annotation(declaration, each).split(" | ") + ["None"] * each.optional
    return " | ".join(dict.fromkeys(types))


def _annotation(declaration: Declaration, parameter: Parameter) -> str:
    """Return the types that the signatures take for a parameter."""
    types: list[str] = []
    for signature in declaration.signatures:
        for each in signature.parameters:
            if each.name == parameter.name:
                types += ["int"] * each.alone + KINDS[each.kind].annotation.split(" | ")
    return " | ".join(dict.fromkeys(types))


# --- the decorator -------------------------------------------------------------------------------


def handing_on(function: Callable[..., Any], *texts: str) -> Callable[..., Any]:
    """Return a rule that names the arguments of signatures, and hands them on by name.

    So a function that takes any arguments has a rule as `declare` wants it. The tensor that comes
    first is handed on by position; what a signature lacks and another has is None.

    Examples
    --------
    >>> rule = handing_on(lambda input, **given: given, "f(Tensor input, int dim, int at)")
    >>> rule("x", 1, 2)
    {'dim': 1, 'at': 2}
    """
    signature = merged(tuple([parse(text) for text in texts]))
    first, *rest = [each.name for each in signature.parameters]
    given = ", ".join([first, *[f"{name}={name}" for name in rest]])
    source = f"def rule({', '.join([first, *rest])}):\n    return function({given})\n"
    namespace = {"function": function, "__name__": function.__module__}
    return define("rule", source, f"rule of {signature.name}", namespace)


def declare(
    *texts: str,
    function: bool = True,
    method: bool = True,
    inplace: bool = False,
    writes: bool = False,
    aliases: tuple[str, ...] = (),
    finish: Callable[..., Any] | None = None,
    casts: bool = False,
    dispatched: bool = False,
    plain: ElementwisePrimitive | None = None,
    direct: bool = True,
    factors: tuple[str, ...] = (),
    itself: str = "",
    deprecated: tuple[str, ...] = (),
    write: Callable[..., Any] = write_result,
    apart: tuple[str, ...] = (),
    in_step: tuple[str | tuple[str, str], ...] = (),
    **special: str,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the public function and the method of a rule from their signatures; a decorator.

    Parameters
    ----------
    *texts : str
        The signatures (`numgrad.ops.signatures.signature`), in the order in which they are tried.
    function, method, inplace : bool
        Whether it becomes ``numgrad.name``, ``Tensor.name``, ``Tensor.name_`` (and, as far as
        PyTorch has that, ``numgrad.name_``). If none of these, the function is there for whoever
        imports it.
    writes : bool
        Whether the method writes what the rule returns for a tensor into that tensor.
    aliases : tuple of str
        Other names that it has.
    finish : function, optional
        What is made of the function's name, of the rule's result, and of `requires_grad`, `out`
        and `dtype`, as far as the signature has them.
    casts : bool
        Whether the dtype is that of `out` where no other is asked for. Where a rule does not take
        the `out` of its signature, its result is written there.
    dispatched : bool
        Whether calls are remembered (`numgrad.ops.calls.dispatch`): for a rule that does nothing
        but apply primitives to its tensors, by what they are and by the other arguments, whatever
        numbers they hold.
    plain : ElementwisePrimitive, optional
        What the rule comes to where nothing but the operands is given, and they are tensors of its
        plain dtypes, or one of them and a number.
    direct : bool
        Whether it is that for tensors of all dtypes. Then calls in place are remembered by no more
        than the type of a number in the place of an operand.
    factors : tuple of str
        Numbers that a primitive takes as an operand: of floats that every dtype holds calls are
        remembered by no more than their type.
    itself : str
        A condition, in Python, that holds of the tensor ``{0}`` and the other arguments where the
        function returns that tensor as it is: such a call takes less time than a key.
    deprecated : tuple of str
        Signatures that are tried when no other fits, and warned of.
    write : function
        What writes the result to `out`, of the function's name and the two, if the rule does not.
    apart, in_step : tuple of str
        Tensors that share no memory with `out`, or only element for element: as PyTorch has it.
        ``("input", "dim")`` is one for which that holds where a dim is given.
    **special : str
        For parameters, what to say of values that no tensor can have, in place of what is said
        mostly.
    """
    first = texts[0].partition("(")[0]
    declared = tuple([parse(text) for text in texts])
    old = tuple([parse(text) for text in deprecated])

    def enter(rule: Callable[..., Any]) -> Callable[..., Any]:
        made: list[Callable[..., Any]] = []
        is_direct = plain is not None and direct
        calls = Calls(rule, numbers=bool(factors)) if dispatched else None

        def perform(tensor: Tensor, *arguments: Any) -> Any:
            """Write what the rule returns into the tensor: the long way of methods in place."""
            return upward.perform(rule, first.rstrip("_"), tensor, *arguments)

        of_writes = None
        if writes or (inplace and (dispatched or plain is not None)):
            of_writes = Calls(perform, writes=True, numbers=is_direct or bool(factors))

        def make(name: str, module: str, *, bound: bool, writes: bool = False) -> Any:
            signatures = tuple([each.named(name) for each in declared])
            if bound:
                own = signatures[0].itself
                signatures = tuple(
                    [each for each in signatures if each.has_method and each.itself == own]
                )
            declaration = Declaration(
                signatures,
                rule,
                bound=bound,
                deprecated=old if name.rstrip("_") == first else (),
                special=special,
                finish=finish,
                write=write,
                casts=casts,
                perform=perform if writes else None,
                calls=of_writes if writes else calls,
                direct=is_direct and writes,
                factors=factors,
                itself=itself,
                apart=apart,
                in_step=in_step,
            )
            if declaration.calls is not None:
                check_remembered(declaration)
                declaration.calls.sequence = declaration.sequence is not None
            new = declared_function(declaration, module)
            if plain is not None and not writes:
                new = plain_front(plain, declaration, new, direct=direct)
                if direct:
                    new.__dict__["primitive"] = plain
            made.append(new)
            DECLARED[new] = declaration
            return new

        for name in (first, *aliases):
            module = rule.__module__ if name == rule.__name__ else "numgrad"
            if function:
                public(name, method=False)(make(name, module, bound=False))
            if function or name != rule.__name__:
                module = methods.__name__
            if method:
                public(name, function=False)(make(name, module, bound=True, writes=writes))
            if inplace:
                in_place = make(f"{name}_", methods.__name__, bound=True, writes=True)
                public(name, function=False, method=False, inplace=True)(in_place)
            if inplace and f"{name}_" in IN_PLACE_FUNCTIONS:
                in_place = make(f"{name}_", "numgrad", bound=False, writes=True)
                public(f"{name}_", method=False)(in_place)
        if plain is not None and function:
            OTHER_NAMES.update(dict.fromkeys({first, *aliases} - {plain.name}, plain.name))
        if function or method:
            return made[0]
        return rule if inplace else make(first, rule.__module__, bound=False)

    return enter
