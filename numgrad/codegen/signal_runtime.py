"""What generated loops call about signals: whether one came, and to raise what its handler raised.

Python runs handlers between its own instructions only, of which there are none in compiled code. A
loop that is to end early asks for them; what was raised is kept with the thread until memory is
given back, and raised at the end of the compiled function, so that nobody sees what was left.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from numgrad.codegen.numba_private import cgutils

__all__ = ["interrupted", "raise_interruption"]

_KEPT = "numgrad.interruption"  # under which key the dict of a thread has it


def _interrupted(typing_context: Any) -> Any:
    """Return whether a signal came whose handler raises, such as that of Ctrl-C."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        api = context.get_python_api(builder)
        gil = api.gil_ensure()
        known = _call(api, "PyThreadState_GetDict")
        came = cgutils.alloca_once_value(
            builder, cgutils.is_not_null(builder, api.dict_getitem_string(known, _KEPT))
        )
        status = _call(api, "PyErr_CheckSignals", of=ir.IntType(32))
        with builder.if_then(builder.icmp_signed("!=", status, ir.IntType(32)(0))):
            places = [cgutils.alloca_once(builder, api.pyobj) for _ in range(3)]
            api.err_fetch(*places)
            _call(api, "PyErr_NormalizeException", *places, of=ir.VoidType())
            kind, raised, traceback = map(builder.load, places)
            with builder.if_then(cgutils.is_not_null(builder, traceback)):
                _call(api, "PyException_SetTraceback", raised, traceback, of=ir.IntType(32))
            api.dict_setitem_string(known, _KEPT, raised)
            for each in (kind, raised, traceback):
                api.decref(each)
            builder.store(cgutils.true_bit, came)
        api.gil_release(gil)
        return builder.load(came)

    return types.boolean(), lower


def _raise_interruption(typing_context: Any, ended: Any) -> Any:
    """Raise what a signal's handler raised, if it ended a loop of this call.

    The function is left as by any other exception, and so are compiled functions around it.
    """

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        is_so = builder.icmp_signed("!=", arguments[0], arguments[0].type(0))
        with builder.if_then(is_so, likely=False):
            api = context.get_python_api(builder)
            gil = api.gil_ensure()
            known = _call(api, "PyThreadState_GetDict")
            raised = api.dict_getitem_string(known, _KEPT)
            api.err_set_object(api.get_type(raised), raised)  # a borrowed type
            key = context.insert_const_string(builder.module, _KEPT)
            _call(api, "PyDict_DelItemString", known, key, of=ir.IntType(32))
            api.gil_release(gil)
            context.call_conv.return_exc(builder)
        return context.get_dummy_value()

    return types.void(ended), lower


def _call(api: Any, name: str, *arguments: Any, of: Any = None) -> Any:
    """Call a function of Python's; it returns an object unless another type is given."""
    kind = ir.FunctionType(api.pyobj if of is None else of, [each.type for each in arguments])
    function = cgutils.get_or_insert_function(api.module, kind, name)
    return api.builder.call(function, arguments)


interrupted: Any = intrinsic(_interrupted)
raise_interruption: Any = intrinsic(_raise_interruption)
