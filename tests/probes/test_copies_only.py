"""Results of kernels whose records are bulk copies only: boxes come from tensor maps in the launch's parameters."""

from __future__ import annotations

import hashlib
import json
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from tests.probes.dmat_files import as_bytes
from tests.trace.make import EPOCH_NS, TraceWriter, result_bytes
from tui_probe.cli.main import main
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import numbers_of
from tui_probe.probekit.measured import analyse_results
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe_results import read_result_row
from tui_probe.probes import gmem_bytes
from tui_probe.probes.dmat.accesses import WARP, accesses_of
from tui_probe.probes.dmat.boxes import read_boxes
from tui_probe.records import copied_boxes
from tui_probe.records.copied_boxes import LOST_COPIES_TEXT, ONLY_COPIES_TEXT, RECORD, read_copies
from tui_probe.trace.follow import open_trace
from tui_probe.trace.kernel_files import Offset
from tui_probe.verdicts.findings import launch_findings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.model import Trace

CAP, BLOCKS, WARPS = 24, 2, 2
START = 7_000_000_000_000


class Tensor(NamedTuple):
    """A tensor with a map, whose content is as good as any other."""

    address: int
    element: int
    kind: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    extra: str = "interleave 0"

    @property
    def content(self) -> bytes:
        return hashlib.sha512(repr(self).encode()).digest() * 2

    @property
    def line(self) -> str:
        dims, strides, box = (",".join(map(str, own)) for own in (self.sizes, self.strides, self.box))
        steps = ",".join("1" for _ in self.sizes)
        return (
            f"[tensor-map] cuTensorMapEncodeTiled 0 hash {hashlib.sha1(self.content).hexdigest()} address "
            f"{self.address:x} rank {len(self.sizes)} type {self.kind} dims {dims} strides {strides} box {box} "
            f"steps {steps} {self.extra} swizzle 0 promotion 0 fill 0"
        )

    def rows(self, corner: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        """The first byte and the bytes of each row of a box inside the tensor."""
        places = [
            [at for at in range(first, first + size) if 0 <= at < extent]
            for first, size, extent in zip(corner, self.box, self.sizes, strict=True)
        ]
        for outer in product(*places[1:]):
            if places[0]:
                start = self.address + places[0][0] * self.element
                start += sum(at * stride for at, stride in zip(outer, self.strides, strict=True))
                yield start, len(places[0]) * self.element


FLAT = Tensor(0x7F0000000000, 4, 7, (44, 20), (192,), (16, 8))
DEEP = Tensor(0x7F0000100010, 2, 6, (40, 6, 3), (80, 528), (16, 4, 2))
LOAD_FLAT, LOAD_DEEP, STORE_FLAT, SIZED, ELSEWHERE = 0x100, 0x200, 0x300, 0x400, 0x500
SITES = {
    LOAD_FLAT: ("UTMALDG.2D", {"load": True, "sized": False, "dimensions": 2, "map": {"parameter": 1, "offset": 64}}),
    LOAD_DEEP: ("UTMALDG.3D", {"load": True, "sized": False, "dimensions": 3, "map": {"parameter": 1, "offset": 192}}),
    STORE_FLAT: ("UTMASTG.2D", {"load": False, "sized": False, "dimensions": 2, "map": {"parameter": 1, "offset": 64}}),
    SIZED: ("UBLKCP.S.G", {"load": True, "sized": True, "dimensions": 0}),
    ELSEWHERE: ("UTMALDG.5D", {"load": True, "sized": False, "dimensions": 5}),
}
COPIES: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]] = {
    (0, 0): [(LOAD_FLAT, (x, y)) for x in (-5, 0, 16, 32) for y in (-3, 8, 16, 24)],
    (0, 1): [(STORE_FLAT, (0, 0)), (STORE_FLAT, (40, 16))],
    (1, 0): [(LOAD_DEEP, corner) for corner in ((0, 0, 0), (-3, 1, 2), (32, 3, -1), (5, 5, 1))],
    (1, 1): [(SIZED, (0x7F0000200000 & 0xFFFFFFFF, 0x7F00, 0xABCD0008))],
}
BASIC = [copy for copies in COPIES.values() for copy in copies]
TENSORS = {LOAD_FLAT: FLAT, LOAD_DEEP: DEEP, STORE_FLAT: FLAT}


