"""Traces of several probes in one run: what each made of a kernel, and whose result is whose."""

from __future__ import annotations

from pathlib import Path

from tests.trace.make import TraceWriter
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe_view import no_result_reason
from tui_probe.trace.follow import TraceFollower, open_trace

FACTS = "registers 10 local 0 shared 0 blocks 8"
SHAPES = ((8, 1, 1), (16, 1, 1))


def write(folder: Path) -> TraceWriter:
    """Six launches of a kernel alternately of two probes, and a third probe that refuses it; grids vary."""
    writer = TraceWriter(folder)
    writer.start()
    writer.kernel(0, "k", "probed")
    writer.lines(
        f"[probing] 0 probed {FACTS} probe one reason -",
        "[probing] 0 probed registers 12 local 0 shared 0 blocks 6 probe two reason -",
        "[probing] 0 skipped registers - local - shared - blocks - probe three reason no PTX in image code no-ptx",
    )
    for number in range(6):
        writer.launch(0, grid=SHAPES[number // 2 % 2])
        name = f"0.00000{number}.bin"
        probe = ("one", "two")[number % 2]
        (writer.directory / "result" / name).write_bytes(b"")
        writer.lines(f"[exec] save result/{name} size 10 kernel 0 launch {number} probe {probe}")
    return writer


def test_kernel_by_probe_has_status_results_and_resources(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path / "t").directory)
    kernel = trace.kernels[0]
    one, two, three = kernel.by_probe()
    assert [probed.probe for probed in kernel.by_probe()] == ["one", "two", "three"]
    assert [list(probed.result_rows) for probed in (one, two, three)] == [[0, 2, 4], [1, 3, 5], []]
    assert (one.status, two.status, three.status) == ("probed", "probed", "skipped")
    assert (one.blocks_per_sm_probed, two.blocks_per_sm_probed) == (8, 6)
    assert (three.reason, three.reason_code) == ("no PTX in image", "no-ptx")
    assert list(kernel.result_rows) == list(range(6))
    assert (one.launches, one.name) == (kernel.launches, kernel.name)
    assert one.by_probe() == (one,)
    assert (one.launches_probed, kernel.launches_probed) == (3, 6)
    assert kernel.by_probe()[0] is one


def test_result_belongs_to_kernel_under_its_probe(tmp_path: Path) -> None:
    writer = write(tmp_path / "t")
    (writer.directory / "result" / "0.000009.bin").write_bytes(b"")
    writer.lines("[exec] save result/0.000009.bin size 10 kernel 0 launch 5")
    kernel = open_trace(writer.directory).kernels[0]
    assert [kernel.kernel_of_result(row).probe for row in range(7)] == [*["one", "two"] * 3, None]
    assert kernel.kernel_of_result(0) is kernel.by_probe()[0]
    assert list(kernel.kernel_of_result(6).result_rows) == list(kernel.result_rows)


def test_kernel_of_run_with_one_probe_has_one_probed_kernel(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "k", "probed")
    writer.launch(0)
    kernel = open_trace(writer.directory).kernels[0]
    (probed,) = kernel.by_probe()
    assert (probed.probe, probed.kernel, probed.by_probe()) == (None, kernel, (probed,))
    assert (probed.status, probed.mode, probed.result_rows) == (kernel.status, kernel.mode, kernel.result_rows)
    assert (probed.launches, probed.launches_probed) == (kernel.launches, kernel.launches_probed)
    assert kernel.combined_probes == ()


def test_a_trace_that_grows_is_read_as_one_that_is_whole(tmp_path: Path) -> None:
    writer = write(tmp_path / "t")
    text = writer.log.read_bytes()
    expected = open_trace(writer.directory).kernels[0]
    writer.log.write_bytes(b"")
    follower = TraceFollower(writer.directory)
    for start in range(0, len(text), 97):
        with writer.log.open("ab") as log:
            log.write(text[start : start + 97])
        follower.poll()
    kernel = follower.trace.kernels[0]
    assert {probed.probe: list(probed.result_rows) for probed in kernel.by_probe()} == {
        probed.probe: list(probed.result_rows) for probed in expected.by_probe()
    }


def test_the_nearest_launch_of_the_same_shape_stands_in(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path / "t").directory)
    kernel = trace.kernels[0]
    numbers = []
    for row in range(6):
        launch = ViewSource(trace, kernel, trace.launches[row]).for_probe_names("two").launch
        assert launch is not None
        numbers.append(launch.number)
    assert numbers == [1, 1, 3, 3, 5, 5]
    newest = ViewSource(trace, kernel).for_probe_names("two")
    assert (newest.launch, newest.kernel.probe) == (None, "two")


