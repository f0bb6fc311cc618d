"""A trace written by hand, as a hook driver would write it, and a target that only pretends."""

from __future__ import annotations

import hashlib
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

EPOCH = 1_700_000_000_000_000_000


class TraceWriter:
    """Writes a trace directory, event by event."""

    def __init__(self, directory: Path, pid: int = 4242, command: str = "./vector_add --size 1048576") -> None:
        self.directory = directory
        self.kernels: dict[int, str] = {}
        self.launches = 0
        self.clock = EPOCH + 1_000_000
        for folder in ("kernel", "result"):
            (directory / folder).mkdir(parents=True)
        self.event(
            f"[init] pid {pid}",
            f"[init] cmd {len(command)} {command}",
            "[init] dl 0x55d0",
            f"[init] epoch {EPOCH}",
            "[init] device 0 sms 132 clock 1980000 cc 9.0 name NVIDIA H100 80GB HBM3",
            "[init] success",
        )

    def event(self, *lines: str) -> None:
        """Append whole lines to event.log."""
        self.raw("".join(f"{line}\n" for line in lines).encode())

    def raw(self, data: bytes) -> None:
        """Append bytes to event.log."""
        with (self.directory / "event.log").open("ab") as log:
            log.write(data)

    def kernel(
        self, name: str, status: str = "probed", reason: str = "-", registers: tuple[int, int] = (18, 24)
    ) -> int:
        """A kernel whose outcome is known; a probed one has a folder with a process.log."""
        index = len(self.kernels)
        self.kernels[index] = name
        self.event(
            f"[kernel] {index} {status} registers {registers[0]} local 0 shared 0 blocks 16 name {name} reason {reason}"
        )
        if status in ("probed", "failed"):
            folder = self.folder(index)
            folder.mkdir()
            (folder / "process.log").write_text(process_log(name, registers, failed=status == "failed"))
        if status == "probed":
            self.event(f"[kernel] {index} probed-function registers {registers[1]} local 0 shared 0 blocks 12")
            (self.folder(index) / "kernel.info").write_text(f"{name}\n2\n1\n1,16\ncallback block_sched\n")
        return index

    def folder(self, index: int) -> Path:
        """The folder of a kernel."""
        digest = hashlib.sha1(self.kernels[index].encode(), usedforsecurity=False).hexdigest()
        return self.directory / "kernel" / f"{index}_{digest}"

    def launch(
        self, kernel: int, grid: tuple[int, int, int] = (64, 1, 1), block: tuple[int, int, int] = (128, 1, 1)
    ) -> int:
        """A probed launch that succeeds."""
        self.event(*self.launch_lines(kernel, grid, block))
        return self.launches - 1

    def launch_lines(
        self, kernel: int, grid: tuple[int, int, int] = (64, 1, 1), block: tuple[int, int, int] = (128, 1, 1)
    ) -> list[str]:
        """Its lines."""
        launch, self.launches = self.launches, self.launches + 1
        self.clock += 50_000
        blocks, warps = grid[0] * grid[1] * grid[2], -(-block[0] * block[1] * block[2] // 32)
        size = blocks * warps * 16
        return [
            f"[exec] {self.clock} param 7f0000000000 400",
            f"[exec] grid {_xyz(grid)} block {_xyz(block)} shared 0 kernel {kernel} launch {launch} stream 0",
            f"[exec] grid {blocks} warp  {warps} probe 16 total {size}",
            f"[exec] probe-mem {size} (bytes)",
            "[exec] succeed 0",
        ]

    def backup(self, kernel: int, reason: str = "no PTX in image") -> int:
        """A launch that was run unprobed."""
        launch, self.launches = self.launches, self.launches + 1
        self.clock += 50_000
        self.event(
            f"[exec] backup 64 1 1 block 128 1 1 shared 0 kernel {kernel} launch {launch} time {self.clock}"
            f" reason {reason}"
        )
        return launch

    def benchmark(self, kernel: int, launch: int, original: float = 0.0123, impact: float = 1.04) -> None:
        """The timing of a launch, in ms."""
        self.event(
            f"[benchmark] prologue 0.002 kernel {original * impact:.6f} epilogue 0.003 original {original:.6f}"
            f" impact {impact:.4f} 0 kernel {kernel} launch {launch}"
        )

    def timed(self, kernel: int, launch: int, nanoseconds: int) -> None:
        """The GPU time of a launch without the probe, which stands only for itself."""
        self.event(f"[time] launch {launch} kernel {kernel} key {kernel} original ns {nanoseconds} for 1")

    def result(self, kernel: int, launch: int, blocks: int = 64, warps: int = 4) -> Path:
        """A result of block_sched in which each SM runs its blocks one after another."""
        micros = (self.clock - EPOCH) // 1000 + launch
        name = f"{micros // 1_000_000}.{micros % 1_000_000:06d}.bin"
        header = struct.pack("<8I", blocks, 1, 1, warps * 32, 1, 1, 0, 1) + struct.pack("<IIQ", 16, 32, 48)
        slots = b"".join(
            struct.pack("<QII", 1000 + (block // 4) * 1100, 1000, block % 4)
            for block in range(blocks)
            for _ in range(warps)
        )
        path = self.directory / "result" / name
        path.write_bytes(header + slots)
        self.event(f"[exec] save result/{name} size {len(header + slots)} kernel {kernel} launch {launch}")
        return path

    def exit(self) -> None:
        """The orderly end."""
        self.event(f"[exit] launches {self.launches} probed {self.launches} dropped 0 reason -")


def _xyz(dim: tuple[int, int, int]) -> str:
    return " ".join(map(str, dim))


def process_log(name: str, registers: tuple[int, int], *, failed: bool = False) -> str:
    """Write the engine's files of a kernel."""
    lines = ["[objdump] ELF 1 entries", f"kernel {name}"]
    for variant, used in zip(("pruned", "probed"), registers, strict=True):
        lines.append(f"/usr/local/cuda/bin/ptxas -v --gpu-name sm_90 {variant}.ptx -o {variant}.bin")
        if failed and variant == "probed":
            lines.append("ptxas fatal   : Unresolved extern function 'foo'")
            break
        lines += [
            f"ptxas info    : Compiling entry function '{name}' for 'sm_90'",
            "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
            f"ptxas info    : Used {used} registers, used 0 barriers, 368 bytes cmem[0]",
        ]
    return "\n".join(lines) + "\n"


class FakeTarget:
    """Target of a screen; a test decides its answers."""

    def __init__(self, root: Path, traces: list[Path], *, simulated: bool = False) -> None:
        self.command = ["./vector_add", "--size", "1048576"]
        self.simulated = simulated
        self.started = time.time()
        self.stdout_path, self.stderr_path = root / "stdout.log", root / "stderr.log"
        self.stdout_path.touch()
        self.stderr_path.touch()
        self.traces = traces
        self.status: int | None = None
        self.signals: list[str] = []

    def poll(self) -> int | None:
        return self.status

    def interrupt(self) -> None:
        self.signals.append("interrupt")

    def terminate(self) -> None:
        self.signals.append("terminate")

    def kill(self) -> None:
        self.signals.append("kill")

    def leave(self) -> None:
        self.signals.append("leave")

    def trace_directories(self) -> list[Path]:
        return list(self.traces)


NAMES = (
    "_Z9zero_fillPfi",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
    "triton_poi_fused_add_mul_relu_0",
    "ampere_sgemm_128x64_nn",
    "_Z11row_softmaxPKfPfii",
    "_Z6brokenPf",
)


def example(directory: Path) -> TraceWriter:
    """A trace with a kernel of each outcome, launches, a benchmark and results."""
    trace = TraceWriter(directory)
    trace.event("[benchmark] ENABLED L2 Flush Size 52428800")
    fill = trace.kernel(NAMES[0])
    vector = trace.kernel(NAMES[1], registers=(20, 24))
    fused = trace.kernel(NAMES[2], registers=(32, 36))
    gemm = trace.kernel(NAMES[3], "skipped", "no PTX in image")
    softmax = trace.kernel(NAMES[4], "filtered", "left out by --filter")
    broken = trace.kernel(NAMES[5], "failed", "ptxas fatal   : Unresolved extern function 'foo'")
    for number in range(4):
        launch = trace.launch(fill, (32768, 1, 1))
        trace.benchmark(fill, launch, impact=1.02 + number / 100)
        trace.result(fill, launch)
    trace.result(vector, trace.launch(vector, (512, 4, 1), (128, 1, 1)))
    trace.launch(fused, (1024, 1, 1), (16, 16, 1))
    for kernel in (gemm, gemm, softmax, broken):
        trace.backup(kernel)
    return trace
