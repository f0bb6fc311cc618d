"""Self-test of grafts on this machine's GPU: run a known kernel with and without a probe in its SASS, and compare.

``python -m tui_probe.engine.trial.graft_trial --arch 90`` prints the outcome as a line of JSON: ``passed``, ``failed``
with words, or ``impossible`` with words; and the outcome of each part: values kept in ``slots``, probes at
``instructions``, the kernel ``pruned`` out of a cubin with others, several ``records`` saved by each thread, counts of
basic ``blocks``, ``short_records`` of phases, and bulk ``copies`` only. It prints the line again before each part, so
that the outcome of earlier parts is known even if a later part never ends. It has a process of its own, so that no
fault reaches the program.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import struct
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.binaries.line_tables import cut_table
from tui_probe.cuda_driver import DRIVER_LIBRARY, CudaDevice
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.grafting.record_grafts import RECORD_ARCHITECTURES
from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.trial.count_trials import block_cubin, block_trial, instruction_trials
from tui_probe.engine.trial.record_trials import (
    copies_cubin,
    copies_trial,
    phases_cubin,
    phases_trial,
    record_trial,
)
from tui_probe.engine.trial.trial_kernel import (
    ACTIVE_THREADS,
    BLOCKS,
    MAX_SMS,
    THREADS,
    THREADS_OF_GRID,
    TRIAL_KERNEL,
    TrialCase,
    TrialFailedError,
    trial_cubin,
)
from tui_probe.errors import LaunchError, ProbeError
from tui_probe.probe_model.positions import Position
from tui_probe.probe_model.probe import Field, FileLocation, Level, Map, Probe, ProbePoint
from tui_probe.sass.prune import prune_cubin
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.binaries.cubin import Cubin

ROUND_COUNT: Final = 4
"""Launches: a fault that depends on timing may need several."""
_NOT_ENDED: Final = "the test did not finish"
_NOT_TRIED: Final = "not run, because the previous test did not finish"
_WARP_RECORD: Final = struct.Struct("<QIIIxxxxxxxxxxxx")
_TABLE_BYTES: Final = struct.pack("<4I", 3, 5, 7, 11)
_INPUT_BYTES: Final = struct.pack(f"<{THREADS_OF_GRID}I", *(number * 40503 for number in range(THREADS_OF_GRID)))
"""Input of the kernel, a word per thread."""
_ENTRY_SNIPPET: Final = ".reg .b32 %begin;\nmov.u32 %begin, %clock;\n"
_EXIT_SNIPPET: Final = """\
.reg .b64 %end, %start, %wide;
.reg .b32 %elapsed;
LOCATE [ trial ];
mov.u64 %end, %clock64;
cvt.u32.u64 %elapsed, %end;
sub.u32 %elapsed, %elapsed, %begin;
cvt.u64.u32 %wide, %elapsed;
sub.u64 %start, %end, %wide;
SAVE [ trial ] {%start, %elapsed, %smid};
"""
_MAJOR: Final = 75
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR."""
_MINOR: Final = 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR."""


class _OptionalPart(NamedTuple):
    """A part of the self-test that few kernels or probes need, by its name in the outcome.

    ``is_pruned``: the kernel is taken out of its cubin first; ``in_slots``: values are kept in slots.
    """

    name: str
    make_trials: Callable[[], Sequence[tuple[Cubin, TrialCase]]]
    in_slots: bool = False
    is_pruned: bool = False

    def run(self, cuda: CudaContext, assembler: Assembler) -> None:
        """Raise ProbeError where the part fails or cannot be tried."""
        for cubin, case in self.make_trials():
            pruned = prune_cubin(cubin, TRIAL_KERNEL, cut_table) if self.is_pruned else None
            run_trial(cuda, cubin, assembler, case, in_slots=self.in_slots, pruned_cubin=pruned)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial and print its outcome. Return exit status 0."""
    parser = argparse.ArgumentParser(prog="tui_probe.engine.trial.graft_trial")
    parser.add_argument("--arch", type=int, required=True, help="90 for a device of sm_90")
    parser.add_argument("--driver", default=DRIVER_LIBRARY)
    options = parser.parse_args(arguments)
    outcome = {"outcome": "passed", "words": ""}
    try:
        assembler = Assembler()
        cuda, cubin = CudaContext(options.driver, options.arch), trial_cubin(options.arch, assembler)
        run_trial(cuda, cubin, assembler, entry_trial())
        _try_parts(cuda, _optional_parts(options.arch, assembler, cubin), assembler, outcome)
    except TrialFailedError as error:
        outcome |= {"outcome": "failed", "words": str(error)}
    except ProbeError as error:
        outcome |= {"outcome": "impossible", "words": str(error)}
    _print_outcome(outcome)
    return 0


