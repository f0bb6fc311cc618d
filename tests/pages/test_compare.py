"""Figures of two sides, their signs, which of them is better, and what they come to."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import tui_probe.evals
from tests.formats import check_csv
from tests.golden import golden
from tests.pages.before_after import write_pair
from tests.pages.example import write_example
from tests.pages.timelines.drawing import golden_sizes
from tests.recorded import H200, SIMULATED, unpacked
from tests.sizes import golden_widths
from tests.trace.make import TraceWriter
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.draw.view import no_progress
from tui_probe.pages.comparison import Comparison, compare_traces
from tui_probe.pages.comparison_tables import ComparedSide
from tui_probe.probekit.metric import Better
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.changes import KernelPair, ValueChange
from tui_probe.verdicts.comparison_verdict import pair_verdict
from tui_probe.verdicts.kernel_values import KernelValue, launch_values, median_over_launches

WIDTHS = (80, 120, 200)
SIDE = ComparedSide("trace", {})
EVALUATED = Path(tui_probe.evals.__file__).parent / "traces"


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two traces of the same run, one of them of a simulated GPU."""
    monkeypatch.chdir(tmp_path)
    write_example(Path("one"))
    write_example(Path("other"), simulated=True)


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders ``before`` and ``after``, in which every difference is known, and ``simulated/…`` of both."""
    monkeypatch.chdir(tmp_path)
    write_pair(Path())
    write_pair(Path("simulated"), simulated=True)
    Path("h200").symlink_to(H200)


@pytest.fixture(scope="module")
def unpacked_traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders ``h200`` and ``simulated`` with the traces whose results are kept compressed."""
    folder = tmp_path_factory.mktemp("traces")
    for trace in (H200 / "dmat", SIMULATED / "warp_progress", SIMULATED / "block_sched"):
        unpacked(trace, folder)
    return folder


def change(before: float | None, after: float | None, better: Better = "lower", *, key: str = "x") -> ValueChange:
    one, other = (KernelValue(key, key, value, lambda number: f"{number:g} B", better) for value in (before, after))
    return ValueChange(one, other)


def told(capfd: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["compare", *words]) == status
    return capfd.readouterr().out


def document(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told(capfd, *words, "--format", "json"))
    return found


@pytest.mark.parametrize(("before", "after", "better", "said"), [
    (100, 50, "lower", ("▼ -50 B", "-50.0%", "better")),
    (50, 100, "lower", ("▲ +50 B", "+100.0%", "worse")),
    (50, 100, "higher", ("▲ +50 B", "+100.0%", "better")),
    (50, 100, "neither", ("▲ +50 B", "+100.0%", "")),
    (50, 50, "lower", ("same", "", "")),
    (0, 5, "lower", ("▲ +5 B", "", "worse")),
    (None, 5, "lower", ("", "", "")),
])  # fmt: skip
def test_a_change_has_a_sign_and_a_word(
    before: float | None, after: float | None, better: Better, said: tuple[str, str, str]
) -> None:
    pair = change(before, after, better)
    assert (pair.change_text, pair.share_text, pair.verdict) == said


def test_the_largest_change_is_listed_first() -> None:
    listed = [change(10, 40), change(40, 20), change(10, 11), change(0, 5), change(1, 99, "neither"), change(None, 1),
              change(5, 5)]  # fmt: skip
    shuffled = listed[::-1]
    assert sorted(shuffled, key=lambda each: each.sort_key) == listed
    assert [change.is_notable for change in listed] == [True, True, True, True, False, False, False]
    assert not change(1000, 1001).is_notable, "less than a per cent"


