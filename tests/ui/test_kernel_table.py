"""The kernel table: what it shows at each width, and what stays while rows arrive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.golden import golden
from tests.ui.desk import TestDesk, said, shown
from tui_probe.draw.spans import to_ascii
from tui_probe.probekit.finding import Finding, Gain
from tui_probe.trace.follow import open_trace
from tui_probe.trace.gpu_time import GpuTime, VariantTime
from tui_probe.ui.live import kernel_columns
from tui_probe.ui.live.kernel_columns import columns_of
from tui_probe.ui.live.kernel_table import KernelTable
from tui_probe.verdicts.kernel_snapshot import KernelSnapshot, kernel_snapshot

if TYPE_CHECKING:
    from tests.ui.synthetic import TraceWriter

Rows = tuple[KernelSnapshot, ...]


@pytest.fixture
def rows(trace: TraceWriter) -> Rows:
    read = open_trace(trace.directory)
    return tuple(kernel_snapshot(kernel, read.state.device) for kernel in read.kernels)


@pytest.fixture
def desk() -> TestDesk:
    return TestDesk()


@pytest.fixture
def table(desk: TestDesk, rows: Rows) -> KernelTable:
    table = KernelTable(desk, "kernels", lambda: None)
    table.resize(120, 10)
    table.show(rows)
    shown(table)
    return table


def names(table: KernelTable) -> list[int]:
    return [row.index for row in table.shown_rows]


@pytest.mark.parametrize("cells", [60, 80, 120, 150, 200])
def test_kernel_table_rows(table: KernelTable, cells: int) -> None:
    table.resize(cells, 8)
    text = "".join(f"{line.rstrip()}\n" for line in shown(table))
    golden("kernel-table.txt", text, f"{cells}", width=cells)


def test_without_a_benchmark_there_are_no_columns_of_times(table: KernelTable, rows: Rows) -> None:
    table.show(rows, timed=False)
    assert "slowdown" not in shown(table)[0]
    assert "time" not in shown(table)[0]
    assert "registers" in shown(table)[0]


def test_the_way_of_each_kernel_where_one_was_grafted(table: KernelTable, rows: Rows) -> None:
    table.resize(240, 8)
    assert "mode" not in shown(table)[0].split()
    table.show(tuple(replace(row, mode="graft") if row.index == 1 else row for row in rows))
    titles, *lines = shown(table)
    at = titles.index(" mode ") + 1
    cells = [line[at : at + 5].strip() for line in lines if line.strip()]
    assert cells == [
        "graft" if row.index == 1 else "PTX" if row.mode else "–" for row in table.shown_rows[: len(cells)]
    ]
    assert {"PTX", "graft", "–"} <= set(cells)


def test_every_row_says_its_status_in_words(table: KernelTable) -> None:
    cells = [line.split() for line in shown(table)[1:]]
    for row, line in zip(table.shown_rows, cells, strict=False):
        assert row.status in line


def test_unmeasured_values_are_dashes(table: KernelTable) -> None:
    skipped = shown(table)[4]
    assert "skipped" in skipped
    assert skipped.count("–") >= 2


def test_the_selection_stays_on_its_kernel_while_rows_arrive_and_order_changes(table: KernelTable, rows: Rows) -> None:
    table.select(2)
    table.show((*rows[:2], replace(rows[2], launches=999), *rows[3:], replace(rows[0], index=99, name="new")))
    assert table.kernel is not None
    assert (table.kernel.index, table.kernel.launches) == (2, 999)
    for _ in range(3):
        table.sort(1)
    assert table.kernel.index == 2
    assert names(table)[table.kernels.place] == 2


def test_registers_sort_by_what_the_probe_adds(table: KernelTable, rows: Rows) -> None:
    regs = [(10, 30), (200, 201), (50, 50), (60, None)]
    table.show(
        tuple(
            replace(rows[0], index=i, registers_pruned=before, registers_probed=after)
            for i, (before, after) in enumerate(regs)
        )
    )
    table.sort_by("registers", reverse=True)
    assert names(table) == [0, 1, 2, 3]
    table.sort_by("registers", reverse=False)
    assert names(table) == [2, 1, 0, 3]


def test_the_selection_is_always_in_sight(desk: TestDesk, rows: Rows) -> None:
    table = KernelTable(desk, "kernels", lambda: None)
    table.resize(100, 6)
    table.show(tuple(replace(rows[0], index=i, name=f"k{i}", demangled=f"k{i}") for i in range(1000)))
    for index in (0, 4, 5, 500, 999, 3):
        table.select(index)
        assert any(f"k{index} " in line for line in shown(table)[1:])
    table.resize(100, 3)
    assert any("k3 " in line for line in shown(table)[1:])


def test_filter_moves_selection_to_neighbour(table: KernelTable) -> None:
    table.select(0)
    table.set_filter("triton")
    assert names(table) == [2]
    assert table.kernel is not None
    assert table.kernel.index == 2
    assert said(table) == "only “triton” · kernel 1 of 1"
    table.set_filter("nothing like it")
    assert not table.shown_rows
    assert "no kernel passes the filter" in shown(table)[1]
    assert table.clear_search()
    assert len(names(table)) == 6
    assert table.selected_index == 0, "the one that was selected before"
    assert not table.clear_search()
    table.set_filter("triton")
    table.select(2)
    table.clear_search()
    assert table.selected_index == 2


def test_the_filter_also_looks_at_mangled_names_and_reasons(table: KernelTable) -> None:
    table.set_filter("_Z11row")
    assert names(table) == [4]
    table.set_filter("no PTX")
    assert names(table) == [3]


def test_views_of_one_status(table: KernelTable) -> None:
    seen = []
    for _ in range(5):
        table.next_status()
        seen.append((table.kernels.order.status, names(table)))
    assert seen == [
        ("probed", [0, 1, 2]),
        ("skipped", [3]),
        ("failed", [5]),
        ("excluded", [4]),
        ("", [0, 1, 2, 3, 4, 5]),
    ]


def test_sorting_goes_through_the_columns_that_are_shown(table: KernelTable) -> None:
    titles = []
    for _ in range(20):
        table.sort(1)
        titles.append(said(table).partition(" · ")[0])
        if table.kernels.order.column is None:
            break
    assert titles[:3] == ["sorted by kernel", "sorted by status", "sorted by launches"]
    assert "sorted by p99" not in titles
    assert titles[-1].startswith("kernel ")


def test_sort_list_has_whole_titles_on_a_narrow_screen(table: KernelTable) -> None:
    table.resize(76, 12)
    assert "st" in "".join(text for text, _ in table.draw(76, 12)[0]).split()
    assert table.sortable()["status"] == "status"


def test_sorted_by_slowdown_kernels_that_were_not_timed_come_last(table: KernelTable) -> None:
    while "slowdown" not in said(table):
        table.sort(1)
    assert names(table)[0] == 0
    table.reverse()
    assert names(table)[0] == 0


@pytest.fixture
def timed(rows: Rows) -> Rows:
    """The second kernel takes most of the time, the third was never timed; a few launches of the first were probed."""
    times = [_time(1e5, 2e3), _time(3e5, None), None, _time(4e4, 0.0), _time(5e4, 0.0), _time(1e4, 0.0)]
    access = "! k1.cu:7 ld.global, 32.0 sectors per request, ideal 4; SMs go idle in the last 30%, 3% of SM time lost"
    findings = ["! blocks: tail 30 %, 3 % idle", access, "", "", "", ""]
    return tuple(
        replace(
            row, gpu_time=time, time_share=None if time is None else time.total_ns / 5e5, finding=words,
            limiter="memory (L2) 83%" if row.index == 1 else "",
            brief="k1.cu:7 ld.global 32.0 sectors, ideal 4" if row.index == 1 else "",
            trend=() if time is None else (4e4, 4e4, 4e4, 8e4 + 1e4 * row.index),
            launches=6060, launches_probed=12 if row.index == 0 else row.launches_probed,
        )
        for row, time, words in zip(rows, times, findings, strict=True)
    )  # fmt: skip


def _time(total: float, standard_error: float | None) -> GpuTime:
    kind = VariantTime(9, 0, total / 10, None, total / 10, total / 9, total / 11, total / 9)
    return GpuTime(10, kind, None, total, standard_error, None, None)


@pytest.mark.parametrize("cells", [60, 80, 120, 150, 200])
def test_timed_kernels_rank_and_say_what_was_found(table: KernelTable, timed: Rows, cells: int) -> None:
    table.resize(cells, 8)
    table.show(timed, timed=False)
    text = "".join(f"{line.rstrip()}\n" for line in shown(table))
    golden("kernel-table-ranked.txt", text, f"{cells}", width=cells)
    assert names(table) == [1, 0, 4, 3, 5, 2]


def test_the_trend_is_a_chart_of_the_last_times_that_sorts_by_the_last_rise(table: KernelTable, timed: Rows) -> None:
    table.resize(240, 8)
    table.show(timed, timed=False)
    (line,) = (line for line in shown(table) if "zero_fill" in line)
    assert " ▄▄▄█ " in line
    assert to_ascii("▄▄▄█").isascii()
    while "sorted by trend" not in said(table):
        table.sort(1)
    assert names(table) == [0, 1, 3, 4, 5, 2]
    table.reverse()
    assert names(table) == [5, 4, 3, 1, 0, 2]


def test_every_column_sorts_what_it_knows_and_puts_the_rest_last(table: KernelTable, timed: Rows) -> None:
    table.resize(300, 8)
    table.show(timed, timed=True)
    shown(table)
    seen = set[str]()
    for _ in kernel_columns.COLUMNS:
        table.sort(1)
        column = kernel_columns.COLUMNS[table.kernels.sort_position]
        seen.add(column.key)
        values = [column.value(row) for row in table.shown_rows]
        known = [value for value in values if value is not None]
        assert values == known + [None] * (len(values) - len(known)), column.key
        assert known == sorted(known, reverse=column.key == "share"), column.key  # type: ignore[type-var]
    filled = kernel_columns.filled_columns(timed)
    assert seen == {column.key for column in columns_of(is_timed=True, is_ranked=True, cells=300, filled_keys=filled)}
    assert "way" not in seen, "a column without a value in any row is left out"


def test_how_many_launches_were_probed_is_never_cut(table: KernelTable, timed: Rows) -> None:
    table.show(timed, timed=False)
    for cells in range(80, 200):
        table.resize(cells, 8)
        (line,) = (line for line in shown(table) if "zero_fill" in line)
        assert "12/6.1k" in line or "12 of 6 060" in line or "launches" not in shown(table)[0]
        assert "20%" in line or "20.0%" in line or "20.0 ±" in line


def test_columns_leave_in_the_order_that_is_stated(table: KernelTable, timed: Rows) -> None:
    table.show((replace(timed[0], mode="graft"), *timed[1:]))
    left: list[str] = []
    for cells in range(300, 60, -1):
        table.resize(cells, 8)
        shown(table)
        titles = [column.title for column, _ in table.drawing.layout(cells)]
        left += [
            c.title for c in columns_of(is_timed=True, is_ranked=True, cells=cells) if c.title not in {*titles, *left}
        ]
    stated = " ".join((kernel_columns.__doc__ or "").partition("in this order: ")[2].partition(". Kernel")[0].split())
    assert left
    assert [name for name in stated.replace("probe memory", "probe mem").split(", ") if name in left] == left


def test_reversed_the_least_share_comes_first_and_what_was_not_timed_last(table: KernelTable, timed: Rows) -> None:
    table.show(timed)
    assert any("share" in line and "↓" in line for line in shown(table))
    table.reverse()
    assert names(table) == [5, 3, 4, 0, 1, 2]
    assert said(table).startswith("by share of GPU time, reversed")


@pytest.fixture
def untimed(rows: Rows) -> Rows:
    """Kernel 1 loses a tenth, kernel 3 half and is flagged, as is kernel 5 with a fifth; nothing of the others."""
    parts = {1: (0.1, False), 3: (0.5, True), 5: (0.2, True)}
    losses = {
        index: Finding("worst", "idle", f"{part:.0%}", "lines", 7, flagged, gain=Gain(part, 1, "cycles"))
        for index, (part, flagged) in parts.items()
    }
    return tuple(
        replace(
            row,
            failures=(),
            first=losses.get(row.index),
            finding="! idle" if parts.get(row.index, (0, False))[1] else "",
        )
        for row in rows
    )


@pytest.mark.parametrize(
    ("failure", "finding", "text"),
    [
        ("1 result dropped: CUDA_ERROR_LAUNCH_FAILED", "! idle", "! idle"),
        ("1 result dropped: CUDA_ERROR_LAUNCH_FAILED", "", "✘ 1 result dropped: CUDA_ERROR_LAUNCH_FAILED"),
        ("CUDA_ERROR_LAUNCH_FAILED ended the GPU context: trap", "! idle", "✘ CUDA_ERROR_LAUNCH_FAILED ended"),
    ],
)
def test_fault_of_kernel_is_shown_before_results_that_another_lost(
    table: KernelTable, untimed: Rows, failure: str, finding: str, text: str
) -> None:
    """The row stays red either way."""
    table.show(tuple(replace(row, failures=(failure,), finding=finding) for row in untimed if row.index == 3))
    (line,) = (line for line in shown(table) if "✘" in line.partition("probed")[0])
    assert text in line


def test_kernels_without_times_are_in_the_order_of_the_report(table: KernelTable, untimed: Rows) -> None:
    table.show(untimed)
    assert (names(table)[:3], table.selected_index) == ([3, 5, 1], 3)
    assert said(table).startswith("flagged first")
    table.sort_by("finding")
    assert names(table)[:3] == [3, 5, 1]
    assert "sorted by finding" in said(table)


def test_shares_of_cycles_rank_kernels_without_times(table: KernelTable, untimed: Rows) -> None:
    shares = {0: 0.6, 3: 0.1, 5: 0.3}
    table.show(tuple(replace(row, cycle_share=shares.get(row.index)) for row in untimed), simulated=True)
    assert names(table)[:3] == [0, 5, 3]
    assert said(table).startswith("by share of launch cycles (modeled)")
    titles, first = shown(table)[:2]
    assert "share↓" in titles
    assert " 60% " in first
    assert [table.next_flagged()[:20] and table.selected_index for _ in range(2)] == [5, 3], (
        "30% x 0.2 is more than 10% x 0.5"
    )


def test_the_selection_follows_the_first_until_somebody_is_here(table: KernelTable, timed: Rows) -> None:
    table.show(timed)
    assert table.selected_index == 1
    rising = (replace(timed[0], time_share=0.9), *timed[1:])
    table.show(rising)
    assert table.selected_index == 0
    table.hold()
    table.show(timed)
    assert (table.selected_index, names(table)[0]) == (0, 1)


def test_search_goes_around_and_says_what_it_does_not_find(table: KernelTable, desk: TestDesk) -> None:
    table.search("probed")
    assert table.selected_index == 0
    places = []
    for _ in range(3):
        table.next_match(1)
        places.append(table.selected_index)
    assert places == [1, 2, 0]
    table.next_match(-1)
    assert table.selected_index == 2
    table.search("nowhere")
    assert desk.notices == ["no kernel contains “nowhere”"]
    assert table.selected_index == 2


def test_capital_letters_match_themselves_only(table: KernelTable) -> None:
    table.set_filter("ptx")
    assert len(names(table)) == 2
    table.set_filter("PTX")
    assert names(table) == [3]


def test_copying_takes_both_names(table: KernelTable) -> None:
    table.select(0)
    assert table.text_to_copy() == "zero_fill(float*, int)\n_Z9zero_fillPfi"
    table.select(2)
    assert table.text_to_copy() == "triton_poi_fused_add_mul_relu_0"


def test_the_export_has_whole_names_and_all_columns(table: KernelTable) -> None:
    lines = list(table.line_exporter()())
    assert len(lines) == 7
    assert "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>" in lines[2]
    assert lines[0].split()[-1] == "finding"


def test_only_the_rows_in_sight_are_drawn(desk: TestDesk, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    many = tuple(replace(rows[0], index=i) for i in range(100_000))
    table = KernelTable(desk, "kernels", lambda: None)
    table.resize(200, 20)
    table.show(many)
    drawn = 0
    row = table.drawing._row

    def count(*arguments: object) -> object:
        nonlocal drawn
        drawn += 1
        return row(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(table.drawing, "_row", count)
    table.move_to(-1)
    shown(table)
    assert drawn == 19
    assert table.selected_index == 99_999
