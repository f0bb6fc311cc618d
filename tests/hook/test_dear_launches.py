"""Launches whose records would take too much: those of a sample of blocks are kept, or less of each."""

from __future__ import annotations

import json
import random
import re
import struct
from pathlib import Path

import pytest

from tui_probe.launcher.control import BUDGETS, NO_LIMIT, ControlPage

from .block_samples import Sample, disk_bytes, recorded, share, spread
from .conftest import AUTO, Engine, Host, Run
from .test_schedule import Key, seed_of

LAUNCHES = """
context()
f = function(module(), "add__8")
w = word()
for _ in range({n}): launch(f, w, grid={grid}, block=64)
print(read(w))
"""
REDUCED = "reduce 0 launch record 16 sum:u64@0:u64@0 sum:u64@8:u64@8"


@pytest.fixture
def page(tmp_path: Path) -> ControlPage:
    limits = dict.fromkeys(BUDGETS, NO_LIMIT) | {"trace_bytes": 4 << 20}
    return ControlPage.create(tmp_path / "control", limits, shares=True, is_on=True)


@pytest.fixture
def serving(host: Host) -> Engine:
    assert host.engine
    return host.engine


def under(host: Host, page: ControlPage, script: str, **environment: str) -> Run:
    return host.python(script, TUI_PROBE_CONTROL=str(page.path), **AUTO | environment)


def samples(run: Run) -> list[tuple[tuple[int, int, int], int, int, int]]:
    """(grid, first, step, count) of each result; of one with all blocks the count is 0."""
    sizes = []
    for path in sorted((run.directory / "result").glob("*.bin")):
        data = path.read_bytes()
        x, y, z, first, step, count = struct.unpack("<6I", data[-24:])
        is_sample = data[-32:-24] == b"sampled\1"
        sizes.append(((x, y, z), first, step, count) if is_sample else (struct.unpack("<3I", data[:12]), 0, 1, 0))
    return sizes


def test_a_launch_that_is_too_dear_is_recorded_for_a_sample_of_blocks(
    host: Host, page: ControlPage, serving: Engine
) -> None:
    run = under(host, page, LAUNCHES.format(n=1, grid=40_000))
    assert (run.status, run.stdout, run.stderr) == (0, "1\n", "")
    (((x, y, z), first, step, count),) = samples(run)
    assert (x, y, z, first) == (40_000, 1, 1, 0)
    assert count == 8192  # of 32 bytes: the largest power of two within an eighth of what is left
    assert step * count <= 40_000
    assert serving.asked_for_samples == [("add__8", 0)]
    assert run.lines(r"\[probe\] sampled kernel 0 probe - reason -$")
    assert not [line for line in run.calls if "DIRTY" in line]


def test_the_form_for_samples_is_asked_for_once(host: Host, page: ControlPage, serving: Engine) -> None:
    run = under(host, page, LAUNCHES.format(n=30, grid=40_000))
    assert (run.status, run.stdout) == (0, "30\n"), run.stderr
    counts = [count for *_, count in samples(run)]
    assert len(counts) > 3
    assert all(0 < count < 40_000 for count in counts)
    assert counts[0] > counts[-1]  # later ones have less of the budget
    assert serving.asked_for_samples == [("add__8", 0)]
    assert page.budget("trace_bytes").used < 4 << 20


def test_launches_that_fit_are_recorded_whole(host: Host, page: ControlPage, serving: Engine) -> None:
    script = LAUNCHES.format(n=1, grid=40_000) + "\nlaunch(f, w, grid=10)\n"
    run = under(host, page, script)
    assert [count for *_, count in samples(run)] == [8192, 0]
    assert serving.asked_for_samples == [("add__8", 0)]


@pytest.mark.parametrize(
    "words",
    [
        "x needs every block, but the records of all blocks do not fit into probe memory code needs-every-block",
        "no PTX",
    ],
)
def test_a_probe_that_needs_every_block_is_passed(host: Host, page: ControlPage, serving: Engine, words: str) -> None:
    serving.unsampled = words
    run = under(host, page, LAUNCHES.format(n=20, grid=40_000))
    assert (run.status, run.stdout, run.results) == (0, "20\n", []), run.stderr
    assert {line.split(" code ")[1] for line in run.written_log if "[exec] backup" in line} == {"trace-share"}
    assert len(serving.asked_for_samples) == 1


