"""What a thread's operations depend on."""

from __future__ import annotations

from typing import Any

import numgrad as ng
from numgrad.graph.modes.anomaly import anomaly
from numgrad.graph.modes.state import call_interceptors, interceptors, modes
from numgrad.runtime.threads import _here


def state() -> Any:
    """Return all that a thread's operations depend on, but for what is as in a new thread."""
    defaults = {name: getattr(type(modes), name, None) for name in modes.__dict__}
    own = {name: v for name, v in modes.__dict__.items() if v is not defaults[name] and v != ()}
    return (
        own,
        list(map(id, interceptors)),
        list(map(id, call_interceptors)),
        type(modes).dual,
        anomaly.enabled,
        _here.busy,
        ng.is_grad_enabled(),
        ng.is_inference_mode_enabled(),
    )
