"""``run --watchdog``: three planted deadlocks in processes of one run, which are ended, with their last places."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, Tool

PROGRAM = ROOT / "tests" / "gpu" / "programs" / "deadlocks.py"
KINDS = ("mbarrier", "grid", "lock")
CAUSES = {"mbarrier": "mbarrier-count", "grid": "grid-does-not-fit", "lock": "lock-held-by-own-warp"}
LINES = {"mbarrier": 15, "grid": 27, "lock": 33}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> dict[str, dict[str, Any]]:
    """The JSON of the page ``stuck`` for each kind, of one run of three processes."""
    tool = Tool(tmp_path_factory.mktemp("watchdog"), natives)
    script = "".join(f"{sys.executable} {PROGRAM} {kind} & " for kind in KINDS) + "wait"
    done = tool("run", "--sim", "--no-check", "--no-report", "--watchdog", "400ms", "--", "sh", "-c", script)
    traces = sorted((tool.folder / "trace").iterdir())
    assert len(traces) == len(KINDS), done.stderr
    for trace in traces:
        log = (trace / "event.log").read_text()
        assert "[exec] probe-mem 0 (bytes)" in log, "a watched launch has no records of its own"
        assert log.rindex("[exec] save result/") < log.index("[stuck] ") < log.index("[exit] signal 15")
    shown = [tool("show", "stuck", str(trace), "--format", "json").stdout for trace in traces]
    documents = [json.loads(text) for text in shown]
    return {str(document["kernel"]["name"]): document["data"] for document in documents}


@pytest.mark.parametrize("kind", KINDS)
def test_planted_deadlock_has_its_cause_and_line(stuck: dict[str, dict[str, Any]], kind: str) -> None:
    record = stuck[kind]
    assert record["cause"]["key"] == CAUSES[kind]
    assert record["places"][0]["line"] == LINES[kind]
