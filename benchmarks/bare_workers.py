"""A vector environment without the contract: the floor for any that has worker processes.

Forked workers, shared arrays, one byte through a pipe each way and a bounded spin. No spaces, no
infos, errors, timeouts, autoreset modes or final observations; if a worker dies, its owner hangs.
"""

import mmap
import os
import select
import time

import gymnasium as gym
import numpy as np

SPIN_SECONDS = 200e-6


def wait(poll):
    """Spins for a while, then blocks."""
    end = time.monotonic() + SPIN_SECONDS
    while not poll(0):
        if time.monotonic() > end:
            poll(None)
            return
        os.sched_yield()


class BareWorkers:
    """Steps environments with observations of numbers in a Box.

    Args:
        env_id: A registered id.
        num_envs: Environments.
        num_workers: Processes, which divides `num_envs`.
    """

    def __init__(self, env_id, num_envs, num_workers):
        one = gym.make(env_id)
        self.num_envs = num_envs
        self.action_space = gym.vector.utils.batch_space(one.action_space, num_envs)
        size = one.observation_space.shape[0]
        self._observations = shared((num_envs, size), one.observation_space.dtype)
        self._actions = shared(self.action_space.shape, self.action_space.dtype)
        self._rewards, self._ends = shared(num_envs, np.float64), shared((2, num_envs), np.bool_)
        share = num_envs // num_workers
        self._workers = [
            self._start(env_id, slice(i * share, (i + 1) * share)) for i in range(num_workers)
        ]

    def reset(self, seed=None):
        """Nothing to do: the workers have reset their environments."""

    def step(self, actions):
        """Returns observations, rewards, terminations and truncations."""
        self._actions[:] = actions
        for _, write_fd, _ in self._workers:
            os.write(write_fd, b"s")
        for read_fd, _, poll in self._workers:
            wait(poll)
            os.read(read_fd, 1)
        return self._observations.copy(), self._rewards.copy(), *self._ends.copy()

    def close(self):
        """Ends the workers, which read the end of their pipe."""
        for _, write_fd, _ in self._workers:
            os.close(write_fd)
        for read_fd, _, _ in self._workers:
            os.read(read_fd, 1)
            os.close(read_fd)
        for _ in self._workers:
            os.wait()

    def _start(self, env_id, rows):
        (command_r, command_w), (reply_r, reply_w) = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.close(command_w)
            try:
                self._serve(env_id, rows, command_r, reply_w)
            finally:
                os._exit(0)
        os.close(command_r)
        os.close(reply_w)
        poll = select.poll()
        poll.register(reply_r, select.POLLIN)
        return reply_r, command_w, poll.poll

    def _serve(self, env_id, rows, read_fd, write_fd):
        envs = [gym.make(env_id, disable_env_checker=True) for _ in range(rows.stop - rows.start)]
        for env in envs:
            env.reset(seed=0)
        mine = [self._observations[i] for i in range(rows.start, rows.stop)]
        poll = select.poll()
        poll.register(read_fd, select.POLLIN)
        while True:
            wait(poll.poll)
            if not os.read(read_fd, 1):
                return
            rewards, ends = [], []
            for env, row, action in zip(envs, mine, self._actions[rows].copy(), strict=True):
                observation, reward, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    observation, _ = env.reset()
                row[:] = observation
                rewards.append(reward)
                ends.append((terminated, truncated))
            self._rewards[rows] = rewards
            self._ends[:, rows] = np.transpose(ends)
            os.write(write_fd, b"k")


def shared(shape, dtype):
    """Returns an array that forked processes share."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)
