"""The pages of a measurement, against texts that were looked at."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.bandwidth.made_up import CARD, FLIGHTS, measured, swept, write_result
from tests.sizes import document_text, golden_widths
from tui_probe.bandwidth.rates import Bandwidth
from tui_probe.cli.main import main
from tui_probe.pages.bandwidth_page import open_bandwidth
from tui_probe.pages.view_output import csv_of_view, text_lines, view_lines
from tui_probe.verdicts.bandwidth import bytes_on_card, sweep_findings, sweep_from_rates

PAGES = ("bandwidth", "bars", "sweep")


@pytest.mark.parametrize("page", PAGES)
def test_pages_as_text(page: str) -> None:
    opened = open_bandwidth(measured(), "bw.json")
    (view,) = [opened_page.make() for opened_page in opened.pages if opened_page.name == page]
    golden_widths(f"{page}.txt", lambda width, ascii_only: document_text(view, width, ascii_only=ascii_only))


@pytest.mark.parametrize("page", PAGES)
def test_pages_as_data(page: str) -> None:
    (view,) = [
        opened_page.make() for opened_page in open_bandwidth(measured(), "bw.json").pages if opened_page.name == page
    ]
    record = view.record()
    assert json.loads(json.dumps(record, allow_nan=False))["device"]["name"] == CARD.name
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_of_view(view)))))
    assert len(rows) == (54 if page == "sweep" else 12)
    assert all(float(row["bytes_per_second"]) > 0 for row in rows)


def test_without_a_sweep_there_is_no_page_of_blocks() -> None:
    assert [page.name for page in open_bandwidth(measured(auto=False), "bw.json").pages] == ["bandwidth", "bars"]


def test_sweep_findings() -> None:
    sweep = sweep_from_rates(measured().swept)
    assert sweep is not None
    findings = list(sweep_findings(sweep, CARD))
    best = max(rate.bytes_per_second for rate in sweep.rates)
    assert findings[0].endswith(" with 33 blocks × 131 kB in flight")
    assert findings[1] == "few blocks: 1 block reaches 164 GB/s, 3.9% of the best"
    assert findings[2] == "one block per SM: 132 blocks reach 4.23 TB/s, 100% of the best"
    assert "contention costs up to 6% (" in findings[4]
    assert sweep.sufficient_rate.bytes_per_second >= 0.9 * best
    fewer = [rate for rate in sweep.rates if bytes_on_card(rate) < bytes_on_card(sweep.sufficient_rate)]
    assert fewer
    assert all(rate.bytes_per_second < 0.9 * best for rate in fewer)
    assert sweep.rate_for(1, FLIGHTS[0]) is not None
    assert sweep.rate_for(2, FLIGHTS[0]) is None


def test_a_sweep_of_one_says_little_and_nothing_wrong() -> None:
    sweep = sweep_from_rates([swept(4, 4096)])
    assert sweep is not None
    assert [line.partition(":")[0] for line in sweep_findings(sweep, None)] == [
        "best",
        "bytes in flight on the whole GPU",
    ]
    (page,) = open_bandwidth(Bandwidth(None, [swept(4, 4096)], [swept(4, 4096)]), "x").pages[2:]
    assert list(text_lines(view_lines(page.make(), 80, None)))


def test_opening_a_result_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_result(tmp_path / "bw.json")
    assert main(["open", str(path)]) == 0
    text = capsys.readouterr().out
    assert "caches: L2 delivers 7.40 TB/s, 1.61 × memory" in text
    assert "What do blocks share?" in text
    assert "bytes in flight on the whole GPU" in text, "the sweep too"
