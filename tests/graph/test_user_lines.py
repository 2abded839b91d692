"""Which line is the user's: of warnings, however deep they arise, and where no line is."""

from __future__ import annotations

import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import numgrad as ng
from numgrad.graph.inplace import bump_version
from numgrad.graph.modes.state import modes
from numgrad.graph.node import Node, node_type
from numgrad.graph.warned import warn
from numgrad.ops.calls.steps import Steps
from numgrad.runtime import frames


def nested(depth: int, file: str, **options: Any) -> Any:
    """Return a function that warns from inside of calls of functions in a file."""
    names: dict[str, Any] = {"warn": warn, "options": options, "__name__": "somewhere"}
    lines = ["def f0(): warn('now', **options)"]
    lines += [f"def f{at + 1}(): return f{at}()" for at in range(depth)]
    exec(compile("\n".join(lines), file, "exec"), names)
    return names[f"f{depth}"]


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
@pytest.mark.parametrize("file", ["<numgrad made>", str(Path(ng.__file__).parent / "x" / "y.py")])
def test_a_warning_is_at_the_line_that_called_us(depth: int, file: str) -> None:
    function = nested(depth, file)
    further = nested(depth, file, more=1, category=FutureWarning)

    def calls(inner: Any) -> int:
        inner()
        return 0

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
        calls(function)
        calls(further)
    assert [str(each.message) for each in caught] == ["now"] * 3
    assert [each.category for each in caught] == [UserWarning, UserWarning, FutureWarning]
    assert {each.filename for each in caught} == {__file__}
    first, inside, outside = [each.lineno for each in caught]
    assert inside == calls.__code__.co_firstlineno + 1 and outside == first + 2


@pytest.mark.usefixtures("every_warning")
def test_a_warning_without_a_user_is_given_all_the_same() -> None:
    with pytest.warns(UserWarning, match="now"):
        _in_a_thread(nested(2, "<numgrad made>"))
    for backward in (lambda y: y.backward, lambda y: y.sum().backward):
        x = ng.tensor(2.0, requires_grad=True)
        with pytest.warns(UserWarning, match="reference cycle"):
            _in_a_thread(backward(x * x), create_graph=True)
        assert x.grad is not None and x.grad.item() == 4.0


def test_the_error_of_anomaly_mode_is_told_where_no_line_is_the_users() -> None:
    x = ng.tensor(0.0, requires_grad=True)
    y = ng.sqrt(x) * 0
    with (
        ng.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected in SqrtBackward0. No forward pass"),
    ):
        error = _in_a_thread(y.backward)
    assert str(error) == "Function 'SqrtBackward0' returned nan values in its 0th output."


def _in_a_thread(function: Any, **keywords: Any) -> BaseException | None:
    """Call a function where no frame is the user's; return what it raised."""
    raised: list[Any] = []
    before, threading.excepthook = threading.excepthook, lambda given: raised.append(given)
    try:
        thread = threading.Thread(target=function, kwargs=keywords)
        thread.start()
        thread.join()
    finally:
        threading.excepthook = before
    return raised[0].exc_value if raised else None


def test_a_call_that_warns_is_not_remembered() -> None:
    steps = Steps()
    modes.steps = steps
    try:
        with pytest.warns(UserWarning, match="now"):
            warn("now")
    finally:
        modes.steps = None
    assert steps.failed and not steps.is_complete()
    with pytest.warns(UserWarning, match="now"):
        warn("now")  # nothing notes it


def test_whose_a_file_is() -> None:
    package = str(Path(ng.__file__).parent)
    installed, library = frames._INSTALLED, frames._LIBRARY
    foreign = {
        __file__: False,
        f"{package}/graph/tensor.py": True,
        f"{package}_of_mine/tensor.py": False,
        f"{installed}numpy/core.py": True,
        f"{installed}scipy/optimize.py": True,
        f"{installed}somebodys/code.py": False,
        f"{library}threading.py": True,
        "<stdin>": False,
        "<string>": False,
        "<doctest a[0]>": False,
        "<ipython-input-1>": False,
        "<numgrad made>": True,
        "<frozen importlib>": True,
    }
    for file, wanted in foreign.items():
        assert frames._is_foreign(file, "f") == wanted, file
        is_ours = file.startswith((f"{package}/", "<frozen", "<numgrad "))
        assert frames.is_library(file) == (is_ours or file.startswith((library, installed)))
        assert frames.is_of_package(file) == file.startswith(f"{package}/")
    for name, wanted in (("__init__", True), ("__eq__", True), ("__x", False), ("x__", False)):
        assert frames._is_foreign("<string>", name) == wanted  # methods of a dataclass
    assert frames.where_user_is().startswith(f"{__file__}:")


@pytest.mark.usefixtures("every_warning")
def test_without_a_user_it_is_told_which_file_of_ours_warns_of_a_cycle() -> None:
    """Of our own lines the one that called the function that warns, as far as there is one."""
    x = ng.tensor(2.0, requires_grad=True)
    with pytest.warns(UserWarning, match="reference cycle") as caught:
        _in_a_thread((x * x).backward, create_graph=True)
    (warned,) = caught
    assert Path(warned.filename).name == "tensor.py"


def test_in_anomaly_mode_it_is_noted_where_each_node_and_each_write_was_made() -> None:
    x = ng.ones(2)
    with ng.autograd.set_detect_anomaly(True, check_nan=False):
        bump_version(x)
        line = sys._getframe().f_lineno - 1
        x.add_(1)
        nodes = [node_type("Made", Node)([]), (ng.ones(2, requires_grad=True) * 2).grad_fn]
    assert {version: at for version, (_, at) in x._counter[2].items()} == {1: line, 2: line + 2}
    assert {code for code, _ in x._counter[2].values()} == {sys._getframe().f_code}
    for node in nodes:
        told = "".join(node.metadata["traceback_"])
        assert f'"{__file__}", line {line + 3}' in told
    assert node_type("Made", Node)([]).attached is None
    with ng.inference_mode():
        y = ng.ones(2)
        with ng.autograd.set_detect_anomaly(True, check_nan=False):
            bump_version(y)  # which has none
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        bump_version(y)
