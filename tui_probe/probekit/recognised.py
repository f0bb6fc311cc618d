"""Recognition of a kernel's probe in traces that do not name it.

The name comes from the user (``--probe NAME``), else from ``probe.toml`` of the trace, else from the lines added
between ``pruned.ptx`` and ``probed.ptx``, else from the layout of the maps and the records of a result. A probe is
accepted only if its maps have the same layout, since records of another layout would be misread.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import ProbeFileError, TraceError
from tui_probe.input_limits import PROBE_FILE, PTX_TEXT, parse_toml
from tui_probe.probe_files.loading import built_in_names, load_probe, read_probe
from tui_probe.trace.plain_file import read_within, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tui_probe.probe_model.probe import Probe
    from tui_probe.trace.kernel_files import MapInfo
    from tui_probe.trace.model import KernelFacts
    from tui_probe.trace.results import Result

_HOOKS: Final = ("analyze_hook", "callback", "CALLBACK")
"""Keys of probe files, in versions of Neutrino, that name the analysis."""
_PARAMETER: Final = re.compile(r"\.param\s+\.u64\s+(?:param_)?(\w+)")
_SPECIAL: Final = re.compile(r"%(smid|clock|warpid|globaltimer|lanemask_\w\w|nsmid|gridid)")
_SM_FIELD: Final = "smid"
_MAX_SMS: Final = 1024
"""Above the number of SMs of any GPU (below 200 so far): a larger number in a record is not that of an SM."""
_MAX_READ_BYTES: Final = 64 << 20
"""Size of a result up to which its records are read to recognise the probe."""
_assumed_probe: str | None = None
"""Name that the user passed for traces that name no probe.

It is a state of the process, as the probes of the registry are: a command has one ``--probe`` for all traces that it
reads, and the probe of a kernel is asked for at dozens of places, which know a kernel and not a command.
"""


def set_assumed_probe(name: str | None) -> None:
    """Read all traces that name no probe as traces of this probe; None: recognize their probes again."""
    global _assumed_probe
    _assumed_probe = name


def analysis_name(kernel: KernelFacts) -> str | None:
    """Return the analysis that ``kernel.info`` names; else the name of the probe, given or recognized."""
    info = kernel.read_info()
    if info is not None and info.callback is not None:
        return info.callback.removesuffix(".py")
    return kernel.probe or (recognition(kernel).name if _is_unnamed(kernel) else None)


def _is_unnamed(kernel: KernelFacts) -> bool:
    """Return whether neither the trace nor the command of its run names the probe."""
    run = kernel.trace.run_info
    return run is None or run.probe is None


@dataclass(frozen=True, slots=True)
class Recognition:
    """The recognized probe and the evidence, else the built-in probes with maps of this layout."""

    name: str | None = None
    evidence: str = ""
    candidates: tuple[str, ...] = ()
    maps: str = ""
    """The kernel's maps as text: ``16 B per warp``."""


def recognition(kernel: KernelFacts) -> Recognition:
    """Recognize the probe of a kernel whose trace names none."""
    if _assumed_probe is not None:
        return Recognition(_assumed_probe, "--probe")
    info = kernel.read_info()
    if info is None or kernel.combined_probes:
        return Recognition()
    files = (kernel.trace.file("probe.toml"), kernel.file("pruned.ptx"), kernel.file("probed.ptx"))
    toml, pruned, probed = (None if file is None else (file, file.stat().st_mtime_ns) for file in files)
    row = next(iter(kernel.result_rows), None)
    result = None if row is None else kernel.trace.results.path(row)
    return _recognize(info.maps, toml, pruned, probed, result)


def unnamed_probe_advice(kernel: KernelFacts) -> str | None:
    """Return advice to name the probe of a kernel if it is neither named nor recognized; else None."""
    if (
        kernel.status != "probed"
        or kernel.combined_probes
        or not _is_unnamed(kernel)
        or kernel.trace.file("probe.toml")
    ):
        return None
    recognized = recognition(kernel)
    if recognized.name is not None or not recognized.maps:
        return None
    fitting = f" fits {' and '.join(recognized.candidates)}" if recognized.candidates else " fits no built-in probe"
    argument = recognized.candidates[0] if recognized.candidates else "NAME|DIRECTORY"
    return f"the trace does not name its probe; its record size ({recognized.maps}){fitting}: pass --probe {argument}"


def recognition_text(kernel: KernelFacts) -> str | None:
    """Return ``NAME, recognized by its records`` for a probe that the trace does not name; else None."""
    if kernel.status != "probed" or not _is_unnamed(kernel):
        return None
    info = kernel.read_info()
    if info is not None and info.callback:
        return None
    recognized = recognition(kernel)
    return recognized.name and f"{recognized.name}, recognized by {recognized.evidence}"


