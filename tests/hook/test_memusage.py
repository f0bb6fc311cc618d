"""Memory of probes from the shapes of launches, with a kernel that counts where only that can tell."""

from __future__ import annotations

import pytest

from .conftest import Engine, Host, Run
from .test_captures import CAPTURE

ADD = """
context()
f = function(module(), "add__8")
w = word()
for grid in (2, 5, 3): launch(f, w, grid=grid, block=64)
print(read(w))
"""


@pytest.fixture
def serving(host: Host) -> Engine:
    assert host.engine
    return host.engine


def sized(host: Host, script: str, **more: str) -> Run:
    run = host.python(script, TUI_PROBE_MEMUSAGE="1", **more)
    assert (run.status, run.stderr) == (0, "")
    assert not run.results
    return run


def memory(run: Run) -> list[tuple[int, int, int]]:
    """(bytes of the records, bytes on the device, launch)."""
    fields = [line.split() for line in run.lines(r"\[exec\] probe-mem")]
    return [(int(line[2]), int(line[5]), int(line[7])) for line in fields]


def reasons(run: Run) -> list[str]:
    return [line.split(" reason ")[1] for line in run.lines(r"\[exec\] backup")]


def test_fixed_records_are_sized_and_the_original_runs(host: Host) -> None:
    run = sized(host, ADD)
    assert run.stdout == "3\n"
    assert [line.split()[1] for line in run.calls if line.startswith("launch")] == ["add__8"] * 3
    # two warps of a block, 16 bytes each; on the device aligned
    assert [(size, launch) for size, _, launch in memory(run)] == [(64, 0), (160, 1), (96, 2)]
    assert all(device >= size for size, device, _ in memory(run))
    assert reasons(run) == ["only the size of the records was computed"] * 3


def test_memory_is_what_probed_launches_tell(host: Host) -> None:
    run = sized(host, ADD)
    host.root = host.directory / "probed"
    host.root.mkdir()
    probed = host.python(ADD)
    sizes = [int(line.split()[2]) for line in probed.lines(r"\[exec\] probe-mem")]
    assert sizes == [size for size, _, _ in memory(run)]


def dynamic(serving: Engine) -> None:
    """Counts are small enough for the 64 records that a slot has at first."""
    serving.maps, serving.filled = "1,-1 1,4", "1,16"
    serving.storage = ["storage 0 queue record 16 cap 0", "storage 1 counts"]


def test_a_dynamic_map_is_counted_in_the_place_of_the_original(host: Host, serving: Engine) -> None:
    dynamic(serving)
    run = sized(host, ADD)
    assert run.stdout == "3\n", "each launch has one effect"
    assert [line.split()[1] for line in run.calls if line.startswith("launch")] == ["probed"] * 3
    assert reasons(run) == ["the records were counted, not saved"] * 3
    slots = [grid * 2 for grid in (2, 5, 3)]
    # each slot has 64 records of 16 bytes, and a count
    assert [size for size, _, _ in memory(run)] == [slot * (64 * 16 + 4) for slot in slots]


def test_uncountable_kernel_is_skipped(host: Host, serving: Engine) -> None:
    dynamic(serving)
    run = sized(host, ADD, STUB_FAIL_PROBED="701")
    assert run.stdout == "3\n"
    assert memory(run) == []
    assert run.outcomes()[-1][0] == "failed"


def test_launches_that_were_not_chosen_have_no_memory(host: Host) -> None:
    run = sized(host, ADD, TUI_PROBE_LAUNCHES="1")
    assert [launch for _, _, launch in memory(run)] == [1]
    assert reasons(run)[0] == "launch not selected"


def test_kernels_without_a_probe_say_why(host: Host, serving: Engine) -> None:
    serving.answer = lambda *_: "skipped\t<id>\tno PTX in image"
    run = sized(host, ADD)
    assert memory(run) == []
    assert reasons(run) == ["no PTX in image"] * 3


def test_a_sample_of_blocks_takes_less(host: Host, serving: Engine) -> None:
    serving.sampled = True
    run = sized(host, ADD, TUI_PROBE_SAMPLE="1")
    assert [size for size, _, _ in memory(run)] == [32, 32, 32]


def test_the_room_grows_with_what_is_counted(host: Host, serving: Engine) -> None:
    """The second word of a slot, which the stub fills with the number of the block, counts records as well."""
    dynamic(serving)
    run = sized(host, ADD.replace("(2, 5, 3)", "(200, 2)"))
    assert [size for size, _, _ in memory(run)] == [slots * (256 * 16 + 4) for slots in (400, 4)]


def test_a_capture_is_not_disturbed(host: Host, serving: Engine) -> None:
    dynamic(serving)
    run = sized(host, CAPTURE)
    assert run.stdout == "73\n"
    assert reasons(run).count("stream is capturing") == 2
    assert not [line for line in run.calls if "CAPTURE" in line or "FORBIDDEN" in line or "DIRTY" in line]
