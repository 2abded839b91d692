"""Tensors, compiled functions and dispatchers through other processes, there and back."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.core.primitive import CATALOGUE, Primitive

PROGRAM = '''
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import numgrad as ng

def energy(x):
    return (x.sin() * x).sum()

@ng.jit
def by_name(x):
    return energy(x) * 2

class Scale:
    """An object that can be called."""

    factor = 3.0

    def __call__(self, x):
        return x * self.factor

    @ng.jit
    def half(self, x):
        return x * self.factor / 2

slope = ng.func.grad(energy)
compiled_slope = ng.jit(slope)
NUMBERS = np.array([0.1, 0.2, 0.3])

def warm_function():
    function = ng.jit(ng.func.value_and_grad(energy))
    for _ in range(300):  # often enough to be called in quicker ways
        function(ng.from_numpy(NUMBERS))
    return function

def warm_dispatcher():
    dispatcher = ng.jit(energy).lower(NUMBERS).dispatcher
    dispatcher(NUMBERS)
    return dispatcher

BASE = ng.arange(12, dtype=ng.float64).reshape(3, 4)
def dispatcher_that_calls_back():
    captured = ng.tensor([5.0, 6.0, 7.0], dtype=ng.float64)

    def function(x):  # for captured numbers, a large product, and operations without loops
        square = ng.linspace(0, 1, 2500, dtype=ng.float64).reshape(50, 50) * x.sum()
        values = ng.linalg.eigvalsh(square[:5, :5] + square[:5, :5].mT)
        return x * captured, (square @ square).sum(), values, ng.fft.fft(x).abs()

    return ng.jit(function).lower(NUMBERS).dispatcher

# What makes the things that are sent, which are called if they can be.
MAKING = {
    "jit by name": lambda: by_name,
    "jit inside": lambda: ng.jit(energy),
    "jit of a transform": lambda: compiled_slope,
    "jit of a hessian": lambda: ng.jit(ng.func.jacfwd(ng.func.grad(energy, argnums=0))),
    "jit, warm": warm_function,
    "dispatcher": lambda: ng.jit(slope).lower(NUMBERS).dispatcher,
    "dispatcher, warm": warm_dispatcher,
    "dispatcher that calls back": dispatcher_that_calls_back,
    "jit of an object": lambda: ng.jit(Scale()),
    "jit of a bound method": lambda: Scale().half,
    "leaf": lambda: ng.tensor(NUMBERS, requires_grad=True),
    "view": lambda: BASE.t()[1:, ::2],
    "flipped": lambda: ng.from_numpy(NUMBERS[::-1]),
    "expanded": lambda: ng.ones(1, 2).expand(3, 2),
    "empty": lambda: ng.empty(0, 3),
    "number": lambda: ng.tensor(2.5),
    "mask": lambda: BASE > 3,
    "complex": lambda: ng.view_as_complex(ng.ones(2, 2)),
    "conjugate": lambda: ng.view_as_complex(ng.ones(2, 2)).conj(),
    "dtype": lambda: ng.float64,
    "size": lambda: BASE.shape,
    "generator": lambda: ng.Generator().manual_seed(3),
}

def told(value):
    if isinstance(value, ng.Tensor):
        array = value.detach().resolve_conj().numpy()
        return str(value.dtype), tuple(value.shape), value.requires_grad, array.tobytes()
    if isinstance(value, (tuple, list)) and not isinstance(value, ng.Size):
        return [told(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return told(ng.from_numpy(np.atleast_1d(value)))
    if isinstance(value, ng.Generator):
        return value.get_state().tolist()
    return repr(value)

def use(thing):
    """What a thing is good for."""
    if type(thing).__name__.endswith("Dispatcher"):
        return told(thing(NUMBERS))
    return told(thing(ng.from_numpy(NUMBERS)) if callable(thing) else thing)

def there_and_back(name, thing):
    """In the other process: use it, and return what came of it and the thing itself."""
    return name, use(thing), thing

def apart(name):
    """In the other process: make it there, use it, and send it."""
    made = MAKING[name]()
    return name, use(made), made

def check(results, expected):
    bad = []
    for name, found, thing in results:
        if found != expected[name] or use(thing) != expected[name]:
            bad.append(name)
    assert not bad, bad
    assert len(results) == len(expected)

def main(how, method):
    sent = {name: make() for name, make in MAKING.items()}
    if how == "cloudpickle":
        import cloudpickle
        factor = ng.tensor(3.0, dtype=ng.float64)
        local = lambda x: (x * factor).sum()
        sent["a lambda"] = local
        sent["jit of a lambda"] = ng.jit(local)
        sent["a transform of a lambda"] = ng.func.grad(local)
        sent["jit of a lambda, warm"] = ng.jit(ng.func.grad(local))
        sent["jit of a lambda, warm"](ng.from_numpy(NUMBERS))
    expected = {}
    if method == "fork":  # the child has it compiled
        expected = {name: use(thing) for name, thing in sent.items()}
    pairs = list(sent.items())
    context = multiprocessing.get_context(method)
    if how == "pool":
        with context.Pool(2) as pool:
            results = pool.starmap(there_and_back, pairs, chunksize=1)
            made_there = pool.map(apart, ["jit, warm", "dispatcher, warm", "view"])
    elif how == "futures":
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            futures = [pool.submit(there_and_back, *pair) for pair in pairs]
            results = [future.result() for future in futures]
            made_there = list(pool.map(apart, ["jit, warm", "dispatcher, warm", "view"]))
    elif how == "joblib":
        import joblib
        parallel = joblib.Parallel(n_jobs=2)
        results = parallel(joblib.delayed(there_and_back)(*pair) for pair in pairs)
        made_there = parallel(joblib.delayed(apart)(name) for name in ["jit, warm", "view"])
    else:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            found = pool.submit(by_cloudpickle, cloudpickle.dumps(pairs)).result()
        results, made_there = cloudpickle.loads(found), []
    expected = expected or {name: use(thing) for name, thing in sent.items()}
    check(results, expected)
    check(made_there, {name: expected[name] for name, _, _ in made_there})

def by_cloudpickle(data):
    import cloudpickle
    return cloudpickle.dumps([there_and_back(*pair) for pair in cloudpickle.loads(data)])

if __name__ == "__main__":
    main(*sys.argv[1:])
    print("done")
'''

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


@pytest.mark.sampled(0.15)
@pytest.mark.parametrize(
    ("how", "method"),
    [
        ("pool", "spawn"),
        pytest.param(
            "futures", "fork", marks=pytest.mark.skipif(os.name == "nt", reason="no fork")
        ),
        ("joblib", "spawn"),
        ("cloudpickle", "spawn"),
    ],
)
def test_what_goes_through_a_process_is_what_it_was(how: str, method: str, tmp_path: Path) -> None:
    if how in ("joblib", "cloudpickle"):
        pytest.importorskip(how)
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(file), how, method],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


def test_copies_of_compiled_transforms_and_objects_compute_the_same() -> None:
    class Times:
        def __call__(self, x: Any) -> Any:
            return x * 3

    x = ng.tensor([1.0, 2.0])
    for function in (ng.func.grad(lambda x: (x**3).sum()), ng.func.jacrev(ng.sin), Times()):
        compiled = ng.jit(function)
        for again in (copy.copy(compiled), copy.deepcopy(compiled)):
            assert ng.equal(again(x), compiled(x))


def test_a_graph_of_any_depth_is_pickled() -> None:
    def function(x: Any) -> Any:
        for k in range(600):
            x = x.flip(0) * x.sin() + k
        return x, x.cumsum(0)

    graph = ng.jit(lambda x: function(x)[1]).lower(np.ones(3)).graph
    again = pickle.loads(pickle.dumps(graph))
    assert str(again) == str(graph)


def test_a_part_of_an_operation_is_not_pickled() -> None:
    name = next(iter(CATALOGUE))
    assert pickle.loads(pickle.dumps(CATALOGUE[name])) is CATALOGUE[name]
    part = Primitive("part_of_one", "PartBackward0", lambda a: a, ["a"], [None], listed=False)
    with pytest.raises(pickle.PicklingError, match="part_of_one is a part of an operation"):
        pickle.dumps(part)