def test_with_detail_the_records_are_reduced_first(host: Host, page: ControlPage, serving: Engine) -> None:
    serving.storage = [REDUCED]
    script = LAUNCHES.format(n=1, grid=40_000) + "\nlaunch(f, w, grid=10)\n"
    run = under(host, page, script, TUI_PROBE_DETAIL="1")
    assert (run.status, run.stdout) == (0, "1\n"), run.stderr
    sizes = [path.stat().st_size for path in sorted((run.directory / "result").glob("*.bin"))]
    assert sizes[0] < 1000  # one record
    assert sizes[1] == 48 + 10 * 2 * 16
    assert serving.asked_for_samples == []


def test_a_form_that_is_of_another_kernel_is_not_used(host: Host, page: ControlPage, serving: Engine) -> None:
    script = "import os\n" + LAUNCHES.format(n=4, grid=40_000)
    write = serving.write_probed

    def other(directory: Path, name: str, *, is_sample: bool = False) -> None:
        serving.maps = "1,32" if is_sample else "1,16"
        write(directory, name, is_sample=is_sample)

    serving.write_probed = other  # type: ignore[method-assign]
    run = under(host, page, script)
    assert (run.status, run.stdout, run.results) == (0, "4\n", []), run.stderr
    (line,) = run.lines(r"\[probe\] sampled kernel 0 probe - reason ")
    assert line.endswith("kernel.info of another variant of the probe has other maps code kernel-info")


def test_a_form_that_cannot_be_launched_leaves_the_other(host: Host, page: ControlPage) -> None:
    script = LAUNCHES.format(n=5, grid=40_000) + "\nfor _ in range(3): launch(f, w)\nprint(read(w))\n"
    run = under(host, page, script, STUB_FAIL_SAMPLED="701")
    assert (run.status, run.stdout) == (0, "5\n8\n"), run.stderr
    assert [count for *_, count in samples(run)] == [0, 0, 0]
    assert len([line for line in run.calls if line.startswith("launch probed")]) == 4  # it was tried once
    assert page.budget("result_files").used == 3


def test_a_sample_that_the_user_asked_for_stays_as_it_is(host: Host, page: ControlPage, serving: Engine) -> None:
    serving.sampled = True
    run = under(host, page, LAUNCHES.format(n=1, grid=400_000), TUI_PROBE_SAMPLE="1/2")
    assert (run.status, run.stdout, run.results, serving.asked_for_samples) == (0, "1\n", [], []), run.stderr


def test_no_launch_takes_more_than_a_sixteenth_of_the_devices_memory(host: Host, serving: Engine) -> None:
    """In all cases of launches and traces: 64 MiB of 1 GiB."""
    serving.maps = "1,4096"
    script = LAUNCHES.format(n=1, grid=8192) + "\nlaunch(f, w, grid=8193)\n"
    run = host.python(script, STUB_MEMORY=str(1 << 30), TUI_PROBE_MAX_TRACE_BYTES="none")
    assert run.status == 0, run.stderr
    assert [count for *_, count in samples(run)] == [0, 4096]


def test_a_launch_with_too_many_records_has_another_after_it(host: Host, serving: Engine) -> None:
    """The stub's numbers stand for more than 64 records: the next launch has room for them, and is due immediately."""
    serving.maps, serving.filled = "1,-1 1,4", "1,200"
    serving.storage = ["storage 0 queue record 16 cap 0", "storage 1 counts"]
    script = (
        LAUNCHES.format(n=60, grid=200)
        + """
os.environ["STUB_QUEUE"] = "0"
wait_for(lambda: logged("[exec] save "))
time.sleep(0.1)
launch(f, w, grid=200, block=64)
"""
    )
    run = host.python(script, STUB_QUEUE="3600000", **AUTO)  # none is saved before the last
    assert run.status == 0, run.stderr
    rule = Key(0, seed_of("add__8", 0))
    due = {n for n in range(61) if rule.launch(8)}
    probed = {int(line.split(" launch ")[1].split()[0]) for line in run.lines(r"\[exec\] grid .* launch ")}
    assert 60 in probed - due
    assert len({int(line.split()[2]) for line in run.lines(r"\[exec\] probe-mem")}) == 2  # the room grew


