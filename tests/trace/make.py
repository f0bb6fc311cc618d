"""Writes trace directories with known content, line by line as the hook does, in the current and the older dialects."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tui_probe.probes.block_sched.analysis import RECORD

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.launch_shape import Dim3

EPOCH_NS = 1_785_000_000_000_000_000
PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{name}' for 'sm_90'
ptxas info    : Function properties for {name}
    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used {registers} registers, used 0 barriers, 128 bytes smem, {constant} bytes cmem[0]
"""


@dataclass
class TraceWriter:
    """A trace directory of one process. ``kernel`` and ``launch`` append the lines of the hook to ``event.log``."""

    directory: Path
    launches: int = 0
    saved: int = 0
    names: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.directory / "kernel").mkdir(parents=True)
        (self.directory / "result").mkdir()

    @property
    def log(self) -> Path:
        return self.directory / "event.log"

    def lines(self, *lines: str) -> None:
        """Append lines as they are."""
        with self.log.open("ab") as file:
            file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))

    def start(
        self,
        *,
        pid: int = 4_000_000,
        device: str = "NVIDIA H100 80GB HBM3",
        command: str = "./saxpy 4",
        sms: int = 132,
    ) -> None:
        self.lines(
            f"[init] pid {pid}",
            f"[init] cmd {len(command.encode('utf-8', 'surrogateescape'))} {command}",
            "[init] dl 0x26aa350",
            f"[init] epoch {EPOCH_NS}",
            f"[init] device 0 sms {sms} clock 1980000 cc 9.0 name {device}",
            "[init] success",
        )

    def kernel(
        self,
        index: int,
        name: str,
        status: Literal["probed", "skipped", "failed", "filtered"] = "probed",
        *,
        reason: str = "-",
        registers: tuple[int, int] = (18, 22),
        spills: tuple[int, int] = (0, 0),
        ptxas: bool = True,
        way: Literal["ptx", "graft"] | None = None,
    ) -> Path:
        """A kernel whose outcome is known; a probed or failed one has a folder, which is returned."""
        self.names[index] = name
        folder = self.directory / "kernel" / f"{index}_{hashlib.sha1(name.encode()).hexdigest()}"
        if status in ("probed", "failed"):
            folder.mkdir()
            self.lines(f"[exec] funcmap-not-find 0x{index + 1:x}", f"[probe] rename {name} {folder.name}")
            write_kernel_folder(folder, name, registers, spills, ptxas=ptxas, failed=status == "failed")
        self.lines(
            f"[kernel] {index} {status} registers {registers[0]} local 0 shared 1024 blocks 16 name {name} "
            f"reason {reason}"
        )
        if status == "probed":
            mode = "" if way is None else f" way {way}"
            self.lines(f"[kernel] {index} probed-function registers {registers[1]} local 0 shared 1024 blocks 12{mode}")
        return folder

    def launch(
        self, kernel: int, grid: Dim3 = (8, 1, 1), block: Dim3 = (128, 1, 1), *, shared: int = 0, status: int = 0
    ) -> int:
        """A probed launch; its number."""
        number, slots = self.launches, -(-block[0] * block[1] * block[2] // 32)
        blocks = grid[0] * grid[1] * grid[2]
        self.launches += 1
        self.lines(
            f"[exec] funcmap-find 0x{kernel + 1:x} success",
            f"[exec] {EPOCH_NS + 1000 * number} param 7f0000000000 10 ",
            f"[exec] {shape_words(grid, block, shared)} kernel {kernel} launch {number} stream 0x0",
            f"[exec] grid {blocks} warp  {slots} probe 16 total {blocks * slots * 16}",
            f"[exec] probe-mem {blocks * slots * 16} (bytes)",
            f"[exec] {'failed' if status else 'succeed'} {status}",
        )
        return number

    def size(self, kernel: int, size: int, reason: str, device: int | None = None, probe: str = "") -> int:
        """A launch of the original that was sized, for one of several probes; its number."""
        number = self.pass_through(kernel, reason)
        of = f" probe {probe}" if probe else ""
        self.lines(f"[exec] probe-mem {size} (bytes) device {device or size} launch {number}{of}")
        return number

    def pass_through(self, kernel: int, reason: str, grid: Dim3 = (8, 1, 1), block: Dim3 = (128, 1, 1)) -> int:
        """A launch of the original; its number."""
        number = self.launches
        self.launches += 1
        self.lines(
            f"[exec] backup {shape_words(grid, block, 0).removeprefix('grid ')} kernel {kernel} launch {number} "
            f"time {EPOCH_NS + 1000 * number} reason {reason}"
        )
        return number

    def key(self, key: int, kernel: int, grid: Dim3 = (8, 1, 1), block: Dim3 = (128, 1, 1)) -> None:
        """Name the shape of a key of packed lines."""
        self.lines(f"[key] {key} kernel {kernel} {shape_words(grid, block, 0)}")

    def packed(self, items: str, count: int) -> int:
        """Log several launches in one line; return the number of the first."""
        number = self.launches
        self.launches += count
        self.lines(f"[passed] {number} {EPOCH_NS + 1000 * number} {1000 * (count - 1)} {items}")
        return number

    def save(self, kernel: int, launch: int, content: bytes) -> Path:
        """The result of a launch."""
        self.saved += 1
        path = self.directory / "result" / f"{self.saved * 0.001:.6f}.bin"
        path.write_bytes(content)
        self.lines(f"[exec] save result/{path.name} size {len(content)} kernel {kernel} launch {launch}")
        return path

    def benchmark(self, kernel: int, launch: int, *, original: float, probed: float) -> None:
        self.lines(
            f"[benchmark] prologue 0.01 kernel {probed} epilogue - original {original} impact {probed / original} 0 "
            f"kernel {kernel} launch {launch}"
        )

    def time(
        self,
        kernel: int,
        launch: int,
        ns: int,
        *,
        weight: int = 1,
        probed: bool = False,
        key: int | None = None,
        host: int | None = None,
    ) -> None:
        """The GPU time of a sampled launch, which stands for ``weight`` launches."""
        shape = f" key {kernel if key is None else key}"
        waited = "" if host is None else f" host {host}"
        kind = "probed" if probed else "original"
        self.lines(f"[time] launch {launch} kernel {kernel}{shape} {kind} ns {ns} for {weight}{waited}")

    def exit(self, reason: str = "-", dropped: int = 0) -> None:
        self.lines(f"[exit] launches {self.launches} probed {self.saved} dropped {dropped} reason {reason}")

    def run_json(self, **fields: Any) -> None:
        record = {
            "version": 1,
            "command": ["./saxpy", "4"],
            "started": "2026-07-25T17:20:00+00:00",
            "ended": "2026-07-25T17:20:02+00:00",
            "exit_status": 0,
            "signal": None,
            "probe": "block_sched",
            "driver": {"path": "/usr/lib/libcuda.so.1", "simulated": False},
            "toolchain": {"ptxas": "/usr/local/cuda/bin/ptxas", "version": "13.0"},
        }
        (self.directory / "run.json").write_text(json.dumps(record | fields))


def shape_words(grid: Dim3, block: Dim3, shared: int) -> str:
    return f"grid {' '.join(map(str, grid))} block {' '.join(map(str, block))} shared {shared}"


def write_kernel_folder(
    folder: Path, name: str, registers: tuple[int, int], spills: tuple[int, int], *, ptxas: bool, failed: bool
) -> None:
    """``kernel.info`` and ``process.log`` of a kernel that was probed, or that the engine failed on."""
    log = ["[]", "[image] ptx, 1200 bytes", name]
    if ptxas:
        for variant, count, spill in zip(("pruned", "probed"), registers, spills, strict=True):
            log.append(f"ptxas -arch=sm_90 --verbose {folder}/{variant}.ptx -o {folder}/{variant}.bin")
            constant = 368 if variant == "pruned" else 376
            log += PTXAS.format(
                name=name, registers=count, stack=spill, stores=spill, loads=spill, constant=constant
            ).splitlines()
    if failed:
        log += ["Traceback (most recent call last):", '  File "x.py", line 1, in <module>', "PtxError: line 7: what"]
    else:
        (folder / "kernel.info").write_text(f"{name}\n2\n1\n1,16\ncallback block_sched\n")
    (folder / "process.log").write_text("\n".join(log) + "\n")


def result_bytes(
    grid: Dim3,
    block: Dim3,
    maps: list[tuple[int, NDArray[np.uint8]]],
    *,
    shared: int = 0,
    dialect: Literal["current", "older"] = "current",
    about: list[tuple[int, int, bytes]] | None = None,
) -> bytes:
    """A result file; each map is (warpDiv, slots of shape (blocks, slots per block, bytes)).

    ``about`` is what is behind the maps: a map (kind, bytes of a record, marks).
    """
    header = struct.pack("<8I", *grid, *block, shared, len(maps))
    offset = len(header) + 16 * len(maps)
    sections, data = b"", b""
    for divisor, slots in maps:
        if dialect == "current":
            sections += struct.pack("<IIQ", slots.shape[2], divisor, offset + len(data))
        else:
            sections += struct.pack("<QQ", slots.size, offset + len(data))
        data += slots.tobytes()
    if about is None:
        return header + sections + data
    tail = b"".join(struct.pack("<IIQ", kind, record, len(marks)) for kind, record, marks in about)
    tail += b"".join(marks for _, _, marks in about)
    return header + sections + data + bytes(-(offset + len(data)) % 8) + b"records\1" + tail


def block_sched_result(start: NDArray[Any], elapsed: NDArray[Any], sm: NDArray[Any], *, threads: int = 128) -> bytes:
    """A ``block_sched`` result; the arrays have shape (blocks, warps) or (blocks,), then all warps are alike."""
    warps = -(-threads // 32)
    records = np.zeros((len(start), warps), dtype=RECORD)
    for name, values in (("start", start), ("elapsed", elapsed), ("sm", sm)):
        records[name] = values if np.ndim(values) == 2 else np.asarray(values)[:, np.newaxis]
    slots = records.view(np.uint8).reshape(len(start), warps, RECORD.itemsize)
    return result_bytes((len(start), 1, 1), (threads, 1, 1), [(32, slots)])


def write_older_trace(directory: Path, *, tag: Literal["jit", "probe"] = "jit") -> None:
    """A trace as older systems write it: no ``[kernel]`` lines, no kernel or launch numbers."""
    writer = TraceWriter(directory)
    tiny = result_bytes((2, 1, 1), (32, 1, 1), [(32, np.ones((2, 1, 16), dtype=np.uint8))], dialect="older")
    fill, copy = "_Z4fillPf", "_Z4copyPf"
    head = ["[pid] 1860576", "[cmd] 26 python block_sched/raw.py ", "[info] dl 0x26aa350", "[info] init success"]
    if tag == "probe":
        head = [
            "[init] pid 1860576",
            "[init] cmd 26 python block_sched/raw.py ",
            "[init] dl 0x26aa350",
            "[init] success",
        ]
    writer.lines(
        *head,
        "[mem] cuMemAlloc_v2 0 dptr 7fdf78000000 bytesize 33554432",
        "[mod] cuLibraryLoadData 0 lib 0x5000 code 0x6000 type warpped_fatbin size 99",
        f"[mod] cuLibraryGetKernel kernel 0x10 lib 0x5000 name {fill}",
        "[mod] cuLibraryGetKernel kernel 0x20 lib 0x5000 name orphan",
    )
    for function, name, index, outcome in ((0x10, fill, 0, "succeed"), (0x30, copy, 1, "failed")):
        folder = directory / "kernel" / f"{index}_{hashlib.sha1(name.encode()).hexdigest()}"
        folder.mkdir()
        write_kernel_folder(folder, name, (18, 24), (0, 8), ptxas=outcome == "succeed", failed=outcome == "failed")
        writer.lines(
            f"[exec] funcmap-not-find {function:#x}",
            f"[{tag}] find {function:#x} name {name} bin 0x7000 size 1234",
            f"[{tag}] rename {name} {folder.name}",
            f"[{tag}] mkdir /home/someone/trace/{directory.name}/kernel/{folder.name}",
            f"[{tag}] write /home/someone/trace/{directory.name}/kernel/{folder.name}/original.bin",
            f"[{tag}] subproc python cuda.py {folder} {name}",
            f"[{tag}] python {outcome}",
        )
        if outcome == "failed":
            writer.lines("[exec] backup 2 1 1 block 32 1 1 shared 0")
            continue
        writer.lines(
            f"[{tag}] read {folder}/kernel.info name {name} n_param 2 n_probe 1 analyze_hook block_sched.py",
            f"[{tag}] finish {function:#x} name {name} n_param 2",
        )
    writer.lines(
        "[exec] funcmap-not-find 0x20",
        f"[{tag}] can't-find 0x20",
        "[exec] backup 4 1 1 block 64 1 1 shared 0",
        "[exec] funcmap-find 0x30 fail",
        "[exec] backup 3 1 1 block 32 1 1 shared 0",
    )
    for seconds in (1.5, 2.25):
        (directory / "result" / f"{seconds:.6f}.bin").write_bytes(tiny)
        writer.lines(
            "[exec] funcmap-find 0x10 success",
            f"[exec] {EPOCH_NS} param 7fdf78000000 1000 ",
            "[exec] grid 2 1 1 block 32 1 1 shared 0",
            "[exec] grid 2 warp  1 probe 16 total 32",
            "[exec] probe-mem 32 (bytes)",
            "[exec] succeed 0",
            f"[exec] save /home/someone/trace/{directory.name}/result/{seconds:.6f}.bin size {len(tiny)}",
            "[benchmark] prologue 0.106496 kernel 0.300000 epilogue 1.2 original 0.200000 impact 1.500000 0",
            "[analyze] subproc python block_sched.py x.bin",
            "[analyze] succeed",
        )