def test_nearest_launch_has_the_result_of_the_probe(tmp_path: Path) -> None:
    """Launches have results of ``one`` and ``two`` or of ``four`` in turn; ``one`` is first in each."""
    writer = write(tmp_path / "t")
    for number in (6, 7, 8):
        writer.launch(0, grid=SHAPES[0])
        for probe in ("one", "two") if number != 7 else ("four",):
            name = f"{number}_{probe}.bin"
            (writer.directory / "result" / name).write_bytes(b"")
            writer.lines(f"[exec] save result/{name} size 10 kernel 0 launch {number} probe {probe}")
    trace = open_trace(writer.directory)
    for row in (6, 7, 8):
        source = ViewSource(trace, trace.kernels[0], trace.launches[row]).for_probe_names("two")
        assert source.launch is not None
        assert source.launch.result is not None
        assert trace.results.probe(source.launch.result) == "two"


def test_why_a_page_has_nothing(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path / "t").directory)
    source = ViewSource(trace, trace.kernels[0])
    assert no_result_reason(source, "one") is None
    assert no_result_reason(source, "three") == "the kernel was not probed: no PTX in image"
    assert no_result_reason(source, "four") == "the kernel was probed with one, two, three: run with -p four"


def test_page_of_a_probe_that_no_launch_ran_says_what_measures_it(tmp_path: Path) -> None:
    writer = write(tmp_path / "t")
    writer.lines(f"[probing] 0 probed {FACTS} probe five reason -")
    for running, reason in ((True, "no result was saved yet"), (False, "no launch has a result of this probe: ")):
        trace = open_trace(writer.directory)
        trace.state.is_running = running
        reasons = no_result_reason(ViewSource(trace, trace.kernels[0]), "five")
        assert (reasons or "").startswith(reason)


def test_a_probe_whose_name_leads_out_of_the_trace_has_no_files(tmp_path: Path) -> None:
    writer = write(tmp_path / "t")
    writer.lines(f"[probing] 0 probed {FACTS} probe ../../.. reason -", f"[probing] 0 probed {FACTS} probe / reason -")
    kernel = open_trace(writer.directory).kernels[0]
    (writer.directory / "probe.toml").write_text("")
    for name in ("../../..", "/"):
        assert kernel.named_probes[name].folder is None
        assert kernel.named_probes[name].file("probe.toml") is None


def test_a_damaged_log_cannot_make_any_number_of_probes(tmp_path: Path) -> None:
    writer = write(tmp_path / "t")
    writer.lines(*(f"[probing] 0 probed {FACTS} probe p{number} reason -" for number in range(1000)))
    assert len(open_trace(writer.directory).kernels[0].by_probe()) == 64


def test_each_probe_has_its_own_slowdown(tmp_path: Path) -> None:
    writer = write(tmp_path / "t")
    for grid in SHAPES:
        writer.pass_through(0, "not chosen", grid=grid)
    times = [3000, 9000] * 3
    writer.lines(*(f"[time] launch {number} kernel 0 key 0 probed ns {ns} for 1" for number, ns in enumerate(times)))
    writer.lines(*(f"[time] launch {number} kernel 0 key 0 original ns 1000 for 1" for number in (6, 7)))
    kernel = open_trace(writer.directory).kernels[0]
    one, two, three = kernel.by_probe()
    assert (one.slowdown, two.slowdown, three.slowdown) == (3, 9, None)
    assert (kernel.slowdown, kernel.time_probed_ms) == (None, None)
    assert kernel.time_ms == one.time_ms == 0.001
