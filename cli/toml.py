"""Settings as TOML, which has no word for "no value": here it is the text "none"."""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import BadInput

_NONE = "none"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def read_toml(file: Path) -> dict[str, Any]:
    """Return the settings in a file, None for each text "none".

    Raises:
        BadInput: The file is no TOML.
    """
    try:
        document: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: neither the config.json of a run nor TOML ({error})") from error
    return {key: _with_none(value) for key, value in document.items()}


def to_toml(document: Mapping[str, Any]) -> str:
    """Return settings as `read_toml` reads them: values first, then a section for each mapping.

    Args:
        document: Text, numbers, truth values, None, lists of these, and mappings.
    """
    plain = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    sections = {key: value for key, value in document.items() if isinstance(value, Mapping)}
    parts = [
        _lines(plain),
        *(f"[{_key(key)}]\n{_lines(value)}" for key, value in sections.items()),
    ]
    return "\n".join(part for part in parts if part)


def _with_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_none(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_none(entry) for entry in value]
    return None if value == _NONE else value


def _lines(values: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in values.items())


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if value is None or isinstance(value, str):
        return _text(_NONE if value is None else value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf, -inf and nan, as in Python
    return json.dumps(value)


def _text(text: str) -> str:
    # TOML reads the escapes of JSON, but for those of two halves of a character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
