"""The shape of a policy's networks, as `policy_kwargs` describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from batchppo.actions import ActionDistribution
from batchppo.activations import activation_name
from batchppo.config import refuse_unknown
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
)
_DEFAULTS: dict[str, dict[str, Any]] = {
    "Cnn": {"net_arch": []},
    "MultiInput": {"features_dim": 256},
}
_POLICY_KWARGS = (
    *_AS_THEY_ARE,
    "lstm_hidden_size",
    "net_arch",
    "activation_fn",
    "optimizer_kwargs",
)


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Dense networks for policy and value, behind convolutions where there are images."""

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
    features_dim: int = 512
    """Numbers that an image becomes."""
    share_features_extractor: bool = True
    """Whether policy and value share the convolutions."""
    cell: str | None = None
    """The recurrent cell in front of the dense layers, "lstm" or "gru"; None for no memory."""
    recurrent_size: int = 256
    """The cell's width."""
    use_sde: bool = False
    """Whether a Gaussian's noise depends on the state."""
    squash_output: bool = False
    """Whether a Gaussian's actions go through tanh instead of being clipped."""
    adam_epsilon: float = 1e-5
    """Adam's epsilon."""

    @classmethod
    def from_policy_kwargs(
        cls,
        policy_kwargs: Mapping[str, Any] | None,
        policy: str = "MlpPolicy",
        use_sde: bool = False,
    ) -> Architecture:
        """Returns the architecture that Stable-Baselines3's `policy_kwargs` describe.

        Defaults are its too: two layers of 64, but none behind the 512 features of a "CnnPolicy";
        256 features per image of a "MultiInputPolicy".

        Args:
            policy_kwargs: `net_arch` (a list for both networks, or a dict with `pi` and `vf`),
                `activation_fn` (a name, or anything whose `__name__` is one, so that
                `torch.nn.ReLU` works), `ortho_init`, `log_std_init`, `squash_output`,
                `features_dim`, `share_features_extractor`, `recurrent_size` (or, as in
                sb3-contrib, `lstm_hidden_size`), `optimizer_kwargs` (`eps` or `epsilon`).
            policy: the policy's name.
            use_sde: whether a Gaussian's noise depends on the state.

        Raises:
            ValueError: an unknown key or a value that is not allowed.
        """
        reading, cell = split_policy(policy)
        given = {**_DEFAULTS.get(reading, {}), **(policy_kwargs or {})}
        refuse_unknown(given, _POLICY_KWARGS, "policy_kwargs key")
        chosen: dict[str, Any] = {name: given[name] for name in _AS_THEY_ARE if name in given}
        chosen.update(cell=cell, use_sde=use_sde)
        if "lstm_hidden_size" in given:
            chosen["recurrent_size"] = given["lstm_hidden_size"]
        if "net_arch" in given:
            chosen["pi"], chosen["vf"] = _widths(given["net_arch"])
        if "activation_fn" in given:
            chosen["activation"] = activation_name(given["activation_fn"])
        for name, value in dict(given.get("optimizer_kwargs") or {}).items():
            refuse_unknown([name], ("eps", "epsilon"), "optimizer_kwargs key")
            chosen["adam_epsilon"] = float(value)
        return cls(**chosen)

    def latent_size(self, encoder: ObservationEncoder) -> int:
        """Returns how many numbers the policy's output layer reads."""
        if self.pi:
            return self.pi[-1]
        if self.cell is not None:
            return self.recurrent_size
        return encoder.size + self.features_dim * len(encoder.images)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Architecture:
        """Returns what `to_json` wrote; raises ValueError for an unknown key."""
        refuse_unknown(document, (field.name for field in fields(cls)), "architecture key")
        widths = {name: _layer_widths(document[name], name) for name in ("pi", "vf")}
        return cls(**{**document, **widths, "activation": activation_name(document["activation"])})


def _widths(net_arch: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(net_arch, Mapping):
        refuse_unknown(net_arch, ("pi", "vf"), "net_arch key")
        pi, vf = (_layer_widths(net_arch.get(name, ()), name) for name in ("pi", "vf"))
        return pi, vf
    shared = _layer_widths(net_arch, "net_arch")
    return shared, shared


def _layer_widths(widths: Any, name: str) -> tuple[int, ...]:
    if not isinstance(widths, Sequence) or any(
        isinstance(width, bool) or not isinstance(width, int) or width < 1 for width in widths
    ):
        raise ValueError(
            f"{name} must be a list of layer widths such as [64, 64], or dict(pi=[64], vf=[64]); "
            f"got {widths!r}"
        )
    return tuple(widths)


def weight_shapes(
    encoder: ObservationEncoder, distribution: ActionDistribution, architecture: Architecture
) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every weight by the name under which it is stored."""
    outputs = distribution.parameter_size - distribution.free_size
    size = encoder.size + architecture.features_dim * len(encoder.images)
    shapes: dict[str, tuple[int, ...]] = {}
    if architecture.cell is not None:
        width = architecture.recurrent_size
        gates = GATES[architecture.cell] * width
        for name in ("actor_cell", "critic_cell"):
            shapes[f"{name}/kernel"] = (size, gates)
            shapes[f"{name}/recurrent_kernel"] = (width, gates)
            shapes[f"{name}/bias"] = (gates,)
        size = width
    for name, widths in (("actor", (*architecture.pi, outputs)), ("critic", (*architecture.vf, 1))):
        for i, (inputs, width) in enumerate(zip((size, *widths), widths, strict=False)):
            shapes[f"{name}/{i}/kernel"] = (inputs, width)
            shapes[f"{name}/{i}/bias"] = (width,)
    prefixes = ["images"] if architecture.share_features_extractor else ["images", "critic_images"]
    for name, shape in encoder.images.items():
        for prefix in prefixes:
            for layer, weight in _nature_cnn_shapes(shape, architecture.features_dim).items():
                shapes[f"{prefix}/{name}/{layer}"] = weight
    if distribution.free_size:
        latent = (architecture.latent_size(encoder),) if architecture.use_sde else ()
        shapes["log_std"] = (*latent, distribution.free_size)
    return shapes


CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Filters, kernel and stride of Mnih et al. 2015 (Nature 518, 529), extended data table 1."""


def _nature_cnn_shapes(shape: tuple[int, ...], features: int) -> dict[str, tuple[int, ...]]:
    height, width, channels = shape
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (filters, kernel, stride) in enumerate(CONVOLUTIONS):
        shapes[f"{i}/kernel"] = (kernel, kernel, channels, filters)
        shapes[f"{i}/bias"] = (filters,)
        height, width = ((size - kernel) // stride + 1 for size in (height, width))
        channels = filters
    dense = len(CONVOLUTIONS) + 1  # behind a layer that flattens
    shapes[f"{dense}/kernel"] = (height * width * channels, features)
    shapes[f"{dense}/bias"] = (features,)
    return shapes
