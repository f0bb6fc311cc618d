"""Every view of recorded traces: of an H200, and of a simulated GPU on which what is to be seen was planted.

``planted`` is launched twice: with 40 blocks of 64 threads, one of them a straggler, and with three blocks on four SMs.
Its loads are coalesced, its stores are 32 bytes from their neighbours'.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.timelines.drawing import after, golden_view, text_of
from tests.recorded import H200, SIMULATED, unpacked
from tui_probe.cli.main import main
from tui_probe.draw.view import Drawing, View, no_progress
from tui_probe.pages.views import kind_of, kinds
from tui_probe.pages.views.lines import LinesView
from tui_probe.pages.views.source import SourceView
from tui_probe.pages.views.timeline import TimelineView
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.registry import all_probes
from tui_probe.trace.follow import open_trace

BLOCKS, FEW, WARPS, ROUNDS, STRAGGLER, STRAGGLER_ROUNDS = 40, 3, 2, 3, 21, 60
REQUESTS = WARPS * ((BLOCKS - 1) * ROUNDS + STRAGGLER_ROUNDS)
"""Of loads, of all warps together."""
PLANTED = {
    "summary": "block_sched", "ptx": "block_sched", "diff": "block_sched", "process": "block_sched",
    "launches": "block_sched", "timeline": "block_sched", "blocks": "block_sched", "latency": "block_sched",
    "dmat": "dmat", "lines": "dmat", "progress": "warp_progress", "memory": "gmem_bytes", "sectors": "gmem_sectors",
    "results": "gmem_sectors", "explain": "block_sched", "probe": "dmat",
}  # fmt: skip
"""The trace that each view is shown of."""
OF_H200 = {
    "dmat": ("dmat", 2), "lines": ("dmat", 2), "progress": ("attention_progress", 1),
    "latency": ("attention_blocks", 1), "blocks": ("attention_blocks", 1), "source": ("attention_sectors", 1),
    "sectors": ("attention_sectors", 1), "memory": ("demo_bytes", 4), "results": ("demo_bytes", 4),
    "probe": ("attention_progress", 1),
}  # fmt: skip
"""The trace and the kernel; the other views have goldens of an H200 next to their own tests."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorded")


def source_of(trace: Path, folder: Path, kernel: int = 0, launch: int | None = 0) -> ViewSource:
    recorded = open_trace(unpacked(trace, folder))
    return ViewSource(recorded, recorded.kernels[kernel], None if launch is None else recorded.launches[launch])


def opened(name: str, source: ViewSource) -> View:
    assert kind_of(name).missing_reason(source) is None
    return kind_of(name).open(source, no_progress)


def planted(name: str, folder: Path, launch: int = 0) -> View:
    return opened(name, source_of(SIMULATED / PLANTED[name], folder, launch=launch))


def shown(view: View, size: tuple[int, int] = (100, 30)) -> str:
    return "\n".join(text_of(view, size))


def test_every_view_that_is_no_probes_has_goldens_of_both() -> None:
    shared = {kind.name for kind in kinds()} - {kind.name for probe in all_probes() for kind in probe.views}
    assert shared - set(PLANTED) <= {"sass", "source"}, "no machine code and no source file is kept with them"
    adjacent = {path.stem for path in (Path(__file__).parent / "goldens" / "views").iterdir()}
    assert shared - set(OF_H200) - {"timeline", "explain"} <= adjacent, (
        "a walk through the files of one trace is enough"
    )


@pytest.mark.parametrize("name", PLANTED)
def test_view_of_a_simulated_gpu(name: str, folder: Path) -> None:
    golden_view(f"simulated/{name}", planted(name, folder))


@pytest.mark.parametrize("name", OF_H200)
def test_view_of_an_h200(name: str, folder: Path) -> None:
    trace, kernel = OF_H200[name]
    golden_view(f"h200/{name}", opened(name, source_of(H200 / trace, folder, kernel, None)))


