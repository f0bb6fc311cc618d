"""Report of ``tui-probe check``: probes on kernels, and wait sites, as text and JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.printable import dump_json
from tui_probe.draw.units import NOT_MEASURED, count, counted, size
from tui_probe.probe_files.catalogue import describe_probe
from tui_probe.probe_model.positions import suspicious_positions
from tui_probe.sass.wait_classes import WAIT_CLASSES
from tui_probe.trace.kernel_status import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.engine.image_kernels import KernelFile
    from tui_probe.engine.kernel_check import KernelCheck, KernelWaits
    from tui_probe.probe_model.probe import Map, Probe
    from tui_probe.sass.accesses import SpillLine
    from tui_probe.sass.scoreboards import Producer
    from tui_probe.sass.wait_sites import WaitSite
    from tui_probe.toolchain import Tool
    from tui_probe.trace.kernel_files import ProcessLog, Resources
    from tui_probe.trace.launch_events import ProbeMode

MAX_LISTED: Final = 20
"""Kernels that are shown one by one; of more, groups are."""
MODES: Final[dict[ProbeMode, str]] = {"ptx": "PTX", "graft": "SASS"}
_PROBED_TEXTS: Final[dict[ProbeMode, str]] = {"ptx": "probed in PTX", "graft": "grafted"}
_MAX_NAMES: Final = 3
VERSION: Final = 1
"""Version of the JSON; it rises when a key changes its meaning or goes."""
_NO_ASSEMBLER_NOTE: Final = "no ptxas found"
_UNKNOWN_RESOURCES: Final = ", so registers and spills are unknown"
_VERIFIED_NOTE: Final = "the probe writes only its own registers and maps, and never branches out of its snippets"
_SPILL_HEADINGS: Final = ("source", "loads", "stores", "bytes per thread", "loops")
_HEADINGS: Final = ("offset", "SASS", "source", "loops", "waits for", "producers")
_MAX_PRODUCERS: Final = 3


def check_totals(kernels: Sequence[KernelCheck]) -> dict[str, Any]:
    """Return the JSON record of totals: probed kernels by mode, others by code of the reason."""
    by_mode = Counter(kernel.mode for kernel in kernels if kernel.status == "ok")
    record: dict[str, Any] = {"kernels": len(kernels), "ok": {mode: by_mode[mode] for mode in MODES}}
    for status in ("refused", "failed"):
        record[status] = dict(Counter(kernel.code for kernel in kernels if kernel.status == status).most_common())
    return record


def check_totals_line(kernels: Sequence[KernelCheck]) -> str:
    """Return ``87 kernels: 52 grafted, 35 refused (graft-calls)``."""
    by_mode = Counter(kernel.mode for kernel in kernels if kernel.status == "ok")
    parts = [f"{count(by_mode[mode])} {text}" for mode, text in _PROBED_TEXTS.items() if by_mode[mode]]
    parts += [
        f"{count(len(group))} {group[0].status} ({group[0].code or NOT_MEASURED})"
        for group in _unprobed_groups(kernels)
    ]
    return f"{counted(len(kernels), 'kernel')}: {', '.join(parts)}"


def group_lines(kernels: Sequence[tuple[KernelCheck, ProcessLog]], arrow: str) -> Iterator[str]:
    """Yield the lines of each mode and reason: number of kernels, and some of their names."""
    for mode, text in _PROBED_TEXTS.items():
        group = [(kernel, log) for kernel, log in kernels if kernel.status == "ok" and kernel.mode == mode]
        if group:
            yield f"{text}: {counted(len(group), 'kernel')} for {_architectures([kernel for kernel, _ in group])}"
            yield f"  registers  {_registers_text([log for _, log in group], arrow)}"
            yield from _kernel_names([kernel for kernel, _ in group])
    for unprobed in _unprobed_groups([kernel for kernel, _ in kernels]):
        example = unprobed[0]
        size_text = counted(len(unprobed), "kernel")
        yield f"{example.status}, {example.code or NOT_MEASURED}: {size_text} for {_architectures(unprobed)}"
        yield f"  reason     {example.reason}"
        if example.advice:
            yield f"  instead    {example.advice}"
        yield from _kernel_names(unprobed)
    yield ""
    yield "For all kernels, use --format json; for one kernel, use --kernel NAME"


def _unprobed_groups(kernels: Sequence[KernelCheck]) -> list[list[KernelCheck]]:
    """Return the kernels without the probe, by status and code, the largest group first."""
    groups: dict[tuple[str, str | None], list[KernelCheck]] = {}
    for kernel in kernels:
        if kernel.status != "ok":
            groups.setdefault((kernel.status, kernel.code), []).append(kernel)
    return sorted(groups.values(), key=len, reverse=True)


def _architectures(kernels: Sequence[KernelCheck]) -> str:
    return ", ".join(sorted({kernel.arch for kernel in kernels}))


def _registers_text(logs: Sequence[ProcessLog], arrow: str) -> str:
    """Return ``24 to 96 → 26 to 98, at most +2``."""
    register_pairs = [
        (log.pruned.registers, log.probed.registers)
        for log in logs
        if log.pruned and log.probed and log.pruned.registers is not None and log.probed.registers is not None
    ]
    if not register_pairs:
        return NOT_MEASURED
    pruned_range, probed_range = (_range_text(numbers) for numbers in zip(*register_pairs, strict=True))
    largest_increase = max(probed - pruned for pruned, probed in register_pairs)
    increase = f"at most {largest_increase:+}" if largest_increase > 0 else "no increase"
    return f"{pruned_range} {arrow} {probed_range}, {increase}"


def _range_text(numbers: Sequence[int]) -> str:
    minimum, maximum = min(numbers), max(numbers)
    return f"{minimum}" if minimum == maximum else f"{minimum} to {maximum}"


def _kernel_names(kernels: Sequence[KernelCheck]) -> Iterator[str]:
    for kernel in kernels[:_MAX_NAMES]:
        yield f"             {demangle(kernel.name)}"
    if len(kernels) > _MAX_NAMES:
        yield f"             and {count(len(kernels) - _MAX_NAMES)} more"


@dataclass(frozen=True)
class CheckResult:
    """All that was found. ``output_folder`` is where the kernels' folders stay, None if nowhere."""

    probe: Probe | None
    """None if wait sites are listed without a probe."""
    assembler: Tool | None
    file: KernelFile | None = None
    kernels: list[tuple[KernelCheck, ProcessLog]] = field(default_factory=list)
    output_folder: Path | None = None

    @property
    def is_ok(self) -> bool:
        return all(kernel.status == "ok" for kernel, _ in self.kernels)


