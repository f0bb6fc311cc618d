"""Warp scheduling and tailing: how evenly blocks and warps run when they share an SM, and when they do not."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import COUNT, CYCLES, Unit
from tui_probe.draw.curve_chart import Curve, CurveChart
from tui_probe.draw.table import Column
from tui_probe.draw.view import no_progress
from tui_probe.errors import TraceError
from tui_probe.evals.answer import Answer, Table, compare_published
from tui_probe.evals.evaluation import (
    PROGRAMS_PLACEHOLDER,
    PYTHON_PLACEHOLDER,
    Collection,
    Evaluation,
    nothing_measured_error,
)
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.registry import probe_named

from .configurations import (
    CONFIGURATION_COLUMNS,
    LIFETIMES,
    PROGRESS,
    BlockSpeeds,
    Configuration,
    block_speeds,
    read_configuration,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.view import Drawing, Progress
    from tui_probe.evals.evaluation import Setting
    from tui_probe.evals.inputs import EvaluationInput
    from tui_probe.probekit.probe_results import ProbeResult

_OPTIONS: Final = ("-k", "accumulate", "--launches", "all", "--no-times", "--no-source", "--max-trace-bytes", "64M")
NAME: Final = "warps"
_MAX_CURVES: Final = 64
_ZOOMS: Final = 3
_PICKLES: Final = (".pkl", ".pickle")
_SPEED: Final = Unit("speed", whole=False)
_SPEED_COLUMNS: Final[tuple[Column[dict[str, Any]], ...]] = tuple(
    Column(key, itemgetter(key)) for key in ("block", "progress", "speed")
)


def collect(setting: Setting) -> list[Collection]:
    """Exclusive and shared with a record per block; shared once more with one per warp and iteration."""
    size_options = ("--per-sm", "3", "--iterations", "12") if setting.simulated else ()
    program = (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/blocks.py", *size_options)
    return [
        Collection("exclusive_sched", (*program, "exclusive"), ("-p", LIFETIMES, *_OPTIONS)),
        Collection("shared_sched", (*program, "shared"), ("-p", LIFETIMES, *_OPTIONS)),
        Collection("shared_acc", (*program, "shared"), ("-p", PROGRESS, *_OPTIONS)),
    ]


def answer(inputs: Sequence[EvaluationInput], progress: Progress) -> Answer:
    """Configurations of blocks side by side, and what the last trace of warp progress tells."""
    configurations, notes = _configurations(inputs, progress)
    exclusive_launch = _first_configuration(configurations, lambda launch: launch.is_exclusive)
    shared_launch = _first_configuration(configurations, lambda launch: not launch.is_exclusive)
    with_progress = next((launch for launch in reversed(configurations) if launch.result.probe == PROGRESS), None)
    speeds = None if with_progress is None else block_speeds(_analysis(with_progress.result))
    notes += _missing_notes(exclusive_launch, shared_launch, with_progress, speeds)
    drawings: dict[str, Drawing] = {}
    for figure, launch in (("a", exclusive_launch), ("b", shared_launch)):
        if launch is not None:
            drawings[figure] = _distribution(launch)
    if with_progress is not None:
        drawings |= _progress_drawings(with_progress, speeds)
    tables: dict[str, Table[Any]] = {
        "configurations": Table("elapsed cycles of blocks", CONFIGURATION_COLUMNS, configurations)
    }
    arrays: dict[str, NDArray[Any]] = {f"cycles of {launch.label}": launch.cycles for launch in configurations}
    if speeds is not None:
        tables["speeds"] = Table("speed of each block", _SPEED_COLUMNS, _rows_of_speeds(speeds), in_text=False)
        arrays |= {"speed": speeds.speed, "progress": speeds.progress}
    return Answer(
        said=list(_sentences(configurations, exclusive_launch, shared_launch)),
        tables=tables,
        drawings=drawings,
        compared=compare_published(NAME, spread_shared=_ours(shared_launch)),
        notes=notes,
        arrays=arrays,
    )


def _ours(configuration: Configuration | None) -> float | None:
    """The spread in per cent, unless its cycles are those of a model."""
    return (
        None
        if configuration is None or configuration.spread is None or configuration.result.simulated
        else 100 * configuration.spread
    )


def _configurations(inputs: Sequence[EvaluationInput], progress: Progress) -> tuple[list[Configuration], list[str]]:
    """All launches that can be read, and why others cannot. TraceError if none can."""
    configurations: list[Configuration] = []
    notes: list[str] = []
    for place, source in enumerate(inputs):
        progress(place / len(inputs))
        count_before = len(configurations)
        try:
            configurations += [
                read_configuration(source, result, progress) for result in source.probe_results(LIFETIMES, PROGRESS)
            ]
        except TraceError as error:
            notes.append(str(error))
            continue
        if len(configurations) == count_before:
            notes.append(_no_launch_reason(source))
    if not configurations:
        raise nothing_measured_error(NAME, notes)
    return configurations, notes


def _no_launch_reason(source: EvaluationInput) -> str:
    if source.path.suffix in _PICKLES:
        advice = "pass the trace or its result file"
        return f"{source.path}: pickle files are not read, because they can run any code; {advice}"
    return source.no_result_reason(LIFETIMES, PROGRESS)


def _first_configuration(
    configurations: Sequence[Configuration], is_wanted: Callable[[Configuration], bool]
) -> Configuration | None:
    """The first that is wanted, without progress if there is one such: recording it takes time."""
    matches = [launch for launch in configurations if is_wanted(launch)]
    return min(matches, key=lambda launch: launch.result.probe == PROGRESS, default=None)


def _missing_notes(
    exclusive_launch: Configuration | None,
    shared_launch: Configuration | None,
    progress: Configuration | None,
    speeds: BlockSpeeds | None,
) -> Iterator[str]:
    """Yield notes on the missing parts of the evaluation, with the command to run for each."""
    runs = {"exclusive_sched": exclusive_launch, "shared_sched": shared_launch, "shared_acc": progress}
    figures = {"exclusive_sched": "figure a", "shared_sched": "figure b", "shared_acc": "figures c, d and d-zoom"}
    for name, configuration in runs.items():
        if configuration is None:
            yield f"no {figures[name]}; collect it with tui-probe eval {NAME} --run --only {name}"
    if progress is not None and speeds is None:
        yield f"no figure c: warps of {progress.label} recorded no loop iterations"
    if speeds is not None and speeds.truncated_warps:
        warps = units.counted(speeds.truncated_warps, "warp")
        yield f"{warps} had more iterations than were recorded; their speeds cover the recorded iterations"


def _sentences(
    configurations: Sequence[Configuration], exclusive: Configuration | None, shared: Configuration | None
) -> Iterator[str]:
    for configuration in configurations:
        if (lengths := configuration.lengths) is not None:
            yield (
                f"{configuration.label}: {configuration.kind}, spread {units.percentage(configuration.spread, 2)},"
                f" median {_cycles_text(lengths.median)}, p99 {_cycles_text(lengths.record()['p99'])} cycles"
            )
    if (
        exclusive is not None
        and shared is not None
        and exclusive.lengths
        and shared.lengths
        and exclusive.lengths.median
    ):
        times = shared.lengths.median / exclusive.lengths.median
        yield (
            f"a block that shares its SM takes {times:.2f}× as long as a block alone on an SM; with"
            f" {shared.blocks_per_sm} blocks at a time, an SM has"
            f" {shared.blocks_per_sm / times:.2f}× the throughput of one block at a time"
        )
    if exclusive is not None and shared is not None and (exclusive.spread or 0) >= (shared.spread or 0) > 0:
        yield (
            "blocks that share an SM differ no more than blocks alone on an SM, so sharing an SM is not the cause of"
            " the differences"
        )


# -- figures


def _distribution(configuration: Configuration) -> CurveChart:
    cycles = np.sort(configuration.cycles).astype(np.float64)
    share = np.arange(1, len(cycles) + 1) / len(cycles) * 100
    lengths = configuration.lengths
    marks = (
        ""
        if lengths is None
        else f"median {_cycles_text(lengths.median)}, p99 {_cycles_text(lengths.record()['p99'])}, "
    )
    title = f"elapsed cycles of blocks, {configuration.kind}: {marks}spread {units.percentage(configuration.spread, 2)}"
    curve = Curve(configuration.label, cycles, share)
    return CurveChart(title, [curve], "elapsed cycles of a block", "% of blocks at or below the value", (CYCLES, COUNT))


def _cycles_text(cycles: float) -> str:
    return units.count(round(cycles))


def _progress_drawings(configuration: Configuration, speeds: BlockSpeeds | None) -> dict[str, Drawing]:
    drawings: dict[str, Drawing] = {}
    if speeds is not None:
        places = np.unique(np.linspace(0, len(speeds.block) - 1, min(_MAX_CURVES, len(speeds.block))).astype(np.int64))
        curves = [_speed_curve(speeds, place) for place in places.tolist()]
        title = f"speed during a block: {len(curves)} of {units.counted(len(speeds.block), 'block')}"
        drawings["c"] = CurveChart(
            title, curves, "% of a block's iterations", "iterations per 1000 cycles", (COUNT, _SPEED)
        )
    view = _warp_drawing(configuration)
    if view is not None:
        drawings["d"] = view
        drawings["d-zoom"] = _zoomed(configuration)
    return drawings


def _zoomed(configuration: Configuration) -> Any:
    """Return the drawing zoomed at the end of the slowest warp."""
    view = _warp_drawing(configuration)
    for command in ("end", "worst", *("zoom_in",) * _ZOOMS):
        view.press(command)
    return view


def _speed_curve(speeds: BlockSpeeds, place: int) -> Curve:
    is_measured = ~np.isnan(speeds.speed[place])
    return Curve(f"block {speeds.block[place]}", speeds.progress[is_measured], speeds.speed[place][is_measured])


def _warp_drawing(configuration: Configuration) -> Any:
    """The probe's own picture of the launch, which pans and zooms; None if it has none."""
    probe, trace = probe_named(configuration.result.probe), configuration.source.trace
    kinds = () if probe is None else tuple(kind for kind in probe.views if kind.is_drawing)
    if not kinds or trace is None:
        return None
    return kinds[0].open(ViewSource(trace, configuration.result.kernel, configuration.result.launch), no_progress)