def rows_of(site: int, corner: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(0x7F0000200000, 128)] if site == SIZED else list(TENSORS[site].rows(corner))


def total_bytes(*sites: int) -> int:
    return sum(size for site, corner in BASIC if site in sites for _, size in rows_of(site, corner))


def total_sectors(*sites: int) -> int:
    rows = (row for site, corner in BASIC if site in sites for row in rows_of(site, corner))
    return sum((start + size + 31) // 32 - start // 32 for start, size in rows)


LOADS, STORES = (LOAD_FLAT, LOAD_DEEP, SIZED), (STORE_FLAT,)


def recorded(copies: list[tuple[int, tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """The records of a warp's copies, 10 cycles apart."""
    records: list[tuple[int, ...]] = []
    for number, (site, values) in enumerate(copies, 1):
        operands = [value & 0xFFFFFFFF for value in values]
        records.append(((START + 10 * number) & 0xFFFFFFFF, site, *operands[:2]))
        if len(operands) > 2:
            records.append((operands[2], site | 1, *[*operands[3:], 0, 0][:2]))
    return records


def content_of(probe: str, copies: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]]) -> bytes:
    slots, attempts = np.zeros((BLOCKS, WARPS, CAP), RECORD), np.zeros((BLOCKS, WARPS, 1), "<u4")
    for (block, warp), own in copies.items():
        records = recorded(own)
        attempts[block, warp] = len(records)
        for place, record in enumerate(records[:CAP]):
            slots[block, warp, place] = record
    begun = np.zeros((BLOCKS, WARPS, 1), WARP)
    begun["start"], begun["time"] = START, EPOCH_NS
    maps, about = [(32, as_bytes(slots)), (32, as_bytes(attempts))], [(2, RECORD.itemsize, b""), (3, 4, b"")]
    if probe == "dmat":
        maps, about = [(32, as_bytes(begun)), *maps], [(1, WARP.itemsize, b"\xff"), *about]
    return result_bytes((BLOCKS, 1, 1), (32 * WARPS, 1, 1), maps, about=about)


def traced(
    folder: Path,
    probe: str,
    copies: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]] = COPIES,
    tensors: tuple[Tensor, ...] = (FLAT, DEEP),
) -> Trace:
    """A run with one launch; ``tensors`` have a line in the log."""
    writer = TraceWriter(folder / "trace")
    writer.start()
    writer.lines(*(tensor.line for tensor in tensors))
    kernel = writer.kernel(0, "gemm", ptxas=False, way="graft")
    sites = [
        {"offset": at, "at": "instruction", "points": ["copy"], "opcode": opcode, "class": "load", "type": "",
         "space": "global", "access": "copy", "copy": copy}
        for at, (opcode, copy) in SITES.items()
    ]  # fmt: skip
    own = {"probe": probe, "way": "graft", "sites": sites, "maps": {}, "unchecked": []}
    (kernel / "sites.json").write_text(json.dumps({"version": 1, "files": [], "probes": [own]}))
    own_maps = ["1,24"] * (probe == "dmat") + [f"1,{16 * CAP}", "1,4"]
    note = f"note {probe} records only the bulk copies of this kernel code graft-copies"
    lines = [
        "gemm",
        "2",
        str(len(own_maps)),
        *own_maps,
        f"callback {probe}",
        note,
        "way graft",
        "grafted 0 appended 64",
    ]
    (kernel / "kernel.info").write_text("\n".join(lines) + "\n")
    parameter = b"\1" * 64 + FLAT.content + DEEP.content
    number = writer.launch(0, (BLOCKS, 1, 1), (32 * WARPS, 1, 1))
    text = writer.log.read_text().replace("param 7f0000000000 10 ", f"param 7f0000000000 {parameter.hex()} ")
    writer.log.write_text(text)
    writer.save(0, number, content_of(probe, copies))
    writer.exit()
    return open_trace(writer.directory)


def result_of(trace: Trace) -> ProbeResult:
    kernel = trace.kernels[0]
    row = kernel.find_newest_result()
    assert row is not None
    return read_result_row(trace, kernel, row)


