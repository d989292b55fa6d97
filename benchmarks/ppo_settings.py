"""What the benchmarks of training compare: the same work for every library.

Read by this project's interpreter and by the peers': nothing but Gymnasium and NumPy is imported.
"""

from dataclasses import asdict, dataclass, field

import cheap_envs  # noqa: F401 - registers the environments

OURS = "batchppo"
PEERS = ("sb3-dummy", "sb3-subproc", "sbx-dummy", "sbx-subproc")


@dataclass(frozen=True)
class Setting:
    """Work that each library does in the same way.

    Attributes:
        name: how the results call it.
        env_id: a registered environment.
        num_envs: environments in parallel.
        n_steps: steps of each in a rollout.
        batch_size: rows of a minibatch.
        n_epochs: how many times an update uses each row.
        policy: "MlpPolicy", "CnnPolicy" or "MlpLstmPolicy".
        width: of both hidden layers of the policy's and the value's network.
        observation: how many numbers an observation of `Numbers-v0` has.
        targets: by kind of work and peer, how many times as fast as the peer is wanted; None
            where it is only reported.
    """

    name: str
    env_id: str
    num_envs: int
    n_steps: int
    batch_size: int
    n_epochs: int
    policy: str = "MlpPolicy"
    width: int = 64
    observation: int = 4
    targets: dict[str, dict[str, float | None]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The rows of a rollout."""
        return self.num_envs * self.n_steps

    @property
    def policy_kwargs(self) -> dict:
        """What all libraries understand, apart from the activation's name."""
        if self.policy == "CnnPolicy":
            return {}
        kwargs = {"net_arch": {"pi": [self.width] * 2, "vf": [self.width] * 2}}
        if self.policy == "MlpLstmPolicy":
            kwargs["lstm_hidden_size"] = 256
        return kwargs

    @property
    def env_kwargs(self) -> dict:
        """What `gymnasium.make` gets beside the id."""
        return {"size": self.observation} if self.env_id == "Numbers-v0" else {}

    def to_json(self) -> dict:
        """Returns the constructor's arguments."""
        return asdict(self)


def _train(*ratios):
    return {"train": dict(zip(PEERS, ratios, strict=True))}


_PARTS = {
    "update": {"sb3-dummy": 6, "sbx-dummy": None},
    "predict": {"sb3-dummy": 6, "sbx-dummy": 3},
}

SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            name="CartPole-v1 8x128",
            env_id="CartPole-v1",
            num_envs=8,
            n_steps=128,
            batch_size=256,
            n_epochs=10,
            targets={**_train(5, 8, 3, 6), **_PARTS},
        ),
        Setting(
            name="CartPole-v1 32x128",
            env_id="CartPole-v1",
            num_envs=32,
            n_steps=128,
            batch_size=1024,
            n_epochs=10,
            targets=_train(3, 8, 2.5, 8),
        ),
        Setting(
            name="HalfCheetah-v5 8x256",
            env_id="HalfCheetah-v5",
            num_envs=8,
            n_steps=256,
            batch_size=256,
            n_epochs=10,
            targets=_train(2.5, 5, 2, 4),
        ),
        Setting(
            name="images 84x84x4 8x128",
            env_id="Images-v0",
            num_envs=8,
            n_steps=128,
            batch_size=256,
            n_epochs=4,
            policy="CnnPolicy",
            targets=_train(1.5, None, None, None),
        ),
        Setting(
            name="LSTM CartPole-v1 8x128",
            env_id="CartPole-v1",
            num_envs=8,
            n_steps=128,
            batch_size=256,
            n_epochs=10,
            policy="MlpLstmPolicy",
            targets={"train": {"contrib-dummy": 3}},
        ),
    )
}
