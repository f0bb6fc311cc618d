"""Launches of a kernel, one by one or as one array, and their results as NumPy arrays by map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from tui_probe.api.tables import TableSequence
from tui_probe.draw import units
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.probekit.custom_probe import custom_maps, map_indices
from tui_probe.probekit.measured import probe_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.probekit.custom_probe import CustomMap
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.launches import Launch as LoggedLaunch
    from tui_probe.trace.map_records import Reduced, ReductionGroup
    from tui_probe.trace.model import Kernel as TracedKernel
    from tui_probe.trace.model import KernelFacts, ProbedKernel

LAUNCH: Final = np.dtype(
    [
        ("number", "<i8"),
        ("time_ns", "<u8"),
        ("grid", "<u4", (3,)),
        ("block", "<u4", (3,)),
        ("shared", "<u4"),
        ("probed", "?"),
        ("status", "<i8"),
        ("probe_bytes", "<i8"),
    ]
)
"""dtype of ``Launches.to_numpy``: unknown ``time_ns`` is 0, unknown signed fields are -1."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel. Values that the log does not have are None.

    ``number`` counts the launches of the process from 0; ``time_ns`` is nanoseconds since 1970; ``shared`` is dynamic
    shared memory in bytes per block; ``probe_bytes`` the memory of the maps. A launch that was not ``probed`` ran the
    original, for a ``reason``. ``status`` is what the driver answered to a probed one, 0 for success.
    """

    number: int | None
    kernel: int
    time_ns: int | None
    grid: Dim3
    block: Dim3
    shared: int
    stream: int | None
    probed: bool
    status: int | None
    reason: str | None
    probe_bytes: int | None


def launch_of(logged: LoggedLaunch) -> Launch:
    """Convert a launch of the trace reader, without what only this needs."""
    return Launch(**{name: getattr(logged, name) for name in Launch.__slots__})


class Launches(Sequence[Launch], TableSequence):
    """Launches of one kernel that have lines of their own in the log, in its order; others are only counted.

    A ``Launch`` is made on access: ``trace.kernels[0].launches[-1].grid``. ``to_numpy`` is faster for all of them.
    """

    def __init__(self, kernel: TracedKernel) -> None:
        self._table = kernel.trace.launches
        self._rows = kernel.rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Launch: ...
    @overload
    def __getitem__(self, place: slice) -> list[Launch]: ...
    def __getitem__(self, place: int | slice) -> Launch | list[Launch]:
        if isinstance(place, slice):
            return [launch_of(self._table[row]) for row in self._rows[place]]
        return launch_of(self._table[self._rows[place]])

    def to_numpy(self) -> NDArray[Any]:
        """Return all launches: shape (launches,), dtype ``LAUNCH``."""
        rows = np.array(self._rows, dtype=np.int64)
        launches = np.zeros(len(rows), LAUNCH)
        shapes = self._table.column("shape")[rows]
        launches["grid"], launches["block"], launches["shared"] = shapes[:, :3], shapes[:, 3:6], shapes[:, 6]
        launches["time_ns"] = self._table.column("time")[rows]
        for name in ("number", "probed", "status", "probe_bytes"):
            launches[name] = self._table.column(name)[rows]
        return launches

    def _columns(self) -> Sequence[Column[Any]]:
        return _LAUNCH_COLUMNS

    def _shown_rows(self) -> Iterator[Launch]:
        return iter(self)


def _outcome_text(launch: Launch) -> str:
    return "probed" if launch.probed else f"original: {launch.reason or 'no reason in the log'}"


_LAUNCH_COLUMNS: Final[tuple[Column[Launch], ...]] = (
    Column("number", None, "launch", lambda r: NOT_MEASURED if r.number is None else str(r.number)),
    Column("grid", None, "grid", lambda r: units.extent(r.grid)),
    Column("block", None, "block", lambda r: units.extent(r.block)),
    Column("shared", None, "shared", lambda r: units.size(r.shared)),
    Column("probe_bytes", None, "probe mem", lambda r: units.size(r.probe_bytes)),
    Column("outcome", None, "outcome", _outcome_text, right=False, narrow=20),
)


class Result:
    """One result file. Arrays are read-only and mapped into memory: nothing is read before it is used.

    Blocks are counted x first, then y, then z; a slot is a thread's or a warp's, by its number in the block. Where a
    run measured only some blocks (``run --sample``), arrays have those only, and ``blocks`` their numbers.
    """

    def __init__(self, kernel: ProbedKernel, path: Path, launch: Launch | None) -> None:
        self._kernel = kernel
        self._file = kernel.read_result_file(path)
        self.path = path
        self.launch = launch
        """Launch that it is of; None if the log does not name it."""

    @property
    def probe(self) -> str:
        """Name of the probe that made it."""
        return probe_name(self._kernel)

    @property
    def grid(self) -> Dim3:
        """Blocks of the launch in x, y, z, measured or not."""
        return self._file.header.grid

    @property
    def block(self) -> Dim3:
        """Threads per block in x, y, z."""
        return self._file.header.block

    @property
    def blocks(self) -> range:
        """Linear numbers of the measured blocks."""
        return self._file.blocks

    @cached_property
    def _map_indices(self) -> dict[str, tuple[int, CustomMap]]:
        """Map and its index in the file, by name."""
        maps = custom_maps(self._kernel.trace.directory, self._kernel.probe)
        return {custom_map.name: (index, custom_map) for index, custom_map in map_indices(self._file, maps)}

    @cached_property
    def maps(self) -> dict[str, NDArray[Any]]:
        """Records of each map, by name: structured arrays.

        Shapes:

        - (blocks, slots per block, records per slot) in general
        - (1, 1, sites) of a map of sites: a record per instruction, with the sums of all warps
        - (blocks, groups per block, 1) of a map in ``reduced``, with fields of its own; (1, 1, 1) of a launch

        Raises TraceError if the trace has no readable probe file, or one with other maps.
        """
        return {name: self._records(index, custom_map) for name, (index, custom_map) in self._map_indices.items()}

    @cached_property
    def reduced(self) -> dict[str, ReductionGroup]:
        """Maps whose records were merged, with their group: ``warp``, ``block`` or ``launch``. Empty after
        ``run --detail``.
        """
        groups = {name: self._file.group(index) for name, (index, _) in self._map_indices.items()}
        return {name: group for name, group in groups.items() if group is not None}

    def _reduced_records(self, index: int, custom_map: CustomMap) -> Reduced | None:
        return None if custom_map.reduced is None else self._file.reduced(index, custom_map.reduced)

    def _records(self, index: int, custom_map: CustomMap) -> NDArray[Any]:
        if (reduced := self._reduced_records(index, custom_map)) is not None:
            return reduced.records[:, :, np.newaxis]
        sites = self._file.sites(index, custom_map.record)
        return self._file.records(index, custom_map.record) if sites is None else sites.reshape(1, 1, -1)

    @cached_property
    def written(self) -> dict[str, NDArray[np.bool_]]:
        """Masks of written records, of the shape of ``maps``; unwritten records are zeros.

        True for all records of summed maps and of files of older versions.
        """
        masks = {}
        for name, (index, custom_map) in self._map_indices.items():
            reduced = self._reduced_records(index, custom_map)
            mask = self._file.written_mask(index) if reduced is None else reduced.saved[:, :, np.newaxis]
            masks[name] = np.ones(self.maps[name].shape, np.bool_) if mask is None else mask
        return masks

    @cached_property
    def attempts(self) -> dict[str, NDArray[np.int64]]:
        """Records that each slot tried to save, of maps with several per slot: shape (blocks, slots), -1 unknown.

        With attempts above the records per slot of ``maps``, the first were saved and the rest dropped.
        """
        counts = {name: self._file.attempts(index) for name, (index, _) in self._map_indices.items()}
        return {name: array for name, array in counts.items() if array is not None}

    @cached_property
    def sites(self) -> dict[str, NDArray[np.int64]]:
        """Lines in ``pruned.ptx`` of the records of each map of sites, counted from 1: shape (sites,)."""
        info = self._kernel.read_info()
        lines = {} if info is None else info.sites
        return {
            name: np.array(lines[index], np.int64) for name, (index, _) in self._map_indices.items() if index in lines
        }

    def __repr__(self) -> str:
        launch = "" if self.launch is None or self.launch.number is None else f" of launch {self.launch.number}"
        shape = f"grid {units.extent(self.grid)}, block {units.extent(self.block)}"
        return f"<Result {self.path.name}{launch}: {shape}, {units.counted(self._file.header.maps, 'map')}>"


class Results(Sequence[Result], TableSequence):
    """Results of one kernel, the oldest first. Files are opened on access: ``kernel.results[-1].maps["times"]``."""

    def __init__(self, kernel: KernelFacts) -> None:
        self._kernel = kernel
        self._rows = kernel.result_rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Result: ...
    @overload
    def __getitem__(self, place: slice) -> list[Result]: ...
    def __getitem__(self, place: int | slice) -> Result | list[Result]:
        if isinstance(place, slice):
            return [self._result(row) for row in self._rows[place]]
        return self._result(self._rows[place])

    def _result(self, row: int) -> Result:
        results = self._kernel.trace.results
        path = results.path(row)
        if path is None:
            raise TraceError(f"result/{results.name(row)}: event.log gives a path outside of the trace")
        return Result(self._kernel.kernel_of_result(row), path, self._launch(row))

    def _launch(self, row: int) -> Launch | None:
        number = self._kernel.trace.results.launch(row)
        return None if number is None else launch_of(self._kernel.trace.launches[number])

    def _columns(self) -> Sequence[Column[Any]]:
        return _RESULT_COLUMNS

    def _shown_rows(self) -> Iterator[tuple[str, int, Launch | None]]:
        """Yield name, size and launch from the log: no file is opened."""
        results = self._kernel.trace.results
        return ((results.name(row), results.size(row), self._launch(row)) for row in self._rows)


def _number(launch: Launch | None) -> str:
    return NOT_MEASURED if launch is None or launch.number is None else str(launch.number)


_RESULT_COLUMNS: Final[tuple[Column[tuple[str, int, Launch | None]], ...]] = (
    Column("launch", None, "launch", lambda r: _number(r[2])),
    Column("grid", None, "grid", lambda r: NOT_MEASURED if r[2] is None else units.extent(r[2].grid)),
    Column("block", None, "block", lambda r: NOT_MEASURED if r[2] is None else units.extent(r[2].block)),
    Column("size", None, "size", lambda r: units.size(r[1])),
    Column("file", None, "file", lambda r: f"result/{r[0]}", right=False),
)