def _optional_parts(arch: int, assembler: Assembler, cubin: Cubin) -> list[_OptionalPart]:
    """Return the parts in the order in which they are tried: those that most probes need come first."""
    parts = [
        _OptionalPart("slots", lambda: [(cubin, entry_trial())], in_slots=True),
        _OptionalPart("instructions", lambda: [(cubin, trial) for trial in instruction_trials()]),
        _OptionalPart(
            "pruned", lambda: [(trial_cubin(arch, assembler, with_others=True), entry_trial())], is_pruned=True
        ),
        _OptionalPart("records", lambda: [(cubin, record_trial())]),
        _OptionalPart("blocks", lambda: [(block_cubin(arch, assembler), block_trial())]),
    ]
    if arch in RECORD_ARCHITECTURES:
        parts.append(_OptionalPart("short_records", partial(_phases_trials, arch, assembler)))
        parts.append(_OptionalPart("copies", partial(_copies_trials, arch, assembler)))
    return parts


def _phases_trials(arch: int, assembler: Assembler) -> list[tuple[Cubin, TrialCase]]:
    """Return starts of phases in registers above those of the kernel, and in registers that are free at each start."""
    cubins = [phases_cubin(arch, assembler, few_registers=few_registers) for few_registers in (False, True)]
    return [(cubin, phases_trial(cubin)) for cubin in cubins]


def _copies_trials(arch: int, assembler: Assembler) -> list[tuple[Cubin, TrialCase]]:
    """Return records of bulk copies in registers that are free at each of them."""
    cubin = copies_cubin(arch, assembler)
    return [(cubin, copies_trial(cubin))]


def _try_parts(
    cuda: CudaContext, parts: Sequence[_OptionalPart], assembler: Assembler, outcome: dict[str, str]
) -> None:
    """Try each part and note its result in ``outcome``, which is printed before each: a part may never end."""
    names = [part.name for part in parts]
    for index, part in enumerate(parts):
        _print_outcome(outcome | {part.name: _NOT_ENDED} | dict.fromkeys(names[index + 1 :], _NOT_TRIED))
        try:
            part.run(cuda, assembler)
            outcome[part.name] = "passed"
        except ProbeError as error:
            outcome[part.name] = str(error)


def _print_outcome(outcome: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(outcome) + "\n")
    sys.stdout.flush()


def run_trial(
    cuda: CudaContext,
    cubin: Cubin,
    assembler: Assembler,
    trial: TrialCase,
    *,
    in_slots: bool = False,
    pruned_cubin: Cubin | None = None,
) -> None:
    """Raise TrialFailedError where a grafted kernel does something else, ProbeError where there can be no trial.

    ``pruned_cubin`` is the kernel in a cubin of its own; if given, the graft goes into that.
    """
    grafted_kernel = Grafter(trial.probe, assembler, samples_blocks=False).graft(
        pruned_cubin or cubin, TRIAL_KERNEL, in_slots=in_slots
    )
    original = cuda.load(cubin.image)
    image = bytearray(grafted_kernel.probed_image)
    for patch in grafted_kernel.grafted.patches:
        address = original.variable(patch.name) + patch.addend
        size, shift = (8, 0) if patch.kind == "abs64" else (4, 32 if patch.kind == "abs32hi" else 0)
        image[patch.offset : patch.offset + size] = (address >> shift).to_bytes(8, "little")[:size]
    try:
        grafted = cuda.load(bytes(image))
        for round_number in range(ROUND_COUNT):  # with the code for launches of any shape, and with that for flat ones
            flat_warps = THREADS // WARP_SIZE if trial.is_marked and round_number % 2 else 0
            _run_and_compare(cuda, original, grafted, grafted_kernel.grafted.constants, trial, flat_warps)
    except TrialFailedError:
        raise
    except ProbeError as error:
        raise TrialFailedError(f"the probed kernel: {error}") from error