@pytest.mark.parametrize(("launches", "queue"), [("", "10"), ("auto", "3600000")])
def test_sampled_launches_do_not_wait_for_memory(host: Host, launches: str, queue: str) -> None:
    """There is memory for one launch at a time: where all are asked for, each waits for the one before.

    A sample goes without: its first launch lasts until the program has made them all.
    """
    script = LAUNCHES.format(n=8, grid=64) + 'os.environ["STUB_QUEUE"] = "0"\n'
    chosen = AUTO | {"TUI_PROBE_LAUNCHES": launches}
    run = host.python(script, TUI_PROBE_MAX_PROBE_MEMORY="2048", STUB_QUEUE=queue, **chosen)
    assert (run.status, run.stdout) == (0, "8\n"), run.stderr
    if launches:
        assert len(run.results) == 1
        assert [line for line in run.written_log if line.endswith(" code probe-memory")]
        assert run.lines(r"\[exit\] launches 8 probed 1 ")
    else:
        assert (len(run.results), run.codes) == (8, [])


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_stay_within_their_budgets(host: Host, page: ControlPage, serving: Engine, seed: int) -> None:
    """Kernels, shapes and budgets by chance: nothing is lost of the program, nothing is beyond a budget."""
    numbers = random.Random(seed)
    serving.maps = numbers.choice(["1,16", "1,64", "0,8"])
    size, files = numbers.randrange(300_000, 6_000_000), numbers.randrange(4, 60)
    page["trace_bytes.limit"], page["result_files.limit"] = size, files
    kernels = numbers.sample(["add__8", "sub__8", "mul__8", "div__8"], numbers.randrange(1, 4))
    launches = [
        (numbers.randrange(len(kernels)), numbers.choice([1, 3, 50, 700, 9000, 40_000]), numbers.choice([32, 100, 256]))
        for _ in range(150)
    ]
    script = f"""
context()
kernels = [function(module(), name) for name in {kernels!r}]
w = word()
for kernel, grid, block in {launches!r}: launch(kernels[kernel], w, grid=grid, block=block)
print(read(w))
"""
    run = under(host, page, script)
    assert (run.status, run.stdout, run.stderr) == (0, "150\n", "")
    assert sum(path.lstat().st_blocks * 512 for path in run.directory.rglob("*")) <= size
    assert 0 < len(samples(run)) == page.budget("result_files").used <= files
    assert run.lines(rf"\[exit\] launches 150 probed {len(samples(run))} dropped 0")
    assert not [line for line in run.calls if "DIRTY" in line]


# The rule next to its variant.

MEMORY = 1 << 30
"""Of the stub's device, a sixteenth of which one launch may have."""
RECORD = 16


