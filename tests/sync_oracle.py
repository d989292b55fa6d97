"""SyncVectorEnv as an oracle: same seeds, same actions, same results, bit for bit."""

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from batchgym import ProcessVectorEnv


def assert_same(ours, theirs, path="result"):
    """Equal in type, dtype, shape and every bit, all the way down."""
    assert type(ours) is type(theirs), path
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), path
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{path}[{key!r}]")
    elif isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), path
        for i, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(our, their, f"{path}[{i}]")
    elif isinstance(theirs, np.ndarray) and theirs.dtype != object:
        assert ours.dtype == theirs.dtype, path
        assert ours.shape == theirs.shape, path
        np.testing.assert_array_equal(ours, theirs, err_msg=path)
    elif isinstance(theirs, np.ndarray):
        assert ours.shape == theirs.shape, path
        for i in range(len(theirs)):
            assert_same(ours[i], theirs[i], f"{path}[{i}]")
    else:
        assert np.array_equal(ours, theirs), path


def both(env_fns, num_workers=2, shared_memory=True, owner_steps=False, **kwargs):
    """A ProcessVectorEnv, and the SyncVectorEnv that tells what it has to return."""
    ours = ProcessVectorEnv(
        env_fns,
        num_workers=num_workers,
        shared_memory=shared_memory,
        owner_steps=owner_steps,
        **kwargs,
    )
    return ours, SyncVectorEnv(env_fns, **kwargs)


def run_alike(ours, theirs, steps, rng, mode):
    """Resets and steps both with the same actions, masks and seeds."""
    num_envs = ours.num_envs
    assert_same(ours.reset(seed=5), theirs.reset(seed=5))
    ours.action_space.seed(3)
    theirs.action_space.seed(3)
    for _ in range(steps):
        assert_same(ours.action_space.sample(), actions := theirs.action_space.sample())
        result = ours.step(actions)
        assert_same(result, theirs.step(actions))
        done = result[2] | result[3]
        mask = rng.random(num_envs) < 0.1 if mode is not AutoresetMode.DISABLED else done
        if mask.any():
            options = {"reset_mask": mask, "level": 1}
            seeds = [int(s) if s % 2 else None for s in rng.integers(1000, size=num_envs)]
            assert_same(
                ours.reset(seed=seeds, options=dict(options)),
                theirs.reset(seed=seeds, options=dict(options)),
            )