def entry_trial() -> TrialCase:
    """Return the case of a probe of entries and exits."""
    return TrialCase(
        trial_probe(), (THREADS_OF_GRID // WARP_SIZE * _WARP_RECORD.size,), check_warp_records, is_marked=True
    )


def trial_probe() -> Probe:
    """Return the probe of the trial: it records when and where each warp ran."""
    place = FileLocation("trial", 0)
    entry_code, exit_code = (
        parse_snippet(_ENTRY_SNIPPET, place, TRIAL_KERNEL),
        parse_snippet(_EXIT_SNIPPET, place, TRIAL_KERNEL),
    )
    fields = Field("start", "u64", 0), Field("elapsed", "u32", 8), Field("smid", "u32", 12)
    return Probe(
        TRIAL_KERNEL,
        Path("trial"),
        "",
        "",
        entry_code.registers | exit_code.registers,
        (Map(TRIAL_KERNEL, Level.WARP, fields, 16),),
        (ProbePoint(TRIAL_KERNEL, (Position(""),), entry_code.snippet, exit_code.snippet),),
    )


def _run_and_compare(
    cuda: CudaContext,
    original: CudaModule,
    grafted: CudaModule,
    constants: Sequence[tuple[str, int]],
    trial: TrialCase,
    flat_warps: int,
) -> None:
    """Run both kernels, and compare the memory that they wrote. Raises TrialFailedError."""
    cuda.write(original.variable("trial_table"), _TABLE_BYTES)
    records = [cuda.allocate_zeros(size) for size in trial.map_bytes]
    results = []
    for module, added_parameters in ((original, []), (grafted, [record + flat_warps for record in records])):
        output, total = cuda.allocate_zeros(THREADS_OF_GRID * 4), original.variable("trial_total")
        cuda.write(output, _INPUT_BYTES)
        cuda.write(total, bytes(4))
        for name, size in constants if added_parameters else ():
            cuda.write(grafted.variable(name), cuda.read(original.variable(name), size))
        cuda.launch(module.function(TRIAL_KERNEL), BLOCKS, THREADS, [output, ACTIVE_THREADS, *added_parameters])
        results.append((cuda.read(output, THREADS_OF_GRID * 4), cuda.read(total, 4)))
    if results[0] != results[1]:
        changed_memory = "its output" if results[0][0] != results[1][0] else "a variable"
        raise TrialFailedError(f"the probed kernel changed {changed_memory}")
    trial.check(b"".join(map(cuda.read, records, trial.map_bytes)))


def check_warp_records(content: bytes) -> None:
    """Raise TrialFailedError unless every warp left one record that can be true."""
    records = list(_WARP_RECORD.iter_unpack(content))
    missing_records = sum(mark != 1 for *_, mark in records)
    if missing_records:
        raise TrialFailedError(f"{missing_records} of {len(records)} warps saved no record")
    for start, elapsed, sm, _ in records:
        if not start or not elapsed or sm >= MAX_SMS:
            raise TrialFailedError(
                f"a record of a warp has impossible values: start {start}, {elapsed} cycles, SM {sm}"
            )


class CudaContext(CudaDevice):
    """The first device of an architecture (90), with blocking calls on whole bytes."""

    failure = LaunchError

    def __init__(self, library: str, arch: int) -> None:
        self._arch = arch
        super().__init__(library)

    def _choose(self, number: int) -> int:
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        for device in range(number, count.value):
            if self.attribute(_MAJOR, device) * 10 + self.attribute(_MINOR, device) == self._arch:
                return device
        raise self.failure(f"no usable device of sm_{self._arch}")

    def load(self, image: bytes) -> CudaModule:
        """Load a cubin."""
        return CudaModule(self, self.load_module(image))

    def allocate_zeros(self, size: int) -> int:
        """Allocate device memory, set it to 0, and return its address."""
        address = self.allocate(size)
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0), c_size_t(size))
        return address.value

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes of device memory."""
        return self.read_memory(c_uint64(address), size)

    def write(self, address: int, content: bytes) -> None:
        """Write bytes to device memory."""
        self.call("cuMemcpyHtoD_v2", c_uint64(address), c_char_p(content), c_size_t(len(content)))

    def launch(self, function: c_void_p, grid: int, block: int, parameters: Sequence[int]) -> None:
        """Run a kernel whose parameters all have 8 bytes, to its end."""
        self.launch_kernel(function, (grid, 1, 1), (block, 1, 1), 0, *map(c_uint64, parameters))
        self.synchronize()


class CudaModule:
    """A loaded cubin."""

    def __init__(self, cuda: CudaContext, handle: c_void_p) -> None:
        self._cuda = cuda
        self._handle = handle

    def function(self, name: str) -> c_void_p:
        """Return the handle of a kernel."""
        return self._cuda.module_function(self._handle, name)

    def variable(self, name: str) -> int:
        """Return the address of a variable."""
        address, size = c_uint64(), c_size_t()
        self._cuda.call("cuModuleGetGlobal_v2", byref(address), byref(size), self._handle, c_char_p(name.encode()))
        return address.value


if __name__ == "__main__":
    sys.exit(main())