def check_text(check: CheckResult, arrow: str) -> str:
    """Return the text: the probe, then each kernel or, for many, what they have in common. ``arrow`` is between
    before and after.
    """
    lines = list(_head_lines(check))
    if len(check.kernels) > MAX_LISTED and not any(kernel.waits for kernel, _ in check.kernels):
        lines += ["", *group_lines(check.kernels, arrow)]
    else:
        for kernel, log in check.kernels:
            lines += ["", *_kernel_lines(check, kernel, log, arrow)]
    if check.kernels and check.probe is not None:
        lines += ["", check_totals_line([kernel for kernel, _ in check.kernels])]
    return "\n".join(lines) + "\n"


def _head_lines(check: CheckResult) -> Iterator[str]:
    if check.probe is not None:
        yield from _probe_lines(check.probe)
    if check.file is not None:
        file = check.file
        images = f" in {counted(len(file.images), 'image')}" if len(file.images) > 1 else ""
        yield _field_line("file", f"{file.path}: {size(file.size)} of {file.kind}{images}, {file.content_summary()}")
        tool = check.assembler
        missing_note = _NO_ASSEMBLER_NOTE + (_UNKNOWN_RESOURCES if check.probe else "")
        yield _field_line("assembler", f"ptxas {tool.version}, {tool.path}" if tool else missing_note)


