"""Page ``stuck``: where the warps of a launch are that did not end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.spans import clip
from tui_probe.draw.table import Column, as_record, in_data, in_tables, natural_widths
from tui_probe.draw.table_content import GAP, titled_table
from tui_probe.draw.view import Document
from tui_probe.probekit import probe_results
from tui_probe.probekit.probe_view import probe_view
from tui_probe.trace.kernel_files import Offset, code_page
from tui_probe.trace.source_lines import source_position

from .analysis import analyse
from .causes import likely_cause
from .places import PlaceGroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe_results import ProbeResult

    from .places import StuckWarp, WarpPlace

_MAX_MISSING: Final = 3
"""Places of missing warps that a row names."""
_MIN_NAME: Final = 12
"""Cells of the name of the kernel at least."""
_MIN_OPCODE: Final = 4
"""Cells of an opcode that is cut."""
_MISSING_KEY: Final = "missing"
"""Key of the column of warps that have not arrived."""
_HEADINGS: Final = 3
"""Lines above the first row: the head, the titles, and the rule below these."""
_MAX_ADDRESSES: Final = 4
"""Addresses at one instruction that have a row each."""


@dataclass(frozen=True, slots=True)
class LaunchEnd:
    """Seconds for which a launch had run when the places were read, and the run's ``--watchdog`` limit.

    ``is_deadlock``: the simulated GPU then ended it.
    """

    seconds: float
    limit: float
    is_deadlock: bool = False

    @property
    def is_interrupted(self) -> bool:
        """True if the run was interrupted, or the process ended, before the limit; the log has tenths of seconds."""
        return not self.is_deadlock and self.seconds < float(f"{self.limit:.1f}")


def launch_end(probe_result: ProbeResult) -> LaunchEnd | None:
    """Return how long the launch of a result had run; None if the log does not say."""
    run_info, number = (
        probe_result.kernel.trace.run_info,
        None if probe_result.launch is None else probe_result.launch.number,
    )
    limit = run_info.options.get("watchdog") if run_info is not None else None
    stuck = next((event for event in probe_result.kernel.trace.state.stuck if event.launch == number), None)
    if stuck is None or not isinstance(limit, int | float):
        return None
    return LaunchEnd(stuck.seconds, limit, stuck.is_deadlock)


def _line(place: WarpPlace) -> int | None:
    return int(place.line) if place.line else None


def waits_for(place: WarpPlace) -> str | None:
    """Object that warps wait for: ``barrier 0``, ``mbarrier 0x10 phase 1``, ``lock 0x7f…``; None: not known."""
    if isinstance(place.line, Offset) and not place.address:  # SASS does not tell which
        return place.kind
    match place.kind:
        case "barrier":
            return f"barrier {place.address}"
        case "warp barrier":
            return f"lanes {place.address:#x}"
        case "mbarrier":
            return f"mbarrier {place.address:#x}" + ("" if place.phase is None else f" phase {place.phase}")
        case "lock" | "flag" | "shared flag":
            return f"{place.kind} {place.address:#x}"
        case "entry":
            return None
    return place.kind


def _waits_text(group: PlaceGroup) -> str:
    """Object that the warps of a row wait for; ``256 flags`` of a row with several addresses."""
    addresses = {warp.place.address for warp in group.warps}
    if len(addresses) > 1:
        return units.counted(len(addresses), group.place.kind)
    return waits_for(group.place) or units.NOT_MEASURED


def _rows_of(groups: Sequence[PlaceGroup]) -> list[PlaceGroup]:
    """The rows of the table: one for all addresses of an instruction, if these are many."""
    by_instruction: dict[tuple[object, ...], list[PlaceGroup]] = {}
    for group in groups:
        by_instruction.setdefault((group.place.line, group.place.kind, group.place.phase), []).append(group)
    rows: list[PlaceGroup] = []
    for of_instruction in by_instruction.values():
        rows += [_merge_groups(of_instruction)] if len(of_instruction) > _MAX_ADDRESSES else of_instruction
    return sorted(rows, key=lambda row: -len(row.warps))


def _merge_groups(groups: Sequence[PlaceGroup]) -> PlaceGroup:
    """One group for warps at several addresses, with the place of the first."""
    warps = tuple(warp for group in groups for warp in group.warps)
    missing_warps = dict.fromkeys(warp for group in groups for warp in group.missing_warps if warp not in warps)
    return PlaceGroup(groups[0].place, warps, tuple(missing_warps))


def _warp_text(group: PlaceGroup) -> str:
    return units.number_ranges(warp.warp for warp in group.warps)


def _missing_text(group: PlaceGroup) -> str:
    """``3 at bar.sync PTX:31; 0 ended``: warps that do not wait there, by their place."""
    places: dict[str, list[StuckWarp]] = {}
    for warp in group.missing_warps:
        places.setdefault("ended" if warp.has_ended else warp.place.at_text, []).append(warp)
    texts = [f"{units.number_ranges(warp.warp for warp in warps)} {place}" for place, warps in places.items()]
    return "; ".join(texts[:_MAX_MISSING]) + ("; …" if len(texts) > _MAX_MISSING else "")


def _shortened_place(text: str, cells: int) -> str:
    """``ld.vol… PTX:25 poll.cu:15``: the lines remain, and as much of the opcode as fits."""
    opcode, _, lines = text.partition(" ")
    room = cells - len(lines) - 1
    return f"{clip(opcode, room)} {lines}" if lines and room >= _MIN_OPCODE else clip(text, cells)


_COLUMNS: Final[tuple[Column[PlaceGroup], ...]] = (
    Column("warps", lambda g: len(g.warps), "warps", lambda g: units.count(len(g.warps))),
    Column("blocks", lambda g: len(g.blocks), "blocks", lambda g: units.count(len(g.blocks))),
    Column("kind", lambda g: g.place.kind),
    Column("ptx_line", lambda g: None if isinstance(g.place.line, Offset) else _line(g.place)),
    Column("offset", lambda g: int(g.place.line) if isinstance(g.place.line, Offset) else None),
    Column("opcode", lambda g: g.place.opcode or None),
    Column("file", lambda g: g.place.source.file if g.place.source else None),
    Column("line", lambda g: g.place.source.line if g.place.source else None),
    Column("place", None, "place", lambda g: g.place.text, right=False, narrow=24, shorten=_shortened_place),
    Column("address", lambda g: g.place.address or None),
    Column("phase", lambda g: g.place.phase),
    Column("waits_for", lambda g: waits_for(g.place), "waits for", _waits_text, right=False, narrow=12,
           shorten=cut_middle),
    Column("warp_numbers", lambda g: _warp_text(g), "warps of a block", _warp_text, right=False, rank=1, narrow=8),
    Column(
        _MISSING_KEY, lambda g: _missing_text(g) or None, "not arrived",
        lambda g: _missing_text(g) or units.NOT_MEASURED, right=False, narrow=10,
    ),
)  # fmt: skip


def _warp_record(warp: StuckWarp) -> dict[str, Any]:
    """One warp; its source is that of its place."""
    source = source_position(warp.place.source) or None
    return {
        "block": warp.block, "warp": warp.warp, "lanes": warp.lanes, "kind": warp.place.kind,
        "ptx_line": _line(warp.place), "source": source, "address": warp.place.address or None,
        "phase": warp.place.phase, "value": warp.read_value, "took": warp.held_lock.address if warp.held_lock else None,
        "arrived_at": warp.last_operation.address if warp.last_operation else None,
    }  # fmt: skip


class StuckView(Document):
    """One launch."""

    def __init__(self, source: ViewSource, progress: Progress) -> None:
        progress(0.0)
        self.probe_result = probe_results.read_result(source)
        self.stuck = analyse(self.probe_result.result, self.probe_result.kernel.folder)
        self.cause = likely_cause(self.stuck)
        self.end = launch_end(self.probe_result)
        self.title = f"Stuck warps of {self.probe_result.launch_label} {self.probe_result.kernel_name}"
        progress(1.0)

    @cached_property
    def _rows(self) -> list[PlaceGroup]:
        return _rows_of(self.stuck.groups)

    def notes(self) -> Iterator[str]:
        """Return when the launch was interrupted, the likely cause, and what is not shown."""
        if self.end is not None and self.end.is_interrupted:
            yield f"interrupted after {self.end.seconds:.1f} s, before the limit of {self.end.limit:g} s"
        if self.end is not None and self.end.is_deadlock:
            yield "ended by the simulated GPU, because no thread could continue"
        if self.cause is not None:
            yield f"most likely: {self.cause.text}"
            yield f"to fix it: {self.cause.advice}"
        if self.stuck.blocks_not_started:
            yield f"{units.counted(self.stuck.blocks_not_started, 'block')} had not started"
        yield "A place is the last loop or wait that a warp reached. The rows omit warps that had ended."
        if self.target_view() == "sass":
            yield (
                "Without PTX, barrier numbers, mbarrier phases and holders of locks are unknown, and"
                " __syncwarp is not recorded."
            )

    def lines(self, width: int) -> Sequence[Line]:
        launch_text, warps = (
            f"{self.probe_result.launch_label} ",
            f": {units.counted(len(self.stuck.warps), 'warp')} on the GPU",
        )
        head = (
            launch_text
            + shorten(self.probe_result.kernel_name, max(width - 1 - len(launch_text) - len(warps), _MIN_NAME))
            + warps
        )
        in_table = in_tables(_COLUMNS)
        sizes = natural_widths(in_table, self._rows)
        if sum(sizes) + GAP * (len(sizes) - 1) < width:
            return titled_table(head, in_table, self._rows, self.notes(), width)
        in_table = [column for column in in_table if column.key != _MISSING_KEY]
        return titled_table(head, in_table, self._rows, [*self._missing_notes(), *self.notes()], width)

    def _missing_notes(self) -> Iterator[str]:
        """The warps that have not arrived, by place, if the table has no room for them."""
        for group in self._rows:
            if group.missing_warps:
                warps = "warp" if len(group.missing_warps) == 1 else "warps"
                yield f"not arrived at {_waits_text(group)}, {group.place.text}: {warps} {_missing_text(group)}"

    def pinned(self, width: int) -> int:
        del width
        return _HEADINGS if self._rows else 1

    def row_count(self) -> int:
        return len(self._rows)

    def gutter(self, width: int) -> int:
        return width

    def ptx_line(self, number: int, width: int) -> int | None:
        """The line of the row's place."""
        place = number - self.pinned(width)
        return self._rows[place].place.line or None if 0 <= place < len(self._rows) else None

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """The row of a line."""
        for place, group in enumerate(self._rows):
            if group.place.line == ptx_line:
                return place + self.pinned(width)
        return None

    def target_view(self) -> str:
        return code_page(group.place.line for group in self.stuck.groups)

    def record(self) -> dict[str, Any]:
        """The launch, its likely cause, its places, and each warp."""
        launch = self.probe_result.launch
        return {
            "launch": None if launch is None else launch.number,
            "grid": list(self.stuck.grid),
            "block": list(self.stuck.block),
            "seconds": None if self.end is None else self.end.seconds,
            "interrupted": None if self.end is None else self.end.is_interrupted,
            "blocks_not_started": self.stuck.blocks_not_started,
            "cause": None if self.cause is None else {
                "key": self.cause.key, "words": self.cause.text, "advice": self.cause.advice,
                "block": self.cause.warp.block, "warp": self.cause.warp.warp,
            },
            "places": [as_record(_COLUMNS, group) for group in self.stuck.groups],
            "warps": [_warp_record(warp) for warp in self.stuck.warps],
        }  # fmt: skip

    def cells(self) -> Iterator[Sequence[object]]:
        columns = in_data(_COLUMNS)
        yield [column.key for column in columns]
        for group in self.stuck.groups:
            yield [column.value(group) for column in columns if column.value is not None]


_OPTION: Final = "--watchdog 10s"


def _missing_reason(source: ViewSource) -> str | None:
    if _VIEW.missing_reason(source) is None:
        return None
    run_info = source.trace.run_info
    limit = run_info.options.get("watchdog") if run_info is not None else None
    if not limit:
        return f"the run had no watchdog: run with {_OPTION}"
    return (
        f"no launch of this kernel ran longer than {limit:g} s, and no launch was running when the run was interrupted"
    )


_VIEW: Final = probe_view(
    "stuck",
    "Stuck warps",
    "for a launch that did not end, the place of each warp",
    StuckView,
    explanation=(
        "One row per place: a loop without a counter, a barrier, an mbarrier, a lock or a polled address. The warps of"
        " a row were at this place when the run's --watchdog time was over, or when the run was interrupted. “Not"
        " arrived” lists the other warps of the same blocks, with their places.",
    ),
    order=5,
)
STUCK_VIEW: Final = replace(_VIEW, missing_reason=_missing_reason, option=_OPTION)
