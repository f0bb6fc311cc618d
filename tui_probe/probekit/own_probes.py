"""The maps of the probe that a trace was made with, from the probe file in the trace."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tui_probe.engine.model import FIELD_BYTES, Level
from tui_probe.engine.storage import Layout, storage_of
from tui_probe.errors import ProbeFileError, TraceError
from tui_probe.input_limits import PROBE_FILE
from tui_probe.probe_files.loading import read_probe
from tui_probe.probekit.own_probe import OwnMap
from tui_probe.trace.locate import inside
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.model import Field, Map, Probe


def own_maps(directory: Path, probe: str | None = None) -> tuple[OwnMap, ...]:
    """The maps in the order of result files; of several probes in the run those of one.

    Raises TraceError where the trace has no probe file that can be read.
    """
    found = inside(directory, "probe.toml") if probe is None else inside(directory, "probes", f"{probe}.toml")
    path = found or directory / "probe.toml"
    try:
        return _read(str(path), path.stat().st_mtime_ns)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}; it tells what the maps of the probe are") from error
    except ProbeFileError as error:
        raise TraceError(str(error)) from error


@lru_cache(maxsize=8)
def _read(path: str, written: int) -> tuple[OwnMap, ...]:
    del written  # a file that was replaced is read again
    probe = read_probe(read_within(path, PROBE_FILE), Path(path))
    return tuple(_own_map(probe, one) for one in probe.maps)


def _own_map(probe: Probe, own: Map) -> OwnMap:
    record = _record(own.fields, own.record_bytes)
    sums = own.level is Level.SITE or storage_of(probe, own).layout is Layout.PLAIN
    if own.reduction is None:
        return OwnMap(own.name, record, sums)
    kept = own.reduction.fields
    reduced = _record([one.to for one in kept], own.reduction.record_bytes)
    added = frozenset(one.to.name for one in kept if one.operation == "sum")
    return OwnMap(own.name, record, sums, reduced, added)


def _record(fields: Sequence[Field], size: int) -> np.dtype[Any]:
    fields = sorted(fields, key=lambda field: field.offset)
    layout = {
        "names": [field.name for field in fields],
        "formats": [f"<u{FIELD_BYTES[field.type]}" for field in fields],
        "offsets": [field.offset for field in fields],
        "itemsize": size,
    }
    return np.dtype(layout)  # type: ignore[call-overload, no-any-return]