def analysis_of(trace: Trace) -> Any:
    (result,) = analyse_results(trace, trace.kernels[0])
    return result.analysis


def test_bytes_are_those_inside_the_tensors(tmp_path: Path) -> None:
    counted = analysis_of(traced(tmp_path, "gmem_bytes"))
    assert (counted.bulk_loaded, counted.bulk_stored) == (total_bytes(*LOADS), total_bytes(*STORES))
    assert total_bytes(*LOADS) > total_bytes(LOAD_FLAT) > total_bytes(*STORES) > 0
    assert (counted.tensor_loads, counted.tensor_stores, counted.threads_missing) == (0, 0, 0)
    assert (counted.loaded, counted.stored, counted.copied, counted.read, counted.written) == (None,) * 5


def test_sectors_are_those_of_the_rows(tmp_path: Path) -> None:
    counted = analysis_of(traced(tmp_path, "gmem_sectors"))
    assert (counted.bulk_load_sectors, counted.bulk_store_sectors) == (total_sectors(*LOADS), total_sectors(*STORES))
    assert (counted.bulk_copies, counted.unsized_copies) == (len(BASIC), 0)
    assert (counted.load_requests, counted.load_sectors, counted.sectors_per_load, counted.wasted_of_loads) == (
        None,
    ) * 4