def _analysis(result: ProbeResult) -> Any:
    """Analyse the result with the probe of the trace."""
    probe = probe_named(result.probe)
    assert probe is not None  # as above, results are those of known probes
    return probe.analyse(result)


# -- speeds as data


def _rows_of_speeds(speeds: BlockSpeeds) -> list[dict[str, Any]]:
    return [
        {"block": block, "progress": progress, "speed": None if np.isnan(speed) else speed}
        for block, row in zip(speeds.block.tolist(), speeds.speed.tolist(), strict=True)
        for progress, speed in zip(speeds.progress.tolist(), row, strict=True)
    ]


EVALUATION: Final = Evaluation(
    name="warps",
    question="do equal blocks take equally long, and how do warps that share an SM slow each other down?",
    probes=(LIFETIMES, PROGRESS),
    reading=(
        "All blocks do the same work. Exclusive blocks have an SM to themselves and compete only for memory; shared"
        " blocks also compete for the SM's warp schedulers. The spread is (max - min) / min of the elapsed cycles of"
        " blocks. The slowest block determines the end of the launch.",
        "Figures a and b are the distributions of elapsed cycles for exclusive and shared blocks. A steep curve"
        " means a steady kernel; steps mean groups of blocks with different times. Figures c and d need a trace of"
        " warp progress, such as shared_acc. This trace has a record per warp and loop iteration. Figure c shows the"
        " speed of each block against its own progress. Diverging lines show blocks that progress at different"
        " speeds. If the speed rises at the end, other blocks of the SM have finished. Figure d has a line per warp:"
        " time runs to the right, and iterations run upwards. Figure d-zoom shows the end of the slowest warp.",
        "A trace counts as exclusive if no two of its blocks were on an SM at the same time, regardless of its name.",
    ),
    open=answer,
    collect=collect,
)
