"""Maximum probe memory: what the records of the largest launch take, next to the memory of the program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.charts import Bar, BarChart
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.evals.answer import Answer, Table, compare_published
from tui_probe.evals.evaluation import (
    PROGRAMS_PLACEHOLDER,
    PYTHON_PLACEHOLDER,
    Collection,
    Evaluation,
    nothing_measured_error,
)
from tui_probe.input_limits import PROGRAM_OUTPUT
from tui_probe.probekit.recognised import analysis_name
from tui_probe.trace.device_memory import peak_allocated
from tui_probe.trace.plain_file import read_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.evals.evaluation import Setting
    from tui_probe.evals.inputs import EvaluationInput
    from tui_probe.trace.model import Kernel, KernelFacts, Trace

PROBES: Final = ("block_sched", "gmem_bytes", "tensorop_count", "dmat")
MODELS: Final = (
    "resnet-bs32", "sd-bs1", "mamba-bs32", "llama1b-bs32", "llama3b-bs32", "llama8b-bs32", "llama8b-bs128",
    "llama8b-bs256",
)  # fmt: skip
"""Models of the published figure: the name and the batch."""
_SIZE_OPTIONS: Final = ("--memusage", "--launches", "all", "--no-times", "--no-source", "--max-trace-bytes", "64M",
                 "--max-log-bytes", "4M")  # fmt: skip
_PROGRAM_SIZE: Final = re.compile(rb"^max memory:.*?(\d{1,18})[ \r]*$", re.MULTILINE)
_SKIPPED_REASONS: Final = ("switched-off", "outside-range", "not-selected", "not-chosen", "excluded")
SIZED, COUNTED, PROBED = "sized", "counted", "probed"
NAME: Final = "memory"


def collect(setting: Setting) -> list[Collection]:
    """A trace for each model, with all probes alternately; only the passes after the first, which compiles, are
    sized.
    """
    probes = tuple(word for probe in PROBES for word in ("-p", probe))
    if setting.simulated:
        arguments = ("--elements", str(1 << 14), "--driver-only", "--times", str(len(PROBES)), "plain")
        return [
            Collection(
                "fill", (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/fill.py", *arguments), (*probes, *_SIZE_OPTIONS)
            )
        ]
    return [
        Collection(
            model,
            (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/models.py", model),
            (*probes, "--capture-range", *_SIZE_OPTIONS),
            modules=("torch", "triton"),
            gpu=True,
        )
        for model in MODELS
    ]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of one trace; None is not known. ``kernels`` of ``all_kernels`` have a size for the probe.

    ``how`` says where those come from: computed, counted by a kernel that keeps none, or of probed launches.
    """

    model: str
    probe: str
    original: int | None
    is_printed: bool
    """True if the program printed its own size, which is not the peak of its allocations."""
    probe_bytes: int | None
    device_bytes: int | None
    kernels: int
    all_kernels: int
    how: str | None


def read_sizes(source: EvaluationInput) -> list[Sizes]:
    """Return the sizes of each probe; [] for what is not a trace, or with an unknown probe. Raises TraceError."""
    trace = source.trace
    if trace is None:
        return []
    kernels = [candidate for candidate in source.kernels if not _was_skipped(candidate)]
    probe_names = list(dict.fromkeys(name for kernel in kernels for name in kernel.named_probes))
    if probe_names:
        return [
            _sizes(source, trace, name, [kernel.named_probes.get(name, kernel) for kernel in kernels])
            for name in probe_names
        ]
    probe = _probe(trace)
    return [] if probe is None else [_sizes(source, trace, probe, kernels)]


def _sizes(source: EvaluationInput, trace: Trace, probe: str, kernels: Sequence[KernelFacts]) -> Sizes:
    sizes = [kernel.probe_bytes for kernel in kernels if kernel.probe_bytes is not None]
    device_sizes = [kernel.device_bytes for kernel in kernels if kernel.device_bytes is not None]
    printed_bytes = _program_bytes(source.path)
    return Sizes(
        model=_model(source, probe),
        probe=probe,
        original=peak_allocated(trace) if printed_bytes is None else printed_bytes,
        is_printed=printed_bytes is not None,
        probe_bytes=max(sizes, default=None),
        device_bytes=max(device_sizes, default=None),
        kernels=len(sizes),
        all_kernels=len(kernels),
        how=_sizing_method(trace, kernels) if sizes else None,
    )


