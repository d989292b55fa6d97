"""The shape of a policy's networks, as `policy_kwargs` describes it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from batchppo.activations import activation_name
from batchppo.config import number, refuse_unknown, require_flag, whole_number
from batchppo.errors import SpaceError
from batchppo.extractor_spec import ExtractorSpec
from batchppo.observations import ObservationEncoder
from batchppo.policy_names import split_policy
from batchppo.recurrence import GATES

_AS_THEY_ARE = (
    "ortho_init",
    "log_std_init",
    "squash_output",
    "features_dim",
    "share_features_extractor",
    "recurrent_size",
    "mean_activation",
    "std_activation",
    "output_init_scale",
)
_DEFAULTS: dict[str, dict[str, Any]] = {
    "Cnn": {"net_arch": []},
    "MultiInput": {"features_dim": 256},
}
_WIDTHS = ("pi", "vf", "front")
_CHOICES = {"mean_activation": ("linear", "tanh"), "std_activation": ("exp", "softplus")}
_EXTRACTOR = ("features_extractor", "features_extractor_class", "features_extractor_kwargs")
_FLAGS = ("ortho_init", "share_features_extractor", "critic_cell", "use_sde", "squash_output")
_POLICY_KWARGS = (
    *_AS_THEY_ARE,
    *_EXTRACTOR,
    "lstm_hidden_size",
    "enable_critic_lstm",
    "net_arch",
    "activation_fn",
    "optimizer_kwargs",
)


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Dense networks for policy and value, behind convolutions where there are images.

    A user's own Keras layer may stand in front of the dense networks, too, and read everything.
    """

    pi: tuple[int, ...] = (64, 64)
    """Widths of the policy's hidden layers."""
    vf: tuple[int, ...] = (64, 64)
    """Widths of the value's hidden layers."""
    activation: str = "tanh"
    """The hidden layers' activation, by name."""
    ortho_init: bool = True
    """Orthogonal initial weights (gain sqrt(2), 0.01 for actions, 1 for the value)."""
    log_std_init: float = 0.0
    """The initial logarithm of a Gaussian's standard deviation."""
    mean_activation: str = "linear"
    """What a Gaussian's means go through: "linear", or "tanh" for actions between -1 and 1."""
    std_activation: str = "exp"
    """What makes a Gaussian's deviations of the trained numbers: "exp" or "softplus"."""
    output_init_scale: float | None = None
    """The variance of the policy's initial output weights times their inputs (a truncated normal
    distribution); None for the gain that `ortho_init` says."""
    features_dim: int = 512
    """Numbers that an image becomes."""
    share_features_extractor: bool = True
    """Whether policy and value share the convolutions, or the user's own layer."""
    extractor: ExtractorSpec | None = None
    """The user's own layer; None for what the policy's name says."""
    cell: str | None = None
    """The recurrent cell in front of the dense layers, "lstm" or "gru"; None for no memory."""
    recurrent_size: int = 256
    """The cell's width."""
    front: tuple[int, ...] = ()
    """Widths of the dense layers between features and cell."""
    critic_cell: bool = True
    """Whether the value has a cell, too; otherwise it reads one observation at a time."""
    use_sde: bool = False
    """Whether a Gaussian's noise depends on the state."""
    squash_output: bool = False
    """Whether a Gaussian's actions go through tanh instead of being clipped."""
    adam_epsilon: float = 1e-5
    """Adam's epsilon."""

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be {' or '.join(map(repr, allowed))}, got {getattr(self, name)!r}"
                )
        self._check_numbers()
        scale = self.output_init_scale
        if scale is not None and not scale > 0.0:
            raise ValueError(f"output_init_scale must be a positive number, got {scale!r}")
        if self.cell is None and (self.front or not self.critic_cell):
            given = "net_arch's 'front'" if self.front else "enable_critic_lstm=False"
            raise ValueError(
                f"{given} is for policies with memory: MlpLstmPolicy, MlpGruPolicy, ..."
            )

    def _check_numbers(self) -> None:
        for name in ("recurrent_size", "features_dim"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        for name in ("log_std_init", "adam_epsilon"):
            value = number(name, getattr(self, name))
            if not math.isfinite(value) or (name == "adam_epsilon" and value <= 0.0):
                kind = "finite" if name == "log_std_init" else "positive"
                raise ValueError(f"{name} must be a {kind} number, got {value}")
            object.__setattr__(self, name, value)
        if self.output_init_scale is not None:
            scale = number("output_init_scale", self.output_init_scale)
            object.__setattr__(self, "output_init_scale", scale)
        for name in _FLAGS:
            require_flag(name, getattr(self, name))
        if self.cell not in (None, *GATES):
            raise ValueError(f"cell must be None or one of {', '.join(GATES)}, got {self.cell!r}")

    @classmethod
    def from_policy_kwargs(
        cls,
        policy_kwargs: Mapping[str, Any] | None,
        policy: str = "MlpPolicy",
        use_sde: bool = False,
    ) -> Architecture:
        """Returns the architecture that Stable-Baselines3's `policy_kwargs` describe.

        Defaults are its too: two layers of 64, but none behind the 512 features of a "CnnPolicy";
        256 features per image of a "MultiInputPolicy". A user's own layer is not described here:
        that takes TensorFlow and the spaces, see `batchppo.user_extractor.describe`.

        Args:
            policy_kwargs: `net_arch` (a list for both networks, or a dict with `pi` and `vf`, and
                `front` for layers before a cell), `activation_fn` (a name, or anything whose
                `__name__` is one, so that `torch.nn.ReLU` works), `ortho_init`, `log_std_init`,
                `mean_activation`, `std_activation`, `output_init_scale`, `squash_output`,
                `features_dim`, `features_extractor`, `features_extractor_class`,
                `features_extractor_kwargs`, `share_features_extractor`, `recurrent_size` (or, as in
                sb3-contrib, `lstm_hidden_size`), `enable_critic_lstm` (for a GRU, too),
                `optimizer_kwargs` (`eps` or `epsilon`).
            policy: the policy's name.
            use_sde: whether a Gaussian's noise depends on the state.

        Raises:
            ValueError: an unknown key or a value that is not allowed.
        """
        reading, cell = split_policy(policy)
        given = dict(policy_kwargs or {})
        refuse_unknown(given, _POLICY_KWARGS, "policy_kwargs key")
        if any(given.get(name) is not None for name in _EXTRACTOR):
            _refuse_features_dim(given)
        else:
            given = {**_DEFAULTS.get(reading, {}), **given}
        chosen: dict[str, Any] = {name: given[name] for name in _AS_THEY_ARE if name in given}
        chosen.update(cell=cell, use_sde=use_sde)
        if "lstm_hidden_size" in given:
            chosen["recurrent_size"] = given["lstm_hidden_size"]
        if "enable_critic_lstm" in given:
            chosen["critic_cell"] = bool(given["enable_critic_lstm"])
        if "net_arch" in given:
            chosen.update(_widths(given["net_arch"]))
        if "activation_fn" in given:
            chosen["activation"] = activation_name(given["activation_fn"])
        for name, value in dict(given.get("optimizer_kwargs") or {}).items():
            refuse_unknown([name], ("eps", "epsilon"), "optimizer_kwargs key")
            chosen["adam_epsilon"] = value
        return cls(**chosen)

    def latent_size(self, encoder: ObservationEncoder) -> int:
        """Returns how many numbers the policy's output layer reads."""
        if self.pi:
            return self.pi[-1]
        if self.cell is not None:
            return self.recurrent_size
        return self.features_size(encoder)

    def features_size(self, encoder: ObservationEncoder) -> int:
        """Returns how many numbers an observation becomes before cells and dense layers."""
        if self.extractor is not None:
            return self.extractor.features
        return encoder.size + self.features_dim * len(encoder.images)

    def acts_in_tensorflow(self, encoder: ObservationEncoder) -> bool:
        """Returns whether the policy needs TensorFlow to act; the others act in NumPy."""
        return self.extractor is not None or bool(encoder.images)

    def has_cell(self, part: str) -> bool:
        """Returns whether the "actor" or the "critic" has a cell."""
        return self.cell is not None and (part == "actor" or self.critic_cell)

    @property
    def std_name(self) -> str:
        """Under which name the numbers are stored that make a Gaussian's deviations."""
        return "log_std" if self.std_activation == "exp" else "raw_std"

    def check_actions(self, space: Space[Any]) -> None:
        """Raises SpaceError if a Gaussian is described, but actions of `space` have none."""
        box = space if isinstance(space, spaces.Box) else None
        if self.std_activation != "exp" and box is None:
            raise SpaceError(f"std_activation needs a Box of floats as action space, got {space}")
        if self.mean_activation == "tanh" and (
            box is None or np.any(box.low != -1.0) or np.any(box.high != 1.0)
        ):
            raise SpaceError(
                f"mean_activation='tanh' needs a Box of actions between -1 and 1, got {space}; "
                f"gymnasium.wrappers.RescaleAction(env, -1, 1) makes one where bounds are "
                f"finite"
            )

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        document = asdict(replace(self, extractor=None))
        # Without the entry, files of other policies are what they were before there was one.
        del document["extractor"]
        if self.extractor is not None:
            document["extractor"] = self.extractor.to_json()
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Architecture:
        """Returns what `to_json` wrote; raises ValueError for an unknown key."""
        refuse_unknown(document, (field.name for field in fields(cls)), "architecture key")
        widths = {name: _layer_widths(document.get(name, ()), name) for name in _WIDTHS}
        changes: dict[str, Any] = {"activation": activation_name(document["activation"]), **widths}
        if "extractor" in document:
            changes["extractor"] = ExtractorSpec.from_json(document["extractor"])
        return cls(**{**document, **changes})

    def with_custom_objects(self, given: Mapping[str, Any]) -> tuple[Architecture, dict[str, Any]]:
        """Returns this with those objects that its extractor names, and the others."""
        if self.extractor is None:
            return self, dict(given)
        extractor, others = self.extractor.with_custom_objects(given)
        return replace(self, extractor=extractor), others


def _refuse_features_dim(given: Mapping[str, Any]) -> None:
    if "features_dim" in given:
        raise ValueError(
            "features_dim is for the convolutions that a policy brings along; a features extractor "
            "of your own decides itself (features_extractor_kwargs go to its __init__)"
        )


def _widths(net_arch: Any) -> dict[str, tuple[int, ...]]:
    if isinstance(net_arch, Mapping):
        refuse_unknown(net_arch, _WIDTHS, "net_arch key")
        return {name: _layer_widths(net_arch.get(name, ()), name) for name in _WIDTHS}
    return dict.fromkeys(("pi", "vf"), _layer_widths(net_arch, "net_arch"))


def _layer_widths(widths: Any, name: str) -> tuple[int, ...]:
    if not isinstance(widths, Sequence) or any(
        isinstance(width, bool) or not isinstance(width, int) or width < 1 for width in widths
    ):
        raise ValueError(
            f"{name} must be a list of layer widths such as [64, 64], or dict(pi=[64], vf=[64]); "
            f"got {widths!r}"
        )
    return tuple(widths)
