"""Findings of faults that the simulated GPU's checks found, with instruction, block, thread and value."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.input_limits import PTX_TEXT, parse_json
from tui_probe.probekit.finding import Finding, place
from tui_probe.trace.launch_shape import WARP_SIZE
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.source_lines import SourceLines, source_position
from tui_probe.verdicts.unended_launches import kernels_with_unended_launches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.model import KernelFacts, Trace
    from tui_probe.trace.source_lines import SourceLine

_LABELS: Final = {
    "out_of_bounds": "out of bounds",
    "use_after_free": "use after free",
    "misaligned": "misaligned",
    "uninitialized": "uninitialized",
    "race": "race",
    "divergent_barrier": "divergent barrier",
    "deadlock": "deadlock",
    "trap": "trap",
    "assertion": "assertion failed",
    "invalid_mbarrier": "invalid mbarrier",
    "invalid_mask": "invalid mask",
    "unchecked": "not checked",
}
_ACCESSES: Final = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic", "cp": "copy"}
"""Accesses by opcode, for a fault that ended the kernel before its access."""
_MASK_ADVICE: Final = "let all lanes of the mask execute the same instruction, or remove the other lanes from the mask"
_DEADLOCK_ADVICE: Final = (
    ("mbarrier", "count the arrivals per phase, initialize the mbarrier with this number, and check the awaited phase"),
    ("cluster", "let all threads of all blocks of the cluster arrive"),
    *((opcode, _MASK_ADVICE) for opcode in ("bar.warp", "shfl", "vote", "match", "redux", "elect")),
)
"""Fixes by parts of the opcode at which threads wait."""
_EXECUTED_LINE: Final = re.compile(r", line \d+(?=:)")
_ADVICE: Final = {
    "out_of_bounds": "compare the index with the size before the access",
    "use_after_free": "free the memory after the last kernel that uses it",
    "misaligned": "align the address to the size of the access, or access smaller elements",
    "uninitialized": "initialize the memory before the kernel reads it",
    "race": "order the two accesses: within a block, use a barrier; between blocks, use atomics or separate launches",
    "race with a copy": (
        "wait for the copy before the other access, with cp.async.wait_group or with the copy's mbarrier; if other"
        " threads access the bytes, add a barrier after this wait"
    ),
    "race within a warp": (
        "order the two accesses with __syncwarp (with __syncthreads if other warps access these bytes), or exchange the"
        " values with a shuffle"
    ),
    "divergent_barrier": "move the barrier to a place that all threads of the block reach",
    "deadlock": "make all participating threads reach the barrier",
    "trap": "check the condition before the trap; grid.sync() traps unless the launch is cooperative",
    "assertion": "check the values that the assertion compares",
    "invalid_mbarrier": (
        "let one thread initialize the mbarrier with the number of arrivals per phase, and let all threads meet at"
        " __syncthreads before they use the mbarrier"
    ),
    "invalid_mask": "pass a mask with exactly the lanes that execute the instruction",
    "unchecked": "report this as a defect of tui-probe; to run without checks, use run --no-check",
}


def simulator_findings(kernel: KernelFacts) -> Iterator[Finding]:
    """Yield the faults that checks found in launches of a kernel, in the order in which they were found.

    Faults of one kind in several instructions of a source line, as of an unrolled loop, are one finding.
    """
    by_place: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for text in kernel.trace.state.faults:
        fault = _parsed(text)
        if fault is not None and fault["kernel"] == kernel.name:
            by_place.setdefault(_place_key(kernel, fault), []).append(fault)
    for faults in by_place.values():
        counts = [fault["count"] for fault in faults if isinstance(fault.get("count"), int)]
        instructions = {_pruned_line(kernel, fault["place"]) for fault in faults}
        yield _finding(kernel, {**faults[0], "count": sum(counts) or None}, len(instructions))


def faulty_kernels(trace: Trace) -> frozenset[str]:
    """Return the names of kernels that have faults, or launches that did not end, in the log."""
    parsed = map(_parsed, trace.state.faults)
    unended = kernels_with_unended_launches(trace)
    names = [trace.kernels[index].name for index in unended if index < len(trace.kernels)]
    return frozenset([*names, *(str(fault["kernel"]) for fault in parsed if fault is not None and "kernel" in fault)])


def _place_key(kernel: KernelFacts, fault: dict[str, Any]) -> tuple[object, ...]:
    """Key of faults that are one finding: the kind, and the source lines of the accesses."""
    sites = (fault["place"], fault.get("other"))
    lines = [_pruned_line(kernel, site) if isinstance(site, dict) else None for site in sites]
    positions = (source_position(_source(kernel, line)) or line for line in lines)
    return (fault["kind"], fault.get("space"), *positions, *([] if lines[0] else [str(fault["place"])]))


@lru_cache(maxsize=256)
def _parsed(text: str) -> dict[str, Any] | None:
    """A fault as data; None if the log has something else."""
    try:
        fault = parse_json(text)
    except ValueError:
        return None
    is_fault = isinstance(fault, dict) and fault.get("kind") in _LABELS and isinstance(fault.get("place"), dict)
    return fault if is_fault else None


def _finding(kernel: KernelFacts, fault: dict[str, Any], instructions: int = 1) -> Finding:
    kind, site, other_site = fault["kind"], fault["place"], fault.get("other")
    line = _pruned_line(kernel, site)
    values = {
        "fault": kind,
        "space": fault.get("space") or None,
        "address": fault.get("address"),
        "bytes": fault.get("size"),
        "value": fault.get("value"),
        "accesses": fault.get("count"),
        "launch": _launch(fault),
        **_place_values("", kernel, site, line),
    }
    if isinstance(other_site, dict):
        values |= _place_values("other_", kernel, other_site, _pruned_line(kernel, other_site))
    access_text = _access_text(fault)
    launch = _launch(fault)
    here_text = _site_text(kernel, site, line, instructions) + (f", launch {launch}" if launch is not None else "")
    text = "; ".join(filter(None, (access_text, here_text, _conflict_text(kernel, other_site))))
    page = "ptx" if line else ""
    return Finding(
        kind, _LABELS[kind], printable(text), page=page, line=line, stands_out=True, values=values,
        advice=_advice(fault), brief=printable(f"{_LABELS[kind]}: {access_text}"), wrong_result=kind != "unchecked",
    )  # fmt: skip


def _advice(fault: dict[str, Any]) -> str:
    """The fix, by the kind of the fault, the accesses of a race, and the instruction at which threads wait."""
    kind, here, other = fault["kind"], fault["place"], fault.get("other")
    if kind == "deadlock":
        return next((fix for opcode, fix in _DEADLOCK_ADVICE if opcode in _opcode(here)), _ADVICE[kind])
    if kind == "out_of_bounds" and "is not in device memory" in str(fault.get("detail")):
        return "pass a pointer that cuMemAlloc or cudaMalloc returned"
    if kind == "race" and isinstance(other, dict):
        if "copy" in (here.get("access"), other.get("access")):
            return _ADVICE["race with a copy"]
        if _warp(here) is not None and _warp(here) == _warp(other):
            return _ADVICE["race within a warp"]
    return _ADVICE[kind]


def _warp(site: dict[str, Any]) -> tuple[str, int] | None:
    """The block of a thread and its warp there; None of threads that are not in the first row of their block."""
    block, thread = _coordinates(site.get("block")), site.get("thread")
    if block is None or _coordinates(thread) is None or not isinstance(thread, list) or any(thread[1:]):
        return None
    return block, int(thread[0]) // WARP_SIZE


def _launch(fault: dict[str, Any]) -> int | None:
    """Return the launch of the process in which a fault was found first; None if the log does not name it."""
    launch = fault.get("launch")
    return launch if isinstance(launch, int) and not isinstance(launch, bool) else None


def _place_values(prefix: str, kernel: KernelFacts, site: dict[str, Any], line: int | None) -> dict[str, Any]:
    return {
        f"{prefix}access": _access(site) or None,
        f"{prefix}line": line,
        f"{prefix}source": source_position(_source(kernel, line)) or None,
        f"{prefix}instruction": site.get("text"),
        f"{prefix}fault_block": _coordinates(site.get("block")),
        f"{prefix}fault_thread": _coordinates(site.get("thread")),
    }


def _access_text(fault: dict[str, Any]) -> str:
    """``store of 4 B to global memory, 8 bytes after an allocation of 4096 bytes at 0x7f00, value 0x1``."""
    access, size, space = _access(fault["place"]), fault.get("size"), fault.get("space")
    detail = str(fault.get("detail") or "")
    if fault["kind"] == "deadlock":  # its line is of the executed PTX, and its thread that of the finding
        detail = _EXECUTED_LINE.sub("", detail.removeprefix("deadlock at ")).partition(", one of them")[0]
    parts = [f"{access or 'access'} of {size} B in {space} memory" if size else "", detail]
    value = fault.get("value")
    parts.append(f"value {value}" if value is not None else "")
    count = fault.get("count")
    parts.append(f"{units.count(count)} accesses" if isinstance(count, int) and count > 1 else "")
    return ", ".join(filter(None, (str(part) for part in parts)))


def _access(site: dict[str, Any]) -> str:
    """``store``; "" if the instruction accesses no memory."""
    return str(site.get("access") or _ACCESSES.get(_opcode(site).partition(".")[0], ""))


def _opcode(site: dict[str, Any]) -> str:
    parts = str(site.get("text") or "").partition(";")[0].split()
    return next((word for word in parts if not word.startswith(("@", "{"))), "")


def _site_text(kernel: KernelFacts, site: dict[str, Any], line: int | None, instructions: int = 1) -> str:
    """``st.global.u32 PTX:32 copy.cu:4 (2 instructions), block (0, 0, 0), thread (3, 0, 0)``."""
    opcode = _opcode(site)
    position = place(line, _source(kernel, line), opcode) if line else _unresolved(site, opcode)
    if instructions > 1:
        position = f"{position} ({units.count(instructions)} instructions)"
    block, thread = _coordinates(site.get("block")), _coordinates(site.get("thread"))
    return ", ".join(filter(None, (position, f"block {block}" if block else "", f"thread {thread}" if thread else "")))


def _unresolved(site: dict[str, Any], opcode: str) -> str:
    """The line of the executed PTX; "" of a fault without an instruction."""
    number = site.get("ptx_line")
    return f"{opcode} line {number} of its PTX" if number else ""


def _conflict_text(kernel: KernelFacts, site: Any) -> str:
    if not isinstance(site, dict):
        return ""
    place = _site_text(kernel, site, _pruned_line(kernel, site))
    if site.get("access") == "waits":
        return f"another thread waits at {place}"
    if site.get("access") == "ends":
        return f"another thread ended without reaching this barrier; its last position is {place}"
    return f"conflicts with the {site.get('access')} at {place}"


def _coordinates(numbers: Any) -> str | None:
    return f"({', '.join(map(str, numbers))})" if isinstance(numbers, list) and len(numbers) == 3 else None


def _source(kernel: KernelFacts, line: int | None) -> SourceLine | None:
    return SourceLines.from_folder(kernel.folder).program_line(line) if line and kernel.folder else None


def _one_spaced(text: str) -> str:
    return " ".join(text.split())


def _pruned_line(kernel: KernelFacts, site: dict[str, Any]) -> int | None:
    """Return the line of ``pruned.ptx`` with the same text, after as many equal ones of its function; None without."""
    path, occurrence = kernel.file("pruned.ptx"), site.get("occurrence")
    text = _one_spaced(str(site.get("text") or ""))
    if path is None or path.stat().st_size > PTX_TEXT.maximum or not text or not isinstance(occurrence, int):
        return None
    lines = read_within(path, PTX_TEXT).decode("utf-8", "replace").split("\n")
    name = str(site.get("function"))
    start = next(
        (index for index, line in enumerate(lines) if name in line and (".entry" in line or ".func" in line)), 0
    )
    of_function = [(number, _one_spaced(line)) for number, line in enumerate(lines[start:], start + 1)]
    first_in_line = [number for number, line in of_function if line.startswith(text)]
    anywhere = [number for number, line in of_function for _ in range(line.count(text))]  # several in a line
    places = first_in_line if len(first_in_line) > occurrence else anywhere
    return places[occurrence] if occurrence < len(places) else None
