"""Accesses of the bundled example on the simulated GPU, seen through the view."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tui_probe.draw.spans import plain
from tui_probe.draw.view import no_progress
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes.dmat import DMAT
from tui_probe.probes.dmat.view import Dmat
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace

from .conftest import EXAMPLE, Tool


@pytest.fixture(scope="module", params=["dmat", "dmat_compact"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, natives: Path) -> Trace:
    tool = Tool(tmp_path_factory.mktemp("dmat"), natives)
    result, directory = tool.run(EXAMPLE, "-p", request.param)
    assert result.returncode == 0, result.stderr
    return open_trace(directory)


def seen(trace: Trace, name: str, *commands: str) -> tuple[Dmat, list[str]]:
    """The view of a kernel after some commands, and its picture."""
    (kernel,) = (kernel for kernel in trace.kernels if kernel.name == name)
    source = ViewSource(trace, kernel)
    assert DMAT.missing_reason(source) is None
    view = DMAT.open(source, no_progress)
    assert isinstance(view, Dmat)
    for command in (*commands, ""):
        for _ in range(2):
            if (work := view.prepare(100, 30)) is not None:
                work()
        view.press(command)
    return view, [plain(line) for line in view.draw(100, 30)]


def picture(lines: list[str]) -> str:
    """Return the content of the plot, which is right of its axis."""
    left = lines[1].index("┤") + 1
    return "".join(line[left:] for line in lines[1:-6])


@pytest.mark.parametrize(("name", "sectors", "tenths"), [("coalesced_store", "4", "0"), ("strided_store", "8", "5")])
def test_the_strided_access_is_seen(trace: Trace, name: str, sectors: str, tenths: str) -> None:
    """In tenths of sectors that are wasted; compact records do not tell how many bytes were asked for."""
    view, lines = seen(trace, name, "colour", "colour")
    assert set(picture(lines)) - {" "} == {sectors if view.map.accesses.is_compact else tenths}
    assert view.frame is not None
    assert view.frame.counts.sum() == view.map.accesses.total_accesses == 16_384
    assert f"{sectors}.0 sectors per request" in "".join(lines[-2:])
    assert "16 384 accesses" in lines[0]


def test_the_instruction_of_the_strided_access_is_named(trace: Trace) -> None:
    view, lines = seen(trace, "strided_store")
    if view.map.accesses.is_compact:
        assert "PTX" not in "".join(lines[-2:])
    else:
        assert re.search(r"st\.global\.u32 PTX:\d+ strided_store\.cu:\d+ ·", "".join(lines[-2:]))


def test_a_matrix_product_reads_two_matrices_and_writes_one(trace: Trace) -> None:
    view, _ = seen(trace, "matmul")
    sizes = {band.name: band.size for band in view.map.bands}
    assert sizes == dict.fromkeys(("param 0", "param 1", "param 2"), 128 * 128 * 4)
    loads, stores = 128 * 128 * 128 // 16, 128 * 128
    assert view.frame is not None
    assert by_band(view, view.frame.cell_counts) == {"param 0": stores, "param 1": loads, "param 2": loads}
    if not view.map.accesses.is_compact:
        view, _ = seen(trace, "matmul", "colour", "colour", "colour")
        assert view.frame is not None
        assert view.frame.loads is not None
        assert view.frame.stores is not None
        assert by_band(view, view.frame.loads) == {"param 0": 0, "param 1": loads, "param 2": loads}
        assert by_band(view, view.frame.stores) == {"param 0": stores, "param 1": 0, "param 2": 0}


def by_band(view: Dmat, counts: NDArray[np.int64]) -> dict[str, int]:
    """The sum of a picture's counts in each band."""
    assert view.frame is not None
    edges = np.cumsum([0, *(strip.rows for strip in view.frame.strips)]).tolist()
    names = [view.map.bands[strip.band].name for strip in view.frame.strips]
    return {name: int(counts[a:b].sum()) for name, (a, b) in zip(names, pairwise(edges), strict=True)}
