"""Cutting the logs of a run back to the checkpoint that it goes on from."""

import csv
import io
from pathlib import Path

from .files import write_bytes, write_text
from .logged import STEPS


def rewind_csv(path: Path, timesteps: int) -> None:
    """Keep the rows of `progress.csv` up to `timesteps`; a row that was cut off in writing goes.

    Args:
        path: The file; nothing happens if there is none.
        timesteps: Environment steps of the last row to keep.
    """
    if not path.exists():
        return
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        columns = reader.fieldnames or []
        rows = [row for row in reader if _is_kept(row, timesteps)]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def _is_kept(row: dict[str, str], timesteps: int) -> bool:
    is_whole = None not in row.values() and None not in row
    steps = row.get(STEPS) or ""
    return is_whole and steps.isdigit() and int(steps) <= timesteps


def rewind_events(folder: Path, timesteps: int) -> None:
    """Keep the events in TensorBoard's files up to the step `timesteps`.

    Each file is replaced as a whole, or stays as it is.

    Args:
        folder: Where the files are.
        timesteps: The last step to keep.
    """
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter

    for path in folder.glob("events.out.tfevents.*"):
        records = list(RawEventFileLoader(str(path)).Load())
        kept = [record for record in records if Event.FromString(record).step <= timesteps]
        if len(kept) == len(records):
            continue
        file = io.BytesIO()
        writer = RecordWriter(file)
        for record in kept:
            writer.write(record)
        writer.flush()
        write_bytes(path, file.getvalue())
