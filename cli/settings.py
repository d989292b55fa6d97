"""`--set KEY=VALUE`: hyperparameters of the agent, typed and checked before anything starts."""

import ast
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import batchppo
from batchppo.architecture import Architecture

from .errors import BadInput
from .suggestions import did_you_mean

# Arguments of the agent that are no hyperparameters, and the types of their values.
_OTHERS: Mapping[str, tuple[type, ...]] = {
    "policy": (str,),
    "device": (str,),
    "use_sde": (bool,),
    "policy_kwargs": (dict,),
}
# What the annotations of `batchppo.PPOConfig` are made of. Of other kinds, a value is taken as it
# was written: the configuration checks it.
_KINDS: Mapping[str, tuple[type, ...]] = {
    "ScheduleLike": (float, str),
    "float": (float,),
    "int": (int,),
    "bool": (bool,),
    "str": (str,),
    "None": (type(None),),
}
# Settings that have an option of their own.
_OPTIONS = {
    "env": "TASK",
    "total_timesteps": "--timesteps",
    "num_envs": "--num-envs",
    "num_workers": "--num-workers",
    "seed": "--seed",
    "tensorboard_log": "--logdir",
    "verbose": "--quiet",
}
_WORDS = {"true": True, "false": False, "none": None, "null": None}


def parse_settings(assignments: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of `batchppo.BatchPPO` that `KEY=VALUE` texts stand for.

    Args:
        assignments: Texts such as `gamma=0.98`, `learning_rate=linear:3e-4`, `target_kl=none` or
            `policy_kwargs.net_arch=[64,64]`.

    Raises:
        BadInput: An unknown key, or a value of the wrong type.
    """
    settings: dict[str, Any] = {}
    for text in assignments:
        path, value = split_assignment(text, "--set")
        key, _, inner = path.partition(".")
        if inner:
            _expect(key == "policy_kwargs", f"--set {text}: only policy_kwargs has keys inside")
            settings.setdefault(key, {})[inner] = parse_literal(value)
        else:
            settings[key] = _parse(key, value)
    return settings


def typed_settings(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arguments of `batchppo.BatchPPO` in a file, with the types that the agent wants.

    Args:
        settings: Values as JSON or TOML hold them.
        where: What an error message begins with.

    Raises:
        BadInput: A value of the wrong type.
    """
    known = _types()
    return {
        key: _typed(value, known.get(key, ()), f"{where}{key}: ", repr(value))
        for key, value in settings.items()
    }


def check_settings(settings: Mapping[str, Any], where: str = "") -> None:
    """Raise BadInput unless the agent takes these arguments with these values.

    Args:
        settings: Arguments of `batchppo.BatchPPO`.
        where: What an error message begins with.
    """
    known = _types()
    for key in settings:
        if key not in known:
            raise BadInput(f"{where}the agent has no setting {key!r}.{did_you_mean(key, known)}")
    try:
        batchppo.PPOConfig(**{key: settings[key] for key in settings if key not in _OTHERS})
        Architecture.from_policy_kwargs(
            settings.get("policy_kwargs"), settings.get("policy") or "MlpPolicy"
        )
    except (ValueError, TypeError) as error:
        raise BadInput(f"{where}{error}") from error


def split_assignment(text: str, option: str) -> tuple[str, str]:
    """Return key and value of `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    _expect(bool(equals and key), f"{option} {text}: expected KEY=VALUE")
    return key.strip(), value.strip()


def parse_literal(text: str) -> Any:
    """Return what a Python literal, or true, false or none, stands for; other text as it is."""
    if text.casefold() in _WORDS:
        return _WORDS[text.casefold()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _parse(key: str, text: str) -> Any:
    """Return the value of `key` with the type that the agent wants."""
    kinds = _types()
    if key not in kinds:
        option = f" Use {_OPTIONS[key]}." if key in _OPTIONS else did_you_mean(key, kinds)
        raise BadInput(f"--set {key}={text}: unknown key {key!r}.{option}")
    return _typed(parse_literal(text), kinds[key], f"--set {key}={text}: ", repr(text))


def _typed(value: Any, allowed: tuple[type, ...], where: str, shown: str) -> Any:
    """Return a value as one of the allowed types, of which whole numbers have two."""
    if float in allowed and type(value) is int:
        return float(value)
    if int in allowed and isinstance(value, float) and value.is_integer():
        return int(value)
    expected = " or ".join(map(_name, allowed))
    _expect(not allowed or type(value) in allowed, f"{where}expected {expected}, got {shown}")
    return value


def _types() -> dict[str, tuple[type, ...]]:
    """Return the types of values that each argument of the agent may have; none for any."""
    hyperparameters = {
        field.name: _types_of(str(field.type)) for field in dataclasses.fields(batchppo.PPOConfig)
    }
    return {**hyperparameters, **_OTHERS}


def _types_of(annotation: str) -> tuple[type, ...]:
    names = annotation.split(" | ")
    if not all(name in _KINDS for name in names):
        return ()
    return tuple(kind for name in names for kind in _KINDS[name])


def _name(kind: type) -> str:
    return {"NoneType": "none", "int": "a whole number", "float": "a number", "str": "text"}.get(
        kind.__name__, kind.__name__
    )


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise BadInput(message)
