"""Define Python functions from generated source."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

__all__ = ["define"]


def define(name: str, source: str, title: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """Run emitted source in a namespace and return its function of that name."""
    exec(_compiled(source, f"<numgrad {title}>"), namespace)
    function: Callable[..., Any] = namespace[name]
    return function


@lru_cache(1 << 10)
def _compiled(source: str, filename: str) -> CodeType:
    # No modification time: linecache keeps the entry, and tracebacks show the lines.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return compile(source, filename, "exec")