def test_boxes_have_times_and_rows(tmp_path: Path) -> None:
    trace = traced(tmp_path, "dmat")
    table = analysis_of(trace)
    assert (table.accesses, table.kept, table.requests, table.sectors, table.footprint) == (None,) * 5
    assert (table.box_copies, table.box_bytes, table.unsized_copies) == (len(BASIC), total_bytes(*LOADS, *STORES), 0)
    kinds = {LOAD_FLAT: "bulk load", LOAD_DEEP: "bulk load", STORE_FLAT: "bulk store", SIZED: "bulk load"}
    assert {row.line: (row.text, row.bytes, row.sectors) for row in table.copies} == {
        site: (kind, total_bytes(site), total_sectors(site)) for site, kind in kinds.items()
    }
    assert all(isinstance(row.line, Offset) for row in table.copies)
    boxes = read_boxes(accesses_of(result_of(trace)))
    assert boxes is not None
    assert boxes.times.tolist() == [10 * number for own in COPIES.values() for number in range(1, len(own) + 1)]
    assert boxes.warps.tolist() == [2 * block + warp for (block, warp), own in COPIES.items() for _ in own]
    touched = sorted(address for _, addresses in boxes.points() for address in addresses.tolist())
    sectors = (
        (start // 32 + number) * 32
        for site, corner in BASIC
        for start, size in rows_of(site, corner)
        for number in range((start + size + 31) // 32 - start // 32)
    )
    assert [address // 32 * 32 for address in touched] == sorted(sectors)


@pytest.mark.parametrize("probe", ["dmat", "gmem_bytes", "gmem_sectors"])
def test_pages_show_what_is_not_recorded(probe: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = traced(tmp_path, probe)
    page = {"dmat": "dmat", "gmem_bytes": "memory", "gmem_sectors": "sectors"}[probe]
    assert main(["show", page, str(trace.directory)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert ("loads and stores not recorded" if probe == "dmat" else ONLY_COPIES_TEXT) in text
    assert main(["report", str(trace.directory)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    shown = {
        "dmat": "accesses –, requests –, sectors –, sectors per request –, bulk copies 23",
        "gmem_bytes": "read –, written –, by bulk loads 4 340 B, by bulk stores 576 B",
        "gmem_sectors": "store sectors –, sectors per store –, bulk copies 23, load sectors of bulk copies 165",
    }
    assert shown[probe] in text


@pytest.mark.parametrize("probe", ["dmat", "gmem_bytes", "gmem_sectors"])
def test_findings_have_the_bulk_copies(probe: str, tmp_path: Path) -> None:
    trace = traced(tmp_path, probe)
    findings = launch_findings(ViewSource(trace, trace.kernels[0]))
    assert findings is not None
    (finding,) = (own for own in findings.findings if ONLY_COPIES_TEXT in own.words)
    assert (
        numbers_of(finding.values)
        == {
            "dmat": {"copies": 23, "bytes": total_bytes(*LOADS, *STORES)},
            "gmem_bytes": {"bulk_loaded": total_bytes(*LOADS), "bulk_stored": total_bytes(*STORES)},
            "gmem_sectors": {"bulk_load_sectors": total_sectors(*LOADS), "bulk_store_sectors": total_sectors(*STORES)},
        }[probe]
    )


def test_maps_that_are_not_in_the_log_leave_sizes_unknown(tmp_path: Path) -> None:
    counted = analysis_of(traced(tmp_path, "gmem_bytes", tensors=(DEEP,)))
    assert (counted.tensor_loads, counted.tensor_stores) == (len(COPIES[0, 0]), len(COPIES[0, 1]))
    assert counted.bulk_loaded == total_bytes(LOAD_DEEP, SIZED)
    assert (counted.read, counted.written) == (None, None)


def test_maps_outside_of_parameters_leave_sizes_unknown(tmp_path: Path) -> None:
    copies = {**COPIES, (0, 1): [(ELSEWHERE, (1, 2, 3, 4, 5)), *COPIES[0, 1]]}
    counted = analysis_of(traced(tmp_path, "gmem_sectors", copies))
    assert (counted.bulk_copies, counted.unsized_copies) == (len(BASIC), 1)
    assert (counted.bulk_load_sectors, counted.bulk_store_sectors) == (None, None)


@pytest.mark.parametrize("extra", ["interleave 1", "interleave 2"])
def test_interleaved_boxes_have_no_known_size(extra: str, tmp_path: Path) -> None:
    own = FLAT._replace(extra=extra)
    line = own.line.replace(hashlib.sha1(own.content).hexdigest(), hashlib.sha1(FLAT.content).hexdigest())
    trace = traced(tmp_path, "gmem_bytes", tensors=(DEEP,))
    log = trace.directory / "event.log"
    log.write_text(log.read_text().replace(DEEP.line, f"{DEEP.line}\n{line}"))
    assert analysis_of(open_trace(trace.directory)).tensor_loads == len(COPIES[0, 0])


def test_replaced_address_is_that_of_the_boxes(tmp_path: Path) -> None:
    other = FLAT._replace(address=FLAT.address + (1 << 20))
    trace = traced(tmp_path, "dmat", tensors=(other, DEEP))
    before, after = (hashlib.sha1(own.content).hexdigest() for own in (other, FLAT))
    line = f"[tensor-map] cuTensorMapReplaceAddress 0 hash {after} of {before} address {FLAT.address:x}"
    log = trace.directory / "event.log"
    log.write_text(log.read_text().replace(DEEP.line, f"{DEEP.line}\n{line}"))
    table = analysis_of(open_trace(trace.directory))
    assert (table.box_bytes, table.unsized_copies) == (total_bytes(*LOADS, *STORES), 0)


def test_more_copies_than_records_leave_the_sums_unknown(tmp_path: Path) -> None:
    copies = {(0, 0): COPIES[0, 0], (1, 0): COPIES[1, 0] * 4}
    counted = analysis_of(traced(tmp_path, "gmem_bytes", copies))
    assert (counted.bulk_loaded, counted.bulk_stored) == (None, None)
    assert any(note.endswith(LOST_COPIES_TEXT) for note in gmem_bytes.notes(counted))
    table = analysis_of(traced(tmp_path / "dmat", "dmat", copies))
    assert table.box_copies == len(COPIES[0, 0]) + CAP // 2


def test_records_of_no_copy_are_refused(tmp_path: Path) -> None:
    trace = traced(tmp_path, "gmem_bytes", {(0, 0): [(0x700, (1, 2))]})
    of = result_of(trace)
    with pytest.raises(TraceError, match="0x700, which is not a bulk copy"):
        read_copies(of.result, of.kernel.folder, trace, of.launch)


def test_log_is_read_once_for_all_launches_of_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, reads = traced(tmp_path, "gmem_bytes"), []
    read = copied_boxes.read_tensor_maps
    monkeypatch.setattr(copied_boxes, "read_tensor_maps", lambda run: reads.append(run) or read(run))
    assert [analysis_of(trace).bulk_loaded for _ in range(3)] == [total_bytes(*LOADS)] * 3
    assert reads == [trace]
