"""Every kind of line becomes its record, in both dialects, and no line raises."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_probe.reasons import Reason, because
from tui_probe.trace import event_types as p
from tui_probe.trace import launch_events as k
from tui_probe.trace import launch_events as n
from tui_probe.trace.events import Event, parse_line

SHAPE = (4096, 2, 1, 128, 1, 1, 49152)

KNOWN = [
    ("[init] pid 42", p.ProcessStarted(42)),
    ("[pid] 42", p.ProcessStarted(42)),
    ("[init] cmd 13 python raw.py", p.Command("python raw.py")),
    ("[cmd] 26 python block_sched/raw.py ", p.Command("python block_sched/raw.py")),
    ("[init] dl 0x26aa350", p.DriverOpened(0x26AA350)),
    ("[info] dl 0x26aa350", p.DriverOpened(0x26AA350)),
    ("[init] epoch 1785000000000000000", p.Epoch(1785000000000000000)),
    ("[init] rank 1 of 8", p.RankGiven(1, 8)),
    (
        "[hash] launch 3 kernel 1 parameter 0 offset 8 bytes 4096 hash 00ab34cd56ef7890",
        p.MemoryHashed(3, 1, 0, 8, 4096, "00ab34cd56ef7890"),
    ),
    (
        "[init] device 0 sms 132 clock 1980000 cc 9.0 name NVIDIA H100 80GB",
        p.Device(0, 132, 1980000, "9.0", "NVIDIA H100 80GB"),
    ),
    ("[init] success", p.Initialised()),
    ("[info] init success", p.Initialised()),
    ("[benchmark] ENABLED L2 Flush Size 256000000", p.BenchmarkEnabled(256000000)),
    (
        "[mem] cuMemAlloc_v2 0 dptr 7fdf78000000 bytesize 33554432",
        p.MemoryCall("cuMemAlloc_v2", 0, 0x7FDF78000000, 33554432),
    ),
    ("[mem] cuMemFreeAsync_ptsz 0 dptr 7fdf78000000", p.MemoryCall("cuMemFreeAsync_ptsz", 0, 0x7FDF78000000, None)),
    ("[tensor-map] layout d0:1:256.0.32/T:01", p.TensorMapLayout("d0:1:256.0.32/T:01")),
    ("[tensor-map] layout -", p.TensorMapLayout(None)),
    (
        f"[tensor-map] cuTensorMapEncodeTiled 0 hash {'1f' * 20} address 7f00 rank 2 type 7 dims 44,20 strides 192 "
        "box 16,8 steps 1,1 interleave 0 swizzle 0 promotion 0 fill 0",
        p.TensorMapMade("cuTensorMapEncodeTiled", 0, "1f" * 20, 0x7F00, 7, (44, 20), (192,), (16, 8), steps=(1, 1)),
    ),
    (
        "[tensor-map] cuTensorMapEncodeIm2col 1 hash - address 0 rank 1 type 0 dims 44 strides - channels 8 pixels 4",
        p.TensorMapMade("cuTensorMapEncodeIm2col", 1, None, 0, 0, (44,)),
    ),
    (
        f"[tensor-map] cuTensorMapReplaceAddress 0 hash {'1f' * 20} of {'2e' * 20} address 7f00",
        p.TensorMapMade("cuTensorMapReplaceAddress", 0, "1f" * 20, 0x7F00, origin="2e" * 20),
    ),
    ("[mod] cuModuleLoadData 0 module 0x10 image 0x20", k.ModuleCall("cuModuleLoadData", 0, 0x10, 0x20, None)),
    (
        "[mod] cuLibraryLoadData 0 lib 0x10 code 0x20 type elf size 9",
        k.ModuleCall("cuLibraryLoadData", 0, 0x10, 0x20, None),
    ),
    ("[mod] cuModuleGetFunction func 0x30 mod 0x10 name f", k.ModuleCall("cuModuleGetFunction", None, 0x30, 0x10, "f")),
    ("[mod] cuLibraryGetKernel kernel 0x30 lib 0x10 name f", k.ModuleCall("cuLibraryGetKernel", None, 0x30, 0x10, "f")),
    ("[mod] cuKernelGetFunction 0x40 0x30", k.ModuleCall("cuKernelGetFunction", None, 0x40, 0x30, None)),
    ("[mod] cuModuleLoad 0 module 0x10 fname /a b.cubin", k.ModuleCall("cuModuleLoad", 0, 0x10, None, "/a b.cubin")),
    ("[mod] cuModuleUnload 0 module 0x10", k.ModuleCall("cuModuleUnload", 0, 0x10, None, None)),
    (
        "[mod] cuModuleEnumerateFunctions mod 0x10 count 3",
        k.ModuleCall("cuModuleEnumerateFunctions", None, 0x10, None, None),
    ),
    ("[benchmark] alternate kernel 3 reason it has atomics", k.Alternating(3, Reason("it has atomics", None))),
    ("[time] empty 1312", n.EmptyPair(1312)),
    ("[time] launch 9 kernel 2 key 0 original ns 4096 for 12", n.GpuTimed(9, 2, 0, False, 4096, 12, None)),
    ("[time] launch 9 kernel 2 key 5 probed ns 0 for 1 host 88 x", n.GpuTimed(9, 2, 5, True, 0, 1, 88)),
    ("[time] launch 9 kernel 2 key 5 probed ns 0 for 1 hosts", n.GpuTimed(9, 2, 5, True, 0, 1, None)),
    ("[exec] save-failed 1.000000.bin 28 No space left", p.Trouble("save-failed 1.000000.bin 28 No space left")),
    ("[exec] save-paused trace is full (9 bytes): allow", p.Trouble("save-paused trace is full (9 bytes): allow")),
    (
        "[budget] trace-bytes reached limit 1000 used 990: allow more with --max-trace-bytes",
        p.BudgetEvent("trace-bytes", True, 1000, 990, "allow more with --max-trace-bytes"),
    ),
    ("[budget] share thins limit 9 used 8: allow", p.BudgetEvent("share", False, 9, 8, "allow")),
    ("[budget] write-rate thins limit 9 used 9: allow", p.BudgetEvent("write-rate", False, 9, 9, "allow")),
    ("[budget] unlisted kernel 3 launches 20000", n.UnlistedLaunches(3, 20000)),
    ("[budget] /a/control cannot be used: why", p.Trouble("/a/control cannot be used: why")),
    ("[exec] save-paused disk is nearly full", p.Trouble("save-paused disk is nearly full")),
    ("[exec] save-resumed 9 of 10 bytes are free", p.Trouble("save-resumed 9 of 10 bytes are free")),
    (
        "[exec] drain-failed 700 CUDA_ERROR_ILLEGAL_ADDRESS kernels 3,0",
        p.ContextFailed(700, "CUDA_ERROR_ILLEGAL_ADDRESS", (3, 0)),
    ),
    ("[exec] drain-failed 719 CUDA_ERROR_X kernels -", p.ContextFailed(719, "CUDA_ERROR_X", ())),
    ("[exec] drain-failed 4 CUDA_ERROR_X kernels -", p.Trouble("drain-failed 4 CUDA_ERROR_X kernels -")),
    ("[exec] drain-failed 700 1.000000.bin", p.Trouble("drain-failed 700 1.000000.bin")),
    ("[exec] graft left out from now on, for X: k", p.Trouble("graft left out from now on, for X: k")),
    (
        "[kernel] 3 probed-function registers 36 local - shared 0 blocks 6 way graft",
        k.ProbedFunction(3, k.FunctionResources(36, None, 0, 6), "graft"),
    ),
    ("[init] lost 7 lines before the first launch", p.Trouble("lost 7 lines before the first launch")),
    (
        "[exit] gave up waiting for kernels and results after 2000 ms",
        p.Trouble("gave up waiting for kernels and results after 2000 ms"),
    ),
    ("[bin] type warpped_fatbin size 1234", k.Image("warpped_fatbin", 1234)),
    ("[exec] funcmap-not-find 0x30", k.FunctionMissing(0x30)),
    ("[exec] funcmap-find 0x30 success", k.FunctionFound(0x30, True)),
    ("[exec] funcmap-find 0x30 fail", k.FunctionFound(0x30, False)),
    ("[probe] find 0x30 name f bin 0x40 size 5", k.ImageFound(0x30, "f", 5)),
    ("[jit] find 0x30 name f bin 0x40 size 5", k.ImageFound(0x30, "f", 5)),
    ("[jit] can't-find 0x30", k.ImageFound(0x30, None, None)),
    ("[probe] rename f 0_abc", k.KernelFolder("f", "0_abc")),
    ("[probe] mkdir /a/b", k.FileStep("mkdir", "/a/b")),
    ("[probe] write /a/b/original.bin", k.FileStep("write", "/a/b/original.bin")),
    ("[jit] can't-mkdir /a/b", k.FileStep("can't-mkdir", "/a/b")),
    ("[jit] subproc python x.py", k.EngineStarted("python x.py")),
    ("[jit] python succeed", k.EngineAnswer("ok", None)),
    ("[probe] python failed", k.EngineAnswer("failed", None)),
    ("[probe] engine ok", k.EngineAnswer("ok", None)),
    ("[probe] engine skipped no PTX in image", k.EngineAnswer("skipped", because("no-ptx"))),
    ("[probe] read /a/kernel.info name f n_param 3 n_probe 1", k.InfoRead("f", 3, 1, None)),
    ("[jit] read /a/kernel.info name f n_param 3 n_probe 1 analyze_hook b.py", k.InfoRead("f", 3, 1, "b.py")),
    ("[probe] finish 0x30 name f n_param 3", k.KernelReady(0x30, "f")),
    (
        "[kernel] 3 skipped registers 32 local 0 shared - blocks 8 name _Z3fooPf reason no PTX in image",
        k.KernelPrepared(3, "skipped", k.FunctionResources(32, 0, None, 8), "_Z3fooPf", because("no-ptx")),
    ),
    (
        "[kernel] 3 failed registers 32 local 0 shared - blocks 8 name f reason line 7: what? code ptx-unreadable",
        k.KernelPrepared(
            3, "failed", k.FunctionResources(32, 0, None, 8), "f", Reason("line 7: what?", "ptx-unreadable")
        ),
    ),
    (
        "[kernel] 3 skipped registers 32 local 0 shared - blocks 8 name f reason something new code of-tomorrow",
        k.KernelPrepared(
            3, "skipped", k.FunctionResources(32, 0, None, 8), "f", Reason("something new code of-tomorrow", None)
        ),
    ),
    (
        "[kernel] 3 probed registers 32 local 0 shared 1024 blocks 8 name f reason -",
        k.KernelPrepared(3, "probed", k.FunctionResources(32, 0, 1024, 8), "f", None),
    ),
    (
        "[kernel] 3 probed-function registers 36 local 8 shared 1024 blocks 6",
        k.ProbedFunction(3, k.FunctionResources(36, 8, 1024, 6)),
    ),
    ("[exec] 1785000000000000000 param 7fdf78000000 1000 ", n.Parameters(1785000000000000000, b"7fdf78000000 1000 ")),
    ("[exec] 1785000000000000000 param", n.Parameters(1785000000000000000, b"")),
    ("[exec] grid 4096 2 1 block 128 1 1 shared 49152", n.LaunchStarted(SHAPE, None, None, None)),
    (
        "[exec] grid 4096 2 1 block 128 1 1 shared 49152 kernel 3 launch 17 stream 0x7f00",
        n.LaunchStarted(SHAPE, 3, 17, 0x7F00),
    ),
    ("[exec] grid 8192 warp  4 probe 16 total 524288", n.MapSize(8192, "warp", 4, 16, 524288)),
    ("[exec] grid 8192 block 128 probe 8 total 8388608", n.MapSize(8192, "thread", 128, 8, 8388608)),
    ("[exec] probe-mem 524288 (bytes)", n.ProbeMemory(524288)),
    ("[exec] probe-mem 64 (bytes) device 128 launch 7", n.ProbeMemory(64, 128, 7)),
    ("[exec] probe-mem 64 (bytes) device 128 launch 7 probe dmat", n.ProbeMemory(64, 128, 7, "dmat")),
    ("[count] size: 77", n.SlotsCounted(77)),
    ("[exec] succeed 0", n.LaunchEnded(True, 0)),
    ("[exec] failed 701", n.LaunchEnded(False, 701)),
    ("[exec] save result/1.500000.bin size 9 kernel 3 launch 17", n.ResultSaved("result/1.500000.bin", 9, 3, 17)),
    ("[exec] save /a/result/1.500000.bin size 9", n.ResultSaved("/a/result/1.500000.bin", 9, None, None)),
    ("[exec] prologue 0.1 kernel 0.2 epilogue 0.3 ratio 3.0", n.LaunchTimes(0.1, 0.2, 0.3, 3.0)),
    (
        "[benchmark] prologue 0.1 kernel 0.3 epilogue 0.3 original 0.2 impact 1.5 0",
        n.Benchmark(0.1, 0.3, 0.3, 0.2, 1.5, 0, None, None),
    ),
    (
        "[benchmark] prologue - kernel 0.3 epilogue - original 0.2 impact 1.5 0 kernel 3 launch 17",
        n.Benchmark(None, 0.3, None, 0.2, 1.5, 0, 3, 17),
    ),
    ("[exec] backup 4096 2 1 block 128 1 1 shared 49152", n.LaunchUnprobed(SHAPE, None, None, None, None)),
    (
        "[exec] backup 4096 2 1 block 128 1 1 shared 49152 kernel 3 launch 17 time 1785000000000000000 "
        "reason stream in capture",
        n.LaunchUnprobed(SHAPE, 3, 17, 1785000000000000000, Reason("stream in capture", None)),
    ),
    ("[callback] subproc python x.py", p.Callback("subproc", "python x.py")),
    ("[analyze] succeed", p.Callback("succeed", "")),
    (
        "[exec] backup 4096 2 1 block 128 1 1 shared 49152 kernel 3 launch 17 time 1785000000000000000 "
        "reason trace is full (1000 bytes) code trace-full",
        n.LaunchUnprobed(SHAPE, 3, 17, 1785000000000000000, because("trace-full", limit="1000 bytes")),
    ),
    (
        "[exit] launches 20 probed 18 dropped 1 reason probe memory full code probe-memory",
        p.Exited(20, 18, 1, because("probe-memory")),
    ),
    (
        "[exit] launches 20 probed 18 dropped 1 reason a/result/1.500000.bin: Disk quota exceeded code disk-full",
        p.Exited(20, 18, 1, because("disk-full", path="a/result/1.500000.bin", error="Disk quota exceeded")),
    ),
    ("[exit] launches 20 probed 18 dropped 0 reason -", p.Exited(20, 18, 0, None)),
    ("[exit] status 3", p.Ending(3, None)),
    ("[exit] signal 15", p.Ending(None, 15)),
]


@pytest.mark.parametrize(("line", "event"), KNOWN, ids=[line[:40] for line, _ in KNOWN])
def test_each_kind_of_line(line: str, event: Event) -> None:
    assert parse_line(line.encode()) == event
    assert parse_line(line.encode() + b"\r\n") == event


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[",
        "[exec]",
        "[exec] ",
        "[nosuch] thing 1",
        "[exec] grid 4096 2 1 block 128 1 1 sha",
        "[exec] probe-mem 5242",
        "[exec] probe-mem 524288[exec] succeed 0",
        "[exec] succeed zero",
        "[init] epoch 99999999999999999999999",
        f"[exec] succeed {'9' * 5000}",
        "[time] launch 9 kernel 2 key original ns 4096 for 12",
        "[time] launch 9 kernel 2 key 0 original ns 4096",
        "[time] launch 9 kernel 2 key 0 original ns 4096 for 1host 7",
        "[kernel] 3 odd registers 32 local 0 shared 0 blocks 8 name f reason -",
        "[kernel] 3 excluded registers 32 local 0 shared 0 blocks 8 name f reason -",  # the hook writes filtered
        "[exec] save-full trace is full (9 bytes): allow",
        "[exec] can't-save result/1.000000.bin",
    ],
)
def test_other_lines_are_unknown_and_kept(line: str) -> None:
    assert parse_line(line.encode()) == p.Unknown(line.encode())


def test_words_added_at_the_end_of_a_line_do_no_harm() -> None:
    assert parse_line(b"[exec] succeed 0 micros 12") == n.LaunchEnded(True, 0)
    assert parse_line(
        b"[exec] grid 4096 2 1 block 128 1 1 shared 49152 kernel 3 launch 17 stream 0x7f00 cluster 2"
    ) == (n.LaunchStarted(SHAPE, 3, 17, 0x7F00))


def test_bytes_that_are_not_utf8_stay_printable() -> None:
    event = parse_line(b"[probe] find 0x1 name caf\xe9 bin 0x2 size 3")
    assert event == k.ImageFound(1, "caf\\xe9", 3)


def test_parameters_are_split_when_asked_for() -> None:
    event = parse_line(b"[exec] 1 param 7fdf78000000 10 0000803f0000803f ")
    assert isinstance(event, n.Parameters)
    assert event.words == ("7fdf78000000", "10", "0000803f0000803f")


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_any_bytes_are_accepted(line: bytes) -> None:
    parse_line(line)


lines = st.sampled_from([line.encode() for line, _ in KNOWN])


@given(lines, lines, st.integers(0, 200), st.integers(0, 200), st.binary(max_size=8))
@settings(deadline=None)
def test_cut_and_interleaved_lines_are_accepted(
    first: bytes, second: bytes, cut: int, start: int, between: bytes
) -> None:
    parse_line(first[:cut] + between + second[start:])
