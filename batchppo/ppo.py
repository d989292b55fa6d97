"""Proximal policy optimization on batches of environments."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Never

import numpy as np
from gymnasium import Space
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from batchppo.architecture import Architecture
from batchppo.arguments import (
    HYPERPARAMETERS,
    LOAD_EXTRAS,
    as_seed,
    class_only_method,
    refuse_unknown_constructor_arguments,
    refuse_unknown_load_arguments,
    require_equal_spaces,
    require_mapping,
    require_schedules,
)
from batchppo.callback import CallbackLike, CallbackList, as_callback
from batchppo.config import PPOConfig, whole_number
from batchppo.environments import EnvLike, as_vector_env
from batchppo.episodes import EpisodeStatistics
from batchppo.errors import ModelFileError
from batchppo.given_layer import given_layer
from batchppo.graph_network import GraphNetwork
from batchppo.learner import Learner
from batchppo.logger import Logger
from batchppo.model_file import ModelPath, PathLike
from batchppo.model_state import ModelState, build_policy
from batchppo.policies import policy_encoder
from batchppo.policy import State
from batchppo.progress_callback import ProgressBarCallback
from batchppo.recurrent_acting import numpy_network
from batchppo.rollout import Rollout, RolloutCollector
from batchppo.run_logger import RunLogger
from batchppo.schedules import ConstantSchedule, Schedule, ScheduleLike
from batchppo.space_json import space_to_json
from batchppo.training import Training
from batchppo.user_extractor import describe

DEFAULT_NUM_ENVS = 8


class BatchPPO:
    """Proximal policy optimization (Schulman et al. 2017, arXiv:1707.06347).

    Names, defaults and logger keys follow Stable-Baselines3. Observations and rewards are
    normalized inside of the agent, with statistics that are saved with it.

    Args:
        policy: "MlpPolicy" (dense networks), "CnnPolicy" (images of uint8) or
            "MultiInputPolicy" (Dict observations); each also with memory, as "MlpLstmPolicy" and
            "MlpGruPolicy".
        env: an id (made with batchgym in worker processes), any `gymnasium.vector.VectorEnv` in
            any autoreset mode, or a single `gymnasium.Env`.
        learning_rate: Adam's step size; a number, "linear:3e-4", a schedule of
            `batchppo.schedules` or a function of the remaining progress (1 to 0), like every
            coefficient below.
        n_steps: steps per environment and rollout; None for 2,048 over all environments.
        batch_size: the most rows of a minibatch; may exceed the rollout.
        n_epochs: how many times an update uses each row.
        gamma: discount.
        gae_lambda: trace decay of generalized advantage estimation.
        clip_range: how far the probability ratio may leave 1.
        clip_range_vf: how far a value may leave the old one; None for no bound.
        normalize_advantage: whether advantages are normalized per minibatch.
        ent_coef: weight of the entropy bonus.
        vf_coef: weight of the value loss.
        max_grad_norm: the largest global norm of a gradient; None for no bound.
        use_sde: whether a Gaussian's noise depends on the state (gSDE).
        sde_sample_freq: steps between two draws of that noise; -1 for one draw a rollout.
        target_kl: an update ends before the step whose divergence exceeds 1.5 times this.
        stats_window_size: over how many episodes the logged means go.
        tensorboard_log: folder for TensorBoard's files; None for none.
        policy_kwargs: `net_arch`, `activation_fn`, `ortho_init`, `log_std_init`,
            `mean_activation`, `std_activation`, `output_init_scale`, `squash_output`,
            `features_dim`, `features_extractor` (a Keras layer or model) or
            `features_extractor_class` and `features_extractor_kwargs`,
            `share_features_extractor`, `recurrent_size`, `enable_critic_lstm`,
            `optimizer_kwargs`; see `batchppo.architecture.Architecture`.
        verbose: 0 for silence, 1 to print the figures of each iteration.
        seed: of everything random here and in the environments; None for a fresh one, which
            `agent.seed` then tells.
        device: "auto", "cpu", "cuda" or "cuda:<index>".
        num_envs: how many environments an id gives.
        num_workers: how many worker processes they share; 0 steps them in this process; None
            is one process per core, see `as_vector_env`.
        log_histograms: whether TensorBoard gets histograms of each rollout, its losses, gradients
            and weights.
        normalize_observations: whether observation vectors are normalized.
        normalize_rewards: whether the update sees normalized rewards.
        clip_observation: the largest absolute value of a normalized observation.
        clip_reward: the largest absolute value of a normalized reward.
        sequence_length: rows per sequence that a policy with memory learns from.
        objective: "clip" for the clipped surrogate, or "kl_penalty" for the adaptive divergence
            penalty of the paper's section 4, with a cutoff as in the first batch-ppo.
        kl_target: the divergence per update that the penalty aims at.
        kl_init_penalty: the penalty's weight at the start.
        kl_cutoff_factor: from how many times the target on a quadratic penalty is added.
        kl_cutoff_coef: the weight of the quadratic penalty.

    Attributes:
        config: the hyperparameters, immutable.
        policy: what acts; `agent.policy.predict` needs no TensorFlow.
        num_timesteps: environment steps made so far.

    Every hyperparameter can be read as an attribute, such as `agent.gamma`.

    Raises:
        SpaceError: a space that is not supported.
        ValueError: an argument that is not allowed.
        TypeError: an unknown argument, or one of a wrong type.
    """

    policy_name: str
    num_timesteps: int

    def __init__(
        self,
        policy: str,
        env: EnvLike,
        learning_rate: ScheduleLike = 3e-4,
        n_steps: int | None = None,
        batch_size: int = 256,
        n_epochs: int = 10,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        clip_range: ScheduleLike = 0.2,
        clip_range_vf: ScheduleLike | None = None,
        normalize_advantage: bool = True,
        ent_coef: ScheduleLike = 0.0,
        vf_coef: ScheduleLike = 0.5,
        max_grad_norm: float | None = 0.5,
        use_sde: bool = False,
        sde_sample_freq: int = -1,
        target_kl: float | None = None,
        stats_window_size: int = 100,
        tensorboard_log: PathLike | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: str = "auto",
        *,
        num_envs: int = DEFAULT_NUM_ENVS,
        num_workers: int | None = None,
        log_histograms: bool = False,
        normalize_observations: bool = True,
        normalize_rewards: bool = True,
        clip_observation: float = 10.0,
        clip_reward: float = 10.0,
        sequence_length: int = 32,
        objective: str = "clip",
        kl_target: float = 0.01,
        kl_init_penalty: float = 1.0,
        kl_cutoff_factor: float = 2.0,
        kl_cutoff_coef: float = 1000.0,
        **unknown: Never,
    ) -> None:
        refuse_unknown_constructor_arguments(unknown)
        require_mapping("policy_kwargs", policy_kwargs)
        config = PPOConfig(
            learning_rate=learning_rate,
            n_steps=n_steps,
            batch_size=batch_size,
            n_epochs=n_epochs,
            gamma=gamma,
            gae_lambda=gae_lambda,
            clip_range=clip_range,
            clip_range_vf=clip_range_vf,
            normalize_advantage=normalize_advantage,
            ent_coef=ent_coef,
            vf_coef=vf_coef,
            max_grad_norm=max_grad_norm,
            sde_sample_freq=sde_sample_freq,
            target_kl=target_kl,
            stats_window_size=stats_window_size,
            log_histograms=log_histograms,
            normalize_observations=normalize_observations,
            normalize_rewards=normalize_rewards,
            clip_observation=clip_observation,
            clip_reward=clip_reward,
            sequence_length=sequence_length,
            objective=objective,
            kl_target=kl_target,
            kl_init_penalty=kl_init_penalty,
            kl_cutoff_factor=kl_cutoff_factor,
            kl_cutoff_coef=kl_cutoff_coef,
        )
        architecture = Architecture.from_policy_kwargs(policy_kwargs, policy, use_sde)
        extractor = given_layer(policy_kwargs)
        vector_env = as_vector_env(env, num_envs, num_workers)
        spaces = vector_env.single_observation_space, vector_env.single_action_space
        if extractor is not None:
            encoder = policy_encoder(policy, *spaces, own_extractor=True)
            architecture = replace(architecture, extractor=describe(extractor, encoder))
        self._assemble(policy, config, architecture, *spaces, seed, device)
        if extractor is not None:
            self._learner.network.start_from(extractor)
        self._run_logger = RunLogger(verbose, tensorboard_log)
        self.set_env(vector_env)

    def _assemble(
        self,
        policy_name: str,
        config: PPOConfig,
        architecture: Architecture,
        observation_space: Space[Any],
        action_space: Space[Any],
        seed: int | None,
        device: str,
    ) -> None:
        """Makes the parts of an agent that has no environment yet."""
        self.policy_name = policy_name
        self.config = config
        self.architecture = architecture
        self.seed = as_seed(seed)
        self.num_timesteps = 0
        self._action_rng = np.random.default_rng([self.seed, 0])
        self._collector: RolloutCollector | None = None
        predict_rng = np.random.default_rng([self.seed, 2])
        self.policy = build_policy(
            policy_name, observation_space, action_space, config, architecture, predict_rng
        )
        for space in (observation_space, action_space):
            space_to_json(space)  # an agent that could not be saved must not be trained
        self._learner = Learner(
            self.policy.encoder,
            self.policy.distribution,
            config,
            architecture,
            self.seed,
            device,
        )
        if architecture.acts_in_tensorflow(self.policy.encoder):
            self.policy.network = GraphNetwork(
                self._learner.network, self.policy.encoder, self._learner.device
            )
        self._renew_policy()

    # Training

    def learn(
        self,
        total_timesteps: int,
        callback: CallbackLike = None,
        log_interval: int | None = 1,
        tb_log_name: str = "BatchPPO",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> BatchPPO:
        """Trains and returns the agent itself.

        Ctrl-C and exceptions leave the agent in the state of the last finished update: it can be
        saved, used and trained on.

        Args:
            total_timesteps: environment steps to make; the last rollout is shortened to meet them
                (to one step of all environments).
            callback: a callback, a list of them, or a function of (locals, globals).
            log_interval: iterations between two log entries; None for none.
            tb_log_name: name of the run's folder in `tensorboard_log`.
            reset_num_timesteps: False to go on counting where the last call ended; the schedules'
                horizon is then all steps so far and those to make.
            progress_bar: whether to show one.

        Raises:
            NonFiniteError: NaN or infinity came up, in an environment or in the update.
            ValueError: no environment, or a schedule that is missing.
        """
        with self._training(
            total_timesteps, callback, log_interval, tb_log_name, reset_num_timesteps, progress_bar
        ) as training:
            while self.num_timesteps < training.goal:
                progress_remaining = training.progress_remaining(self.num_timesteps)
                with self._whole_iteration():
                    rollout = self._collect(training)
                    if rollout is None:
                        break
                    began = time.perf_counter()
                    figures = self._learner.learn(rollout, progress_remaining)
                seconds = {**rollout.seconds, "update": time.perf_counter() - began}
                training.log(self.num_timesteps, self.episodes, figures, seconds)
        return self

    @contextmanager
    def _whole_iteration(self) -> Iterator[None]:
        """Leaves steps that were not learned from uncounted, and the acting policy up to date."""
        timesteps, updates = self.num_timesteps, self._learner.n_updates
        try:
            yield
        except BaseException:
            if self._learner.n_updates == updates:
                self.num_timesteps = timesteps
            raise
        finally:
            self._renew_policy()

    @contextmanager
    def _training(
        self,
        total_timesteps: int,
        callback: CallbackLike,
        log_interval: int | None,
        tb_log_name: str,
        reset_num_timesteps: bool,
        progress_bar: bool,
    ) -> Iterator[Training]:
        """Sets up what one call of `learn` needs and lets go of it at its end."""
        total_timesteps = whole_number("total_timesteps", total_timesteps)
        if log_interval is not None:
            log_interval = whole_number("log_interval (or None)", log_interval)
        require_schedules(self.config)
        collector = self._require_collector()
        if reset_num_timesteps:
            self.num_timesteps = 0
        if reset_num_timesteps or not collector.started:
            collector.start(self._environment_seed())
        self._learner.warm_up(collector.n_steps, collector.inputs)
        watchers = [as_callback(callback), ProgressBarCallback() if progress_bar else None]
        present = [watcher for watcher in watchers if watcher is not None]
        watcher = CallbackList(present) if present else None
        training = Training(
            start=self.num_timesteps,
            goal=self.num_timesteps + total_timesteps,
            callback=watcher,
            logger=self._run_logger.open(tb_log_name, new=reset_num_timesteps),
            log_interval=log_interval,
        )
        if watcher is None:
            yield training
            return
        watcher.init_callback(self)
        watcher.on_training_start({"self": self, "total_timesteps": training.goal}, globals())
        try:
            yield training
        finally:
            watcher.on_training_end()

    def _collect(self, training: Training) -> Rollout | None:
        """Returns the next rollout, or None if a callback ends training."""
        collector = self._require_collector()
        steps = training.next_steps(
            self.num_timesteps, collector.n_steps, collector.env.num_envs, collector.valid_share
        )
        watcher = training.callback
        if watcher is not None:
            watcher.on_rollout_start()

        def on_step(timesteps: int, locals_: dict[str, Any]) -> bool:
            self.num_timesteps = timesteps
            return training.on_step(locals_)

        rollout = collector.collect(self.num_timesteps, steps, training.goal, on_step)
        if watcher is not None and rollout is not None:
            watcher.on_rollout_end()
        return rollout

    def _renew_policy(self) -> None:
        """Gives an acting policy in NumPy the present weights; in TensorFlow it shares them."""
        if not self.architecture.acts_in_tensorflow(self.policy.encoder):
            weights = self._learner.network.weights()
            self.policy.network = numpy_network(weights, self.architecture)

    def _environment_seed(self) -> int:
        """Returns the seed of the next reset: the agent's, or one derived from the steps made."""
        if self.num_timesteps == 0:
            return self.seed
        return int(np.random.SeedSequence([self.seed, self.num_timesteps]).generate_state(1)[0])

    # Acting

    def predict(
        self,
        observation: Any,
        state: State = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[Any, State]:
        """Returns the action for an observation, or the actions for a batch; see `Policy.predict`.

        Args:
            observation: one observation, or a batch with one leading axis of any length.
            state: what the last call returned, for a policy with memory; None to begin.
            episode_start: where an episode begins, shape [] or [n]; None for nowhere.
            deterministic: the most likely action instead of a random one.
            action_masks: which choices are allowed, shape [choices] or [n, choices].

        Returns:
            The action or actions as the environment takes them, and the state for the next call.
        """
        return self.policy.predict(observation, state, episode_start, deterministic, action_masks)

    # Environment and logger

    @property
    def observation_space(self) -> Space[Any]:
        """The space of one observation."""
        space: Space[Any] = self.policy.observation_space
        return space

    @property
    def action_space(self) -> Space[Any]:
        """The space of one action."""
        space: Space[Any] = self.policy.action_space
        return space

    @property
    def n_envs(self) -> int:
        """How many environments the agent trains in; 0 where it has none."""
        return 0 if self._collector is None else self._collector.env.num_envs

    @property
    def episodes(self) -> EpisodeStatistics:
        """Returns and lengths of the last training episodes."""
        return self._require_collector().episodes

    @property
    def logger(self) -> Logger:
        """Where figures go: what `set_logger` gave, or what `learn` made."""
        return self._run_logger.current

    @property
    def learning_rate(self) -> Schedule:
        """Adam's step size; may be set, also between two calls of `learn`."""
        schedule = self.config.learning_rate
        if not isinstance(schedule, Schedule):
            raise TypeError(f"expected a schedule, got {schedule!r}")
        return schedule

    @learning_rate.setter
    def learning_rate(self, value: ScheduleLike) -> None:
        self.config = self._learner.config = replace(self.config, learning_rate=value)

    @property
    def ep_info_buffer(self) -> list[dict[str, float]]:
        """The last training episodes as Stable-Baselines3 has them: {"r": return, "l": length}."""
        episodes = self.episodes
        pairs = zip(episodes.returns, episodes.lengths, strict=True)
        return [{"r": return_, "l": length} for return_, length in pairs]

    def get_vec_normalize_env(self) -> None:
        """Returns None: statistics are inside of the agent, and saved with it."""

    def __getattr__(self, name: str) -> Any:
        """Returns a hyperparameter, read-only, as in Stable-Baselines3: `agent.gamma`."""
        if name in HYPERPARAMETERS and "config" in vars(self):
            value = getattr(self.config, name)
            if name == "n_steps" and self._collector is not None:
                return self._collector.n_steps  # where it was not given: what came of it
            return value.value if isinstance(value, ConstantSchedule) else value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_env(self) -> VectorEnv[Any, Any, Any] | None:
        """Returns the vector environment, None where there is none."""
        return None if self._collector is None else self._collector.env

    def set_env(self, env: EnvLike, force_reset: bool = True) -> None:
        """Gives the agent an environment with any number of copies.

        Args:
            env: as in the constructor, with the agent's spaces.
            force_reset: must be True: the agent cannot know the state of another environment.

        Raises:
            SpaceError: its spaces are not the agent's.
        """
        if not force_reset:
            raise ValueError("force_reset=False is not possible: a new environment is always reset")
        vector_env = as_vector_env(env)
        require_equal_spaces(
            self.observation_space, vector_env.single_observation_space, "observation"
        )
        require_equal_spaces(self.action_space, vector_env.single_action_space, "action")
        self._collector = RolloutCollector(
            vector_env,
            self.policy,
            self.config.steps_for(vector_env.num_envs),
            self.config.stats_window_size,
            self._action_rng,
        )

    def set_logger(self, logger: Logger) -> None:
        """Sets where figures go, in place of what `verbose` and `tensorboard_log` say."""
        self._run_logger.give(logger)

    def close(self) -> None:
        """Closes the environment and the logger."""
        if self._collector is not None:
            self._collector.env.close()
        self._run_logger.close()

    def _require_collector(self) -> RolloutCollector:
        if self._collector is None:
            raise ValueError("the agent has no environment: give one with set_env or load(env=...)")
        return self._collector

    # Saving and loading

    def save(self, path: ModelPath) -> None:
        """Writes the model file `path`: weights, optimizer, statistics, counters; no pickle.

        Args:
            path: where; `.zip` is added where there is no suffix, missing folders are made. An
                older file stays whole until the new one is complete. Or a stream of bytes.

        Raises:
            OSError: the file cannot be written.
        """
        self._state().write(path)

    @class_only_method
    def load(
        cls,
        path: ModelPath,
        env: EnvLike | None = None,
        device: str = "auto",
        custom_objects: Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> BatchPPO:
        """Returns a new agent as it was saved.

        Args:
            path: a file that `save` wrote, or a stream of its bytes.
            env: as in the constructor, with any number of environments; None to predict only.
            device: as in the constructor.
            custom_objects: functions that stand for schedules which could not be stored, and
                classes of which a features extractor is made but that are not registered here,
                by name.
            overrides: hyperparameters to change, `seed`, `verbose`, `tensorboard_log`, `num_envs`,
                `num_workers`.

        Raises:
            FileNotFoundError: there is no such file.
            ModelFileError: it is not a model file, or something in it is missing or wrong.
            SpaceError: the environment's spaces are not the model's.
        """
        state = ModelState.read(path)
        given = dict(overrides)
        extras = {name: given.pop(name) for name in LOAD_EXTRAS if name in given}
        state, functions = state.with_custom_objects(path, custom_objects or {})
        changes = {**given, **functions}
        refuse_unknown_load_arguments(changes)
        agent = cls.__new__(cls)
        agent._assemble(
            state.policy_name,
            replace(state.config, **changes),
            state.architecture,
            state.observation_space,
            state.action_space,
            extras.get("seed", state.seed),
            device,
        )
        try:
            agent._restore(state)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None
        agent._run_logger = RunLogger(extras.get("verbose", 0), extras.get("tensorboard_log"))
        if env is not None:
            num_envs = extras.get("num_envs", state.num_envs or DEFAULT_NUM_ENVS)
            agent.set_env(as_vector_env(env, num_envs, extras.get("num_workers")))
        return agent

    def get_parameters(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Returns copies of all arrays: weights, optimizer and statistics, by group and name."""
        return self._state().arrays()

    def set_parameters(
        self,
        load_path_or_dict: ModelPath | Mapping[str, Mapping[str, NDArray[Any]]],
        exact_match: bool = True,
    ) -> None:
        """Takes over arrays, in place: all of them or, if one does not fit, none.

        Args:
            load_path_or_dict: a model file, or what `get_parameters` returned.
            exact_match: whether every group and array has to be there.

        Raises:
            ModelFileError: an array is unknown, missing or of another shape.
        """
        given = (
            load_path_or_dict
            if isinstance(load_path_or_dict, Mapping)
            else ModelState.read(load_path_or_dict).arrays()
        )
        self._restore(self._state().with_arrays(given, exact_match))

    def _state(self) -> ModelState:
        learner, normalizer = self._learner, self.policy.normalizer
        rewards = learner.reward_normalizer
        return ModelState(
            policy_name=self.policy_name,
            config=self.config,
            architecture=self.architecture,
            observation_space=self.observation_space,
            action_space=self.action_space,
            seed=self.seed,
            num_envs=self.n_envs,
            num_timesteps=self.num_timesteps,
            n_updates=learner.n_updates,
            kl_penalty=learner.kl_penalty,
            random={name: rng.bit_generator.state for name, rng in self._generators().items()},
            weights=learner.network.weights(),
            optimizer=learner.updater.optimizer_state(),
            observation_moments={} if normalizer is None else normalizer.moments.state(),
            reward_moments={} if rewards is None else rewards.moments.state(),
        )

    def _restore(self, state: ModelState) -> None:
        learner, normalizer = self._learner, self.policy.normalizer
        learner.network.set_weights(state.weights)
        learner.updater.restore_optimizer(state.optimizer)
        learner.n_updates = state.n_updates
        learner.kl_penalty = state.kl_penalty
        self.num_timesteps = state.num_timesteps
        if normalizer is not None and state.observation_moments:
            normalizer.restore(state.observation_moments)
        if learner.reward_normalizer is not None and state.reward_moments:
            learner.reward_normalizer.moments.restore(state.reward_moments)
        if self.seed == state.seed:
            for name, rng in self._generators().items():
                rng.bit_generator.state = state.random[name]
        self._renew_policy()

    def _generators(self) -> dict[str, np.random.Generator]:
        return {"actions": self._action_rng, "minibatches": self._learner.rng}