def _probe_lines(probe: Probe) -> Iterator[str]:
    entry = describe_probe(probe)
    yield _field_line("probe", f"{entry.name}: {entry.title}" if entry.title else entry.name)
    yield from _labelled_lines("keeps", entry.records)
    yield from _labelled_lines("runs", entry.places)
    yield _field_line("verified", _VERIFIED_NOTE)
    yield from _labelled_lines("suspicious", suspicious_positions(probe.positions))


def _kernel_lines(check: CheckResult, kernel: KernelCheck, log: ProcessLog, arrow: str) -> Iterator[str]:
    if check.probe is None:
        source = "its SASS" if kernel.mode == "graft" else "SASS assembled from its PTX"
        yield f"{kernel.name}: for {kernel.arch}, {source}{_image_name(check, kernel)}"
    else:
        mode = MODES[kernel.mode]
        yield f"{kernel.name}: {kernel.status} ({kernel.arch}, {mode}{_image_name(check, kernel)})"
    if (readable := demangle(kernel.name)) != kernel.name:
        yield _field_line("  is", readable)
    if kernel.target != kernel.arch:
        compiled = f"compiled for {kernel.arch}, as the driver does on this architecture"
        runs = f"{kernel.arch} can run this code, too"
        yield _field_line("  target", f"{kernel.target}; {compiled if kernel.mode == 'ptx' else runs}")
    if check.probe is not None:
        yield from _insertion_lines(check, kernel, log, arrow)
    if check.output_folder is not None:
        yield _field_line("  files", str(kernel.directory))
    if kernel.waits is not None:
        yield from wait_lines(kernel.waits)


def _insertion_lines(check: CheckResult, kernel: KernelCheck, log: ProcessLog, arrow: str) -> Iterator[str]:
    """Yield what the probe adds to a kernel, or why it is not inserted."""
    if kernel.status == "ok":
        if log.pruned or log.probed:
            yield _field_line("  registers", _resources_text(log, "registers", arrow))
            yield _field_line("  spills", f"{_resources_text(log, 'spill_bytes', arrow)} bytes")
        yield _field_line("  added", counted(kernel.added_instructions or 0, "instruction"))
        yield from _labelled_lines("  matched", [f"{name}: {count(number)}" for name, number in kernel.match_counts])
        if kernel.note:
            yield _field_line("  note", kernel.note)
        return
    yield _field_line(
        "  reason", f"{place}: {kernel.reason}" if (place := _ptx_location(check, kernel)) else kernel.reason
    )
    yield _field_line("  code", kernel.code or NOT_MEASURED)
    yield from _labelled_lines("  ptxas", kernel.complaints)
    if kernel.advice:
        yield _field_line("  instead", kernel.advice)
    elif kernel.status == "failed" and check.output_folder is None:
        yield _field_line("  details", "to save the files of this kernel, pass --out DIR")


def _resources_text(log: ProcessLog, name: str, arrow: str) -> str:
    pruned, probed = (_resource(resources, name) for resources in (log.pruned, log.probed))
    change = f" ({probed - pruned:+})" if pruned is not None and probed is not None and probed != pruned else ""
    return f"{count(pruned)} {arrow} {count(probed)}{change}"


def _resource(resources: Resources | None, name: str) -> int | None:
    return getattr(resources, name) if resources else None


def _ptx_location(check: CheckResult, kernel: KernelCheck) -> str:
    """Return ``kernels.ptx, line 7``; the PTX of other images is named only where it stays on disk."""
    if check.file is None or not kernel.line:
        return ""
    if check.file.kind == "ptx":
        return f"{check.file.path}, line {kernel.line}"
    if check.output_folder is not None:
        return f"{kernel.directory / 'original.ptx'}, line {kernel.line}"
    return f"{check.file.path}, line {kernel.line} of its PTX"


