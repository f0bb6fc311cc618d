"""Cost of probes: slowdown and added registers, compared with naive probes that measure the same.

    python -m tests.bench.probe_cost [--kernels NAME …] [--probes NAME …] [--arch sm_90] [--out FILE.md]
                                     [--programs DIR | --cutlass DIR] [--minutes N] [--no-gpu | --corpus DIRECTORY]

On a GPU each program runs once under the profiler for each probe, with ``--benchmark``; registers and spills are those
that the engine's assembler reports. ``--no-gpu`` assembles the same kernels from the PTX corpus: no slowdowns. The
naive probes are in ``tests/bench/naive``. ``--corpus`` is about the hundreds of kernels that
``python -m tests.bench.ptx_corpus DIRECTORY`` collects: registers, spills, blocks that fit alone (``register_cost``).
``--out`` writes the tables, and all values to a JSON file next to it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.assembling import assemble
from tests.bench.cost_tables import CONTROL, Cost, tables
from tests.bench.register_cost import Measuring, refusals, register_table
from tests.bench.workloads import WORKLOADS, Workload, commands
from tests.engine.kernels import probed
from tests.ptx.corpus import corpus
from tui_probe.errors import ProbeError
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.probe_files.option_probes import PHASES_PREFIX
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import prune_to_kernel

NAIVE = Path(__file__).parent / "naive"
ATTENTION = "flash attention"
ATTENTION_PHASES = f"{PHASES_PREFIX}scores=attention.py:31-32+softmax=attention.py:33-35+values=attention.py:36-38"
"""Three phases that a user names, by the lines of ``tests/gpu/programs/attention.py``."""
DEFAULT_PROBES = ("block_sched", "gmem_bytes", "tensorop_count", "dmat", "dmat_compact", "phases", ATTENTION_PHASES)


@dataclass(frozen=True)
class Variant:
    """A probe, or its naive counterpart: ``file`` is what ``-p`` is given."""

    probe: str
    naive: bool
    file: str


def variants(probes: list[str]) -> Iterator[Variant]:
    """One that does nothing, then each probe, and behind it the naive one where there is one."""
    yield Variant(CONTROL, False, str(NAIVE.parent / "control.toml"))
    for name in probes:
        yield Variant(name, False, name)
        counterpart = NAIVE / f"{name}.toml"
        if counterpart.exists():
            yield Variant(name, True, str(counterpart))


def static_costs(workloads: list[Workload], chosen: list[Variant], arch: str) -> list[Cost]:
    """Registers and spills of the corpus's kernels, assembled here."""

    def one(job: tuple[Workload, Variant]) -> Cost:
        workload, variant = job
        module = parse(corpus(workload.ptx))
        (entry,) = (entry.name for entry in module.entries())
        try:
            before = assemble(prune_to_kernel(module, entry), entry, folder, arch)
            after = assemble(probed(module.source, entry, load_probe(variant.file)), entry, folder, arch)
        except ProbeError as error:
            return Cost(workload.name, variant.probe, variant.naive, reason=str(error).partition("\n")[0])
        return Cost(
            workload.name, variant.probe, variant.naive, "", before.registers, after.registers,
            before.spill_bytes, after.spill_bytes,
        )  # fmt: skip

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor() as pool:
        folder = Path(name)
        return list(pool.map(one, [(own, variant) for variant in chosen for own in workloads_of(variant, workloads)]))


def workloads_of(variant: Variant, workloads: list[Workload]) -> list[Workload]:
    """The workloads of a variant: phases that a user names are in one program."""
    named = variant.file.startswith(PHASES_PREFIX)
    return [workload for workload in workloads if not named or workload.name == ATTENTION]


def measured_costs(
    workloads: list[Workload], chosen: list[Variant], programs: dict[str, list[str]], folder: Path, minutes: float
) -> Iterator[Cost]:
    """One run of each program for each probe; none is begun when ``minutes`` are over."""
    began = time.monotonic()
    for variant in chosen:
        for program, command in programs.items():
            rows = [workload for workload in workloads_of(variant, workloads) if workload.program == program]
            started = time.monotonic()
            if started - began > 60 * minutes:
                yield from (Cost(row.name, variant.probe, variant.naive, reason="out of time") for row in rows)
            elif rows:
                try:
                    kernels = profile(command, variant, rows, folder)
                    yield from (cost_of(workload, variant, kernels) for workload in rows)
                except ProgramError as error:
                    print(error, file=sys.stderr)
                    yield from (Cost(row.name, variant.probe, variant.naive, reason="program failed") for row in rows)
                took = time.monotonic() - started
                print(f"{variant.file} on {program}: {took:.1f} s", file=sys.stderr, flush=True)


