"""Launches that the hook saves with the memory that they reach."""

from __future__ import annotations

import pytest

from .conftest import Host, Run

SCRIPT = """
context()
f, w = function(module(), "add__8"), word(5)
for _ in range(3): launch(f, w)
print(read(w))
"""


def kept_words(run: Run) -> list[str]:
    """Return the words of the log's line about a saved launch, or one that was not."""
    [line] = run.lines(r"\[probe\] (not-)?kept")
    return line.split(" ")[1:]


def test_launch_from_the_number_on_is_saved_once(host: Host) -> None:
    run = host.python(SCRIPT, TUI_PROBE_KEEP_LAUNCH="dd_@1\nother@0")
    assert (run.status, run.stdout, run.stderr) == (0, "8\n", "")
    assert " ".join(kept_words(run)) == "kept kernel 0 launch 1 bytes 8 regions 1 unknown 0"
    folder = run.directory / "kept" / "0@1"
    assert {path.name for path in folder.iterdir()} == {"launch.info", "ptx.bin", "before.bin", "after.bin"}
    before, after = ((folder / name).read_bytes() for name in ("before.bin", "after.bin"))
    assert (int.from_bytes(before, "little"), int.from_bytes(after, "little")) == (6, 7)
    assert len(run.lines(r"\[exec\] backup .* reason saved by --keep-launch")) == 1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"TUI_PROBE_MAX_KEPT_BYTES": "15"},
            "copies of the kernel's memory before and after the launch need at least 16 bytes; the budget is 15 bytes",
        ),
        ({"TUI_PROBE_MIN_FREE_DISK": "9999999T"}, "disk is nearly full"),
    ],
)
def test_launch_without_room_is_probed_and_leaves_no_file(host: Host, settings: dict[str, str], reason: str) -> None:
    run = host.python(SCRIPT, TUI_PROBE_KEEP_LAUNCH="add@0", **settings)
    assert (run.status, run.stdout) == (0, "8\n")
    assert " ".join(kept_words(run)).startswith(f"not-kept kernel 0 launch 0 reason {reason}")
    assert not [*(run.directory / "kept").glob("*")]


def test_launch_is_not_saved_during_a_capture(host: Host) -> None:
    run = host.python(
        """
context()
f, w = function(module(), "add__8"), word(5)
s, t = stream(), stream()
call("cuStreamBeginCapture_v2", s, 0)
launch(f, w, stream=t)
print("launched")
""",
        TUI_PROBE_KEEP_LAUNCH="add@0",
    )
    assert run.stdout == "launched\n"
    assert kept_words(run)[0] == "not-kept"