def _image_name(check: CheckResult, kernel: KernelCheck) -> str:
    images = len(check.file.images) if check.file else 1
    return f", image {kernel.image} of {images}" if images > 1 else ""


def _labelled_lines(label: str, items: Sequence[str]) -> Iterator[str]:
    """Lines; the first has the label."""
    yield from (_field_line("" if index else label, item) for index, item in enumerate(items))


def _field_line(label: str, text: str) -> str:
    return f"{label:<11} {text}"


def check_json(check: CheckResult) -> str:
    """Return the JSON text. Registers and spills of what was not assembled are ``null``."""
    tool, file = check.assembler, check.file
    record = {
        "version": VERSION,
        "error": None,
        "probe": check.probe and _probe_record(check.probe),
        "image": file and {"path": str(file.path), "kind": file.kind, "bytes": file.size, "images": len(file.images)},
        "assembler": tool and {"path": str(tool.path), "version": tool.version},
        "totals": check_totals([kernel for kernel, _ in check.kernels]),
        "kernels": [_kernel_record(check, kernel, log) for kernel, log in check.kernels],
    }
    return dump_json(record, indent=1) + "\n"


def error_json(reason: str) -> str:
    """Return the JSON text of a check without kernels, for a reason."""
    empty_fields: dict[str, Any] = {"probe": None, "image": None, "assembler": None, "totals": None, "kernels": []}
    return dump_json({"version": VERSION, "error": reason} | empty_fields, indent=1) + "\n"


def _probe_record(probe: Probe) -> dict[str, Any]:
    description = probe.about
    return {
        "name": probe.name,
        "path": str(probe.path),
        "title": description.title,
        "measures": description.measures,
        "unit": description.unit,
        "maps": [_map_record(own_map) for own_map in probe.maps],
        "doubts": suspicious_positions(probe.positions),
    }


def _map_record(probe_map: Map) -> dict[str, Any]:
    return {
        "name": probe_map.name,
        "level": probe_map.level.name.lower(),
        "record_bytes": probe_map.record_bytes,
        "cap": probe_map.cap,
        "fields": [
            {"name": map_field.name, "type": map_field.type, "offset": map_field.offset}
            for map_field in probe_map.fields
        ],
    }


def _kernel_record(check: CheckResult, kernel: KernelCheck, log: ProcessLog) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "demangled": demangle(kernel.name),
        "status": kernel.status,
        "way": kernel.mode,
        "arch": kernel.arch,
        "image": kernel.image,
        "reason": kernel.reason or None,
        "reason_code": kernel.code,
        "line": kernel.line or None,
        "assembler_errors": list(kernel.complaints),
        "instead": kernel.advice or None,
        "note": kernel.note or None,
        "registers_pruned": _resource(log.pruned, "registers"),
        "registers_probed": _resource(log.probed, "registers"),
        "spills_pruned": _resource(log.pruned, "spill_bytes"),
        "spills_probed": _resource(log.probed, "spill_bytes"),
        "instructions_added": kernel.added_instructions,
        "matched": dict(kernel.match_counts),
        "directory": None if check.output_folder is None else str(kernel.directory),
        "target": kernel.target or None,
        "waits": kernel.waits and wait_record(kernel.waits),
    }