class ProgramError(Exception):
    """A program did not end well under the profiler."""


def profile(command: list[str], variant: Variant, rows: list[Workload], folder: Path) -> list[dict[str, object]]:
    """The kernels of the report of one run, in which the second launch of each kernel is measured."""
    wanted = ":".join(sorted({workload.kernel for workload in rows}))
    with tempfile.TemporaryDirectory(dir=folder) as traces:
        tool = [sys.executable, "-m", "tui_probe"]
        options = [
            "-p",
            variant.file,
            "--benchmark",
            "--launches",
            "1",
            "-k",
            wanted,
            "--no-report",
            "--tracedir",
            traces,
        ]
        done = subprocess.run([*tool, "run", *options, "--", *command], capture_output=True, text=True, check=False)
        trace = re.search(r"\[info\] trace in (.+)", done.stderr)
        if done.returncode or trace is None:
            output = f"{done.stdout}{done.stderr}"[-2000:]
            raise ProgramError(f"{' '.join(command)} ended with status {done.returncode}:\n{output}")
        report = [*tool, "report", trace[1].strip(), "--format", "json"]
        text = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    kernels: list[dict[str, object]] = json.loads(text)["kernels"]
    return kernels


def cost_of(workload: Workload, variant: Variant, kernels: list[dict[str, object]]) -> Cost:
    """The row of a workload: the probed kernel of its name, the longest if there are several."""
    named = [kernel for kernel in kernels if workload.kernel in str(kernel["name"])]
    taken = [kernel for kernel in named if kernel["status"] == "probed"]
    if not taken:
        reasons = sorted({str(kernel["reason"] or kernel["status"]) for kernel in named})
        return Cost(workload.name, variant.probe, variant.naive, reason="; ".join(reasons) or "not launched")
    kernel = max(taken, key=lambda one: float(str(one["time_ms"] or 0)))
    reason = "" if kernel["slowdown"] is not None else str(kernel["reason"] or "not timed")
    fields = ("registers_pruned", "registers_probed", "spills_pruned", "spills_probed", "slowdown", "time_ms")
    return Cost(workload.name, variant.probe, variant.naive, reason, *(kernel[field] for field in fields))  # type: ignore[arg-type]


def main() -> None:
    options = parse_arguments()
    arch = options.arch.rstrip("af")
    if options.corpus:
        rows = Measuring(options.corpus, arch).rows(options.probes)
        write(options.out, f"{register_table(rows)}\n{refusals(rows)}", [asdict(row) for row in rows])
        return
    workloads = [workload for workload in WORKLOADS if not options.kernels or workload.name in options.kernels]
    chosen = list(variants(options.probes))
    missing: list[str] = []
    if options.no_gpu:
        costs = static_costs(workloads, chosen, arch)
    else:
        with tempfile.TemporaryDirectory() as name:
            programs, missing = commands(Path(name), options.programs, options.cutlass)
            costs = list(measured_costs(workloads, chosen, programs, Path(name), options.minutes))
    text = "\n".join([*tables(costs, timed=not options.no_gpu), *(f"Not measured: {line}\n" for line in missing)])
    write(options.out, text, [asdict(cost) for cost in costs])


def write(out: Path | None, text: str, records: list[dict[str, object]]) -> None:
    """Print the tables; ``out`` gets them, too, and a file next to it all values."""
    print(text)
    if out:
        out.write_text(text)
        out.with_suffix(".json").write_text(json.dumps(records, indent=1) + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", nargs="+", choices=[workload.name for workload in WORKLOADS], default=[])
    known = built_in_names()
    default = [name for name in DEFAULT_PROBES if name in known or name.startswith(PHASES_PREFIX)]

    def probe_name(text: str) -> str:
        if text not in known and not text.startswith(PHASES_PREFIX):
            raise argparse.ArgumentTypeError(
                f"{text} is not one of {', '.join(known)}, or {PHASES_PREFIX}NAME=FILE:A-B"
            )
        return text

    parser.add_argument("--probes", nargs="+", type=probe_name, default=default)
    parser.add_argument("--arch", default="sm_90", help="device to assemble for without a GPU (default sm_90)")
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    parser.add_argument("--programs", type=Path, metavar="DIR", help="where the native programs are, already built")
    parser.add_argument("--cutlass", type=Path, metavar="DIR", help="the folder that holds cutlass/ and cute/")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no run after this time (default 60)")
    parser.add_argument("--no-gpu", action="store_true", help="registers and spills only, from the PTX corpus")
    parser.add_argument(
        "--corpus", type=Path, metavar="DIRECTORY", help="registers only, of the kernels collected there"
    )
    options: argparse.Namespace = parser.parse_args()
    return options


if __name__ == "__main__":
    main()
