"""Wrappers named on the command line: `TimeLimit(max_episode_steps=200)`."""

import ast
import functools
import importlib
from collections.abc import Callable
from typing import Any

import gymnasium

from .errors import BadInput
from .suggestions import did_you_mean

Wrapper = Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]]

_BATCHGYM = ("FrameDelta", "FrameHistory", "RandomStart")
_FORMS = "NAME, MODULE:NAME or MODULE:NAME(key=value, ...)"


def load_wrapper(text: str) -> Wrapper:
    """Return the wrapper that `text` describes.

    Args:
        text: `NAME` (of `gymnasium.wrappers`, or one of batchgym's) or `MODULE:NAME`, with keyword
            arguments in parentheses where there are any; their values are Python literals.

    Raises:
        BadInput: The text has another form, or there is no such wrapper.
    """
    path, _, arguments = text.partition("(")
    module_name, _, name = path.strip().rpartition(":")
    default = "batchgym" if name in _BATCHGYM else "gymnasium.wrappers"
    wrapper = _find(module_name or default, name, text)
    return functools.partial(
        wrapper, **_read_arguments(f"({arguments}" if arguments else "()", text)
    )


def _find(module_name: str, name: str, text: str) -> Wrapper:
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise BadInput(f"wrapper {text!r}: cannot import {module_name!r}: {error}") from error
    wrapper = getattr(module, name, None)
    if not callable(wrapper):
        hint = did_you_mean(name, [*vars(module), *_BATCHGYM])
        raise BadInput(f"wrapper {text!r}: {module_name} has no {name!r}.{hint}")
    return wrapper  # type: ignore[no-any-return]


def _read_arguments(call: str, text: str) -> dict[str, Any]:
    try:
        parsed = ast.parse(f"f{call}", mode="eval").body
        if (
            not isinstance(parsed, ast.Call)
            or parsed.args
            or not all(item.arg for item in parsed.keywords)
        ):
            raise ValueError(call)
        return {str(item.arg): ast.literal_eval(item.value) for item in parsed.keywords}
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"wrapper {text!r} is not of the form {_FORMS}") from error
