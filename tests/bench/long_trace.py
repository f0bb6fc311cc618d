"""Makes a trace as a long run with very many kernels leaves it: what reading traces is measured with."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.trace.make import EPOCH_NS, write_kernel_folder

LAUNCH_LINES = 8
KERNEL_LINES = 12
STATUSES = ("probed",) * 18 + ("skipped", "filtered")
REASONS = {"probed": "-", "skipped": "no PTX in image (sm_90 machine code only)", "filtered": "filtered by -k"}
DEVICE = "[init] device 0 sms 132 clock 1980000 cc 9.0 name NVIDIA H200\n[init] success\n"


@dataclass(frozen=True)
class LongTrace:
    """A made log: ``lines`` lines in ``directory/event.log``, which name each of ``kernels`` at its first launch.

    Kernels come up through the first nine tenths of the log. Which of those known is launched next is skewed, as in
    a program that does most of its work in a few. Nineteen of twenty have been prepared and have a folder. Launches of
    the others are run unprobed. Results are saved some launches later. Result files are not made: no reader of a
    trace looks for them before it is asked to. ``pid`` and ``command`` are those of the process that it is a trace of.
    """

    directory: Path
    lines: int
    kernels: int
    pid: int
    command: str

    @property
    def log(self) -> Path:
        return self.directory / "event.log"

    def write(self) -> None:
        self.write_log()
        for index in range(self.kernels):
            self._folder(index)

    def write_log(self) -> None:
        """Write the log without the kernels' folders, which take longer."""
        (self.directory / "kernel").mkdir(parents=True)
        (self.directory / "result").mkdir()
        with self.log.open("w") as log:
            log.writelines(self._text())

    def _text(self) -> Iterator[str]:
        """The log, in pieces of some lines each."""
        chance = random.Random(1)
        yield (
            f"[init] pid {self.pid}\n[init] cmd {len(self.command)} {self.command}\n[init] dl 0x26aa350\n"
            f"[init] epoch {EPOCH_NS}\n{DEVICE}"
        )
        written = 6
        known = launches = probed = 0
        waiting: list[str] = []
        while written < self.lines - LAUNCH_LINES:
            new = known < self.kernels and written * self.kernels >= known * self.lines * 0.9
            kernel = known if new else int(known * chance.random() ** 3)
            if new:
                yield self._prepared(kernel)
                written += KERNEL_LINES if outcome(kernel) == "probed" else KERNEL_LINES - 8
                known += 1
            if outcome(kernel) == "probed":
                yield launched(kernel, launches, 1 << chance.randrange(5, 12))
                written += LAUNCH_LINES - 1
                waiting.append(saved(kernel, launches))
                probed += 1
            else:
                yield passed_through(kernel, launches)
                written += 1
            launches += 1
            if len(waiting) > chance.randrange(8):
                yield "".join(waiting)
                written += len(waiting)
                waiting.clear()
        yield "".join(waiting)
        yield f"[exit] launches {launches} probed {probed} dropped 0 reason -\n"

    def _prepared(self, kernel: int) -> str:
        name, function, status = name_of(kernel), f"{0x2BAA8A00 + 64 * kernel:#x}", outcome(kernel)
        folder = self.directory / "kernel" / folder_of(kernel)
        lines = [
            f"[mod] cuModuleLoadData 0 module 0x2baabae0 image {function}",
            "[bin] type ptx size 871",
            f"[mod] cuModuleGetFunction func {function} mod 0x2baabae0 name {name}",
        ]
        if status == "probed":
            lines += [
                f"[exec] funcmap-not-find {function}",
                f"[probe] find {function} name {name} bin 0x2a0ee140 size 871",
                f"[probe] rename {name} {folder.name}",
                f"[probe] mkdir {folder}",
                f"[probe] write {folder}/original.bin",
                "[probe] engine ok probed.bin",
                f"[probe] finish {function} name {name} n_param 2 n_probe 1",
            ]
        registers = 16 + kernel % 128
        lines.append(
            f"[kernel] {kernel} {status} registers {registers} local 0 shared 1024 blocks 16 name {name} "
            f"reason {REASONS[status]}"
        )
        if status == "probed":
            lines.append(f"[kernel] {kernel} probed-function registers {registers + 4} local 0 shared 1024 blocks 12")
        return "\n".join(lines) + "\n"

    def _folder(self, kernel: int) -> None:
        if outcome(kernel) == "probed":
            folder = self.directory / "kernel" / folder_of(kernel)
            folder.mkdir()
            registers = 16 + kernel % 128
            write_kernel_folder(
                folder, name_of(kernel), (registers, registers + 4), (0, 8 * (kernel % 3)), ptxas=True, failed=False
            )


def outcome(kernel: int) -> str:
    return STATUSES[kernel % len(STATUSES)]


def name_of(kernel: int) -> str:
    """As long as those of templates are."""
    return f"_ZN6native29vectorized_elementwise_kernelILi{kernel}ENS_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_"


def folder_of(kernel: int) -> str:
    return f"{kernel}_{hashlib.sha1(name_of(kernel).encode()).hexdigest()}"


def launched(kernel: int, number: int, blocks: int) -> str:
    memory = blocks * 4 * 16
    return (
        f"[mem] cuMemAlloc_v2 0 dptr {0x7FC573E00000 + 512 * number:x} bytesize 65536\n"
        f"[exec] funcmap-find {0x2BAA8A00 + 64 * kernel:#x} success\n"
        f"[exec] {EPOCH_NS + 10_000 * number} param 7fc573e00000 7fc573e40000 {number:x} 4000\n"
        f"[exec] grid {blocks} 1 1 block 128 1 1 shared 0 kernel {kernel} launch {number} stream 0x55d0c2a0\n"
        f"[exec] grid {blocks} warp  4 probe 16 total {memory}\n"
        f"[exec] probe-mem {memory} (bytes)\n"
        "[exec] succeed 0\n"
    )


def saved(kernel: int, number: int) -> str:
    return f"[exec] save result/{number / 1e5 + 1e-6:.6f}.bin size 8240 kernel {kernel} launch {number}\n"


def passed_through(kernel: int, number: int) -> str:
    return (
        f"[exec] backup 64 1 1 block 256 1 1 shared 0 kernel {kernel} launch {number} "
        f"time {EPOCH_NS + 10_000 * number} reason {REASONS[outcome(kernel)]}\n"
    )
