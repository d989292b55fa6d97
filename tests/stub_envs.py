"""Environments for tests: they count, fail, hang, die or print, so that every number is known.

They live in a module of their own because workers have to be able to import them.
"""

import copy
import ctypes
import os
import resource
import signal
import sys
import threading
import time
from typing import ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple


class CountingEnv(gym.Env):
    """Observation [episode, step in the episode]; ends after `length` steps; reward is the step."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 30}

    def __init__(self, length=3, truncates=False, render_mode=None):
        self.observation_space = Box(0, 1000, (2,), np.float32)
        self.action_space = Discrete(5)
        self.render_mode = render_mode
        self.length = length
        self.truncates = truncates
        self.episode = -1
        self.count = 0
        self.last_options = "never reset"
        self.last_seed = "never reset"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.count = 0
        self.last_seed, self.last_options = seed, options
        return self._observation(), {"began": self.episode}

    def step(self, action):
        self.count += 1
        done = self.count >= self.length
        return (
            self._observation(),
            float(self.count),
            done and not self.truncates,
            done and self.truncates,
            {"count": self.count},
        )

    def render(self):
        return np.full((2, 2, 3), self.count, np.uint8) if self.render_mode else None

    def add(self, number, twice=False):
        return (self.count + number) * (2 if twice else 1)

    def where(self):
        return os.getpid()

    def _observation(self):
        return np.array([self.episode, self.count], np.float32)


class SampleEnv(gym.Env):
    """Observations, rewards, ends and infos drawn from the environment's generator."""

    def __init__(self, observation_space, action_space=None, infos="none", end=0.2):
        self.observation_space = copy.deepcopy(observation_space)  # has a generator of its own
        self.action_space = action_space or Discrete(3)
        self.infos = infos
        self.end = end
        self.last_action = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), self._info("reset")

    def step(self, action):
        self.last_action = action
        end, cut = self.np_random.random(2) < self.end / 2
        reward = self.np_random.normal()
        return self.observation_space.sample(), reward, bool(end), bool(cut), self._info("step")

    def action_type(self):
        return describe(self.last_action)

    def _info(self, where):
        return INFO_KINDS[self.infos](self.np_random, where)


