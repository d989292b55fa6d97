"""Writing settings as TOML."""

import json
from collections.abc import Mapping
from typing import Any


def to_toml(document: Mapping[str, Any]) -> str:
    """Return a document as TOML: values first, then a section for each mapping in it.

    Args:
        document: Text, numbers, truth values, lists of these, and mappings; None is left out, as
            TOML has no word for it.
    """
    plain = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    sections = {key: value for key, value in document.items() if isinstance(value, Mapping)}
    parts = [_lines(plain), *(f"[{key}]\n{_lines(value)}" for key, value in sections.items())]
    return "\n".join(part for part in parts if part)


def _lines(values: Mapping[str, Any]) -> str:
    return "".join(
        f"{key} = {_value(value)}\n" for key, value in values.items() if value is not None
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        entries = {key: entry for key, entry in value.items() if entry is not None}
        inner = ", ".join(f"{key} = {_value(entry)}" for key, entry in entries.items())
        return f"{{ {inner} }}"
    # What JSON writes for text, numbers, truth values and lists of them is TOML as well.
    return json.dumps(value)
