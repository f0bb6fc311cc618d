"""What ``tui-probe check`` found, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_probe.draw.printable import dump_json
from tui_probe.draw.units import NOT_MEASURED, count, counted, size
from tui_probe.pages.check_totals import MOST_ALONE, WAYS, group_lines, totals, totals_line
from tui_probe.probe_files.catalogue import describe
from tui_probe.probe_files.doubts import doubts
from tui_probe.trace.demangle import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.engine.checking import KernelCheck
    from tui_probe.engine.kernel_file import KernelFile
    from tui_probe.engine.model import Map, Probe
    from tui_probe.engine.toolchain import Tool
    from tui_probe.trace.kernels import ProcessLog, Resources

VERSION = 1
"""Of the JSON; it rises when a key changes its meaning or goes."""

_NO_ASSEMBLER = "no ptxas found: nothing is assembled, so registers and spills are unknown"
_VERIFIED = "it writes only its own registers and maps, and stays within its snippets"


@dataclass(frozen=True)
class Check:
    """All that was found. ``out`` is where the kernels' folders stay, None if nowhere."""

    probe: Probe
    assembler: Tool | None
    file: KernelFile | None = None
    kernels: list[tuple[KernelCheck, ProcessLog]] = field(default_factory=list)
    out: Path | None = None

    @property
    def all_well(self) -> bool:
        return all(kernel.status == "ok" for kernel, _ in self.kernels)


def check_text(check: Check, arrow: str) -> str:
    """For a person: the probe, then each kernel or, of many, what they have in common. ``arrow`` stands between before
    and after.
    """
    lines = list(_head(check))
    if len(check.kernels) > MOST_ALONE:
        lines += ["", *group_lines(check.kernels, arrow)]
    else:
        for kernel, log in check.kernels:
            lines += ["", *_kernel(check, kernel, log, arrow)]
    if check.kernels:
        lines += ["", totals_line([kernel for kernel, _ in check.kernels])]
    return "\n".join(lines) + "\n"


def _head(check: Check) -> Iterator[str]:
    entry = describe(check.probe)
    yield _field("probe", f"{entry.name}: {entry.title}" if entry.title else entry.name)
    yield from _listed("keeps", entry.records)
    yield from _listed("runs", entry.places)
    yield _field("verified", _VERIFIED)
    yield from _listed("doubtful", doubts(check.probe))
    if check.file is not None:
        file = check.file
        images = f" in {counted(len(file.images), 'image')}" if len(file.images) > 1 else ""
        yield _field("file", f"{file.path}: {size(file.size)} of {file.kind}{images}, {file.held()}")
        tool = check.assembler
        yield _field("assembler", f"ptxas {tool.version}, {tool.path}" if tool else _NO_ASSEMBLER)


def _kernel(check: Check, kernel: KernelCheck, log: ProcessLog, arrow: str) -> Iterator[str]:
    yield f"{kernel.name}: {kernel.status}, for {kernel.arch}, in its {WAYS[kernel.way]}{_of_images(check, kernel)}"
    if (readable := demangle(kernel.name)) != kernel.name:
        yield _field("  is", readable)
    if kernel.target != kernel.arch:
        compiled = f"compiled for {kernel.arch}, as by the driver of such a GPU"
        runs = f"{kernel.arch} runs it too"
        yield _field("  target", f"{kernel.target}; {compiled if kernel.way == 'ptx' else runs}")
    if kernel.status == "ok":
        if log.pruned or log.probed:
            yield _field("  registers", _before_and_after(log, "registers", arrow))
            yield _field("  spills", f"{_before_and_after(log, 'spill_bytes', arrow)} bytes")
        yield _field("  added", counted(kernel.added or 0, "instruction"))
        yield from _listed("  matched", [f"{name}: {count(number)}" for name, number in kernel.matched])
        if kernel.note:
            yield _field("  note", kernel.note)
    else:
        yield _field("  reason", f"{place}: {kernel.reason}" if (place := _place(check, kernel)) else kernel.reason)
        yield _field("  code", kernel.code or NOT_MEASURED)
        yield from _listed("  ptxas", kernel.said)
        if kernel.instead:
            yield _field("  instead", kernel.instead)
        elif kernel.status == "failed" and check.out is None:
            yield _field("  look", "at its files, which --out DIR keeps")
    if check.out is not None:
        yield _field("  files", str(kernel.directory))