def describe(value):
    """Type, dtype, shape and value of an action, all the way down."""
    if isinstance(value, dict):
        return {key: describe(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(describe(item) for item in value)
    return (type(value).__name__, str(getattr(value, "dtype", "")), np.asarray(value).tolist())


def _numeric(rng, where):
    return {
        "number": float(rng.random()),
        "whole": int(rng.integers(100)),
        "flag": bool(rng.random() < 0.5),
        "single": np.float32(rng.random()),
        "array": rng.random((2, 3)),
        "point": np.array(rng.random()),
    }


def _sometimes(rng, where):
    info = {key: value for key, value in _numeric(rng, where).items() if rng.random() < 0.5}
    if rng.random() < 0.3:
        info["nested"] = {"deep": {"x": float(rng.random())}, "name": "n"}
    if rng.random() < 0.3:
        info["empty"] = {}
    return info


def _mixed(rng, where):
    """Types that change from one environment and step to the next."""
    choices = [1, 1.5, np.float32(2.5), "text", None, np.arange(3), {"inside": 1}, [1, 2], True]
    info = _sometimes(rng, where)
    kind = int(rng.integers(3))
    info["scalar"] = choices[kind]
    info["object"] = choices[3 + int(rng.integers(2))]
    info[f"only {where}"] = np.int8(kind)
    info["np_bool"] = np.bool_(kind == 1)
    info["big"] = 2**62 if kind else 3
    return info


INFO_KINDS = {
    "none": lambda rng, where: {},
    "numeric": _numeric,
    "sometimes": _sometimes,
    "mixed": _mixed,
}


class WordSpace(gym.Space):
    """A custom space that Gymnasium knows nothing about."""

    def __init__(self):
        super().__init__(None, None)

    def sample(self, mask=None, probability=None):
        return f"word{self.np_random.integers(100)}"

    def contains(self, x):
        return isinstance(x, str)

    def __eq__(self, other):
        return isinstance(other, WordSpace)

    def __hash__(self):
        return hash(WordSpace)


class ScriptedEnv(gym.Env):
    """Does something in one of its methods, at one of its steps."""

    def __init__(self, where="never", what=lambda env: None, at_step=1):
        self.observation_space = Box(-1e9, 1e9, (1,), np.float64)
        self.action_space = Discrete(5)
        self.where, self.what, self.at_step = where, what, at_step
        self.steps = 0
        self._act("init")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._act("reset")
        return np.array([float(self.steps)]), {}

    def step(self, action):
        self.steps += 1
        result = (np.array([float(self.steps)]), 1.0, False, False, {})
        if self.steps == self.at_step and self.where == "step":
            return self.what(self) or result
        return result

    def close(self):
        self._act("close")

    def method(self):
        self._act("method")
        return self.steps

    def _act(self, where):
        if where == self.where:
            self.what(self)


class CustomError(Exception):
    """An exception of a user's module."""


class TwoArgumentError(Exception):
    """An exception that default pickling cannot rebuild."""

    def __init__(self, left, right):
        super().__init__(f"{left} and {right}")
        self.left, self.right = left, right


class UnpicklableError(Exception):
    """An exception that cannot be pickled at all."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class BrokenTextError(Exception):
    """An exception whose text cannot be made."""

    def __str__(self):
        raise RuntimeError("no text")


class UnpicklableOnArrival:
    """Travels to the worker, and raises there."""

    def __call__(self):
        return CountingEnv()

    def __reduce__(self):
        return raise_error, (CustomError("at unpickling"),)


def raise_error(error):
    """Raises, as a function."""
    raise error


def raise_custom(env):
    raise CustomError("of step", 42)


def raise_two_arguments(env):
    raise TwoArgumentError("this", "that")


def raise_unpicklable(env):
    raise UnpicklableError("locked in")


def raise_broken_text(env):
    raise BrokenTextError


def raise_os_error(env):
    raise FileNotFoundError(2, "No such file", "model.xml")


def raise_exit(env):
    sys.exit(3)


def exit_at_once(env):
    os._exit(7)


def kill(env):
    os.kill(os.getpid(), signal.SIGKILL)


def crash(env):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Not os.kill: a real access to a wrong address.
    ctypes.string_at(0)


def hang_in_python(env):
    while True:
        time.sleep(0.01)


def hang_in_c_without_gil(env):
    ctypes.CDLL(None).sleep(1000)


def hang_in_c_with_gil(env):
    ctypes.PyDLL(None).sleep(1000)


def hang_stubbornly(env):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang_in_python(env)


def print_line(env):
    sys.stdout.write("printed by an environment\n")


def read_stdin(env):
    input()


def return_wrong_shape(env):
    return np.zeros(3), 0.0, False, False, {}


def return_scalar(env):
    return 1.0, 0.0, False, False, {}


def return_integers(env):
    return np.array([7], np.int16), 0.0, False, False, {}


def return_nan(env):
    return np.array([np.nan]), float("nan"), False, False, {}


def return_array_reward(env):
    return np.zeros(1), np.array([2.5]), np.array(False), np.bool_(True), {}


def return_two_rewards(env):
    return np.zeros(1), np.array([1.0, 2.0]), False, False, {}


def return_unpicklable_info(env):
    return np.zeros(1), 0.0, False, False, {"lock": threading.Lock()}


class ReusingEnv(gym.Env):
    """Returns one and the same buffer all the time."""

    def __init__(self):
        self.observation_space = Box(-1000, 1000, (1,), np.float64)
        self.action_space = Discrete(2)
        self.buffer = np.zeros(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.buffer[0] = 0
        return self.buffer, {}

    def step(self, action):
        self.buffer[0] += 1
        return self.buffer, 0.0, self.buffer[0] >= 2, False, {}


class KeepingEnv(gym.Env):
    """Keeps its first action."""

    def __init__(self):
        self.observation_space = Box(-10, 10, (1,), np.float64)
        self.action_space = Box(-10, 10, (2,), np.float32)
        self.kept = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1), {}

    def step(self, action):
        if self.kept is None:
            self.kept = action
        return np.zeros(1), 0.0, False, False, {}


class UnevenEnv(gym.Env):
    """Sleeps as long as its action says, in hundredths of a second; observation [steps, action]."""

    def __init__(self):
        self.observation_space = Box(0, 1000, (2,), np.float64)
        self.action_space = Discrete(1000)
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2), {"seed": -1 if seed is None else seed}

    def step(self, action):
        time.sleep(int(action) / 100)
        self.steps += 1
        return np.array([self.steps, action], np.float64), float(action), False, False, {}


class ModulesEnv(CountingEnv):
    """Tells which modules its worker has loaded, and its environment variables."""

    def loaded(self, name):
        return name in sys.modules

    def variable(self, name):
        return os.environ.get(name)


class PrintingEnv(CountingEnv):
    """Prints when it is made and at each step."""

    def __init__(self, name="env"):
        super().__init__()
        self.name = name
        sys.stderr.write("an old model format\n")

    def step(self, action):
        sys.stdout.write(f"all alike\nstep of {self.name}\n")
        return super().step(action)


SPACES = {
    "box": Box(-1, 1, (3,), np.float32),
    "half": Box(-1, 1, (2, 2), np.float16),
    "double": Box(-np.inf, np.inf, (2,), np.float64),
    "image": Box(0, 255, (4, 4, 3), np.uint8),
    "scalar box": Box(-1, 1, (), np.float32),
    "bool box": Box(0, 1, (3,), np.bool_),
    "discrete": Discrete(5, start=-2),
    "multidiscrete": MultiDiscrete([3, 4]),
    "multibinary": MultiBinary((2, 2)),
    "text": Text(6),
    "one of": gym.spaces.OneOf([Discrete(3), Box(0, 1, (2,), np.float32)]),
    "graph": gym.spaces.Graph(Box(-1, 1, (2,), np.float32), Discrete(3)),
    "sequence": gym.spaces.Sequence(Box(0, 1, (2,), np.float32)),
    "stacked": gym.spaces.Sequence(Box(0, 1, (2,), np.float32), stack=True),
    "custom": WordSpace(),
    "dict": Dict(b=Box(0, 1, (2,), np.float32), a=Discrete(4)),
    "tuple": Tuple([Box(0, 1, (2,), np.float32), MultiBinary(3)]),
    "nested": Dict(x=Tuple([Discrete(3), Dict(y=Box(0, 1, (), np.float64))]), z=MultiBinary(2)),
    "partly text": Dict(words=Text(4), pixels=Box(0, 255, (2, 2), np.uint8)),
    "deep text": Tuple([Discrete(2), Dict(t=Text(3), g=WordSpace())]),
    "only text": Dict(t=Text(5)),
}
