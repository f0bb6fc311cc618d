"""CUDA graphs: counts, places of nodes, and the page as text and as data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden import golden
from tests.pages.graphs import graphs_trace, replays
from tests.sizes import document_text, golden_widths
from tests.trace.make import TraceWriter
from tui_probe.draw.spans import plain
from tui_probe.pages.graph_page import graph_page, schedule, times_by_graph
from tui_probe.pages.page_registry import report_lines
from tui_probe.pages.table_page import TablePage
from tui_probe.trace.follow import open_trace
from tui_probe.trace.graphs import GraphPosition
from tui_probe.trace.launch_events import GraphNode
from tui_probe.trace.model import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    writer = graphs_trace(tmp_path / "Nov21_101010_42")
    replays(writer)
    return open_trace(writer.directory)


def test_replays_are_calls_of_their_kernels(trace: Trace) -> None:
    gemm, relu = trace.kernels
    assert (gemm.launches, gemm.launches_probed, gemm.launches_in_graphs) == (2000, 4, 1996)
    assert (relu.launches, relu.launches_probed, relu.launches_in_graphs) == (2001, 3, 1998)
    assert (trace.state.launches, trace.state.launches_probed, trace.state.unknown_lines) == (4001, 7, 0)
    assert [(graph.replays, graph.replays_probed) for graph in trace.graphs] == [(1000, 2), (1, 0)]


def test_a_launch_tells_its_graph_replay_and_node(trace: Trace) -> None:
    places = {number: trace.graphs.position_of(number) for number in (9, 10, 13, 14, 2012)}
    assert places == {
        9: None,
        10: GraphPosition(0, 0, 0),
        13: GraphPosition(0, 0, 5),
        14: None,
        2012: GraphPosition(0, 501, 4),
    }


def test_nodes_have_their_recordings_times_and_ranges(trace: Trace) -> None:
    graph_times = times_by_graph(trace)[0]
    assert [node.probed_count for node in graph_times.nodes] == [2, 2, 0, 0, 2, 1]
    assert [node.ns for node in graph_times.nodes] == [12_000, 4_000, None, None, 12_000, 4_000]
    assert [node.ranges for node in graph_times.nodes][:2] == [("step", "attention"), ("step",)]
    assert graph_times.kernel_ns == 32_000
    assert [(node.begin, node.end) for node in graph_times.nodes] == [
        (0, 0.375), (0.375, 0.5), (0, 0), (0.5, 1), (0.5, 0.875), (0.875, 1),
    ]  # fmt: skip
    assert graph_times.replay_ns == pytest.approx(42_998)
    assert (graph_times.probed_ns, graph_times.call_ns) == (52_000, 5200)


def test_replaced_graph_has_other_nodes(tmp_path: Path) -> None:
    writer = graphs_trace(tmp_path / "t")
    writer.lines(
        "[graph] 1 replayed 5", "[graph] 1 executable 0x55e0 nodes 1 kernels 1 flags 8 replays 5",
        "[node] 1 0 kernel in - after - kernel 0 grid 1 1 1 block 1 1 1 shared 0 captured -", "[graph] 1 replayed 2",
    )  # fmt: skip
    trace = open_trace(writer.directory)
    assert [kernel.launches for kernel in trace.kernels] == [2, 5]
    graph = list(trace.graphs)[1]
    assert (graph.versions, len(graph.nodes), graph.replays, graph.reason) == (2, 1, 7, None)


def test_a_damaged_log_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.lines(
        "[node] 3 5 kernel in 9 after 1 kernel 0 grid 1 1 1 block 1 1 1 shared 0 captured -",
        "[node] 3 0 kernel in 7 after 0,4 kernel 0 grid 1 1 1 block 1 1 1 shared 0 captured 12",
        "[graph] 3 replay 7 time 1 launch 90 count 9 probed 0x3,8x2", "[graph] 3 replay x", "[graph] 4 replayed 2",
        "[time] graph 9 replay 1 original ns 5 for 0 call 1",
    )  # fmt: skip
    trace = open_trace(writer.directory)
    assert {graph.id for graph in trace.graphs} == {3, 4, 9}
    assert trace.graphs.position_of(95) is None
    assert len(list(graph_page(trace).lines(80))) > 3


NODES = st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=3), st.integers(0, 9)), max_size=9).map(
    lambda found: [
        GraphNode(0, i, "child" if parent % 3 == 0 else "kernel", parent if parent < i else None, tuple(after))
        for i, (after, parent) in enumerate(found)
    ]
)


@given(NODES, st.lists(st.floats(0, 100), min_size=9, max_size=9))
def test_nodes_begin_after_those_they_wait_for(nodes: list[GraphNode], lengths: list[float]) -> None:
    begins, ends = schedule(nodes, lengths[: len(nodes)])
    for node in nodes:
        assert 0 <= begins[node.index] <= ends[node.index]
        if all(earlier < node.index for node in nodes for earlier in node.dependencies):
            assert all(ends[earlier] <= begins[node.index] for earlier in node.dependencies)


def test_the_page_as_text(trace: Trace) -> None:
    page = graph_page(trace)
    page.shows_explanation = True
    golden_widths("graph-page.txt", lambda width, ascii_only: document_text(page, width, ascii_only=ascii_only))


def test_the_report_has_the_same_rows(trace: Trace) -> None:
    lines = [line.rstrip() for line in report_lines(trace, "graphs", width=120)]
    golden("graph-report.txt", "\n".join(lines[5:]) + "\n", "120", width=120)


def test_the_page_as_data(trace: Trace) -> None:
    record = json.loads("\n".join(report_lines(trace, "graphs", "json")))
    graph, first, *_, other, _, last = record["graphs"]
    assert (graph["kind"], graph["replays"], graph["probed"]) == ("graph", 1000, 2)
    assert graph["seconds"] == pytest.approx(42.998e-6)
    assert (first["kernel"], first["grid"], first["after"], first["probed"]) == (0, [64, 1, 1], [], 2)
    assert first["ranges"] == ["step", "attention"]
    assert (other["reason_code"], other["seconds"]) == ("graph-node-once", None)
    assert (last["captured"], last["probed"]) == (None, 0)


def test_missing_graphs_are_reported(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    trace = open_trace(writer.directory)
    assert "The program instantiated no CUDA graph." in "\n".join(report_lines(trace, "graphs"))


def test_launches_say_which_node_of_which_replay_they_were(trace: Trace) -> None:
    rows = json.loads("\n".join(report_lines(trace, "launches", "json")))["launches"]
    assert [(row["launch"], row["graph"], row["replay"], row["node"]) for row in rows][3:5] == [
        (13, 0, 0, 5), (2010, 0, 501, 0),
    ]  # fmt: skip
    assert "probed as node 5 of graph 0, replay 0" in "\n".join(report_lines(trace, "launches", width=160))


def test_page_without_rows_starts_in_the_column_of_rows(trace: Trace) -> None:
    page = graph_page(trace)
    empty = TablePage(page.name, page.title, page.columns, [], page.texts)
    for shown in (page, empty):
        assert all(not text or text.startswith(" ") for text in map(plain, shown.lines(100)))
    assert any("nothing to show" in plain(line) for line in empty.lines(100))
