"""Workers and their owner: scripts, threads, forks, signals, and what is left afterwards."""

import functools
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import psutil
import pytest
from stub_envs import CountingEnv, ModulesEnv

from batchgym import ProcessVectorEnv, WorkerStartError

repeated = pytest.mark.parametrize("repeat", range(5))
pytestmark = pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")


@pytest.fixture
def script(tmp_path):
    """Starts a script in a new interpreter, in its own folder and process group."""
    started = []

    def start(source, *arguments):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(source))
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(
            [sys.executable, str(path), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ,
            cwd=tmp_path,
            process_group=0,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def finish(process, timeout=60):
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    return out, err


def wait_until_gone(pids, seconds):
    """Waits until none of the processes runs, for at most so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(is_running(pid) for pid in pids):
            return
        time.sleep(0.02)
    raise AssertionError(f"still there: {[pid for pid in pids if is_running(pid)]}")


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


UNGUARDED = """
    import functools
    import gymnasium as gym
    import numpy as np
    from gymnasium.spaces import Box, Discrete
    from batchgym import ProcessVectorEnv, make_vec

    SIZE = 3

    class MyError(Exception):
        pass

    class Holder:
        def __init__(self, value):
            self.value = value

    class MyEnv(gym.Env):
        observation_space = Box(-1, 1, (SIZE,))
        action_space = Discrete(2)

        def __init__(self, length=4):
            self.length, self.steps, self.held = length, 0, None

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(SIZE, np.float32), {}

        def step(self, action):
            self.steps += 1
            if self.steps == self.length:
                raise MyError("mine", self.steps)
            return np.ones(SIZE, np.float32), 1.0, False, False, {}

        def hold(self):
            return Holder(self.held.value + 1)
"""


def test_unguarded_script_with_its_own_classes(script):
    out, _ = finish(
        script(
            UNGUARDED
            + """
    gym.register("Mine-v0", MyEnv)
    env = make_vec("Mine-v0", 4, num_workers=2, length=3)
    env.reset(seed=0)
    env.set_attr("held", Holder(41))
    results = env.call("hold")
    print([type(r) is Holder and r.value for r in results])
    try:
        for _ in range(3):
            env.step(np.zeros(4, np.int64))
    except MyError as error:
        print("caught", error.args)
    print(type(env.single_observation_space).__name__)
    """
        )
    )
    assert out.splitlines() == ["[42, 42, 42, 42]", "caught ('mine', 3)", "Box"]


def test_class_in_a_function_whose_body_uses_globals(script):
    out, _ = finish(
        script(
            UNGUARDED
            + """
    def define():
        class Inner(MyEnv):
            observation_space = Box(-1, 1, (SIZE,))
            pieces = [np.float32(SIZE)]
        return Inner

    env = ProcessVectorEnv([define()] * 2, num_workers=1)
    print(env.reset()[0].shape, env.get_attr("pieces")[0])
    """
        )
    )
    assert out == "(2, 3) [np.float32(3.0)]\n"


def test_package_that_only_the_owners_path_finds(script, tmp_path):
    package = tmp_path / "elsewhere"
    package.mkdir()
    (package / "hidden_envs.py").write_text("from stub_envs import CountingEnv as HiddenEnv\n")
    out, _ = finish(
        script(
            """
            import sys
            sys.path.append("elsewhere")
            import hidden_envs
            from batchgym import ProcessVectorEnv
            print(ProcessVectorEnv([hidden_envs.HiddenEnv]).reset()[0])
            """
        )
    )
    assert out == "[[0. 0.]]\n"


def test_environment_that_makes_a_registered_one_inside(script):
    out, _ = finish(
        script(
            UNGUARDED
            + """
    gym.register("Base-v0", MyEnv)
    env = ProcessVectorEnv([lambda: gym.make("Base-v0", length=9)] * 2, num_workers=2)
    print(env.get_attr("length"))
    """
        )
    )
    assert out == "(9, 9)\n"


def test_modules_in_the_working_directory_do_not_shadow_the_standard_library(script, tmp_path):
    (tmp_path / "pickle.py").write_text("raise SystemExit('shadowed')\n")
    (tmp_path / "struct.py").write_text("raise SystemExit('shadowed')\n")
    env = ProcessVectorEnv([CountingEnv], num_workers=1)
    env.close()
    previous = os.getcwd()
    os.chdir(tmp_path)
    try:
        env = ProcessVectorEnv([CountingEnv], num_workers=1)
        env.reset()
        env.close()
    finally:
        os.chdir(previous)


def test_workers_do_not_load_what_the_owner_has(script):
    out, _ = finish(
        script(
            """
            import os
            import sys
            import types
            sys.modules["tensorflow"] = types.ModuleType("tensorflow")  # as if it were loaded
            os.environ["OMPI_RANK"] = "3"
            os.environ["MKL_NUM_THREADS"] = "5"
            from stub_envs import ModulesEnv
            from batchgym import ProcessVectorEnv
            env = ProcessVectorEnv([ModulesEnv] * 2, num_workers=2, worker_environ={"MINE": "x"})
            print(env.call("loaded", "tensorflow"), env.call("loaded", "script"))
            for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "OMPI_RANK"):
                print(env.call("variable", name)[1])
            print(env.call("variable", "MINE")[0], "tensorflow" in sys.modules)
            """
        )
    )
    assert out.splitlines() == [
        "(False, False) (False, False)",
        "1",
        "5",
        "",
        "None",
        "x True",
    ]


@pytest.mark.slow
def test_workers_do_not_load_tensorflow_with_a_script_that_does(script):
    pytest.importorskip("tensorflow")
    out, _ = finish(
        script(
            "    import tensorflow as tf\n"
            + UNGUARDED
            + """
    class Telling(MyEnv):
        def loaded(self):
            import sys
            return [name for name in sys.modules if name.split(".")[0] in ("tensorflow", "keras")]

    env = ProcessVectorEnv([Telling] * 4, num_workers=4)
    env.reset()
    print(env.call("loaded"))
    """
        ),
        timeout=110,
    )
    assert out == "([], [], [], [])\n"


ENDING = """
    import sys
    import numpy as np
    import stub_envs
    from stub_envs import CountingEnv, ScriptedEnv
    from batchgym import ProcessVectorEnv
    what = getattr(stub_envs, sys.argv[1]) if sys.argv[1] != "idle" else None
    env = ProcessVectorEnv([lambda: ScriptedEnv("step", what)] * 3, num_workers=2, daemon=False)
    env.reset()
    print(*[process.pid for process in env.processes], flush=True)
    if what is not None:
        env.step_async(np.zeros(3, np.int64))
"""


def read_pids(process):
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 2
    return pids


@pytest.mark.parametrize("doing", ["idle", "hang_in_python", "hang_in_c_with_gil"])
def test_exit_without_close(script, doing):
    process = script(ENDING, doing)
    pids = read_pids(process)
    _, err = finish(process, timeout=30)
    assert err == ""
    wait_until_gone(pids, 2)


@repeated
@pytest.mark.parametrize("doing", ["idle", "hang_in_python", "hang_in_c_with_gil"])
def test_owner_killed(script, doing, repeat):
    process = script(ENDING + "    import time; time.sleep(60)\n", doing)
    pids = read_pids(process)
    time.sleep(0.1)
    process.kill()
    wait_until_gone(pids, 2)


def test_owner_killed_while_its_fork_holds_the_pipes(script):
    source = ENDING + "    import os, time; os.fork(); time.sleep(8)\n"
    process = script(source, "idle")
    pids = read_pids(process)
    time.sleep(0.2)
    process.kill()
    wait_until_gone(pids, 4)


@repeated
def test_ctrl_c_leaves_one_traceback_and_no_process(script, repeat):
    process = script(ENDING + "    env.step_wait()\n", "hang_in_python")
    pids = read_pids(process)
    time.sleep(0.3)
    # Ctrl-C in a terminal reaches the whole foreground group.
    os.killpg(process.pid, signal.SIGINT)
    for pid in pids:
        os.kill(pid, signal.SIGINT)  # and a stray one reaches the workers
    _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1
    assert err.strip().endswith("KeyboardInterrupt")
    wait_until_gone(pids, 2)


def test_interrupted_step_is_still_pending():
    env = ProcessVectorEnv([CountingEnv] * 2, num_workers=1)
    env.reset()
    env.step_async(np.zeros(2, np.int64))
    original = env._engine.pool.gather

    def interrupted(*arguments):
        env._engine.pool.gather = original
        raise KeyboardInterrupt

    env._engine.pool.gather = interrupted
    with pytest.raises(KeyboardInterrupt):
        env.step_wait()
    np.testing.assert_array_equal(env.step_wait()[1], [1.0, 1.0])
    env.close()


@repeated
def test_made_in_a_thread_that_ends(repeat):
    made = []
    thread = threading.Thread(
        target=lambda: made.append(ProcessVectorEnv([CountingEnv] * 2, num_workers=2))
    )
    thread.start()
    thread.join()
    time.sleep(0.1)
    env = made[0]
    env.reset()
    np.testing.assert_array_equal(env.step(np.zeros(2, np.int64))[1], [1.0, 1.0])
    env.close()


def test_a_fork_of_the_owner_neither_uses_nor_ends_the_workers():
    env = ProcessVectorEnv([CountingEnv] * 2, num_workers=2)
    env.reset()
    child = os.fork()
    if child == 0:
        try:
            env.step(np.zeros(2, np.int64))
        except RuntimeError as error:
            env._finalizer()
            os._exit(42 if "is a fork of it" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    np.testing.assert_array_equal(env.step(np.zeros(2, np.int64))[1], [1.0, 1.0])
    env.close()


def test_environments_may_start_processes():
    def run_echo(env):
        return subprocess.run(["echo", "hi"], capture_output=True, check=True).stdout

    env = ProcessVectorEnv([ModulesEnv], num_workers=1)
    env.set_attr("echo", functools.partial(run_echo, None))
    assert env.call("echo") == (b"hi\n",)
    env.close()


def test_dropped_without_close():
    env = ProcessVectorEnv([CountingEnv] * 2, num_workers=2)
    env.reset()
    processes = env.processes
    del env
    gc.collect()
    assert all(process.returncode is not None for process in processes)


def resources():
    """Descriptors, threads and children of this process, and its files in shared memory."""
    this = psutil.Process()
    return (
        len(os.listdir("/proc/self/fd")),
        threading.active_count(),
        len(this.children(recursive=True)),
        len(os.listdir("/dev/shm")),
    )


def cycle():
    env = ProcessVectorEnv([CountingEnv] * 2, num_workers=1)
    env.reset(seed=0)
    env.step(np.zeros(2, np.int64))
    env.close()
    return env


def check_cycles(number):
    kept = [cycle()]
    before, memory = resources(), psutil.Process().memory_info().rss
    kept += [cycle() for _ in range(number)]
    assert resources() == before
    growth = (psutil.Process().memory_info().rss - memory) / number
    assert growth < 100_000, "bytes of memory per closed vector environment"


@pytest.mark.timeout(300)  # fifty times two processes, on machines that may be busy
def test_closed_vector_environments_leave_nothing():
    check_cycles(50)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_thousand_cycles_leave_nothing():
    check_cycles(1000)


def test_a_failed_start_leaves_nothing():
    before = resources()
    with pytest.raises(ZeroDivisionError):
        ProcessVectorEnv([CountingEnv, lambda: 1 / 0], num_workers=2)
    assert resources() == before


def test_too_few_descriptors(script):
    out, _ = finish(
        script(
            """
            import os, resource
            from stub_envs import CountingEnv
            from batchgym import ProcessVectorEnv, WorkerStartError
            resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
            before = len(os.listdir("/proc/self/fd"))
            try:
                ProcessVectorEnv([CountingEnv] * 20, num_workers=20)
            except WorkerStartError as error:
                print(error)
            print(len(os.listdir("/proc/self/fd")) - before)
            env = ProcessVectorEnv([CountingEnv], num_workers=1)
            print(env.reset()[0])
            """
        )
    )
    error, left, observation = out.splitlines()
    assert "Cannot start worker" in error
    assert "Too many open files" in error
    assert "ulimit -n" in error
    assert (left, observation) == ("0", "[[0. 0.]]")


def test_too_little_shared_memory(monkeypatch):
    before = resources()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(WorkerStartError, match=r"Cannot reserve .* MiB .*No space left.*Docker"):
        ProcessVectorEnv([CountingEnv] * 2, num_workers=1)
    assert resources() == before