def _was_skipped(kernel: Kernel) -> bool:
    """Return True if no launch was to be probed: all of them were while the model warmed up."""
    reason = kernel.stated_reason
    return reason is not None and reason.code in _SKIPPED_REASONS


def _probe(trace: Trace) -> str | None:
    probe = None if trace.run_info is None else trace.run_info.probe
    return probe or next((name for kernel in trace.kernels if (name := analysis_name(kernel))), None)


def _model(source: EvaluationInput, probe: str) -> str:
    """``MODEL.PROBE`` is the name of a collected trace."""
    return source.label.removesuffix(f".{probe}")


def _program_bytes(directory: Path) -> int | None:
    """The largest size that the program printed; None if its output is not in the trace or names none."""
    output = directory / "stdout.log"
    sizes = _PROGRAM_SIZE.findall(read_start(output, PROGRAM_OUTPUT)) if output.is_file() else ()
    return max(map(int, sizes), default=None)


def _sizing_method(trace: Trace, kernels: Sequence[KernelFacts]) -> str:
    """Return how the memory was determined, from the launches that were sized, else from all reasons."""
    rows = [kernel.largest_sized_row for kernel in kernels if kernel.largest_sized_row is not None]
    launch_codes = {trace.launches[row].reason_code for row in rows}
    codes = launch_codes or {reason.code for reason in trace.launches.reasons}
    if "only-counted" in codes:
        return COUNTED
    return SIZED if "only-sized" in codes else PROBED


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A model with a probe: the most of all its parts. Bytes; None is not known."""

    model: str
    probe: str
    parts: tuple[Sizes, ...]

    @property
    def original(self) -> int | None:
        return _max_known(part.original for part in self.parts)

    @property
    def is_printed(self) -> bool:
        return all(part.is_printed for part in self.parts)

    @property
    def probe_bytes(self) -> int | None:
        return _max_known(part.probe_bytes for part in self.parts)

    @property
    def device_bytes(self) -> int | None:
        return _max_known(part.device_bytes for part in self.parts)

    @property
    def ratio(self) -> float | None:
        """Probe memory in parts of the program's own."""
        return None if not self.original or self.probe_bytes is None else self.probe_bytes / self.original

    @property
    def how(self) -> str | None:
        bases = {part.how for part in self.parts if part.how is not None}
        return ", ".join(sorted(bases)) or None

    @property
    def kernels_sized(self) -> int:
        """Number of kernels with a size."""
        return sum(part.kernels for part in self.parts)

    @property
    def kernels(self) -> int:
        return sum(part.all_kernels for part in self.parts)


