"""A trace directory becomes kernels, launches, results and the state of its process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.trace.make import EPOCH_NS, TraceWriter, result_bytes, write_older_trace
from tui_probe.errors import TraceError
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Kernel, Trace

if TYPE_CHECKING:
    from pathlib import Path

FILL = "_Z4fillPfi"


@pytest.fixture
def writer(tmp_path: Path) -> TraceWriter:
    writer = TraceWriter(tmp_path / "Jul25_172000_4000000")
    writer.start()
    return writer


def only(trace: Trace) -> Kernel:
    (kernel,) = trace.kernels
    return kernel


def test_a_probed_kernel(writer: TraceWriter) -> None:
    writer.kernel(0, FILL, registers=(18, 24), spills=(0, 8))
    first = writer.launch(0, (8, 1, 1), shared=512)
    path = writer.save(0, first, b"x" * 100)
    kernel = only(open_trace(writer.directory))
    assert (kernel.name, kernel.demangled, kernel.status, kernel.reason) == (FILL, "fill(float*, int)", "probed", None)
    assert (kernel.launches, kernel.launches_probed, kernel.grid, kernel.block) == (1, 1, (8, 1, 1), (128, 1, 1))
    assert (kernel.registers_pruned, kernel.registers_probed) == (18, 24)
    assert (kernel.spills_pruned, kernel.spills_probed) == (0, 16)
    assert (kernel.blocks_per_sm, kernel.blocks_per_sm_probed) == (16, 12)
    assert (kernel.shared, kernel.shared_dynamic) == (1024 + 512, 512)
    assert (kernel.probe_bytes, kernel.results) == (8 * 4 * 16, [path])
    assert (kernel.slowdown, kernel.time_ms, kernel.time_probed_ms) == (None, None, None)
    info = kernel.read_info()
    assert info is not None
    assert (info.callback, info.maps[0].size) == ("block_sched", 16)


def test_without_an_assembler_the_driver_says_the_registers(writer: TraceWriter) -> None:
    writer.kernel(0, FILL, registers=(18, 24), ptxas=False)
    kernel = only(open_trace(writer.directory))
    assert (kernel.registers_pruned, kernel.registers_probed) == (18, 24)
    assert (kernel.spills_pruned, kernel.spills_probed) == (None, None)


def test_a_skipped_kernel_has_the_driver_s_numbers_and_a_reason(writer: TraceWriter) -> None:
    writer.kernel(0, "cutlass", "skipped", reason="no PTX in image", registers=(90, 0))
    writer.pass_through(0, "no PTX in image", (4, 2, 1), (256, 1, 1))
    trace = open_trace(writer.directory)
    kernel = only(trace)
    assert (kernel.status, kernel.reason, kernel.registers_pruned) == ("skipped", "no PTX in image", 90)
    assert (kernel.registers_probed, kernel.spills_pruned, kernel.probe_bytes) == (None, None, None)
    assert (kernel.launches, kernel.launches_probed, kernel.grid) == (1, 0, (4, 2, 1))
    (launch,) = (trace.launches[row] for row in kernel.rows)
    assert (launch.probed, launch.reason, launch.status, launch.result) == (False, "no PTX in image", None, None)


def test_a_failed_kernel_without_words_takes_the_reason_from_its_process_log(writer: TraceWriter) -> None:
    writer.kernel(0, FILL, "failed")
    assert only(open_trace(writer.directory)).reason == "PtxError: line 7: what"


def test_values_the_driver_does_not_say_are_none(writer: TraceWriter) -> None:
    writer.lines("[kernel] 0 skipped registers - local - shared - blocks - name f reason no PTX in image")
    kernel = only(open_trace(writer.directory))
    assert kernel.registers_pruned is kernel.blocks_per_sm is kernel.shared is kernel.local_original is None


def test_varying_shapes_are_reported(writer: TraceWriter) -> None:
    writer.kernel(0, FILL)
    for grid, block in (((8, 1, 1), (32, 1, 1)), ((9, 1, 1), (32, 1, 1)), ((8, 1, 1), (32, 1, 1))):
        writer.launch(0, grid, block)
    kernel = only(open_trace(writer.directory))
    assert (kernel.grid, kernel.grid_varies, kernel.block_varies) == ((8, 1, 1), True, False)


def test_benchmark_gives_medians(writer: TraceWriter) -> None:
    writer.kernel(0, FILL)
    for original, probed in ((1.0, 2.0), (1.0, 9.0), (2.0, 6.0)):
        writer.benchmark(0, writer.launch(0), original=original, probed=probed)
    writer.lines("[benchmark] prologue - kernel - epilogue - original - impact - 0 kernel 0 launch 3")
    trace = open_trace(writer.directory)
    kernel = only(trace)
    assert (kernel.slowdown, kernel.time_ms, kernel.time_probed_ms) == (3.0, 1.0, 6.0)
    assert trace.state.benchmark


def test_filtered_kernel_is_excluded(writer: TraceWriter) -> None:
    writer.kernel(0, FILL, "filtered", reason="excluded by name code excluded")
    kernel = only(open_trace(writer.directory))
    assert kernel.probe_reason is not None
    assert (kernel.status, kernel.reason, kernel.probe_reason.code) == ("excluded", "excluded by name", "excluded")


def test_launch_records(writer: TraceWriter) -> None:
    writer.kernel(0, FILL)
    writer.kernel(1, "other", "filtered", reason="filtered by -k")
    writer.launch(0)
    writer.pass_through(1, "filtered by -k")
    third = writer.launch(0, (2, 3, 4), (16, 16, 1), shared=64)
    writer.save(0, third, b"1234")
    trace = open_trace(writer.directory)
    first, second, last = trace.launches
    assert (first.number, first.kernel, first.time_ns, first.probed, first.status) == (0, 0, EPOCH_NS, True, 0)
    assert (second.kernel, second.probed, second.reason, second.time_ns) == (
        1,
        False,
        "filtered by -k",
        EPOCH_NS + 1000,
    )
    assert (last.grid, last.block, last.shared, last.stream) == ((2, 3, 4), (16, 16, 1), 64, 0)
    assert last.probe_bytes == 24 * 8 * 16
    assert last.result is not None
    assert trace.results.size(last.result) == 4
    assert trace.launches.column("shape").tolist()[1] == [8, 1, 1, 128, 1, 1, 0]
    assert [launch.number for launch in trace.launches[1:]] == [1, 2]
    assert trace.launches[-1].number == 2


def test_a_failed_probed_launch_is_replaced_by_the_original(writer: TraceWriter) -> None:
    writer.kernel(0, FILL)
    number = writer.launch(0, status=701)
    writer.launches -= 1
    writer.pass_through(0, "the probed kernel could not be launched (701)")
    writer.launch(0)
    kernel = only(trace := open_trace(writer.directory))
    assert (kernel.launches, kernel.launches_probed) == (2, 1)
    first, second = trace.launches
    assert (first.number, first.probed, first.status) == (number, False, 701)
    assert first.reason == "the probed kernel could not be launched (701)"
    assert second.probed


def test_a_launch_ends_once(writer: TraceWriter) -> None:
    writer.kernel(0, FILL)
    writer.launch(0)
    writer.lines("[exec] succeed 0", "[exec] succeed 0")
    kernel = only(trace := open_trace(writer.directory))
    assert (kernel.launches, kernel.launches_probed, trace.state.launches_probed) == (1, 1, 1)


def test_kernels_come_by_their_index(writer: TraceWriter) -> None:
    for index in (2, 0, 1):
        writer.kernel(index, f"k{index}")
    assert [kernel.index for kernel in open_trace(writer.directory).kernels] == [0, 1, 2]


def test_a_launch_of_the_original_that_failed(writer: TraceWriter) -> None:
    writer.kernel(0, FILL)
    writer.pass_through(0, "stream in capture")
    writer.lines("[exec] failed 1", "[exec] save-failed 1.000000.bin 28 No space left on device")
    trace = open_trace(writer.directory)
    (launch,) = trace.launches
    assert (launch.probed, launch.reason, launch.status) == (False, "stream in capture", 1)
    assert trace.state.troubles == ["save-failed 1.000000.bin 28 No space left on device"]
    assert trace.state.launches_probed == 0


def test_the_state_of_a_finished_run(writer: TraceWriter) -> None:
    writer.kernel(0, FILL)
    writer.save(0, writer.launch(0), b"x" * 10)
    writer.exit("trace limit reached", dropped=3)
    writer.run_json(exit_status=7)
    state = open_trace(writer.directory).state
    assert (state.pid, state.command, state.started) == (4_000_000, "./saxpy 4", EPOCH_NS / 1e9)
    assert (state.kernels, state.launches, state.launches_probed) == (1, 1, 1)
    assert (state.results, state.bytes_written, state.unknown_lines) == (1, 10, 0)
    assert (state.is_running, state.exit_status, state.signal) == (False, 7, None)
    assert (state.launches_dropped, state.dropped_reason) == (3, "trace limit reached")
    assert state.device is not None
    assert (state.device.sms, state.device.name) == (132, "NVIDIA H100 80GB HBM3")
    assert not state.simulated


@pytest.mark.parametrize("by", ["run.json", "device"])
def test_simulated_runs_are_known_as_such(tmp_path: Path, by: str) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start(device="Simulated GPU (8.0)" if by == "device" else "some device")
    if by == "run.json":
        writer.run_json(driver={"path": "/x/libcuda.so.1", "simulated": True})
    assert open_trace(writer.directory).state.simulated


def test_damaged_run_json_tells_nothing(writer: TraceWriter) -> None:
    for content in ("", "[", "[1]", '{"command": 3, "started": "x", "driver": [], "exit_status": true}', "[" * 100_000):
        (writer.directory / "run.json").write_text(content)
        state = open_trace(writer.directory).state
        assert (state.exit_status, state.simulated, state.command) == (None, False, "./saxpy 4")


@pytest.mark.parametrize("tag", ["jit", "probe"])
def test_an_older_trace(tmp_path: Path, tag: str) -> None:
    write_older_trace(tmp_path / "t", tag=tag)  # type: ignore[arg-type]
    trace = open_trace(tmp_path / "t")
    fill, copy, orphan = trace.kernels
    assert (fill.name, fill.status, fill.launches, fill.launches_probed) == ("_Z4fillPf", "probed", 2, 2)
    assert (fill.registers_pruned, fill.registers_probed, fill.spills_probed) == (18, 24, 16)
    assert (fill.probe_bytes, fill.slowdown, fill.time_ms) == (32, 1.5, 0.2)
    assert [path.name for path in fill.results] == ["1.500000.bin", "2.250000.bin"]
    assert (copy.name, copy.status, copy.reason, copy.launches) == ("_Z4copyPf", "failed", "PtxError: line 7: what", 2)
    assert (orphan.name, orphan.status, orphan.launches) == ("orphan", "skipped", 1)
    assert orphan.reason == "the hook did not see the program load the kernel's image"
    assert orphan.reason_code == "image-unseen"
    assert (trace.state.pid, trace.state.command) == (1860576, "python block_sched/raw.py")
    assert (trace.state.launches, trace.state.results, trace.state.unknown_lines) == (5, 2, 0)


def test_a_cut_launch_line_costs_only_that_launch(writer: TraceWriter) -> None:
    writer.kernel(0, FILL)
    writer.launch(0)
    writer.lines(
        f"[exec] {EPOCH_NS} param 10 [exec] grid 8 1 1 block 128", "kernel 0 launch 1 stream 0x0", "\udcff\udc80"
    )
    writer.launches += 1
    writer.save(0, writer.launch(0), b"1")
    trace = open_trace(writer.directory)
    assert [launch.number for launch in trace.launches] == [0, 2]
    assert [launch.result for launch in trace.launches] == [None, 0]
    assert trace.state.unknown_lines == 2


def test_results_of_launches_that_the_log_does_not_hold(writer: TraceWriter) -> None:
    writer.save(5, 99, b"1")
    kernel = only(trace := open_trace(writer.directory))
    assert (kernel.index, kernel.name, kernel.status, len(kernel.results)) == (5, "?", "pending", 1)
    assert trace.results.launch(0) is None


def test_names_never_lead_out_of_the_trace(writer: TraceWriter, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "process.log").write_text("probed.ptx\nptxas info : Used 99 registers\n")
    (tmp_path / "secret.bin").write_bytes(b"x")
    folder = writer.kernel(0, FILL)
    writer.lines(f"[probe] rename {FILL} 1_/../../../secret")
    writer.lines("[kernel] 1 probed registers 1 local 0 shared 0 blocks 1 name x reason -")
    for process_log in folder.iterdir():
        process_log.unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path / "secret")
    writer.lines(
        "[exec] save result/../../secret.bin size 1 kernel 0 launch 0", "[exec] save .. size 1 kernel 0 launch 0"
    )
    (writer.directory / "result" / "0.500000.bin").symlink_to(tmp_path / "secret.bin")
    writer.lines("[exec] save result/0.500000.bin size 1 kernel 0 launch 0")
    first, second = open_trace(writer.directory).kernels
    assert first.folder is None
    assert second.folder is None
    assert first.registers_pruned == 18
    assert first.results == [writer.directory / "result" / "secret.bin"]


def test_a_folder_of_traces_means_the_newest(tmp_path: Path) -> None:
    for age, name in enumerate(("b", "a")):
        writer = TraceWriter(tmp_path / name)
        writer.start(command=name)
        os.utime(writer.log, (1000 + age, 1000 + age))
    assert open_trace(tmp_path).directory == tmp_path / "a"
    assert open_trace(tmp_path / "b" / "event.log").state.command == "b"


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere", "does not exist; pass a trace directory"), ("file", "is a file, not"), ("empty", "has no trace")],
)
def test_other_directory_gets_advice(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match=message):
        open_trace(tmp_path / name)


def test_an_empty_log_is_an_empty_trace(tmp_path: Path) -> None:
    (tmp_path / "event.log").touch()
    trace = open_trace(tmp_path)
    assert (len(trace.kernels), len(trace.launches), trace.state.pid) == (0, 0, None)


def test_times_of_a_simulated_gpu_are_no_measurement(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start(device="simulated GPU")
    writer.kernel(0, FILL)
    writer.benchmark(0, writer.launch(0), original=1.0, probed=2.0)
    kernel = only(open_trace(writer.directory))
    assert (kernel.slowdown, kernel.time_ms, kernel.time_probed_ms) == (None, None, None)


def test_results_are_read_as_kernel_info_says(writer: TraceWriter) -> None:
    """An older file leaves open whether a slot is a thread's or a warp's; kernel.info does not."""
    slots = np.zeros((2, 4, 1024), dtype=np.uint8)
    content = result_bytes((2, 1, 1), (128, 1, 1), [(32, slots)], dialect="older")
    folder = writer.kernel(0, FILL)
    path = writer.save(0, writer.launch(0, (2, 1, 1)), content)
    kernel = only(open_trace(writer.directory))
    assert kernel.read_result_file(path).sections[0].level == "warp"
    (folder / "kernel.info").unlink()
    assert kernel.read_result_file(path).sections[0].level == "thread"
