"""Line measurements are the same from ``sites.json`` as from ``pruned.ptx``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.probes.specimens import add_specimen, ptx_probes, specimen_of
from tests.trace.make import TraceWriter
from tui_probe.engine.site_file import site_file
from tui_probe.errors import TraceError
from tui_probe.pages.code.line_measures import line_rows
from tui_probe.probekit.lines import LineRows
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.registry import probe_names_where
from tui_probe.probekit.shown_results import read_joined
from tui_probe.records.probed_sites import probed_sites
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts import findings
from tui_probe.verdicts.findings import ResultFindings, launch_findings

OTHERS = {"nan_check_birth", "stuck_warps"}
"""Probes whose specimen has no line, and those that are newer than ``sites.json`` and need it."""
ALL = [name for name in probe_names_where(lambda probe: probe.lines) if name in ptx_probes() and name not in OTHERS]


def recorded(tmp_path: Path, probe: str) -> tuple[ViewSource, Path]:
    """A launch of a probed kernel, and the kernel's folder with all that the engine writes but machine code."""
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    folder, probed = add_specimen(writer, 0, probe, tmp_path)
    (folder / "sites.json").write_text(site_file(probe, specimen_of(probe).kernel, probed.notes, b""))
    trace = open_trace(writer.directory)
    return ViewSource(trace, trace.kernels[0]), folder


def told(of: ViewSource) -> tuple[LineRows, ResultFindings | None]:
    findings._cache.clear()
    return line_rows(read_joined([of]))[1], launch_findings(of)


@pytest.mark.parametrize("probe", ALL)
def test_the_same_from_either_file(probe: str, tmp_path: Path) -> None:
    of, folder = recorded(tmp_path, probe)
    written = (folder / "sites.json").read_bytes()
    (folder / "sites.json").unlink()
    older = told(of)
    (folder / "pruned.ptx").unlink()
    neither = told(of) if probe != "inst_mix_by_line" else None
    (folder / "sites.json").write_bytes(written)
    assert told(of) == older
    assert older != neither
    assert older[0].rows


def test_damaged_file_is_reported(tmp_path: Path) -> None:
    of, folder = recorded(tmp_path, "nan_check")
    (folder / "sites.json").write_text("{}")
    with pytest.raises(TraceError, match=r"sites\.json: .*; delete this file to read pruned\.ptx instead"):
        line_rows(read_joined([of]))


def test_nothing_is_known_without_a_folder() -> None:
    known = probed_sites(None)
    assert (list(known.instructions()), list(known.unchecked()), list(known.blocks([3]))) == ([], [], [])
    assert (known.ptx_line(3), known.following(3)) == (None, None)
