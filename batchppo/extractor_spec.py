"""A user's own features extractor as a model file describes it; needs no TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from batchppo.config import refuse_unknown


@dataclass(frozen=True, kw_only=True)
class ExtractorSpec:
    """A Keras layer between observations and dense layers."""

    layer: Mapping[str, Any]
    """The layer as JSON values, see `keras_config.layer_to_json`."""
    weights: Mapping[str, tuple[int, ...]]
    """The shapes of its weights, trained or not, by name and in its order."""
    features: int
    """How many numbers it makes of an observation."""
    custom_objects: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Classes and functions that stand for registered names; never stored."""

    def names(self) -> set[str]:
        """Returns the names of the classes and functions that the layer is made of."""
        return {name for entry in class_entries(self.layer) for name in entry_names(entry)}

    def with_custom_objects(self, given: Mapping[str, Any]) -> tuple[ExtractorSpec, dict[str, Any]]:
        """Returns the extractor with those objects that it names, and the others."""
        own = self.names()
        objects = {name: thing for name, thing in given.items() if name in own}
        others = {name: thing for name, thing in given.items() if name not in own}
        return replace(self, custom_objects=objects), others

    def to_json(self) -> dict[str, Any]:
        """Returns what a model file holds of it."""
        weights = {name: list(shape) for name, shape in self.weights.items()}
        return {"layer": dict(self.layer), "weights": weights, "features": self.features}

    @classmethod
    def from_json(cls, document: Any) -> ExtractorSpec:
        """Returns what `to_json` wrote; raises ValueError or TypeError for anything else."""
        refuse_unknown(document, ("layer", "weights", "features"), "extractor key")
        if not isinstance(document["layer"], Mapping):
            raise TypeError("the extractor's layer must be a JSON object")
        weights = {
            name: tuple(_whole_number(size) for size in shape)
            for name, shape in document["weights"].items()
        }
        features = _whole_number(document["features"])
        return cls(layer=document["layer"], weights=weights, features=features)


def class_entries(config: Any) -> Iterator[Mapping[str, Any]]:
    """Yields every part of a layer's description that names a class or a function."""
    parts = [config]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping):
            if "class_name" in part:
                yield part
            parts.extend(part.values())
        elif isinstance(part, (list, tuple)):
            parts.extend(part)


def entry_names(entry: Mapping[str, Any]) -> list[str]:
    """Returns the names by which an entry's class or function may be given, the full one first.

    `my_package>MyLayer` is the name under which Keras registers, `MyLayer` what users write.
    """
    is_function = entry["class_name"] == "function"
    full = entry.get("config") if is_function else entry.get("registered_name")
    names = [full, str(full).rpartition(">")[2], None if is_function else entry["class_name"]]
    return [name for name in names if isinstance(name, str)]


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"the extractor's sizes must be whole numbers, got {value!r}")
    return value