def test_a_drawing_has_a_largest_size(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace = str(unpacked(SIMULATED / "block_sched", folder))
    size = ["--width", "10000", "--height", "5000"]
    assert main(["show", "timeline", trace, *size]) == 1
    assert "a drawing has at most 1,000,000 characters" in capfd.readouterr().err
    assert main(["compare", f"{trace}:0@0", ":0@1", "--view", "timeline", *size]) == 1
    assert main(["show", "launches", f"{trace}:.", *size]) == 0


# -- what was planted is in the picture


def timeline_rows(view: View) -> dict[str, list[str]]:
    """The lines of each row of a timeline of four SMs, by the name of the SM."""
    assert isinstance(view, TimelineView)
    lines = [line.ljust(8) for line in shown(view).splitlines()[1:]]
    parts = [lines[first : first + view.row_height] for first in range(0, 4 * view.row_height, view.row_height)]
    return {next(line[1:5] for line in part if line[1:4] == "SM "): part for part in parts}


def test_the_straggler_stands_out_in_the_timeline(folder: Path) -> None:
    view = planted("timeline", folder)
    rows = timeline_rows(view)
    assert [name for name, lines in rows.items() if any(line[6] == "!" for line in lines)] == ["SM 1"]
    lengths = {name: max(len(line.rstrip()) for line in lines) for name, lines in rows.items()}
    assert lengths.pop("SM 1") > 2 * max(lengths.values()), "it ends long after all others"
    assert "tail: last 10 580 cycles (70%), 75% idle" in shown(view)
    after(view, "down", "end", size=(100, 30))
    assert f"block {STRAGGLER}" in view.status()


def test_the_loads_in_the_loop_of_attention_make_most_requests(folder: Path) -> None:
    """Keys and values, through cp.async. Nsight Compute counted 270 336 requests of loads on the same machine."""
    lines = opened("source", source_of(H200 / "attention_sectors", folder, 1, None)).record()["files"][0]["lines"]
    requests = {line["line"]: line["requests"] for line in lines if line["requests"]}
    assert requests == {25: 8192, 31: 131072, 36: 131072, 40: 8192}
    assert all(line["sectors_per_request"] == 16 for line in lines if line["requests"])
    assert lines[0]["text"].startswith("def flash_attention(")


def test_the_idle_sm_is_seen(folder: Path) -> None:
    view = planted("timeline", folder, launch=1)
    assert f"{FEW} blocks on 3 of 4 SMs" in shown(view)
    *busy, idle = timeline_rows(view).values()
    assert all(any("━" * 80 in line for line in lines) for lines in busy)
    assert "".join(idle).split() == ["SM", "3", "–"]


def test_the_straggler_is_the_longest_block_and_its_sm_the_busiest(folder: Path) -> None:
    lines = shown(planted("blocks", folder), (100, 60)).splitlines()
    block = next(line for line in lines if line.startswith("one block")).replace(" ", "")
    assert block == "oneblock9729729729729728" + "90013968"
    heading = lines.index("SM  blocks  slots  running  gap  ramp-up  ramp-down")
    bars = [line.count("█") for line in lines[heading + 1 :]]
    assert bars.index(max(bars)) == 1


def test_the_straggler_goes_on_when_all_others_have_ended(folder: Path) -> None:
    view = planted("progress", folder)
    text = shown(view)
    assert f"!{STRAGGLER}.1" in text.splitlines()[1]
    assert view.record()["main_loop"] == 38
    warps = view.record()["warps"]
    late = [
        (block, warp)
        for block, warp, out in zip(warps["block"], warps["warp"], warps["stands_out"], strict=True)
        if out
    ]
    assert late == [(STRAGGLER, 0), (STRAGGLER, 1)]
    picture = text.splitlines()[2:25]
    assert all(set(line) - set(" 0") for line in picture), "one line climbs through all rows"


def test_the_strided_store_is_the_first_of_the_lines(folder: Path) -> None:
    view = planted("lines", folder)
    store, load = shown(view, (120, 30)).splitlines()[3:5]
    assert store.split()[1:6] == ["2", "240", "88%", "2", "560"]
    assert load.split()[1:6] == ["0", "0%", "1", "416", "1"]
    assert "planted.cu:14" in store
    assert "st.global.f32" in store
    assert "planted.cu:11" in load


def test_the_strided_store_stands_out_among_the_loads(folder: Path) -> None:
    view = planted("dmat", folder)
    lines = after(view, "colour", "colour", size=(100, 30))
    assert any(line.startswith("0-9: share of excessive sectors, in tenths") for line in lines)
    below = next(number for number, line in enumerate(lines) if line.startswith("param 1"))
    axis = next(number for number, line in enumerate(lines) if line.startswith("cycles")) - 1
    loads, stores = ("".join(line[14:] for line in part) for part in (lines[1 : below - 1], lines[below:axis]))
    assert set(loads) - {" "} == {"0"}
    assert set(stores) - {" "} == {"9"}, "28 of 32 sectors"


def test_counts_are_those_of_the_program(folder: Path) -> None:
    (row,) = planted("sectors", folder).record()["launches"]
    assert (row["load_requests"], row["load_sectors"]) == (REQUESTS, 4 * REQUESTS)
    assert (row["store_requests"], row["store_sectors"]) == (BLOCKS * WARPS, 32 * BLOCKS * WARPS)
    (row,) = planted("memory", folder).record()["launches"]
    assert (row["read"], row["written"]) == (128 * REQUESTS, 128 * BLOCKS * WARPS)


def test_source_line_opens_its_costliest_instruction(folder: Path) -> None:
    """Line 31 is copied in a prologue of few requests, too, which comes first in the PTX."""
    view = opened("source", source_of(H200 / "attention_sectors", folder, 1, None))
    assert isinstance(view, SourceView)
    row = next(place for place, row in enumerate(view.rows) if row.line == 31)
    lines = opened("lines", source_of(H200 / "attention_sectors", folder, 1, None))
    assert isinstance(lines, LinesView)
    costliest = max(
        (row for row in lines.part.rows if row.source and row.source.line == 31), key=lambda row: row.values["sectors"]
    )
    assert view.ptx_line(row + view.pinned(80), 80) == costliest.line
    assert costliest.values["sectors"] == 491_520


def test_narrow_lines_keep_the_column_that_ranks_them(folder: Path) -> None:
    """No line has excessive sectors: they are in order of all sectors."""
    shown_lines = shown(opened("lines", source_of(H200 / "attention_sectors", folder, 1, None)), (80, 60)).splitlines()
    assert "sectors ↓" in shown_lines[1]
    assert "excessive" not in shown_lines[1]
    assert "491 520" in shown_lines[3]


def test_dmat_has_the_accesses_of_each_range(folder: Path) -> None:
    """The end of each matrix is inside a sector: the rest of that sector is not listed as a range."""
    view = opened("dmat", source_of(H200 / "dmat", folder, 4, None))
    assert isinstance(view, Drawing)
    text = shown(view)
    totals = {band["name"]: band["total"] for band in view.record()["bands"]}
    assert totals == {"param 0": 8_100, "param 1": 48_600, "param 2": 48_600}
    assert "8 100 (8%)" in text
    assert text.count("48 600 (46%)") == 2