@lru_cache(maxsize=256)
def _recognize(
    maps: tuple[MapInfo, ...],
    toml: tuple[Path, int] | None,
    pruned_ptx: tuple[Path, int] | None,
    probed_ptx: tuple[Path, int] | None,
    result: Path | None,
) -> Recognition:
    values, declared_probe = ({}, None) if toml is None else _read_toml(toml[0])
    added_lines = [] if pruned_ptx is None or probed_ptx is None else _added_lines(pruned_ptx[0], probed_ptx[0])
    fitting = [name for name in built_in_names() if _fits(load_probe(name), maps, declared_probe)]
    for names, evidence in (
        (_possible_names(values), "its probe.toml"),
        ([name for line in added_lines for name in _PARAMETER.findall(line)], "an added parameter"),
    ):
        if name := next((name for name in names if name in fitting), None):
            return Recognition(name, evidence)
    if added_lines:
        registers = _special_registers(added_lines)
        fitting = [name for name in fitting if _special_registers([load_probe(name).source]) == registers]
        if len(fitting) == 1:
            return Recognition(fitting[0], "its added instructions")
    by_records = [] if result is None or declared_probe is not None else _probes_fitting_records(fitting, result)
    if len(by_records) == 1:
        return Recognition(by_records[0], "its map layout and records")
    return Recognition(candidates=tuple(by_records or fitting), maps=_maps_text(maps))


def _probes_fitting_records(names: list[str], path: Path) -> list[str]:
    """Return the probes that can have written a result: those whose SM numbers are valid in it, else all possible ones.

    A probe is impossible if its records have another size, or hold numbers that no SM has.
    """
    from tui_probe.trace.results import read_result  # here: it imports NumPy, which help texts do not need

    try:
        if path.stat().st_size > _MAX_READ_BYTES:
            return []
        result = read_result(path)
    except (TraceError, OSError):
        return []
    verdicts = {name: _records_fit(load_probe(name), result) for name in names}
    confirmed = [name for name, fits in verdicts.items() if fits]
    return confirmed or [name for name, fits in verdicts.items() if fits is None]


def _records_fit(probe: Probe, result: Result) -> bool | None:
    """Return whether the SM numbers in the records are those of SMs; None if the probe records none."""
    import numpy as np

    probe = probe if len(probe.maps) <= len(result.sections) else probe.without_optional_maps()
    if len(probe.maps) > len(result.sections):
        return False
    fits: bool | None = None
    for index, probe_map in enumerate(probe.maps):
        record = np.dtype([(field.name, "<u8" if field.type == "u64" else "<u4") for field in probe_map.fields])
        try:
            if probe_map.slot_bytes < 0:
                result.form(index, record)
                continue
            records = result.one_record(index, record)
        except TraceError:
            return False
        if _SM_FIELD in (record.names or ()):
            saved_records = records[records[record.names[0]] != 0] if record.names else records
            fits = bool(saved_records.size) and bool((saved_records[_SM_FIELD] < _MAX_SMS).all())
            if not fits:
                return False
    return fits


def _maps_text(maps: tuple[MapInfo, ...]) -> str:
    return ", ".join(
        f"{own_map.size} B per {own_map.level}" if own_map.size >= 0 else f"any number of bytes per {own_map.level}"
        for own_map in maps
    )


def _read_toml(path: Path) -> tuple[dict[str, Any], Probe | None]:
    """Return the tables of a probe file, and the probe if it can be read."""
    try:
        data = read_within(path, PROBE_FILE)
        values = parse_toml(text_of(data))
    except (OSError, ValueError):
        return {}, None
    try:
        return values, read_probe(data, path)
    except ProbeFileError:
        return values, None


def _possible_names(values: dict[str, Any]) -> Iterator[str]:
    """Yield possible names of the probe: those of its analysis, of its tables, and of its maps."""
    for key in _HOOKS:
        if isinstance(hook := values.get(key), str):
            yield hook.rpartition("/")[2].removesuffix(".py")
    yield from (name for name, value in values.items() if isinstance(value, dict))
    if isinstance(maps := values.get("map"), dict):
        yield from maps


def _fits(candidate: Probe, maps: tuple[MapInfo, ...], declared_probe: Probe | None) -> bool:
    """Return whether a candidate has records of the same size per thread, and the fields of a declared probe."""
    sizes = [(own_map.level, own_map.size) for own_map in maps]
    forms = (candidate, candidate.without_optional_maps())
    if not any([(own_map.level.name.lower(), own_map.slot_bytes) for own_map in form.maps] == sizes for form in forms):
        return False
    return declared_probe is None or any(_sorted_fields(form) == _sorted_fields(declared_probe) for form in forms)


def _sorted_fields(probe: Probe) -> list[list[tuple[int, str]]]:
    return [sorted((field.offset, field.type) for field in own_map.fields) for own_map in probe.maps]


def _added_lines(pruned: Path, probed: Path) -> list[str]:
    """Return the lines of the probed PTX that the pruned PTX does not have."""
    try:
        pruned_lines, probed_lines = ([line.strip() for line in _text_lines(path)] for path in (pruned, probed))
    except OSError:
        return []
    return list((Counter(probed_lines) - Counter(pruned_lines)).elements())


def _text_lines(path: Path) -> list[str]:
    return text_of(read_within(path, PTX_TEXT)).splitlines()


def _special_registers(texts: Iterable[str]) -> frozenset[str]:
    """Return the special registers that are read outside comments; both clocks of an SM count as one."""
    lines = (line.partition("//")[0].partition("#")[0] for text in texts for line in text.splitlines())
    return frozenset(name for line in lines for name in _SPECIAL.findall(line))
