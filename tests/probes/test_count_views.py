"""Bytes and sectors of launches as views, compared with what the probes saved."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.pages.timelines.drawing import golden_view, text_of
from tests.probes.test_report import Writer
from tui_probe.draw.view import no_progress
from tui_probe.pages.view_output import csv_of_view
from tui_probe.pages.views import kind_of
from tui_probe.probekit.page_kinds import ViewKind, ViewSource
from tui_probe.probekit.result_tables import CountTable
from tui_probe.probes import gmem_bytes
from tui_probe.probes.gmem_bytes import MEMORY
from tui_probe.probes.gmem_sectors import SECTORS
from tui_probe.probes.gmem_sectors import analysis as gmem_sectors
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    monkeypatch.chdir(tmp_path)
    writer = Writer(Path("t"))
    writer.start()
    writer.counting_kernel(0, "saxpy", "gmem_bytes", gmem_bytes.RECORD)
    writer.counts(0, gmem_bytes.RECORD, loaded=256, stored=128)
    writer.counts(0, gmem_bytes.RECORD, blocks=1, lost=3, loaded=2**40, copied=512, stored=16, bulk_stored=64)
    writer.counts(0, gmem_bytes.RECORD, loaded=64, tensor_loads=1)
    writer.counting_kernel(1, "_Z13strided_storePfi", "gmem_sectors", gmem_sectors.RECORD)
    requests = {"load_requests": 2, "load_sectors": 8, "store_requests": 2, "store_sectors": 16}
    writer.counts(1, gmem_sectors.RECORD, blocks=64, **requests)
    writer.save(1, writer.launch(1, (1, 1, 1), (40, 1, 1)), b"not a result")
    return open_trace(writer.directory)


def opened(kind: ViewKind, trace: Trace, kernel: int, launch: int | None = None) -> CountTable:
    chosen = None if launch is None else trace.launches[launch]
    source = ViewSource(trace, trace.kernels[kernel], chosen)
    assert kind.missing_reason(source) is None
    view = kind.open(source, no_progress)
    assert isinstance(view, CountTable)
    return view


@pytest.mark.parametrize(("kind", "kernel"), [(MEMORY, 0), (SECTORS, 1)], ids=["memory", "sectors"])
def test_goldens(trace: Trace, kind: ViewKind, kernel: int) -> None:
    golden_view(kind.name, opened(kind, trace, kernel))


def test_the_strided_store_touches_twice_the_sectors(trace: Trace) -> None:
    view = opened(SECTORS, trace, 1)
    text = "\n".join(text_of(view, (200, 50)))
    assert "a store touches 8.00 sectors on average" in text
    assert "a load touches 4.00 sectors on average" in text


def test_damaged_result_is_reported_with_the_others(trace: Trace) -> None:
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_of_view(opened(SECTORS, trace, 1))))))
    assert rows[0]["store_sectors"] == str(64 * 2 * 16)
    assert (rows[1]["store_sectors"], "truncated" in rows[1]["problem"]) == ("", True)


def test_unknown_counts_are_none(trace: Trace) -> None:
    launches = json.loads(json.dumps(opened(MEMORY, trace, 0).record()))["launches"]
    assert [launch["read"] for launch in launches] == [256 * 6, 2 * (2**40 + 512), None]
    assert launches[1]["threads_missing"] == 3


def test_single_launch(trace: Trace) -> None:
    assert [launch["launch"] for launch in opened(MEMORY, trace, 0, 1).record()["launches"]] == [1]


def test_another_probe_is_named(trace: Trace) -> None:
    missing = kind_of("sectors").missing_reason(ViewSource(trace, trace.kernels[0]))
    assert missing == "the kernel was probed with gmem_bytes: run with -p gmem_sectors_by_line or -p gmem_sectors"
