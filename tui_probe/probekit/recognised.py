"""Recognition of a kernel's probe in traces that do not name it.

The user names it (``--probe NAME``), else the trace's ``probe.toml``, else what was added between ``pruned.ptx`` and
``probed.ptx`` identifies it. A probe of that name counts only if it keeps the same records:
others would be read as what they are not.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import ProbeFileError
from tui_probe.input_limits import PROBE_FILE, PTX_TEXT, parse_toml
from tui_probe.probe_files.loading import built_in_names, load_probe, read_probe
from tui_probe.trace.plain_file import read_within, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tui_probe.probe_model.probe import Probe
    from tui_probe.trace.kernel_files import MapInfo
    from tui_probe.trace.model import KernelFacts

_HOOKS: Final = ("analyze_hook", "callback", "CALLBACK")
_PARAMETER: Final = re.compile(r"\.param\s+\.u64\s+(?:param_)?(\w+)")
_SPECIAL: Final = re.compile(r"%(smid|clock|warpid|globaltimer|lanemask_\w\w|nsmid|gridid)")
_assumed: list[str] = []


def set_assumed_probe(name: str) -> None:
    """Read traces that name no probe as ones of this probe."""
    _assumed[:] = [name]


def analysis_name(kernel: KernelFacts) -> str | None:
    """The analysis of a kernel's probe by ``kernel.info``; of one of several probes else its name."""
    info = kernel.info
    if info is not None and info.callback is not None:
        return info.callback.removesuffix(".py")
    return kernel.probe or (recognised(kernel) if _unnamed(kernel) else None)


def _unnamed(kernel: KernelFacts) -> bool:
    """Return whether neither the trace nor the command of its run names the probe."""
    run = kernel.trace.run_info
    return run is None or run.probe is None


def recognised(kernel: KernelFacts) -> str | None:
    """The name of the probe; None where it is not one that is known here."""
    if _assumed:
        return _assumed[0]
    info = kernel.info
    if info is None or kernel.combined_probes:
        return None
    files = (kernel.trace.file("probe.toml"), kernel.file("pruned.ptx"), kernel.file("probed.ptx"))
    toml, pruned, probed = (None if file is None else (file, file.stat().st_mtime_ns) for file in files)
    return _recognised(info.maps, toml, pruned, probed)


@lru_cache(maxsize=256)
def _recognised(
    maps: tuple[MapInfo, ...],
    toml: tuple[Path, int] | None,
    pruned: tuple[Path, int] | None,
    probed: tuple[Path, int] | None,
) -> str | None:
    values, used = ({}, None) if toml is None else _read_toml(toml[0])
    added = [] if pruned is None or probed is None else _added(pruned[0], probed[0])
    named = [*_names_in(values), *(name for line in added for name in _PARAMETER.findall(line))]
    fitting = [name for name in built_in_names() if _fits(load_probe(name), maps, used)]
    for name in named:
        if name in fitting:
            return str(name)
    reads = _special_registers(added)
    alike = [name for name in fitting if reads and _special_registers([load_probe(name).source]) == reads]
    return alike[0] if len(alike) == 1 else None


def _read_toml(path: Path) -> tuple[dict[str, Any], Probe | None]:
    """The tables of a probe file, and the probe if it is one that is understood here."""
    try:
        data = read_within(path, PROBE_FILE)
        values = parse_toml(text_of(data))
    except (OSError, ValueError):
        return {}, None
    try:
        return values, read_probe(data, path)
    except ProbeFileError:
        return values, None


def _names_in(values: dict[str, Any]) -> Iterator[str]:
    """Return possible names of the probe: those of its analysis, of its tables, and of its maps."""
    for key in _HOOKS:
        if isinstance(hook := values.get(key), str):
            yield hook.rpartition("/")[2].removesuffix(".py")
    tables = [name for name, value in values.items() if isinstance(value, dict)]
    yield from tables
    if isinstance(maps := values.get("map"), dict):
        yield from maps


def _fits(known: Probe, maps: tuple[MapInfo, ...], used: Probe | None) -> bool:
    """Return True if a known probe has records of the same size per thread, and the same fields if these are given."""
    if [(own.level.name.lower(), own.slot_bytes) for own in known.maps] != [(own.level, own.size) for own in maps]:
        return False
    return used is None or _fields(known) == _fields(used)


def _fields(probe: Probe) -> list[list[tuple[int, str]]]:
    return [sorted((field.offset, field.type) for field in own.fields) for own in probe.maps]


def _added(pruned: Path, probed: Path) -> list[str]:
    """The lines of the probed text that the pruned one does not have."""
    try:
        before, after = ([line.strip() for line in _text_lines(path)] for path in (pruned, probed))
    except OSError:
        return []
    return list((Counter(after) - Counter(before)).elements())


def _text_lines(path: Path) -> list[str]:
    return text_of(read_within(path, PTX_TEXT)).splitlines()


def _special_registers(texts: Iterable[str]) -> frozenset[str]:
    """The special registers that are read, both clocks of an SM being one; comments aside."""
    lines = (line.partition("//")[0].partition("#")[0] for text in texts for line in text.splitlines())
    return frozenset(name for line in lines for name in _SPECIAL.findall(line))