def _max_known(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def answer(inputs: Sequence[EvaluationInput], progress: Progress) -> Answer:
    """A row for each model and probe, in the order of the traces. TraceError if no trace has any size."""
    by_model: dict[tuple[str, str], list[Sizes]] = {}
    notes = []
    for place, source in enumerate(inputs):
        progress(place / len(inputs))
        sizes_of_probes = read_sizes(source)
        notes += [] if sizes_of_probes else [f"{source.path} is not a trace of a probe"]
        for sizes in sizes_of_probes:
            by_model.setdefault((sizes.model, sizes.probe), []).append(sizes)
            if not sizes.kernels:
                notes.append(f"{source.path}: no launch reports the probe memory of {sizes.probe}; run with --memusage")
    rows = [MemoryRow(model, probe, tuple(parts)) for (model, probe), parts in by_model.items()]
    if not any(row.probe_bytes is not None for row in rows):
        raise nothing_measured_error(NAME, notes)
    return Answer(
        said=list(_sentences(rows)),
        tables={"memory": Table("maximum memory", MEMORY_COLUMNS, rows)},
        drawings={"memory": _chart(rows)},
        compared=compare_published(NAME),
        notes=[*notes, *_caveats(rows)],
    )


def _sentences(rows: Sequence[MemoryRow]) -> Iterator[str]:
    for probe in dict.fromkeys(row.probe for row in rows):
        measured_rows = [row for row in rows if row.probe == probe and row.ratio is not None]
        if measured_rows:
            worst = max(measured_rows, key=lambda row: row.ratio or 0.0)
            best = min(measured_rows, key=lambda row: row.ratio or 0.0)
            text = f"{_times(worst.ratio)} the original memory ({worst.model}: {units.size(worst.probe_bytes)})"
            if best is worst:
                yield f"{probe}: probe memory is {text}"
            else:
                yield f"{probe}: probe memory is at most {text}, at least {_times(best.ratio)} ({best.model})"


def _caveats(rows: Sequence[MemoryRow]) -> Iterator[str]:
    for row in rows:
        name = f"{row.model} {row.probe}"
        if 0 < row.kernels_sized < row.kernels:
            kernels_missing, total = row.kernels - row.kernels_sized, units.counted(row.kernels, "kernel")
            yield f"{name}: {kernels_missing} of {total} have no probe and are not included"
        if row.how is not None and PROBED in row.how:
            yield (
                f"{name}: only probed launches are included, and a reached budget drops records; to cover all launches,"
                " use run --memusage"
            )
        if row.original is not None and not row.is_printed:
            yield f"{name}: the program did not print its memory use, so “original” is the peak of its allocations"


def _chart(rows: Sequence[MemoryRow]) -> BarChart:
    bars = [Bar(f"{row.model} {row.probe}", (row.original, row.probe_bytes), _times(row.ratio)) for row in rows]
    return BarChart("maximum memory", bars, ("original", "probe"), "bytes", units.size)


def _times(ratio: float | None) -> str:
    if ratio is None:
        return NOT_MEASURED
    return f"{ratio:.2f}×" if ratio >= 0.01 else f"{ratio:.2g}×"


def _method_text(row: MemoryRow) -> str:
    return f"{row.how}, not saved" if row.how == COUNTED else row.how or NOT_MEASURED


MEMORY_COLUMNS: Final[tuple[Column[MemoryRow], ...]] = (
    Column("model", lambda r: r.model, "model", lambda r: r.model, right=False, narrow=12),
    Column("probe", lambda r: r.probe, "probe", lambda r: r.probe, right=False),
    Column("original", lambda r: r.original, "original", lambda r: units.size(r.original)),
    Column("probe_bytes", lambda r: r.probe_bytes, "probe", lambda r: units.size(r.probe_bytes)),
    Column("ratio", lambda r: r.ratio, "probe/original", lambda r: _times(r.ratio)),
    Column("device_bytes", lambda r: r.device_bytes, "on device", lambda r: units.size(r.device_bytes), rank=2),
    Column("how", lambda r: r.how, "how", _method_text, right=False, rank=1),
    Column("kernels_sized", lambda r: r.kernels_sized),
    Column("kernels", lambda r: r.kernels, "kernels", lambda r: f"{r.kernels_sized} of {r.kernels}", rank=3),
)


EVALUATION: Final = Evaluation(
    name="memory",
    question="how much additional device memory do the records of a probe need?",
    probes=PROBES,
    reading=(
        "Probe memory is the value of probe-mem in event.log, for the launch with the most records. On the device,"
        " padding and one mark per written slot take some additional memory. Several launches can be in flight at"
        " the same time; --max-probe-memory limits the probe memory of all of them together.",
        "Each model is run eagerly as one transformer block with random weights. One block is enough, because the"
        " largest launch is the same in every block. Llama 1B has 16 blocks, 3B has 28 and 8B has 32. A whole model"
        " needs more memory. Matrix products, convolutions and attention are Triton kernels. In runs"
        " with several probes, launches alternate between the probes.",
        "Sized: computed from the shape of each launch, without probing (run --memusage). Counted: the number of"
        " records depends on data, so a version of the kernel counted the records before the launch. Probed:"
        " measured in an ordinary probed run. If the run reached a limit, records may be missing.",
        "Original memory is the value in the program's output line “max memory: BYTES”. Without this line in the"
        " output, original memory is the peak of the program's allocations in event.log. The peak includes memory"
        " that a framework keeps for later.",
        "For each launch, the published system allocated exactly the memory that the records of the launch need; the"
        " ratio uses this size. Kernels without a probe, e.g. kernels of closed libraries, are not included.",
    ),
    open=answer,
    collect=collect,
)
