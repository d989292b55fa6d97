"""Figures to terminal, CSV, JSON and TensorBoard."""

import csv
import io
import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image as Pillow
from ppo_envs import CueEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from batchppo import BatchPPO, configure_logger, learner
from batchppo.logger import CsvOutput, TableOutput
from batchppo.run_logger import numbered_folder
from batchppo.summaries import Figure, HParam, Image, Video


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    """Compiling takes seconds and does not matter here."""
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_record_mean_and_dump():
    logger = configure_logger(None, [])
    for value in (1.0, 2.0, 6.0):
        logger.record_mean("a", value)
    logger.record("b", 1)
    logger.record("b", 2)
    assert logger.name_to_value == {"a": 3.0, "b": 2}
    logger.dump(1)
    assert logger.name_to_value == {}
    logger.record_mean("a", 5.0)
    assert logger.name_to_value == {"a": 5.0}


def test_csv_takes_new_columns_and_keeps_old_rows(tmp_path):
    output = CsvOutput(tmp_path / "progress.csv")
    output.write({"a": 1, "b": np.float32(0.5)}, 0)
    output.write({"a": 2, "c": "x,y"}, 1)
    output.close()
    again = CsvOutput(tmp_path / "progress.csv")  # a resumed run
    again.write({"c": "z", "a": 3}, 2)
    again.close()
    assert rows(tmp_path / "progress.csv") == [
        {"a": "1", "b": "0.5", "c": ""},
        {"a": "2", "b": "", "c": "x,y"},
        {"a": "3", "b": "", "c": "z"},
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["progress.csv"]


def test_what_tensorboard_alone_can_show(tmp_path):
    logger = configure_logger(tmp_path, ["csv", "json", "log", "tensorboard"])
    red = np.zeros((3, 4, 5, 3), np.uint8)
    red[..., 0] = 255
    figure, _ = plt.subplots(figsize=(1, 1))
    logger.record("trajectory/figure", Figure(figure, close=True), exclude=("stdout", "log"))
    logger.record("trajectory/video", Video(red, fps=10))
    logger.record("trajectory/other", Video(red.transpose(0, 3, 1, 2)[None]), exclude="csv")
    logger.record("trajectory/image", Image(red[0].transpose(2, 0, 1), "CHW"))
    logger.record("hparams", HParam({"gamma": 0.99, "f": len}, {"rollout/ep_len_mean": 0}))
    logger.record("hidden", 7, exclude="csv")
    logger.record_mean("shown", 8, exclude=["json", "tensorboard"])
    logger.dump(5)
    logger.close()
    assert not plt.get_fignums()
    assert rows(tmp_path / "progress.csv") == [{"shown": "8.0"}]
    assert json.loads((tmp_path / "progress.json").read_text()) == {"hidden": 7}
    events = EventAccumulator(str(tmp_path)).Reload()
    assert "shown" not in events.Tags()["tensors"]
    for name in ("figure", "image", "video", "other"):
        (event,) = events.Tensors(f"trajectory/{name}")
        width, height, content = event.tensor_proto.string_val
        assert event.step == 5
        with Pillow.open(io.BytesIO(content)) as picture:
            assert picture.size == (int(width), int(height))
            if name != "figure":
                assert picture.size == (5, 4)
                assert picture.convert("RGB").getpixel((0, 0)) == (255, 0, 0)
    assert b"gamma" in b"".join(path.read_bytes() for path in tmp_path.glob("events*"))


def test_what_does_not_fit_tensorboard_is_refused():
    logger = configure_logger(None, [])
    with pytest.raises(ValueError, match="'cvs' in exclude. Did you mean 'csv'"):
        logger.record("a", 1, exclude="cvs")
    with pytest.raises(ValueError, match=r"shape \(2, 2\) does not fit dataformats 'HWC'"):
        Image(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"video of float64 and shape \(2, 2\); expected uint8"):
        Video(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="at least one metric"):
        HParam({}, {})


def test_json_has_one_strict_object_a_line(tmp_path):
    logger = configure_logger(tmp_path, ["json"])
    logger.record("a", float("nan"))
    logger.record("b", np.int64(3))
    logger.dump(1)
    logger.close()
    assert json.loads((tmp_path / "progress.json").read_text()) == {"a": None, "b": 3}


def test_the_table_groups_by_prefix():
    file = io.StringIO()
    TableOutput(file).write({"time/fps": 12345, "train/loss": 0.00012345, "time/elapsed": 2.5}, 0)
    lines = [line.strip("| -") for line in file.getvalue().splitlines()]
    assert [" ".join(line.split()) for line in lines if line] == [
        "time/", "elapsed 2.5", "fps 12,345", "train/", "loss 0.000123",
    ]  # fmt: skip
    assert len({len(line) for line in file.getvalue().splitlines()}) == 1


def test_training_logs_stable_baselines3_s_keys_at_environment_steps(tmp_path):
    agent = BatchPPO("MlpPolicy", CueEnv(), n_steps=16, n_epochs=2, clip_range_vf=0.2, seed=0)
    agent.set_logger(configure_logger(tmp_path, ["csv", "json", "log", "tensorboard"]))
    agent.learn(64)
    agent.close()
    logged = rows(tmp_path / "progress.csv")
    assert [int(row["time/total_timesteps"]) for row in logged] == [16, 32, 48, 64]
    assert {
        "rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "time/iterations",
        "time/time_elapsed", "time/total_timesteps", "time/environment", "time/acting",
        "time/update", "train/approx_kl", "train/clip_fraction", "train/clip_range",
        "train/clip_range_vf", "train/entropy_loss", "train/explained_variance",
        "train/learning_rate", "train/loss", "train/n_updates", "train/policy_gradient_loss",
        "train/value_loss",
    } <= set(logged[0])  # fmt: skip
    assert logged[-1]["rollout/ep_len_mean"] == "8.0"
    assert logged[-1]["train/n_updates"] == str(4 * 2)
    events = EventAccumulator(str(tmp_path)).Reload()
    tensors = events.Tensors("rollout/ep_len_mean")
    assert [event.step for event in tensors] == [16, 32, 48, 64]


def test_tensorboard_folders_are_numbered(tmp_path):
    agent = BatchPPO("MlpPolicy", CueEnv(), n_steps=16, tensorboard_log=tmp_path, seed=0)
    agent.learn(16)
    agent.learn(16, reset_num_timesteps=False)
    agent.learn(16, tb_log_name="other")
    agent.learn(16)
    agent.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "BatchPPO_1", "BatchPPO_2", "other_1",
    ]  # fmt: skip
    assert numbered_folder(tmp_path, "BatchPPO", new=True).name == "BatchPPO_3"
    assert numbered_folder(tmp_path, "BatchPPO", new=False).name == "BatchPPO_2"
    assert numbered_folder(tmp_path, "new", new=False).name == "new_1"


def test_the_log_interval_and_silence(tmp_path, capsys):
    for interval, expected in ((1, 4), (3, 1), (None, 0)):
        agent = BatchPPO("MlpPolicy", CueEnv(), n_steps=16, seed=0)
        folder = tmp_path / str(interval)
        agent.set_logger(configure_logger(folder, ["csv"]))
        agent.learn(64, log_interval=interval)
        agent.close()
        assert len(rows(folder / "progress.csv")) == expected
    assert capsys.readouterr().out == ""


def test_verbose_prints_a_table(capsys):
    BatchPPO("MlpPolicy", CueEnv(), n_steps=16, seed=0, verbose=1).learn(16)
    assert "total_timesteps" in capsys.readouterr().out


def test_wrong_formats():
    with pytest.raises(ValueError, match="'cvs'. Did you mean 'csv'"):
        configure_logger("x", ["cvs"])
    with pytest.raises(ValueError, match="'csv' writes a file: give folder="):
        configure_logger(None, ["csv"])
