"""Imports go down the floors only, and in no circle (docs/architecture.md draws the floors)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import numgrad

ROOT = Path(numgrad.__file__).parent
# From the ground up. A module belongs to the last entry here that its path begins with, and
# imports from its own entry and from those before; entries in one line do not import each other.
FLOORS = [
    ["base"],
    ["runtime"],
    ["codegen/loops", "codegen/numba_private", "codegen/scalar_ops"],
    ["codegen/function_reader", "codegen/loop_passes", "codegen/printer"],
    ["codegen/llvm"],
    ["codegen/compile"],
    ["codegen"],
    ["math/real"],
    ["math"],
    ["math/special"],
    ["kernels"],
    ["graph"],
    ["io", "ops/calls"],
    ["ops/core"],
    ["ops/signatures"],
    ["ops/arguments"],
    ["ops/movement"],
    ["ops/pointwise"],
    ["ops/linalg", "ops/mutation"],
    ["ops/creation", "ops/indexing", "ops/numpy"],
    ["ops/reduction"],
    ["ops/fourier", "ops/matrices", "ops/nn", "ops/searching", "ops/spatial", "ops/special"],
    ["ops/sampling", "ops/signal", "ops/statistics"],
    ["ops/masked"],
    ["ops"],
    ["jit/ir", "tensor", "tools"],
    ["jit/passes"],
    ["jit/lowering", "jit/schedule"],
    ["jit/emit", "jit/rolling"],
    ["jit/backward", "jit/run"],
    ["jit/capture"],
    ["jit/advice"],
    ["jit/front"],
    ["jit", "batching"],
    ["autograd/forward"],
    ["autograd/function", "autograd/functional"],
    ["autograd"],
    ["fft", "func", "linalg", "masked", "nn", "random", "special", "utils"],
    ["__init__"],
    ["__main__"],
]
HEIGHTS = {entry: height for height, floor in enumerate(FLOORS) for entry in floor}
# Modules that stand in a folder that is not theirs, with where they belong.
ELSEWHERE: dict[str, str] = {}
# Imports that do not run with the module, with the reason.
LATE = {
    # The type of `grad_fn`: a tensor and its node know each other. Nothing at run time.
    ("graph/tensor", "graph/node"),
    # The types of the methods that the catalogue binds to the class, which stand in the package's
    # stub: so there is one class of tensors for type checkers, too. Nothing at run time.
    ("graph/tensor", "__init__"),
    # The type of what records: it is asked about traced arrays, which know it. Nothing at run time.
    ("graph/recorder", "graph/open_recorder"),
    # The type of a trace that is settled: the bodies of its loops are watched, too.
    ("jit/front/watch", "jit/front/trace_function"),
    # The compiler is an eighth of all there is to import: who compiles nothing does without.
    ("jit/front/decorator", "jit/front/api"),
    ("func/control/alike", "jit/front/argument_tensor"),
    ("func/control/alike", "jit/front/tracer"),
}
# Of these, for type checkers: no circle, as no import runs.
TYPES_ONLY = {
    ("graph/tensor", "graph/node"),
    ("graph/tensor", "__init__"),
    ("graph/recorder", "graph/open_recorder"),
    ("jit/front/watch", "jit/front/trace_function"),
}


@cache
def modules() -> dict[str, ast.Module]:
    """Return what is in our modules, by their paths."""
    return {
        path.relative_to(ROOT).with_suffix("").as_posix(): ast.parse(path.read_text())
        for path in sorted(ROOT.rglob("*.py"))
    }


def module_of(name: str) -> str | None:
    """Return the path of one of our modules, of its dotted name."""
    path = name.removeprefix("numgrad").lstrip(".").replace(".", "/")
    package = f"{path}/__init__".lstrip("/")
    return path if path in modules() else package if package in modules() else None


def imports_of(module: str) -> Iterator[tuple[str, bool]]:
    """Yield every module of ours that one imports, and whether that is at the top level."""
    tree = modules()[module]
    # What stands below a `with` of the module itself runs as it is imported, too.
    blocks = [node.body for node in tree.body if isinstance(node, ast.With)]
    at_once = [*tree.body, *[node for block in blocks for node in block]]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [module_of(name) or module_of(node.module or "") for name in names]
        elif isinstance(node, ast.Import):
            found = [module_of(alias.name) for alias in node.names]
        else:
            continue
        ours = (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        if ours.split(".")[0] == "numgrad":
            yield from ((name, node in at_once) for name in found if name not in (None, module))


def entry_of(module: str) -> str:
    """Return the entry of `FLOORS` that a module belongs to."""
    path = ELSEWHERE.get(module, module)
    return max((e for e in HEIGHTS if path == e or path.startswith(f"{e}/")), key=len)


@cache
def all_imports() -> dict[str, set[tuple[str, bool]]]:
    """Return what each of our modules imports."""
    return {module: set(imports_of(module)) for module in modules()}


def test_imports_go_down():
    for module, imports in all_imports().items():
        entry = entry_of(module)
        for imported, at_top in imports:
            below = entry_of(imported)
            lower = below == entry or HEIGHTS[below] < HEIGHTS[entry]
            lower |= (module, imported) in TYPES_ONLY
            assert lower, f"{module} imports {imported}, which is not below it"
            assert at_top or (module, imported) in LATE, f"{module} imports {imported} late"


def test_no_imports_in_a_circle():
    graph = {
        module: {imported for imported, _ in imports if (module, imported) not in TYPES_ONLY}
        for module, imports in all_imports().items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imports in a circle: {error.args[1]}")


def test_every_exception_is_needed():
    late = {(m, i) for m, imports in all_imports().items() for i, at_top in imports if not at_top}
    assert late == LATE
    for module in ELSEWHERE:
        users = [entry_of(m) for m, imports in all_imports().items() if module in dict(imports)]
        own = HEIGHTS[module.rsplit("/", 1)[0]]
        assert any(HEIGHTS[user] < own for user in users), f"{module} need not be elsewhere"
