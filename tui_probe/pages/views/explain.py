"""Page ``explain``: a walk through a trace, from its files and log to one result byte by byte."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import hang_line
from tui_probe.draw.view import Document
from tui_probe.errors import TraceError
from tui_probe.input_limits import LOG_LINE, PTX_TEXT
from tui_probe.pages.event_log import event_sentence
from tui_probe.probekit.measured import analyse_results, probe_name
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.trace.events import parse_line
from tui_probe.trace.locate import LOG, path_in_trace
from tui_probe.trace.plain_file import open_plain, read_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import Kernel, KernelFacts, Trace

EVENTS_PER_KIND: Final = 2
"""Lines of the log that are explained of each kind; the others are counted."""
MAX_ADDED_LINES: Final = 50_000
"""Lines of the log that are read: the page is made when it is opened, and a log may have millions."""
_HEADER_BYTES: Final = 32
_SECTION_BYTES: Final = 16
"""Bytes of the header of a result file, and of each section: see ``trace/launch_shape.py``."""
_FILES: Final = (
    ("probe.toml", "the probe of this run"),
    (LOG, "events of the hook, one line per event"),
    ("kernel", "one directory per prepared kernel"),
    ("result", "records of the probe, one file per saved launch; its name has the seconds since the start"),
    ("read.py", "a Python reader for this probe's result files"),
    ("run.json", "command, machine and outcome of the run"),
    ("stdout.log", "standard output of the program"),
    ("stderr.log", "standard error of the program"),
    ("tensor.trace", "tensors named by the program"),
)
_KERNEL_FILES: Final = (
    ("original.bin", "the image that the program loaded"),
    ("original.ptx", "all PTX of the image"),
    ("pruned.ptx", "only the PTX of this kernel"),
    ("probed.ptx", "the pruned PTX with the probe"),
    ("pruned.bin", "pruned.ptx, assembled"),
    ("probed.bin", "probed.ptx, assembled and launched"),
    ("kernel.info", "kernel information for the hook"),
    ("process.log", "log of the preparation, with the assembler's output"),
)
_MAX_CELLS: Final = 120
"""Cells of a line, which are wrapped when the page is opened: its text reads files."""
_PARAGRAPH: Final = "  "


def walk_lines(trace: Trace, cells: int, kernel: KernelFacts | None = None) -> Iterator[str]:
    """Yield the walk as lines of at most ``cells`` cells. Without a ``kernel`` the first with a result is taken."""
    selected = kernel or _best_kernel(trace)
    for title, lines in (
        ("The files of the trace", _file_section(trace)),
        ("event.log in words", _log_section(trace)),
        ("A kernel, before and after", _kernel_section(selected)),
        ("Layout of a result file", _result_section(trace, selected)),
        ("Reader and analysis of the result", _analysis_section(trace, selected)),
    ):
        yield title
        for line in lines:
            yield from hang_line(f"  {line}", cells)
        yield ""


def _file_section(trace: Trace) -> Iterator[str]:
    for name, purpose in _FILES:
        path = path_in_trace(trace.directory, name)
        if path is not None and path.is_dir():
            yield f"{name + '/':<14}{purpose} ({units.counted(sum(1 for _ in path.iterdir()), 'entry')})"
        else:
            size = units.size(path.stat().st_size) if path is not None and path.is_file() else "not in this trace"
            yield f"{name:<14}{purpose} ({size})"


def _log_section(trace: Trace) -> Iterator[str]:
    path = trace.file(LOG)
    counts: Counter[str] = Counter()
    if path is None:
        return
    with open_plain(path) as file:
        for line in islice(iter(lambda: file.readline(LOG_LINE.maximum), b""), MAX_ADDED_LINES):
            event = parse_line(line.rstrip(b"\n"))
            sentence = event_sentence(event)
            kind = type(event).__name__ if sentence else "others"
            counts[kind] += 1
            if sentence and counts[kind] <= EVENTS_PER_KIND:
                yield printable(line.rstrip(b"\n"))
                yield f"    → {printable(sentence)}"
        has_more = bool(file.readline())
    explained_count = sum(min(count, EVENTS_PER_KIND) for kind, count in counts.items() if kind != "others")
    rest_text = units.counted(sum(counts.values()) - explained_count, "more line") + (" or more" if has_more else "")
    yield f"for {rest_text}, see the page event.log"


def _kernel_section(kernel: KernelFacts | None) -> Iterator[str]:
    if kernel is None:
        yield "no kernel was prepared"
        return
    yield f"#{kernel.index} {printable(kernel.demangled)}: {kernel.status}"
    for name, purpose in _KERNEL_FILES:
        if (path := kernel.file(name)) is not None:
            yield f"{name:<14}{purpose} ({units.size(path.stat().st_size)})"
    if (info := kernel.read_info()) is not None:
        yield f"kernel.info: {units.counted(info.parameters, 'parameter')}, {units.counted(len(info.maps), 'map')}"
        for number, map_info in enumerate(info.maps):
            size = "any number of bytes" if map_info.size < 0 else units.counted(map_info.size, "byte")
            yield f"  map {number}: {size} per {map_info.level}"
    yield from _added_lines(kernel)
    if kernel.registers_pruned is not None and kernel.registers_probed is not None:
        yield f"registers per thread: {kernel.registers_pruned} without and {kernel.registers_probed} with the probe"


def _added_lines(kernel: KernelFacts) -> Iterator[str]:
    """Count the lines that only the probed text has: both are compared as multisets, since the probe moves no line."""
    pruned_path, probed_path = kernel.file("pruned.ptx"), kernel.file("probed.ptx")
    if pruned_path is None or probed_path is None:
        return
    pruned_lines, probed_lines = _text_lines(pruned_path), _text_lines(probed_path)
    added_lines = list((Counter(probed_lines) - Counter(pruned_lines)).elements())
    parameters = sum(".param" in line and ".entry" not in line and line.startswith(".param") for line in added_lines)
    added_text = f"{units.counted(len(added_lines), 'line')} more than pruned.ptx"
    yield f"probed.ptx has {added_text}, including {units.counted(parameters, 'parameter')} (marked on the page Diff)"


def _text_lines(path: Path) -> list[str]:
    return [line.strip() for line in read_start(path, PTX_TEXT).decode("utf-8", "replace").splitlines()]


def _result_section(trace: Trace, kernel: KernelFacts | None) -> Iterator[str]:
    row = None if kernel is None else kernel.find_newest_result()
    path = None if row is None else trace.results.path(row)
    if kernel is None or path is None:
        yield "no result was saved"
        return
    try:
        result = kernel.read_result_file(path)
    except TraceError as error:
        yield printable(str(error))
        return
    header = result.header
    yield f"result/{path.name}, {units.counted(path.stat().st_size, 'byte')}, little-endian"
    grid, block = units.extent(header.grid), units.extent(header.block)
    text = f"grid {grid}, block {block}, shared memory {header.shared}, {units.counted(header.maps, 'map')}"
    yield f"0       8 numbers of 4 bytes: {text}"
    for number, section in enumerate(result.sections):
        position, slots = _HEADER_BYTES + _SECTION_BYTES * number, header.blocks * header.slots(section.level)
        if not section.slot_bytes:
            yield f"{position:<8}map {number}: no slots here; the reduced records of this map follow after all maps"
            continue
        slot_text = f"{section.slot_bytes} bytes per {section.level}"
        yield f"{position:<8}map {number}: {slot_text}, starting at byte {section.offset}"
        yield f"{section.offset:<8}{units.counted(slots, 'slot')} of this map, block by block"
    if result.dialect == "older":
        yield "sections in the layout of older systems: 8 bytes for the size of all slots, 8 bytes for their offset"


def _analysis_section(trace: Trace, kernel: KernelFacts | None) -> Iterator[str]:
    if kernel is None:
        yield "no result was saved"
        return
    if trace.file("read.py") is not None:
        yield "read.py: header, sections, records = parse(FILE); records[MAP][block][slot][record].FIELD"
    yield f"probe: {printable(probe_name(kernel))}"
    for result in analyse_results(trace, kernel, max_results=EVENTS_PER_KIND):
        yield f"{result.label}: {result.words}"


def _best_kernel(trace: Trace) -> Kernel | None:
    """Return the first kernel with a result, else the first that was prepared."""
    kernels = list(trace.kernels)
    with_results = (kernel for kernel in kernels if kernel.result_rows)
    return next(with_results, next((kernel for kernel in kernels if kernel.folder is not None), None))


class TraceWalk(Document):
    """Titles, and indented lines below each."""

    def __init__(self, title: str, text: Sequence[str]) -> None:
        self.title = title
        self.text = text

    def lines(self, width: int) -> Sequence[Line]:
        """Return titles highlighted, all other lines plain."""
        del width
        return [((line, "" if line.startswith(_PARAGRAPH) else "title"),) for line in self.text]

    def anchors(self, width: int) -> Sequence[int]:
        """Return the lines of titles."""
        del width
        return [number for number, line in enumerate(self.text) if line and not line.startswith(_PARAGRAPH)]

    def anchor_noun(self) -> str:
        return "part"

    def record(self) -> dict[str, Any]:
        """Return the lines by title."""
        return {"parts": self._parts()}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per line."""
        yield "part", "text"
        for part in self._parts():
            for line in part["lines"]:
                yield part["title"], line

    def _parts(self) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for line in self.text:
            if not line.startswith(_PARAGRAPH) and line:
                parts.append({"title": line, "lines": []})
            elif line:
                parts[-1]["lines"].append(line.strip())
        return parts


def _unavailable_reason(source: ViewSource) -> str | None:
    return None if source.kernel.folder is not None else "the trace has no files of this kernel"


def _open_view(source: ViewSource, progress: Progress) -> TraceWalk:
    progress(0.0)
    text = list(walk_lines(source.trace, _MAX_CELLS, source.kernel))
    return TraceWalk(f"The trace of {source.kernel.demangled}", text)


KIND: Final = ViewKind(
    "explain",
    "Explain",
    "a tour of the trace: files, log, kernel, results",
    _unavailable_reason,
    _open_view,
    explanation=(
        "A tour from the files of a trace to the values: the purpose of each file, the meaning of lines in"
        " event.log, the code that the probe added to this kernel. At the end, the tour shows the layout of a result"
        " file of this kernel, and the values of the analysis.",
    ),
    order=99,
    short_title="Explain",
)
