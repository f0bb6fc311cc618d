"""The page of a kernel: what matters is above its name in full, however long that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trace.make import TraceWriter
from tui_probe.draw.spans import plain
from tui_probe.pages.kernel_detail import detail_lines
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.kernel_snapshot import kernel_snapshot

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("cells", [78, 118, 198])
def test_a_long_name_does_not_hide_why_a_kernel_was_not_probed(tmp_path: Path, cells: int) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    name = "_Z" + "4fill" * 800
    writer.kernel(0, name, "skipped", reason="no PTX in image")
    trace = open_trace(writer.directory)
    text = [plain(line) for line in detail_lines(kernel_snapshot(trace.kernels[0], trace.state.device), cells)]
    assert any("no PTX in image" in line for line in text[:6])
    assert "…" in text[1]
    value = "".join(line[17:].strip() for line in text[text.index(next(x for x in text if "full name" in x)) :])
    assert name in value


def test_machine_code_probe_is_reported(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "from_ptx", way="ptx")
    writer.kernel(1, "grafted", way="graft")
    trace = open_trace(writer.directory)
    texts = [
        "\n".join(plain(line) for line in detail_lines(kernel_snapshot(kernel, trace.state.device), 100))
        for kernel in trace.kernels
    ]
    assert ["in SASS (graft)" in text for text in texts] == [False, True]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([(10.0, 15.0)], "1.50× (one pair of launches: 10.0 µs original, 15.0 µs probed)"),
        (
            [(10.0, 12.0), (12.0, 12.0), (11.0, 15.0)],
            "1.20× (median ratio of 3 pairs of launches; median times: 11.0 µs original, 12.0 µs probed)",
        ),
    ],
)
def test_a_slowdown_says_which_times_it_is_of(tmp_path: Path, pairs: list[tuple[float, float]], words: str) -> None:
    """The median of 1.2, 1 and 1.36 is not the ratio of the median times, 1.09."""
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "copy")
    for original, probed in pairs:
        writer.benchmark(0, writer.launch(0), original=original / 1e3, probed=probed / 1e3)
    trace = open_trace(writer.directory)
    lines = [plain(line) for line in detail_lines(kernel_snapshot(trace.kernels[0], trace.state.device), 118)]
    assert f" slowdown        {words}" in lines
