"""What is used of Numba's inside: in one file, and where it is missing results keep their bits."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import numba_private
from numgrad.math.functions import FORMULAS
from numgrad.ops.core.primitive import CATALOGUE

ROOT = Path(ng.__file__).parent
# What Numba's documentation has, besides the package itself.
PUBLIC = {"numba", "numba.extending", "numba.types"}
# How a Numba comes to lack something, in a process that has not imported numgrad yet. Numba itself
# makes no use of these any more when it has been imported.
WAYS = {
    "plain": "import os; os.environ['NUMGRAD_NUMBA'] = 'plain'",
    "no pipelines": "import numba.core.compiler_machinery as m; del m.register_pass",
    "no cache": "import numba.core.caching as m; del m.CompileResultCacheImpl",
}
HAS = {"plain": (False, False), "no pipelines": (False, True), "no cache": (True, False)}


def test_one_module_imports_from_inside_numba() -> None:
    statement = re.compile(r"^\s*(?:from|import) (numba(?:\.\w+)*)\b", re.MULTILINE)
    inside = {p for p in ROOT.rglob("*.py") if {*statement.findall(p.read_text())} - PUBLIC}
    assert inside == {Path(numba_private.__file__)}


@pytest.mark.parametrize(
    ("kind", "path"),
    [(kind, path) for kind, paths in numba_private.PARTS.items() for path in paths],
)
@pytest.mark.parametrize("what", ["module", "name", "method"])
def test_a_kind_lacks_all_or_nothing(
    kind: str, path: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = dict(numba_private.PARTS[kind])
    methods = parts.pop(path)
    module, name = path.rsplit(".", 1)
    other = {"module": f"{module}_gone.{name}", "name": f"{path}_gone", "method": path}[what]
    parts[other] = f"{methods} gone".strip() if what == "method" else methods
    assert numba_private.look_up(kind)
    monkeypatch.setitem(numba_private.PARTS, kind, parts)
    assert numba_private.look_up(kind) == {}


def results_of(seed: int) -> dict[str, str]:
    """Return the hash of what a program computes that is drawn from the catalogue."""
    random = np.random.default_rng(seed)
    unary = [
        name
        for name, formula in sorted(FORMULAS.items())
        if formula.inputs == ("input",) and formula.rules[0] and "f" in formula.accepts
    ]
    names = [str(name) for name in random.choice(unary, 3, replace=False)]
    fold = str(random.choice(["logsumexp", "prod", "var", "amax", "softmax", "cumsum"]))
    array = random.normal(size=(3, 20)).astype(random.choice(["float32", "float64"]))

    def compute(x: ng.Tensor) -> ng.Tensor:
        total = x * x[:1]
        for name in names:
            total = total + CATALOGUE[name](x).nan_to_num(0.5, 1.0, -1.0)
        return getattr(total, fold)(1).sum()

    found = {}
    for way, function in (("eager", compute), ("jit", ng.jit(compute))):
        x = ng.from_numpy(array.copy()).requires_grad_()
        result = function(x)
        result.backward()
        digest = hashlib.sha256(result.detach().numpy().tobytes() + x.grad.numpy().tobytes())
        found[f"{way} {fold} {', '.join(names)}"] = digest.hexdigest()[:16]
    return found


@pytest.mark.sampled(0)  # each takes seconds, in which a process compiles all that it calls
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(5))
def test_results_keep_their_bits_where_numba_lacks_something(way: str, seed: int) -> None:
    script = f"""
{WAYS[way]}
from numgrad.codegen import numba_private as p
from numgrad.ops.later import load_all
load_all()
from tests.codegen.test_numba_private import results_of
print(p.HAS_PIPELINES, p.HAS_CACHE, results_of({seed}))
"""
    environment = os.environ | {"NUMGRAD_CACHE_DIR": "off", "PYTHONWARNINGS": "ignore"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT.parent), *sys.path])
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment
    )
    assert process.returncode == 0, process.stderr
    has_pipelines, has_cache = HAS[way]
    assert process.stdout.strip() == f"{has_pipelines} {has_cache} {results_of(seed)}"