def wait_lines(waits: KernelWaits) -> Iterator[str]:
    """Yield totals, then a line per wait site."""
    if waits.reason is not None:
        yield f"  waits     {NOT_MEASURED} {waits.reason.sentence}"
        return
    in_loops = sum(site.depth > 0 for site in waits.sites)
    yield (
        f"  waits     at {count(len(waits.sites))} of {counted(waits.instructions, 'SASS instruction')}, "
        f"{count(in_loops)} of them in loops"
    )
    if waits.refusal is not None:
        yield f"  measured  no, -p stalls cannot measure these waits: {waits.refusal.sentence}"
    kinds = Counter(site.kind for site in waits.sites)
    yield f"  by class  {', '.join(f'{WAIT_CLASSES[kind]} {number}' for kind, number in kinds.most_common())}"
    yield from _aligned_lines([_HEADINGS, *(_site_cells(waits, site) for site in waits.sites)])
    if waits.spills:
        accesses = sum(len(line.offsets) for line in waits.spills)
        yield f"  stack     {counted(accesses, 'SASS instruction')} access the stack, e.g. spills"
        yield from _aligned_lines([_SPILL_HEADINGS, *map(_spill_cells, waits.spills)])


def _spill_cells(line: SpillLine) -> tuple[str, ...]:
    place = NOT_MEASURED if line.place is None else f"{PurePosixPath(line.place[0]).name}:{line.place[1]}"
    return place, str(line.loads), str(line.stores), str(line.bytes), str(line.depth)


def _site_cells(waits: KernelWaits, site: WaitSite) -> tuple[str, ...]:
    awaited = site.report_order(waits.lines or {})
    producers = [*awaited, *(producer for producer in site.producers if producer not in awaited)]
    texts = [_producer_text(waits, producer) for producer in producers[:_MAX_PRODUCERS]]
    if len(producers) > _MAX_PRODUCERS:
        texts.append(f"{len(producers) - _MAX_PRODUCERS} more")
    return (
        f"{site.offset:#06x}",
        waits.name(site),
        _line_text(waits, site),
        str(site.depth),
        WAIT_CLASSES[site.kind],
        ", ".join(texts) or NOT_MEASURED,
    )


def _producer_text(waits: KernelWaits, producer: Producer) -> str:
    """Return ``LDG 0x0b10 attn.py:49 (previous iteration)``."""
    line = _line_text(waits, producer)
    parts = [waits.name(producer), f"{producer.offset:#06x}", *([line] if line != NOT_MEASURED else [])]
    return " ".join(parts) + (" (previous iteration)" if producer.from_previous else "")


def _line_text(waits: KernelWaits, site: WaitSite | Producer) -> str:
    line = waits.line(site)
    return f"{PurePosixPath(line[0]).name}:{line[1]}" if line else NOT_MEASURED


def _aligned_lines(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        yield f"  {'  '.join(cells)}".rstrip()


def wait_record(waits: KernelWaits) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "reason": waits.reason and waits.reason.sentence,
        "not_measurable": waits.refusal and waits.refusal.sentence,
        "instructions": waits.instructions or None,
        "sites": [_site_record(waits, site) for site in waits.sites],
        "spills": [_spill_record(line) for line in waits.spills],
    }


def _spill_record(line: SpillLine) -> dict[str, Any]:
    file, number = line.place or (None, None)
    counts = {"loads": line.loads, "stores": line.stores, "bytes": line.bytes, "loops": line.depth}
    return {"file": file, "line": number, **counts, "offsets": list(line.offsets)}


def _site_record(waits: KernelWaits, site: WaitSite) -> dict[str, Any]:
    return {
        **_place_record(waits, site),
        "class": WAIT_CLASSES[site.kind],
        "scoreboards": list(site.barriers),
        "waits_itself": site.own_class is not None,
        "loop_depth": site.depth,
        "producers": [
            {
                **_place_record(waits, producer),
                "class": WAIT_CLASSES[producer.kind],
                "register_read": producer.is_read,
                "previous_iteration": producer.from_previous,
            }
            for producer in site.producers
        ],
    }


def _place_record(waits: KernelWaits, site: WaitSite | Producer) -> dict[str, Any]:
    file, line = waits.line(site) or (None, None)
    return {"offset": site.offset, "sass": waits.name(site), "file": file, "line": line}
