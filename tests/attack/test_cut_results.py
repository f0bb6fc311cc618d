"""A result that is cut short, or taken away, while a view of it is open: in a process of its own, which a mapped file
would kill.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.bench.dmat import write
from tests.trace.make import result_bytes
from tui_probe.errors import TraceError
from tui_probe.trace.result_file import SMALL_FILE
from tui_probe.trace.results import read_result

LOOK = """
import os, sys
from pathlib import Path
from tests.probes.dmat_view import drawn, opened
from tui_probe.errors import TraceError
folder, how = Path(sys.argv[1]), sys.argv[2]
view = opened(folder)
before = drawn(view)
(file,) = (folder / "result").iterdir()
if how == "removed":
    file.unlink()
else:
    os.truncate(file, int(how))
for command in ("zoom_in", "zoom_in", "zoom_in_rows", "right"):
    view.press(command)
    try:
        after = drawn(view)
        print("drawn")
    except TraceError as error:
        print(error)
"""


def look(trace: Path, how: str) -> list[str]:
    """Return the messages of four keys of a view after the file was replaced."""
    argv = [sys.executable, "-c", LOOK, str(trace), how]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = tmp_path_factory.mktemp("large") / "trace"
    write(trace, 64)
    return trace


def test_large_result_stays_readable_when_removed_and_reports_truncation(large: Path) -> None:
    (file,) = (large / "result").iterdir()
    content = file.read_bytes()
    assert len(content) > SMALL_FILE
    assert look(large, "removed") == ["drawn"] * 4
    file.write_bytes(content)
    output = look(large, "100000")
    assert all("truncated at byte 100000 while open; open the file again" in line for line in output)
    assert len(output) == 4


def test_a_small_result_is_shown_on(tmp_path: Path) -> None:
    write(tmp_path / "trace", 4)
    assert look(tmp_path / "trace", "0") == ["drawn"] * 4


def test_every_way_to_read_of_a_large_result_tells(tmp_path: Path) -> None:
    """Also of the part that is still there, and of what was read before and let go."""
    slots = np.zeros((2, 32, SMALL_FILE // 32), np.uint8)
    path = tmp_path / "1.000000.bin"
    path.write_bytes(result_bytes((2, 1, 1), (32, 1, 1), [(1, slots), (1, np.ones((2, 32, 8), np.uint8))]))
    result = read_result(path)
    held = result.records(0, "<u8")
    with path.open("r+b") as file:
        file.truncate(SMALL_FILE + 1000)
    assert result.records(0, "<u8").base is held.base
    del held
    for read in (
        lambda: result.maps[0],
        lambda: result.records(0, "<u8"),
        lambda: result.some_records(0, "<u8", 1, 2),
        lambda: result.records(1, "<u8"),
    ):
        with pytest.raises(TraceError, match="truncated at byte"):
            read()
    assert not result.some_records(0, "<u8", 0, 1).any()