SIDES = {
    "h200-kernels": ("h200/demo:coalesced", ":strided"),
    "h200-traces": ("h200/demo", "h200/torch_compile"),
    "traces": ("before", "after"),
    "kernels": ("before:matmul", "after:matmul"),
    "shapes": ("before:resized", "after:resized"),
    "launches": ("before:resized@12", ":resized@13"),
    "simulated": ("simulated/before", "simulated/after"),
}


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize("name", SIDES)
def test_comparison_text(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """As text in all widths, Unicode and ASCII."""
    sides, status = SIDES[name], int(name == "h200-traces")  # which have no kernel in common

    def shown(width: int, ascii_only: bool) -> str:
        return told(capfd, *sides, "--width", str(width), *(["--ascii"] if ascii_only else []), status=status)

    golden_widths(f"compare/{name}.txt", shown, WIDTHS)


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize("name", SIDES)
def test_csv_has_the_figures_of_the_document(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    sides, status = SIDES[name], int(name == "h200-traces")
    record = json.loads(told(capfd, *sides, "--format", "json", status=status))
    rows = [{**row, "warning": record["warning"]} for row in record["figures"]]
    check_csv(told(capfd, *sides, "--format", "csv", status=status), rows)


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize("name", ["h200-traces", "kernels", "shapes"])
def test_markdown(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    golden(f"compare/{name}.md", told(capfd, *SIDES[name], "--format", "md", status=int(name == "h200-traces")))


@pytest.mark.usefixtures("pair")
def test_every_difference_that_was_planted_is_found(capfd: pytest.CaptureFixture[str]) -> None:
    record = document(capfd, "before", "after")
    assert record["verdict"].startswith(
        "fixed: matmul: spills, spill bytes 32 B → none (ideal 0 B); 6 kernels in both in 8 shapes: 1 better, 1 worse,"
        " 2 differ, 4 same; 6 findings remaining; the largest change: matmul"
    )
    kernels = {
        (kernel["kernel"].partition("(")[0], *(kernel["grid"] or [None])[:1]): kernel for kernel in record["kernels"]
    }
    assert {key: each["verdict"] for key, each in kernels.items()} == {
        ("matmul", 16): "better", ("softmax_kernel", 16): "worse", ("copy_kernel", 16): "same",
        ("twice", 4): "same", ("twice", 8): "same", ("resized_kernel", None): "same",
        ("resized_kernel", 8): "differs", ("resized_kernel", 64): "differs",  # one launch of each
    }  # fmt: skip
    assert kernels["matmul", 16]["figure"] == "time_ms"
    rows = {(row["kernel"], row["figure"]): row for row in record["figures"] if row["grid"] != [8, 1, 1]}
    assert rows["softmax_kernel", "time_ms"]["share"] == pytest.approx(0.05)
    spills = rows["matmul(float const*, float const*, float*, int)", "spills"]
    assert (spills["before"], spills["after"], spills["verdict"]) == (32, 0, "better")
    assert (record["only_before"], record["only_after"]) == (["gone(float*)"], ["added(float*)"])


@pytest.mark.usefixtures("pair")
def test_the_first_line_says_what_it_comes_to(capfd: pytest.CaptureFixture[str]) -> None:
    first, second = told(capfd, "before:matmul", "after:matmul", "--width", "200").splitlines()[:2]
    assert first == (" fixed: spills, spill bytes 32 B → none (ideal 0 B); B is faster: time 1.00 ms → 500 µs (-50.0%)")
    assert second == "", "more registers are not worse where as many warps fit"
    simulated = told(capfd, "simulated/before:matmul", "simulated/after:matmul", "--width", "200").splitlines()[0]
    assert simulated.startswith(" fixed: spills, spill bytes"), "cycles of a simulated GPU are no reason"
    other = told(capfd, "before:matmul", ":softmax", "--figures", "spills").splitlines()
    assert other[0] == " the kernels differ, so there is no verdict"
    same = told(capfd, "before:copy", ":copy", "--width", "80").splitlines()
    assert same[0] == " B is as fast as A: time 100 µs → 100 µs; 1 finding remaining"
    assert " A and B are the same" in same


@pytest.mark.usefixtures("pair")
def test_comparison_sorts_kernels_and_their_values() -> None:
    page = compare_traces(open_trace(Path("before")), open_trace(Path("after")), no_progress)
    page.sort_by("kernel")
    lines = [plain(line) for line in page.lines(200)]
    head = next(number for number, line in enumerate(lines) if line.startswith(" kernel ↑"))
    kernels = [line.split("(")[0].split()[0] for line in lines[head + 1 : lines.index("", head)]]
    assert kernels == sorted(kernels)
    page.sort_by("before")
    page.sort_by("before")
    lines = [plain(line) for line in page.lines(200)]
    head = next(number for number, line in enumerate(lines) if line.startswith(" metric") and "A↑" in line)
    link = page.link_at(head + 1)
    assert link is not None
    assert link.subject in lines[head + 1], "rows lead to their pages in this order"
    number, text = page.worst() or (0, "")
    assert text.split()[-1].strip("()") in lines[number]


@pytest.mark.usefixtures("pair")
def test_a_script_can_fail_when_something_got_worse(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "after", "--fail-if-worse", "4.9%", "--format", "csv"]) == 1
    out, err = capfd.readouterr()
    assert out.startswith("kernel,grid,block,figure,")
    assert err.splitlines() == [
        f"tui-probe: worse by more than 4.9%: {words}"
        for words in (
            "softmax_kernel: time 200 µs → 210 µs (+5.0%)",
            "softmax_kernel: running cycles 3 200 → 3 360 (+5.0%)",
        )
    ]
    told(capfd, "before", "after", "--fail-if-worse", "34", status=0)
    assert main(["compare", "before", "after", "--fail-if-worse", "5"]) == 5
    assert capfd.readouterr().err.splitlines() == [
        f"tui-probe: no verdict: resized_kernel: {words} (a time of one launch has no known spread; measure 4 launches"
        " or more)"
        for words in ("span cycles 1 350 → 1 750 (+29.6%)", "running cycles 1 200 → 1 600 (+33.3%)")
    ]
    told(capfd, "before", "after", "--fail-if-worse", "5", "--figures", "time_ms,spills", status=0)
    told(capfd, "after", "before", "--fail-if-worse", "1000", "--figures", "spills", status=1)


def launches(*values: float) -> KernelValue:
    """A time that several launches took."""
    return median_over_launches(
        KernelValue("time_ms", "time", None, lambda number: f"{number:g} ms", is_leading=True), values
    )


def test_a_change_within_what_launches_vary_is_none() -> None:
    noisy = ValueChange(launches(1.0, 1.2, 1.4, 1.6, 1.8), launches(1.1, 1.4, 1.5, 1.7, 1.9))
    assert (noisy.is_within_noise, noisy.verdict, noisy.is_notable) == (True, "", False)
    clear = ValueChange(launches(1.0, 1.01, 1.02, 1.03), launches(1.5, 1.51, 1.52, 1.53))
    assert (clear.is_within_noise, clear.verdict) == (False, "worse")
    few = ValueChange(launches(1.0, 1.8), launches(1.2, 1.9))
    assert (few.is_within_noise, few.baseline.spread, few.verdict) == (False, None, "worse")
    verdict = pair_verdict(KernelPair("", 0, "k", None, None, [noisy]))
    assert verdict.startswith("B is as fast as A: the difference is within launch-to-launch variation")


def test_time_of_one_launch_has_no_verdict() -> None:
    """Its spread is not known. A count of one launch has a verdict: it is the same in each launch."""
    single = ValueChange(launches(1.0), launches(2.0, 2.0, 2.0, 2.0))
    assert (single.verdict, single.direction, single.is_notable) == ("", "worse", False)
    pair = KernelPair("", 0, "k", None, None, [single])
    assert pair.verdict == "differs"
    assert pair_verdict(pair) == "no verdict on time (one launch, spread unknown): time 1 ms → 2 ms (+100.0%)"
    assert KernelPair("", 0, "k", None, None, [single, change(10, 14)]).verdict == "worse"
    same = KernelPair("", 0, "k", None, None, [ValueChange(launches(1.0), launches(1.0))])
    assert (same.verdict, pair_verdict(same)) == ("same", "B is as fast as A: time 1 ms → 1 ms")


def test_time_of_sampled_launches_has_their_quartiles(tmp_path: Path) -> None:
    """Launches that the run timed without the probe; no benchmark."""
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    writer.kernel(0, "k")
    for number, ns in enumerate((10_000, 10_400, 10_800, 11_200, 30_000)):
        writer.launch(0, (4, 1, 1), (64, 1, 1))
        writer.time(0, number, ns)
    writer.exit()
    trace = open_trace(writer.directory)
    values = launch_values(ViewSource(trace, trace.kernels[0]))
    (time,) = (value for value in values if value.key == "time_ms")
    assert (time.launches, time.value) == (5, pytest.approx(0.0108))
    assert (time.low, time.high) == (pytest.approx(0.0104), pytest.approx(0.0112))


def test_time_comes_before_counts_that_went_from_0() -> None:
    time = ValueChange(launches(1.0, 1.0), launches(2.0, 2.0))
    pair = KernelPair("", 0, "k", None, None, sorted([change(0, 5), time], key=lambda each: each.sort_key))
    assert pair.changes[0] is time
    assert pair_verdict(pair).startswith("B is slower: time 1 ms → 2 ms (+100.0%)")


def test_same_time_is_not_called_same_if_another_metric_is_worse() -> None:
    pair = KernelPair("", 0, "k", None, None, [ValueChange(launches(1.0), launches(1.0)), change(10, 14)])
    assert pair.verdict == "mixed"
    assert KernelPair("", 0, "k", None, None, [ValueChange(launches(1.0), launches(1.001))]).verdict == "about the same"


def test_unjudged_comparison_has_its_own_status(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before, after = (str(path) for path in write_pair(tmp_path, simulated=True))
    assert main(["compare", before, after, "--fail-if-worse", "50", "--figures", "span_cycles"]) == 5
    assert "no verdict: times of a simulated GPU come from a model" in capfd.readouterr().err
    assert main(["compare", before, after, "--fail-if-worse", "50", "--figures", "spills"]) == 0
    real, _ = (str(path) for path in write_pair(tmp_path / "real"))
    assert main(["compare", f"{real}:matmul", f"{real}:softmax", "--fail-if-worse", "5"]) == 5
    assert "no verdict: A and B are different kernels" in capfd.readouterr().err


def write_ending(trace: Path, **ended: object) -> str:
    """Exit of the program of a trace, as run.json records it."""
    record = json.loads((trace / "run.json").read_text())
    (trace / "run.json").write_text(json.dumps(record | ended))
    return str(trace)


@pytest.mark.parametrize(("ended", "words"), [
    ({"exit_status": 1}, "exit status 1"),
    ({"exit_status": None, "signal": 11}, "ended by signal 11"),
])  # fmt: skip
def test_failed_program_is_reported_before_the_verdict(
    ended: dict[str, object], words: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before, after = write_pair(tmp_path)
    sides = str(before), write_ending(after, **ended)
    warning = f"B's program failed: A exit status 0, B {words}"
    assert told(capfd, *sides, "--width", "120").startswith(
        f" {warning}; the results below may cover less work\n fixed: matmul"
    )
    assert told(capfd, *sides, "--format", "md").startswith(f"**{warning}")
    record = document(capfd, *sides)
    assert record["warning"].startswith(warning)
    assert record["endings"] == {"before": "exit status 0", "after": words}
    assert [*record].index("warning") < [*record].index("verdict")
    assert main(["compare", *sides, "--fail-if-worse", "50"]) == 5
    assert f"no verdict: {warning}" in capfd.readouterr().err
    assert main(["compare", *sides, "--fail-if-worse", "4.9"]) == 1, "what is worse is worse"


def test_forms_without_room_for_a_warning_give_it_on_stderr(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before, after = write_pair(tmp_path)
    expected = (
        "tui-probe: warning: B's program failed: A exit status 0, B exit status 1; the results below may cover less"
        " work\n"
    )
    for ending, words in ((0, ""), (1, expected)):
        write_ending(after, exit_status=ending)
        for more in (["--format", "csv"], ["--view", "timeline"], ["--view", "timeline", "--format", "csv"]):
            kernel = ":0" if "--view" in more else ""
            assert main(["compare", f"{before}{kernel}", f"{after}{kernel}", *more]) == 0
            assert capfd.readouterr().err == words


def test_data_has_the_warning_too(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before, after = write_pair(tmp_path)
    for ending, said in ((0, ""), (1, "B's program failed: A exit status 0, B exit status 1; ")):
        write_ending(after, exit_status=ending)
        rows = list(csv.DictReader(told(capfd, str(before), str(after), "--format", "csv").splitlines()))
        assert all(row["warning"].startswith(said) and bool(row["warning"]) == bool(said) for row in rows)
        drawn = document(capfd, f"{before}:0", f"{after}:0", "--view", "timeline")
        assert (drawn["warning"] or "").startswith(said)
        assert bool(drawn["warning"]) == bool(said)


def test_programs_that_ended_alike_are_judged(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before, after = (write_ending(trace, exit_status=1) for trace in write_pair(tmp_path))
    assert document(capfd, before, after)["warning"] is None
    assert main(["compare", before, after, "--fail-if-worse", "50"]) == 0


@pytest.mark.usefixtures("traces")
def test_uncompared_results_are_reported(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one", "other", "--fail-if-worse", "1%"]) == 0
    err = capfd.readouterr().err
    assert "not compared: reduce_kernel<512,Redu…float>: time 20.0 µs → – (measured in one trace only)" in err
    assert main(["compare", str(H200 / "demo"), str(H200 / "torch_compile"), "--fail-if-worse", "1"]) == 1
    assert "nothing to compare" in capfd.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["compare", "one", "other", "--fail-if-worse", "much"])
    assert stopped.value.code == 2


def test_traces_of_two_probes_are_not_called_better_or_worse(capfd: pytest.CaptureFixture[str]) -> None:
    lines = told(capfd, str(SIMULATED / "block_sched"), str(SIMULATED / "gmem_sectors"), "--width", "100").splitlines()
    assert lines[0] == " 1 kernel in both in 3 shapes: 3 same; 1 finding remaining", (
        "what a probe costs says nothing of the program"
    )
    assert " the probe differs: A block_sched, B gmem_sectors" in lines
    values_of_a = " only in A  running cycles 4 323 · gap cycles 551"
    assert any(line.startswith(values_of_a) for line in lines)
    assert not any(line.startswith(" kernel") for line in lines), "a table in which all is the same tells nothing"
    (registers,) = [line.split() for line in lines if line.startswith(" registers, probed")]
    assert registers[-1].endswith("%"), "what different probes need is neither better nor worse"
    kernels = str(H200 / "dmat"), str(H200 / "demo")
    assert "matmul           6×6→8×8  16×16  idle SMs" in told(capfd, *kernels, "--width", "100")


def test_a_narrow_table_keeps_the_share_and_the_verdict() -> None:
    def side(value: float) -> KernelValue:
        return KernelValue(
            "x", "sectors of all requests of loads", value, lambda number: f"{number:,.0f} bytes", "lower"
        )

    pair = KernelPair("", 0, "kernel", None, None, [ValueChange(side(123_456_789), side(234_567_890))])
    lines = [
        plain(line) for line in Comparison((SIDE, SIDE), [pair], {"A": [], "B": []}, compares_traces=False).lines(80)
    ]
    (row,) = [line for line in lines if "123,456,789 bytes" in line and "→" not in line]
    assert len(row.rstrip()) <= 80
    assert row.split()[-2:] == ["+90.0%", "worse"]


@pytest.mark.usefixtures("traces")
def test_comparison_data_names_its_schema(capfd: pytest.CaptureFixture[str]) -> None:
    compared = document(capfd, "one", "other")
    assert (compared["schema"], compared["version"]) == ("tui-probe.report", 2)


@pytest.mark.parametrize("width", WIDTHS)
def test_instances_of_a_template_are_distinguished(width: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Ten kernels of PyTorch that differ in a template argument only, most of them of the same grid and block."""
    traces = [str(EVALUATED / "dmat" / name) for name in ("triton-128x64", "triton-64x64")]
    lines = told(capfd, *traces, "--width", str(width)).splitlines()
    headings = [line for line in lines if line.startswith(" #")]
    assert all(re.search(r" #\d+ .{5,}, grid \S+, block \S+$", heading) for heading in headings), headings
    without_index = {heading.split(" ", 2)[2] for heading in headings}
    assert len(headings) == len(without_index) == 18
    table = lines[next(n for n, line in enumerate(lines) if line.startswith(" kernel ")) + 1 :]
    names = [line[: lines[len(lines) - len(table) - 1].index("metric")] for line in table[:18]]
    assert len(set(names)) == 18


def test_values_of_one_side_have_the_name_of_its_run(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sides = [unpacked(SIMULATED / probe, tmp_path) for probe in ("block_sched", "gmem_sectors")]
    named = [write_ending(side, name=name) for side, name in zip(sides, ("before", "after"), strict=True)]
    lines = told(capfd, *named, "--width", "120").splitlines()
    assert any(line.startswith(" only in A (before)  running cycles") for line in lines)
    assert any(line.startswith(" only in B (after)  ") for line in lines)


def write_run(trace: Path, *, measured: bool = False) -> str:
    """A run of two kernels that probed nothing, or timed one of them."""
    writer = TraceWriter(trace)
    writer.start(device="NVIDIA H200")
    for index, name in enumerate(("copy", "scale")):
        writer.kernel(index, name, "skipped", reason="filtered")
        launch = writer.launch(index, (16, 1, 1))
        if measured and index == 0:
            writer.benchmark(index, launch, original=1.0, probed=1.1)
    writer.exit()
    return str(trace)


def test_nothing_measured_is_no_pass(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one, other = (write_run(tmp_path / name) for name in ("one", "other"))
    measured = write_run(tmp_path / "measured", measured=True)
    for sides, words in (((one, other), "either run"), ((one, measured), "A"), ((measured, other), "B")):
        reason = f"nothing was measured by {words}"
        assert told(capfd, *sides, "--width", "120").startswith(f" {reason}; 2 kernels in both; 2 findings remaining\n")
        assert document(capfd, *sides)["verdict"] == f"{reason}; 2 kernels in both; 2 findings remaining"
        assert main(["compare", *sides, "--fail-if-worse", "5"]) == 5
        assert f"no verdict: {reason}" in capfd.readouterr().err
        assert main(["compare", *sides, "--fail-if-worse", "5", "--figures", "blocks"]) == 0, "it was asked for"
        capfd.readouterr()
    assert told(capfd, f"{one}:copy", f"{other}:copy").startswith(" nothing was measured of either;")


def test_results_that_cannot_be_read_are_not_nothing_measured(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("one", "other"):
        shutil.copytree(H200 / "demo", tmp_path / name)
        for result in (tmp_path / name / "result").iterdir():
            result.write_bytes(b"broken")
    sides = [str(tmp_path / name) for name in ("one", "other")]
    assert told(capfd, *sides, "--width", "120").startswith(" no result of either run could be read; 7 kernels in both")


def test_no_kernel_in_both_is_nothing_to_compare(capfd: pytest.CaptureFixture[str]) -> None:
    sides = [str(EVALUATED / "scheduling" / name) for name in ("plain", "persistent")]
    assert main(["compare", *sides]) == 1
    out, err = capfd.readouterr()
    assert out.startswith(" no kernel is in both A and B; 1 only in A; 1 only in B\n")
    assert err == "tui-probe: error: nothing to compare, because no kernel is in both traces\n"


@pytest.mark.usefixtures("traces")
def test_two_traces_kernel_by_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    record = document(capfd, "one", "other")
    rows = {(row["kernel"], row["figure"]): row for row in record["figures"]}
    times = rows["softmax_kernel", "launches"]
    assert (times["before"], times["after"], times["change"]) == (1, 1, 0)
    slowdown = next(row for key, row in rows.items() if key[1] == "slowdown")
    assert (slowdown["before"], slowdown["after"], slowdown["change"]) == (pytest.approx(1.2), None, None)
    cycles = next(row for key, row in rows.items() if key[1] == "running_cycles")
    assert cycles["verdict"] is None
    problem, device = record["notes"][1:]
    assert problem.startswith("2 problems with results: one/result/")
    assert device == "the device differs: A NVIDIA H100 80GB HBM3, B Simulated GPU"


@pytest.mark.usefixtures("traces")
def test_launches_and_csv(capfd: pytest.CaptureFixture[str]) -> None:
    rows = {
        row["figure"]: row for row in csv.DictReader(io.StringIO(told(capfd, "one:0@0", ":0@3", "--format", "csv")))
    }
    assert "launches" not in rows
    change = float(rows["span_cycles"]["after"]) - float(rows["span_cycles"]["before"])
    assert float(rows["span_cycles"]["change"]) == pytest.approx(change)


DRAWN = {
    "dmat": ("h200/dmat:matmul", ":reduction"),
    "progress": ("simulated/warp_progress:0@0", ":0@1"),
    "timeline": ("simulated/block_sched:0@0", ":0@1"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawings_side_by_side(name: str, unpacked_traces: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before, after = DRAWN[name]

    def shown(size: tuple[int, int], ascii_only: bool) -> str:
        options = ["--width", str(size[0]), "--height", str(size[1]), *(["--ascii"] if ascii_only else [])]
        text = told(capfd, str(unpacked_traces / before), after, "--view", name, *options)
        assert text.count("\n") == size[1]
        return text

    golden_sizes(f"compare/{name}", shown, is_drawing=True)


def test_a_drawing_that_there_is_not_has_exit_status_2(capfd: pytest.CaptureFixture[str]) -> None:
    for view in ("nonsense", "summary"):
        assert main(["compare", f"{H200}/demo:4", ":5", "--view", view]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert f"argument --view: {view!r} is not a drawing; use " in err
        assert {"timeline", "dmat", "progress"} <= set(err.split("is not a drawing; use ")[1].strip().split(", "))


def test_drawings_side_by_side_have_one_scale(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = [f"{H200}/demo:4", ":5", "--view", "timeline", "--width", "120", "--height", "20"]
    lines = told(capfd, *arguments).splitlines()
    assert lines[0] == f" A  Timeline of launch 4 of #4 matmul{' ' * 24} B  Timeline of launch 5 of #5 reduction"
    busy = [len(half.rstrip()) - len("▶SM 0–9       ") for half in (lines[2][:59], lines[2][61:])]
    assert busy[1] / busy[0] == pytest.approx(1834 / 7140, abs=0.03), "the shorter one is drawn as much shorter"
    rows = list(csv.DictReader(io.StringIO(told(capfd, *arguments, "--format", "csv"))))
    assert {row["side"] for row in rows} == {"A", "B"}
    assert main(["compare", f"{H200}/demo:4", ":5", "--view", "dmat"]) == 1
    assert "A has no data for the page dmat" in capfd.readouterr().err


@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize(("sides", "said"), [
    (("one", "one:0"), "a trace and a kernel cannot be compared"),
    (("one:0", ":99"), "no kernel is named 99"),
    (("one:0", ":1", "--figures", "speed"), "no value is named speed; values: "),
])  # fmt: skip
def test_incomparable_sides(sides: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *sides]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert said in err


def test_launches_of_other_sizes_are_reported(capfd: pytest.CaptureFixture[str]) -> None:
    kernels = str(H200 / "dmat"), str(H200 / "demo")
    note = "of 7 kernels differ in grid or block size: totals grow with the work, shares do not"
    assert note in told(capfd, *kernels, "--width", "100")


def test_fewer_but_larger_blocks_an_sm_are_not_worse(capfd: pytest.CaptureFixture[str]) -> None:
    demo = str(H200 / "demo")
    text = told(capfd, f"{demo}:zero_fill", f"{demo}:coalesced_store", "--width", "100")
    (line,) = [line for line in text.splitlines() if line.startswith(" blocks per SM")]
    assert "▼ -8" in line
    assert line.endswith("%"), "neither better nor worse: occupancy judges"


@pytest.mark.parametrize(
    ("show", "before", "after", "text"),
    [
        ("{:.1%}", 0.2, 0.211, "▲ +1.1 pp"),
        ("{:.0%}", 1.0, 0.75, "▼ -25 pp"),
        ("{:.1%}", 0.2, 0.2, "same"),
        ("{:.0f} B", 2, 5, "▲ +3 B"),
    ],
)
def test_change_of_a_share_is_in_percentage_points(show: str, before: float, after: float, text: str) -> None:
    sides = (KernelValue("share", "share", value, show.format) for value in (before, after))
    assert ValueChange(*sides).change_text == text
