"""Memory accesses of attention over time: how implementations of one computation walk through the same tensors."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.evals.answer import Answer, Table
from tui_probe.evals.evaluation import (
    PROGRAMS_PLACEHOLDER,
    PYTHON_PLACEHOLDER,
    Collection,
    Evaluation,
    nothing_measured_error,
)
from tui_probe.input_limits import ACCESSES, parse_json
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.registry import probe_named
from tui_probe.trace.plain_file import read_unpacked

from .raster import (
    RASTER_COLUMNS,
    RASTER_ROWS,
    SUFFIX,
    AccessFigure,
    Raster,
    raster_of_pages,
    raster_of_record,
    read_page_map,
    size_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Drawing, Progress
    from tui_probe.evals.evaluation import Setting
    from tui_probe.evals.inputs import EvaluationInput

_SMALL_SHAPE: Final = ("--batch", "1", "--heads", "2", "--length", "256")
_OPTIONS: Final = (
    "-p", "dmat", "--launches", "0", "--sample", "1/16", "--tensors", "--no-source", "--max-trace-bytes", "4G",
    "--max-result-files", "1", "--max-probe-memory", "16G", "--max-host-memory", "4G", "--max-write-rate", "none",
)  # fmt: skip
"""The first launch; a block in 16 shows the same walk in a sixteenth of the space."""
NAME: Final = "dmat"
ACCESS_PROBES: Final = ("dmat", "dmat_compact")
SAVED_PICTURES: Final = ("accesses.json.gz", "accesses.json")
"""File in a trace that has the picture as data, instead of its results."""
_WINDOW: Final = (40, 8)
"""Cells around a picture, so that it has at least ``RASTER_COLUMNS`` and about ``RASTER_ROWS`` cells."""
_BANDS: Final[tuple[Column[dict[str, Any]], ...]] = (
    Column("run", lambda r: r["run"], "run", lambda r: r["run"], right=False, narrow=12),
    Column("band", lambda r: r["band"], "band", lambda r: r["band"], right=False),
    Column("shape", lambda r: r["shape"], "tensor", lambda r: r["shape"] or NOT_MEASURED, right=False, rank=1),
    Column("bytes", lambda r: r["bytes"], "size", lambda r: size_text(r["bytes"])),
    Column("accesses", lambda r: r["accesses"], "accesses", lambda r: units.count(r["accesses"])),
    Column("share", lambda r: r["share"], "share", lambda r: units.percentage(r["share"])),
)


def collect(setting: Setting) -> list[Collection]:
    """Four traces. Programs need PyTorch, so that nothing of this runs on the simulated GPU."""
    size = _SMALL_SHAPE if setting.simulated else ()
    program = (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/attention.py", *size)
    runs = {
        "triton-128x64": ("_attn_fwd", ("triton", "--block-m", "128", "--block-n", "64", "--warps", "8")),
        "triton-64x64": ("_attn_fwd", ("triton", "--block-m", "64", "--block-n", "64", "--warps", "4")),
        "flash": ("flash", ("flash",)),
        "efficient": ("fmha", ("efficient",)),
    }
    return [
        Collection(
            name, (*program, *words), (*_OPTIONS, "-k", kernel), gpu=True,
            modules=("torch", "triton") if words[0] == "triton" else ("torch",),
        )
        for name, (kernel, words) in runs.items()
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class AccessWalk:
    """One launch, or a file."""

    label: str
    kernel: str
    launch: str
    raster: Raster

    @property
    def share(self) -> float | None:
        """Share of the touched memory that is in use at a time, from 0 to 1; None if unknown."""
        raster = self.raster
        return None if raster.in_use is None or not raster.touched else raster.in_use / raster.touched

    @property
    def cycles(self) -> float:
        return float(self.raster.edges[-1] - self.raster.edges[0])


def answer(inputs: Sequence[EvaluationInput], progress: Progress) -> Answer:
    """The walks of all launches and files that were given. TraceError if there is none."""
    walks: list[AccessWalk] = []
    notes: list[str] = []
    for place, source in enumerate(inputs):
        progress(place / len(inputs))
        new_walks = list(_walks(source, progress, notes))
        walks += new_walks
        if not new_walks and source.trace is not None:
            notes.append(_no_walk_reason(source))
    if not walks:
        raise nothing_measured_error(NAME, notes)
    names = [f"{walk.label} {walk.launch}".strip() for walk in walks]
    figures: dict[str, Drawing] = {
        walk.label if _is_only_walk(walk, walks) else name: AccessFigure(f"{name}: {walk.kernel}", walk.raster)
        for name, walk in zip(names, walks, strict=True)
    }
    return Answer(
        said=[_walk_sentence(walk) for walk in walks],
        tables={
            "walks": Table("memory accessed by a launch", COLUMNS_OF_WALKS, walks),
            "bands": Table("by band", _BANDS, [row for walk in walks for row in _bands(walk)]),
        },
        drawings=figures,
        notes=notes,
        arrays={f"{name} accesses": walk.raster.counts for name, walk in zip(names, walks, strict=True)},
    )


def _is_only_walk(walk: AccessWalk, walks: Sequence[AccessWalk]) -> bool:
    """Return whether a trace has no other walk, so that its label names the figure."""
    return sum(entry.label == walk.label for entry in walks) == 1


def _walks(source: EvaluationInput, progress: Progress, notes: list[str]) -> Iterator[AccessWalk]:
    if source.trace is None:
        yield AccessWalk(source.label, "", "", _raster_of_file(source.path, progress))
        return
    picture = next((path for name in SAVED_PICTURES if (path := source.trace.file(name)) is not None), None)
    if picture is not None:
        kernel = next((kernel.demangled for kernel in source.kernels if kernel.folder is not None), "")
        yield AccessWalk(source.label, kernel, "", _raster_of_file(picture, progress))
        return
    for result in source.results(*ACCESS_PROBES):
        if result.problem is not None:
            notes.append(result.problem)
            continue
        raster = _raster_of_launch(ViewSource(source.trace, result.kernel, result.launch), progress)
        yield AccessWalk(source.label, result.kernel.demangled, result.label, raster)


def _no_walk_reason(source: EvaluationInput) -> str:
    """Return why no access was recorded, of a kernel that was not excluded if there is one."""
    asked = next((kernel for kernel in source.kernels if kernel.status != "excluded"), None)
    return replace(source, kernel=None if asked is None else str(asked.index)).no_result_reason(*ACCESS_PROBES)


def _raster_of_launch(source: ViewSource, progress: Progress) -> Raster:
    return raster_of_record(read_picture(source, progress), str(source.trace.directory))


def read_picture(source: ViewSource, progress: Progress) -> Mapping[str, Any]:
    """The accesses of a launch as data, from the page that shows them, at a size that keeps enough of them."""
    probe = probe_named(ACCESS_PROBES[0])
    assert probe is not None
    kind = next(view for view in probe.views if view.name == ACCESS_PROBES[0])
    view: Any = kind.open(source, progress)
    width, height = RASTER_COLUMNS + _WINDOW[0], RASTER_ROWS + _WINDOW[1]
    for _ in range(2):  # a coarse one may come first
        if (work := view.prepare(width, height)) is not None:
            work()
    return cast("Mapping[str, Any]", view.record())


def _raster_of_file(path: Path, progress: Progress) -> Raster:
    """A page map, or a picture as data. TraceError for anything else."""
    if path.suffix == SUFFIX:
        return raster_of_pages(read_page_map(path, progress), str(path))
    try:
        record = parse_json(read_unpacked(path, ACCESSES))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        problem = "neither a page map (*.dmat) nor a JSON file of accesses"
        reason = error.strerror or error if isinstance(error, OSError) else error
        raise TraceError(f"{path}: {problem} from tui-probe show dmat TRACE --format json ({reason})") from error
    data = record.get("data", record) if isinstance(record, dict) else None
    return raster_of_record(data if isinstance(data, dict) else {}, str(path))


def _walk_sentence(walk: AccessWalk) -> str:
    raster = walk.raster
    return (
        f"{walk.label}: {units.counted(raster.counted_accesses, 'access')} to {size_text(raster.touched)};"
        f" {size_text(raster.in_use)} ({units.percentage(walk.share)}) in use on average"
    )


COLUMNS_OF_WALKS: Final[tuple[Column[AccessWalk], ...]] = (
    Column("run", lambda w: w.label, "run", lambda w: w.label, right=False, narrow=12),
    Column("kernel", lambda w: w.kernel, "kernel", lambda w: w.kernel, right=False, rank=1, narrow=12, shorten=shorten),
    Column("launch", lambda w: w.launch or None),
    Column("accesses", lambda w: w.raster.access_count, "accesses", lambda w: units.count(w.raster.access_count)),
    Column(
        "kept", lambda w: w.raster.counted_accesses, "kept", lambda w: units.count(w.raster.counted_accesses), rank=2
    ),
    Column("cycles", lambda w: w.cycles, "cycles", lambda w: units.count(round(w.cycles)), rank=2),
    Column("touched", lambda w: w.raster.touched, "touched", lambda w: size_text(w.raster.touched)),
    Column("in_use", lambda w: w.raster.in_use, "in use", lambda w: size_text(w.raster.in_use)),
    Column("share", lambda w: w.share, "of touched", lambda w: units.percentage(w.share)),
)


def _bands(walk: AccessWalk) -> Iterator[dict[str, Any]]:
    raster = walk.raster
    for name in dict.fromkeys(row.band for row in raster.rows):
        places = [place for place, row in enumerate(raster.rows) if row.band == name]
        accesses = int(raster.counts[places].sum())
        yield {
            "run": walk.label,
            "band": name,
            "shape": raster.shapes.get(name),
            "bytes": sum(raster.rows[place].size for place in places),
            "accesses": accesses,
            "share": accesses / raster.counted_accesses if raster.counted_accesses else None,
        }


EVALUATION: Final = Evaluation(
    name="dmat",
    question="how do implementations of attention access memory, and how much memory is in use at a time?",
    probes=ACCESS_PROBES,
    reading=(
        "In each figure, time runs to the right, and addresses run downwards. Each tensor has a band. Darker cells"
        " have more accesses. A flat row is memory that is accessed repeatedly. A diagonal is a walk through memory.",
        "“In use” is the memory touched in one column of the figure, averaged over columns. A cache of this size"
        " serves repeated accesses within a column. A smaller share of all touched memory means better locality.",
        "Memory in use is an upper bound: a row of the figure counts as a whole, even if only a part of it is accessed."
        " If only some blocks were sampled, as with --run, all values are for these blocks only.",
        "If a kernel could not be probed, it has no addresses, and a note gives the reason. The evaluation also"
        " reads page maps of other tools (*.dmat, accesses per memory page and clock), and JSON files from"
        " `tui-probe show dmat TRACE --format json`.",
    ),
    open=answer,
    collect=collect,
)
