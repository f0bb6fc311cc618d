"""A trial of grafts on this machine's GPU: a known kernel, with and without a probe in its machine code, compared.

``python -m tui_probe.engine.graft_trial --arch 90`` says in a line of JSON how it went: ``passed``, ``failed`` with
words, or ``impossible`` with words; and how it went with values kept in ``slots``, with probes at ``instructions``,
with the kernel ``pruned`` out of a cubin with others, with several ``records`` saved by each thread, and with counts
of basic ``blocks``. It says so anew before each part of it, so that what went well is known even where a later part
never ends. It has a process of its own, so that nothing that goes wrong reaches the program.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.assemble import Assembler
from tui_probe.engine.block_trial import block_cubin, block_trial
from tui_probe.engine.cuda_calls import LIBRARY, Cuda
from tui_probe.engine.grafts import Grafter
from tui_probe.engine.instruction_trial import instruction_trials
from tui_probe.engine.model import Field, Level, Map, Place, Position, Probe, ProbePoint
from tui_probe.engine.record_trial import record_trial
from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.trial_kernel import (
    ACTIVE,
    BLOCKS,
    KERNEL,
    MOST_SMS,
    THREADS,
    THREADS_OF_GRID,
    WARP,
    Trial,
    TrialFailedError,
    trial_cubin,
)
from tui_probe.errors import ProbeError
from tui_probe.ptx.line_tables import cut_table
from tui_probe.sass.prune import prune

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.engine.cuda_calls import Module
    from tui_probe.sass.cubin import Cubin

ROUNDS: Final = 4
"""Launches: what goes wrong by chance of timing may need several."""
_UNENDED: Final = "it did not end"
_UNTRIED: Final = "it was not tried, since what came before it did not end"
_RECORD: Final = struct.Struct("<QIIIxxxxxxxxxxxx")
_TABLE: Final = struct.pack("<4I", 3, 5, 7, 11)
_GIVEN: Final = struct.pack(f"<{THREADS_OF_GRID}I", *(number * 40503 for number in range(THREADS_OF_GRID)))
"""What the kernel finds in its output."""
_BEFORE: Final = ".reg .b32 %begin;\nmov.u32 %begin, %clock;\n"
_AFTER: Final = """\
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial and say how it went."""
    parser = argparse.ArgumentParser(prog="tui_probe.engine.graft_trial")
    parser.add_argument("--arch", type=int, required=True, help="90 for a device of sm_90")
    parser.add_argument("--driver", default=LIBRARY)
    options = parser.parse_args(arguments)
    told = {"outcome": "passed", "words": ""}
    try:
        assembler = Assembler()
        cuda, cubin = Cuda(options.driver, options.arch), trial_cubin(options.arch, assembler)
        run_trial(cuda, cubin, assembler, entry_trial())
        later = dict.fromkeys(("instructions", "pruned", "records", "blocks"), _UNTRIED)
        _say(told | later | {"slots": _UNENDED})
        told["slots"] = _words(lambda: run_trial(cuda, cubin, assembler, entry_trial(), in_slots=True))
        _say(told | later | {"instructions": _UNENDED})
        told["instructions"] = _words(lambda: _at_instructions(cuda, cubin, assembler))
        _say(told | {"pruned": _UNENDED, "records": _UNTRIED, "blocks": _UNTRIED})
        told["pruned"] = _words(lambda: _pruned(cuda, trial_cubin(options.arch, assembler, others=True), assembler))
        _say(told | {"records": _UNENDED, "blocks": _UNTRIED})
        told["records"] = _words(lambda: run_trial(cuda, cubin, assembler, record_trial()))
        _say(told | {"blocks": _UNENDED})
        told["blocks"] = _words(lambda: run_trial(cuda, block_cubin(options.arch, assembler), assembler, block_trial()))
    except TrialFailedError as error:
        told |= {"outcome": "failed", "words": str(error)}
    except ProbeError as error:
        told |= {"outcome": "impossible", "words": str(error)}
    _say(told)
    return 0


def _say(told: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _words(part: Callable[[], None]) -> str:
    """``passed``, or what went wrong in a part of the trial that few kernels or probes need."""
    try:
        part()
    except ProbeError as error:
        return str(error)
    return "passed"


def _at_instructions(cuda: Cuda, cubin: Cubin, assembler: Assembler) -> None:
    for trial in instruction_trials():
        run_trial(cuda, cubin, assembler, trial)


def _pruned(cuda: Cuda, cubin: Cubin, assembler: Assembler) -> None:
    run_trial(cuda, cubin, assembler, entry_trial(), alone=prune(cubin, KERNEL, cut_table))


def run_trial(
    cuda: Cuda,
    cubin: Cubin,
    assembler: Assembler,
    trial: Trial,
    *,
    in_slots: bool = False,
    alone: Cubin | None = None,
) -> None:
    """Raises TrialFailedError where a grafted kernel does something else, ProbeError where there can be no trial.

    ``alone`` is the kernel in a cubin of its own, into which is grafted, if that is to be tried.
    """
    made = Grafter(trial.probe, assembler, sampled=False).graft(alone or cubin, KERNEL, in_slots=in_slots)
    original = cuda.load(cubin.image)
    image = bytearray(made.probed)
    for patch in made.grafted.patches:
        address = original.variable(patch.name) + patch.addend
        size, shift = (8, 0) if patch.kind == "abs64" else (4, 32 if patch.kind == "abs32hi" else 0)
        image[patch.offset : patch.offset + size] = (address >> shift).to_bytes(8, "little")[:size]
    try:
        grafted = cuda.load(bytes(image))
        for turn in range(ROUNDS):  # with the code for launches of any shape, and with that for flat ones
            flat = THREADS // WARP if trial.is_marked and turn % 2 else 0
            _compare(cuda, original, grafted, made.grafted.constants, trial, flat)
    except TrialFailedError:
        raise
    except ProbeError as error:
        raise TrialFailedError(f"the grafted kernel: {error}") from error


def entry_trial() -> Trial:
    """The probe of entries and exits."""
    return Trial(trial_probe(), (THREADS_OF_GRID // WARP * _RECORD.size,), check_records, is_marked=True)


def trial_probe() -> Probe:
    """When and where each warp ran."""
    place = Place("trial", 0)
    before, after = parse_snippet(_BEFORE, place, KERNEL), parse_snippet(_AFTER, place, KERNEL)
    fields = Field("start", "u64", 0), Field("elapsed", "u32", 8), Field("smid", "u32", 12)
    return Probe(
        KERNEL,
        Path("trial"),
        "",
        "",
        before.registers | after.registers,
        (Map(KERNEL, Level.WARP, fields, 16),),
        (ProbePoint(KERNEL, (Position(""),), before.snippet, after.snippet),),
    )


def _compare(
    cuda: Cuda, original: Module, grafted: Module, constants: Sequence[tuple[str, int]], trial: Trial, flat: int
) -> None:
    """Run both kernels, and compare what they leave behind."""
    cuda.write(original.variable("trial_table"), _TABLE)
    records = [cuda.allocate(size) for size in trial.map_bytes]
    left = []
    for module, added in ((original, []), (grafted, [each + flat for each in records])):
        output, total = cuda.allocate(THREADS_OF_GRID * 4), original.variable("trial_total")
        cuda.write(output, _GIVEN)
        cuda.write(total, bytes(4))
        for name, size in constants if added else ():
            cuda.write(grafted.variable(name), cuda.read(original.variable(name), size))
        cuda.launch(module.function(KERNEL), BLOCKS, THREADS, [output, ACTIVE, *added])
        left.append((cuda.read(output, THREADS_OF_GRID * 4), cuda.read(total, 4)))
    if left[0] != left[1]:
        what = "its output" if left[0][0] != left[1][0] else "the variable that it adds to"
        raise TrialFailedError(f"the grafted kernel changed {what}")
    trial.check(b"".join(map(cuda.read, records, trial.map_bytes)))


def check_records(content: bytes) -> None:
    """Raises TrialFailedError unless every warp left one record that can be true."""
    found = list(_RECORD.iter_unpack(content))
    missing = sum(mark != 1 for *_, mark in found)
    if missing:
        raise TrialFailedError(f"{missing} of {len(found)} warps left no record")
    for start, elapsed, sm, _ in found:
        if not start or not elapsed or sm >= MOST_SMS:
            raise TrialFailedError(f"a warp's record cannot be true: start {start}, {elapsed} cycles, SM {sm}")


if __name__ == "__main__":
    sys.exit(main())
