"""Pickling between the owner and its workers."""

from __future__ import annotations

import dis
import io
import pickle
from types import CodeType, FunctionType
from typing import Any

import cloudpickle


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """cloudpickle that also sees globals used only in the body of a nested class.

    A class body reads its names with LOAD_NAME, which cloudpickle (3.1) does not look at: an
    environment class defined inside a function of `__main__` would miss them in the worker.
    """

    def reducer_override(self, obj: Any) -> Any:
        reduced = super().reducer_override(obj)
        if isinstance(obj, FunctionType) and isinstance(reduced, tuple) and len(reduced) > 2:
            _add_class_body_globals(obj, reduced[2])
        return reduced


def _add_class_body_globals(function: FunctionType, state: Any) -> None:
    if not (isinstance(state, tuple) and len(state) == 2 and "__globals__" in state[1]):
        return
    found = state[1]["__globals__"]
    for name in _class_body_names(function.__code__):
        if name in function.__globals__:
            found.setdefault(name, function.__globals__[name])


def _class_body_names(code: CodeType) -> set[str]:
    names: set[str] = set()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _class_body_names(constant)
            names |= {
                instruction.argval
                for instruction in dis.get_instructions(constant)
                if instruction.opname in ("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
            }
    return names - {"__name__"}


def dump_by_value(value: Any) -> bytes:
    """Pickles for a process that lacks this one's `__main__`: its classes go by value."""
    with io.BytesIO() as stream:
        _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
        return stream.getvalue()


def dump_reply(value: Any) -> bytes:
    """Pickles a worker's reply: plainly where possible, as that is several times faster."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return dump_by_value(value)


load = pickle.loads