def _before_and_after(log: ProcessLog, name: str, arrow: str) -> str:
    before, after = (_number(resources, name) for resources in (log.pruned, log.probed))
    change = f" ({after - before:+})" if before is not None and after is not None and after != before else ""
    return f"{count(before)} {arrow} {count(after)}{change}"


def _number(resources: Resources | None, name: str) -> int | None:
    return getattr(resources, name) if resources else None


def _place(check: Check, kernel: KernelCheck) -> str:
    """``kernels.ptx, line 7``; the PTX of other images is named only where it stays on disk."""
    if check.file is None or not kernel.line:
        return ""
    if check.file.kind == "ptx":
        return f"{check.file.path}, line {kernel.line}"
    if check.out is not None:
        return f"{kernel.directory / 'original.ptx'}, line {kernel.line}"
    return f"{check.file.path}, line {kernel.line} of its PTX"


def _of_images(check: Check, kernel: KernelCheck) -> str:
    images = len(check.file.images) if check.file else 1
    return f", of image {kernel.image} of {images}" if images > 1 else ""


def _listed(label: str, items: Sequence[str]) -> Iterator[str]:
    """Lines of which the first has the label."""
    yield from (_field("" if index else label, item) for index, item in enumerate(items))


def _field(label: str, words: str) -> str:
    return f"{label:<11} {words}"


def check_json(check: Check) -> str:
    """For a program. What was not assembled has ``null`` for its registers and spills."""
    tool, file = check.assembler, check.file
    record = {
        "version": VERSION,
        "error": None,
        "probe": _probe_record(check.probe),
        "image": file and {"path": str(file.path), "kind": file.kind, "bytes": file.size, "images": len(file.images)},
        "assembler": tool and {"path": str(tool.path), "version": tool.version},
        "totals": totals([kernel for kernel, _ in check.kernels]),
        "kernels": [_kernel_record(check, kernel, log) for kernel, log in check.kernels],
    }
    return dump_json(record, indent=1) + "\n"


def error_json(reason: str) -> str:
    """The same where there is nothing to tell but why."""
    empty: dict[str, Any] = {"probe": None, "image": None, "assembler": None, "totals": None, "kernels": []}
    return dump_json({"version": VERSION, "error": reason} | empty, indent=1) + "\n"


def _probe_record(probe: Probe) -> dict[str, Any]:
    about = probe.about
    return {
        "name": probe.name,
        "path": str(probe.path),
        "title": about.title,
        "measures": about.measures,
        "unit": about.unit,
        "maps": [_map_record(own_map) for own_map in probe.maps],
        "doubts": doubts(probe),
    }


def _map_record(own_map: Map) -> dict[str, Any]:
    return {
        "name": own_map.name,
        "level": own_map.level.name.lower(),
        "record_bytes": own_map.record_bytes,
        "cap": own_map.cap,
        "fields": [{"name": one.name, "type": one.type, "offset": one.offset} for one in own_map.fields],
    }


def _kernel_record(check: Check, kernel: KernelCheck, log: ProcessLog) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "demangled": demangle(kernel.name),
        "status": kernel.status,
        "way": kernel.way,
        "arch": kernel.arch,
        "image": kernel.image,
        "reason": kernel.reason or None,
        "reason_code": kernel.code,
        "line": kernel.line or None,
        "assembler_errors": list(kernel.said),
        "instead": kernel.instead or None,
        "note": kernel.note or None,
        "registers_pruned": _number(log.pruned, "registers"),
        "registers_probed": _number(log.probed, "registers"),
        "spills_pruned": _number(log.pruned, "spill_bytes"),
        "spills_probed": _number(log.probed, "spill_bytes"),
        "instructions_added": kernel.added,
        "matched": dict(kernel.matched),
        "directory": None if check.out is None else str(kernel.directory),
        "target": kernel.target or None,
    }
