"""Everything that a model file holds, typed."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from batchppo.actions import ActionDistribution, action_distribution
from batchppo.architecture import Architecture
from batchppo.config import PPOConfig
from batchppo.errors import ModelFileError
from batchppo.model_file import ModelPath, read_model_file, write_model_file
from batchppo.normalization import ObservationNormalizer
from batchppo.observations import ObservationEncoder
from batchppo.policies import policy_encoder
from batchppo.policy import Policy, PolicyNetwork
from batchppo.recurrent_acting import numpy_network
from batchppo.space_json import space_from_json, space_to_json
from batchppo.weight_shapes import weight_shapes

Arrays = dict[str, NDArray[Any]]

_GROUPS = ("weights", "optimizer", "observation_moments", "reward_moments")
_GENERATORS = ("actions", "minibatches")
_COUNTS = {"seed": 2**64, "num_envs": 10**6, "num_timesteps": 2**63, "n_updates": 2**63}
"""Whole numbers of a document, and what they are less than."""


def installed_versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that matter to a model."""
    versions = {"python": platform.python_version()}
    for package in ("batchppo", "gymnasium", "numpy", "tensorflow", "keras"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


@dataclass(frozen=True, kw_only=True)
class ModelState:
    """A model between two updates."""

    policy_name: str
    config: PPOConfig
    architecture: Architecture
    observation_space: Space[Any]
    action_space: Space[Any]
    seed: int
    num_envs: int
    num_timesteps: int
    n_updates: int
    kl_penalty: float
    random: dict[str, Any]
    """States of the random generators, by name."""
    weights: Arrays
    optimizer: Arrays
    observation_moments: Arrays
    reward_moments: Arrays
    versions: Mapping[str, str] | None = None
    """Of Python and packages that wrote the file; None for what was not read from one."""

    def write(self, path: ModelPath) -> None:
        """Writes the model file `path`."""
        document = {
            "policy": self.policy_name,
            "config": self.config.to_json(),
            "architecture": self.architecture.to_json(),
            "observation_space": space_to_json(self.observation_space),
            "action_space": space_to_json(self.action_space),
            "seed": self.seed,
            "num_envs": self.num_envs,
            "num_timesteps": self.num_timesteps,
            "n_updates": self.n_updates,
            "kl_penalty": self.kl_penalty,
            "random": self.random,
            "versions": installed_versions(),
        }
        groups = self.arrays().items()
        arrays = {f"{group}/{key}": a for group, entry in groups for key, a in entry.items()}
        write_model_file(path, document, arrays)

    def arrays(self) -> dict[str, Arrays]:
        """Returns all arrays by group and name."""
        return {group: dict(getattr(self, group)) for group in _GROUPS}

    def with_arrays(
        self, given: Mapping[str, Mapping[str, NDArray[Any]]], exact_match: bool
    ) -> ModelState:
        """Returns this state with the arrays that are given in place of its own.

        Raises:
            ModelFileError: an array is unknown, of another shape or, if all are asked for, missing.
        """
        merged: dict[str, Any] = _merged(self.arrays(), given, exact_match)
        return replace(self, **merged)

    @classmethod
    def read(cls, path: ModelPath) -> ModelState:
        """Returns the model that a file holds.

        Raises:
            FileNotFoundError: there is no such file.
            ModelFileError: it is not a model file, or something in it is missing or wrong.
        """
        document, arrays = read_model_file(path)
        try:
            state = cls._from_document(document, arrays)
            state._check_arrays(path)
        except ModelFileError:
            raise
        except KeyError as error:
            raise ModelFileError(f"{path}: 'model.json' has no entry {error}") from None
        except (
            ValueError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            raise ModelFileError(f"{path}: 'model.json' is not valid: {error}") from error
        return state

    def encoder(self) -> ObservationEncoder:
        """Returns how the model's policy reads observations."""
        return policy_encoder(
            self.policy_name,
            self.observation_space,
            self.action_space,
            own_extractor=self.architecture.extractor is not None,
        )

    def with_custom_objects(
        self, path: ModelPath, given: Mapping[str, Any]
    ) -> tuple[ModelState, dict[str, Any]]:
        """Returns this state with those objects that its extractor names, and the others.

        Raises:
            ModelFileError: the extractor cannot be made of what the file `path` says.
        """
        architecture, others = self.architecture.with_custom_objects(given)
        if architecture.extractor is not None:
            from batchppo.user_extractor import check

            try:
                check(architecture.extractor, self.encoder())
            except (ValueError, RecursionError) as error:
                raise ModelFileError(f"{path}: {error}") from error
        return replace(self, architecture=architecture), others

    @classmethod
    def _from_document(cls, document: Mapping[str, Any], arrays: Arrays) -> ModelState:
        return cls(
            policy_name=str(document["policy"]),
            config=PPOConfig.from_json(document["config"]),
            architecture=Architecture.from_json(document["architecture"]),
            observation_space=space_from_json(document["observation_space"]),
            action_space=space_from_json(document["action_space"]),
            seed=_count(document, "seed"),
            num_envs=_count(document, "num_envs"),
            num_timesteps=_count(document, "num_timesteps"),
            n_updates=_count(document, "n_updates"),
            kl_penalty=_positive(document, "kl_penalty"),
            random=_random_states(document["random"]),
            versions=document.get("versions"),
            **{group: _group(arrays, group) for group in _GROUPS},
        )

    def _check_arrays(self, path: ModelPath) -> None:
        encoder = self.encoder()
        distribution = _distribution(self.action_space, self.config, self.architecture, encoder)
        shapes = weight_shapes(encoder, distribution, self.architecture)
        _check_group(path, "weights", self.weights, shapes, np.float32)
        unknown = sorted(self.weights.keys() - shapes.keys())
        if unknown:
            raise ModelFileError(f"{path} has an array 'weights/{unknown[0]}', this model has none")
        moments: dict[str, tuple[int, ...]] = {"count": (1,)}
        for name, size, found, used in (
            ("observation_moments", encoder.size, self.observation_moments,
             _normalizes(encoder, self.config)),
            ("reward_moments", 1, self.reward_moments, self.config.normalize_rewards),
        ):  # fmt: skip
            if used:
                expected = {**moments, "mean": (size,), "squares": (size,)}
                _check_group(path, name, found, expected, np.float64)
                if (found["count"] < 0).any() or (found["squares"] < 0).any():
                    raise ModelFileError(f"{path}: '{name}' has a negative count or variance")
        for name, array in self.optimizer.items():
            if not np.isfinite(array).all():
                raise ModelFileError(f"{path}: array 'optimizer/{name}' holds NaN or infinity")


def _count(document: Mapping[str, Any], name: str) -> int:
    value = document[name]
    if type(value) is not int or not 0 <= value < _COUNTS[name]:
        raise ValueError(f"{name} is {value!r}, expected a whole number in [0, {_COUNTS[name]})")
    return value


def _positive(document: Mapping[str, Any], name: str) -> float:
    value = float(document[name])
    if not 0.0 <= value < np.inf:
        raise ValueError(f"{name} is {value}, expected a number of at least 0")
    return value


def _random_states(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the states of the random generators, each tried on one that is thrown away."""
    states = {name: document[name] for name in _GENERATORS}
    for name, state in states.items():
        try:
            np.random.default_rng(0).bit_generator.state = state
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"random/{name} is no state of a generator: {error!r}") from None
    return states


def _merged(
    own: Mapping[str, Arrays], given: Mapping[str, Mapping[str, NDArray[Any]]], exact_match: bool
) -> dict[str, Arrays]:
    merged = {group: dict(arrays) for group, arrays in own.items()}
    for group, arrays in given.items():
        for name, array in arrays.items():
            expected = merged.get(group, {}).get(name)
            if expected is None or np.shape(array) != expected.shape:
                came = f"'{group}/{name}' of shape {np.shape(array)}"
                right = "no such array" if expected is None else f"shape {expected.shape}"
                raise ModelFileError(f"got {came}, this model has {right}")
            if not np.isfinite(array).all():
                raise ModelFileError(f"got '{group}/{name}' with NaN or infinity in it")
            merged[group][name] = np.asarray(array)
    missing = [f"{g}/{n}" for g, a in own.items() for n in a if n not in given.get(g, {})]
    if exact_match and missing:
        raise ModelFileError(
            f"'{missing[0]}' is missing, and {len(missing) - 1} more; give all arrays, or "
            f"exact_match=False to keep this model's own"
        )
    return merged


def _normalizes(encoder: ObservationEncoder, config: PPOConfig) -> bool:
    """Returns whether observations have statistics: one-hot ones have none."""
    return config.normalize_observations and bool(encoder.numeric.any())


def _group(arrays: Arrays, group: str) -> Arrays:
    prefix = f"{group}/"
    return {k.removeprefix(prefix): array for k, array in arrays.items() if k.startswith(prefix)}


def _check_group(
    path: ModelPath,
    group: str,
    found: Arrays,
    expected: Mapping[str, tuple[int, ...]],
    dtype: type[np.floating],
) -> None:
    for name, shape in expected.items():
        if name not in found:
            raise ModelFileError(f"{path} has no array '{group}/{name}', expected shape {shape}")
        if found[name].shape != shape:
            raise ModelFileError(
                f"{path}: array '{group}/{name}' has shape {found[name].shape}, expected {shape}"
            )
        if found[name].dtype != dtype:
            raise ModelFileError(
                f"{path}: array '{group}/{name}' holds {found[name].dtype}, expected "
                f"{np.dtype(dtype)}"
            )
        if not np.isfinite(found[name]).all():
            raise ModelFileError(f"{path}: array '{group}/{name}' holds NaN or infinity")


def _distribution(
    space: Space[Any], config: PPOConfig, architecture: Architecture, encoder: ObservationEncoder
) -> ActionDistribution:
    architecture.check_actions(space)
    latent_size = architecture.latent_size(encoder) if architecture.use_sde else None
    return action_distribution(
        space, architecture.squash_output, latent_size, config.sde_sample_freq
    )


def build_policy(
    policy_name: str,
    observation_space: Space[Any],
    action_space: Space[Any],
    config: PPOConfig,
    architecture: Architecture,
    rng: np.random.Generator,
    metadata: Mapping[str, Any] | None = None,
) -> Policy:
    """Returns a policy for these spaces whose network is still to be set."""
    own_extractor = architecture.extractor is not None
    encoder = policy_encoder(policy_name, observation_space, action_space, own_extractor)
    distribution = _distribution(action_space, config, architecture, encoder)
    normalizer = None
    if _normalizes(encoder, config):
        normalizer = ObservationNormalizer(encoder.numeric, config.clip_observation)
    return Policy(encoder, normalizer, distribution, rng, metadata)


def acting_network(state: ModelState, policy: Policy) -> PolicyNetwork:
    """Returns what acts for a model: NumPy for dense networks, TensorFlow for the others."""
    if not state.architecture.acts_in_tensorflow(policy.encoder):
        return numpy_network(state.weights, state.architecture)
    from batchppo.graph_network import restored_network

    return restored_network(policy, state.architecture, state.weights)


def load_policy(
    path: ModelPath, seed: int | None = None, custom_objects: Mapping[str, Any] | None = None
) -> Policy:
    """Returns the policy of a model file, ready to act.

    TensorFlow is only needed for policies that read images or have a features extractor.

    Args:
        path: a file that `BatchPPO.save` wrote.
        seed: of the noise in `predict`; None for a fresh one.
        custom_objects: classes of which a features extractor is made but that are not registered
            here, by name.

    Raises:
        FileNotFoundError: there is no such file.
        ModelFileError: it is not a model file, or something in it is missing or wrong.
        TypeError: custom objects that the model does not name.
    """
    state = ModelState.read(path)
    state, others = _with_tensorflow(state, path, custom_objects or {})
    if others:
        raise TypeError(f"custom_objects has {min(others)!r}, which the model does not name")
    metadata = {
        "num_timesteps": state.num_timesteps,
        "seed": state.seed,
        "config": state.config.to_json(),
    }
    rng = np.random.default_rng(seed)
    policy = build_policy(
        state.policy_name,
        state.observation_space,
        state.action_space,
        state.config,
        state.architecture,
        rng,
        metadata,
    )
    policy.network = acting_network(state, policy)
    if policy.normalizer is not None:
        policy.normalizer.restore(state.observation_moments)
    return policy


def _with_tensorflow(
    state: ModelState, path: ModelPath, custom_objects: Mapping[str, Any]
) -> tuple[ModelState, dict[str, Any]]:
    """Returns what `with_custom_objects` does, and says who needs TensorFlow if it is missing."""
    if state.architecture.acts_in_tensorflow(state.encoder()):
        try:
            importlib.import_module("tensorflow")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"the policy in {path} reads images or has a features extractor, for which it "
                f"needs TensorFlow: {error}; `pip install tensorflow`"
            ) from error
    return state.with_custom_objects(path, custom_objects)