def per_block(block: int) -> int:
    """A record for each of its warps."""
    return -(-block // 32) * RECORD


ASKED = """
import json, os, struct
from tui_probe.launcher.control import PROCESSES, ControlPage
from pathlib import Path
page = ControlPage.open(Path({page!r}))
context()
f = function(module(), "add__8")
w = word()
for limit, grid, block in {launches!r}:
    wait_for(lambda: not any(held for _, *held in struct.iter_unpack("<3Q", page._memory[PROCESSES]) if any(held)))
    files = [path.stat().st_blocks * 512 for path in Path(os.environ["TUI_PROBE_TRACE_ROOT"]).glob("*/result/*.bin")]
    page["trace_bytes.limit"] = limit
    print(json.dumps([page["trace_bytes.used"], page["log_bytes.used"], files]), flush=True)
    launch(f, w, grid=grid, block=block)
print(read(w))
"""


def expected(limit: int, blocks: int, block: int, used: int, log: int, files: list[int]) -> Sample | None:
    budget = max(limit // 8 - log, 0)
    left = max(limit - used - budget, 0)
    room = share(left, sum(map(disk_bytes, files)), first=not files)
    return recorded(blocks, per_block(block), room, MEMORY // 16)


@pytest.mark.parametrize("seed", range(8))
def test_blocks_are_sampled_by_the_rule(host: Host, page: ControlPage, seed: int) -> None:
    """Shapes and budgets by chance, each launch the first of its shape: as the variant says."""
    numbers = random.Random(seed)
    grids = numbers.sample(range(1, 120_000), 8) + numbers.sample([16, 17, 1024, 4096, 16_384, 32_768, 65_536], 4)
    numbers.shuffle(grids)
    # the forms of the kernel are made with the first two, so that nothing is written next to what is asked for
    launches = [(NO_LIMIT, 3, 64), (1 << 20, 100_000, 64)]
    launches += [(numbers.randrange(1 << 20, 64 << 20), grid, numbers.choice([32, 100, 1024])) for grid in grids]
    run = under(host, page, ASKED.format(page=str(page.path), launches=launches), STUB_MEMORY=str(MEMORY))
    assert run.status == 0, run.stderr
    *states, total = run.stdout.splitlines()
    assert total == str(len(launches))
    by_grid = {grid[0]: Sample(first, step, count or grid[0]) for grid, first, step, count in samples(run)}
    wanted = {}
    for (limit, grid, block), state in zip(launches[2:], states[2:], strict=True):
        sample = expected(limit, grid, block, *json.loads(state))
        if sample is not None:
            wanted[grid] = sample
    assert {grid: by_grid[grid] for grid in grids if grid in by_grid} == wanted
    assert any(sample.count < grid for grid, sample in wanted.items())
    assert any(sample.count == grid for grid, sample in wanted.items())


@pytest.mark.parametrize(
    ("blocks", "most", "sample"),
    [
        (100, 16, Sample(0, 6, 16)),
        (4096, 16, Sample(0, 255, 16)),
        (16, 16, Sample(0, 1, 16)),
        (17, 16, Sample(0, 1, 16)),
    ],
)
def test_blocks_of_a_sample_are_spread_over_the_grid(blocks: int, most: int, sample: Sample) -> None:
    assert spread(blocks, most) == sample


# Several probes.

NAMES = "dear:cheap"


def answering(engine: Engine) -> None:
    """Two probes: records of the first take a thousand times as much, and it needs every block."""

    def answer(directory: Path, name: str) -> str:
        for probe, maps in zip(NAMES.split(":"), ("1,4096", "1,16"), strict=True):
            engine.maps = maps
            (directory / probe).mkdir()
            engine.write_probed(directory / probe, name)
        return "ok\t<id>\tprobed.bin\nok\t<id>\tprobed.bin"

    engine.answer = answer
    engine.unsampled = (
        "dear needs every block, but the records of all blocks do not fit into probe memory code needs-every-block"
    )


def saved(run: Run) -> list[str]:
    """The probes of the results, by launch."""
    matches = (re.search(r"launch (\d+) probe (\S+)$", line) for line in run.lines(r"\[exec\] save "))
    return [name for _, name in sorted((int(match[1]), match[2]) for match in matches if match)]


def test_a_probe_that_is_refused_leaves_the_launch_to_another(host: Host, page: ControlPage, serving: Engine) -> None:
    answering(serving)
    run = under(host, page, LAUNCHES.format(n=12, grid=1000), TUI_PROBE_PROBES=NAMES)
    assert (run.status, run.stdout) == (0, "12\n"), run.stderr
    assert set(saved(run)) == {"cheap"}
    assert len(saved(run)) >= 8
    assert not [line for line in run.written_log if "code trace-share" in line and "backup" in line]
    assert page["over_share"] == 0


def test_a_refused_probe_has_the_next_turn(host: Host, page: ControlPage, serving: Engine) -> None:
    answering(serving)
    script = f"""
from tui_probe.launcher.control import NO_LIMIT, ControlPage
from pathlib import Path
page = ControlPage.open(Path({str(page.path)!r}))
{LAUNCHES.format(n=4, grid=1000)}
page["trace_bytes.limit"] = NO_LIMIT
for _ in range(4): launch(f, w, grid=1000, block=64)
"""
    run = under(host, page, script, TUI_PROBE_PROBES=NAMES)
    assert run.status == 0, run.stderr
    probes = saved(run)
    first = probes.index("dear")
    assert set(probes[:first]) == {"cheap"}
    assert probes[first : first + 3] == ["dear", "cheap", "dear"]
