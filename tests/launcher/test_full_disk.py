"""A full disk costs what would have been written there, and nothing else."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from tui_probe.launcher.run_traces import write_record
from tui_probe.launcher.supervisor import OutputLog

BLOCK = bytes(1 << 16)
LIMIT = 30  # seconds; reaching it means that something hangs


def test_data_written_before_full_disk_is_kept(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"before ")
    output_log = OutputLog(tmp_path / "log")
    os.write(output_log.target_end, b"after")
    os.close(output_log.target_end)
    assert output_log.finish(LIMIT)
    assert (tmp_path / "log").read_bytes() == b"before after"


def test_a_log_that_takes_no_more_does_not_stop_the_writer() -> None:
    output_log = OutputLog(Path("/dev/full"))
    assert sum(os.write(output_log.target_end, BLOCK) for _ in range(50)) == 50 * len(BLOCK)
    os.close(output_log.target_end)
    assert not output_log.finish(LIMIT)


def test_a_stream_that_is_held_open_is_not_waited_for(tmp_path: Path) -> None:
    output_log = OutputLog(tmp_path / "log")
    assert output_log.finish(0.01)
    os.close(output_log.target_end)
    assert output_log.finish(LIMIT)


def test_without_tee_the_log_itself_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    output_log = OutputLog(tmp_path / "log")
    os.write(output_log.target_end, b"words")
    os.close(output_log.target_end)
    assert output_log.finish(0)
    assert (tmp_path / "log").read_bytes() == b"words"


def test_the_record_goes_to_the_place_of_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_record(tmp_path, {"exit_status": None, "more": "words"})

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)  # after the new one was made
    with pytest.raises(OSError, match="No space"):
        write_record(tmp_path, {"exit_status": 3})
    assert json.loads((tmp_path / "run.json").read_text()) == {"exit_status": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
