"""``run --watchdog``: five planted deadlocks in processes of one run, which are ended, with their last places."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, Tool

PROGRAM = ROOT / "tests" / "gpu" / "programs" / "deadlocks.py"
RANKS = PROGRAM.with_name("ranks.py")
KINDS = ("mbarrier", "grid", "lock", "count", "leak")
CAUSES = {
    "mbarrier": "mbarrier-count", "grid": "grid-does-not-fit", "lock": "lock-held-by-own-warp",
    "count": "value-not-reached", "leak": "lock-not-free",
}  # fmt: skip
LINES = {"mbarrier": 15, "grid": 27, "lock": 33, "count": 43, "leak": 52}
VALUES = {"count": 4, "leak": 1}
"""Values that the warps of the first place read."""


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
    chosen = ("-k", "|".join(KINDS), "--format", "json")
    shown = [tool("show", "stuck", str(trace), *chosen).stdout for trace in traces]
    documents = [json.loads(text) for text in shown]
    return {str(document["kernel"]["name"]): document["data"] for document in documents}


@pytest.mark.parametrize("kind", KINDS)
def test_planted_deadlock_has_its_cause_and_line(stuck: dict[str, dict[str, Any]], kind: str) -> None:
    record = stuck[kind]
    assert record["cause"]["key"] == CAUSES[kind]
    assert record["places"][0]["line"] == LINES[kind]
    if kind in VALUES:
        assert {warp["value"] for warp in record["warps"] if warp["address"]} == {VALUES[kind]}


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> Tool:
    """A run of three ranks: two of them wait for the third."""
    tool = Tool(tmp_path_factory.mktemp("ranks"), natives)
    script = "".join(f"RANK={rank} WORLD_SIZE=3 {sys.executable} {RANKS} & " for rank in range(3)) + "wait"
    options = ("--sim", "--no-check", "--no-report", "--watchdog", "400ms", "--name", "ranks")
    tool("run", *options, "--", "sh", "-c", script)
    return tool


def test_ranks_of_a_run_are_one_page(ranks: Tool) -> None:
    document = json.loads(ranks("show", "stuck", "ranks", "--format", "json").stdout)
    assert document["cause"]["key"] == "rank-missing"
    assert document["cause"]["missing"] == [2]
    rows = document["stuck"]
    assert [(row["rank"], row["stuck"], row["kernel"], row["launch"]) for row in rows] == [
        (0, True, "all_reduce", 2), (1, True, "all_reduce", 2), (2, False, None, None),
    ]  # fmt: skip
    assert [row["launches"] for row in rows] == [{"all_reduce": 1, "step": 2}] * 2 + [{"step": 2}]
    assert rows[0]["waits_for"].startswith("flag 0x")
    assert rows[2]["place"] == "not stuck: ended with status 3, last launch 1 of step"


def test_rank_that_has_not_arrived_is_named(ranks: Tool) -> None:
    text = " ".join(ranks("show", "stuck", "--width", "160").stdout.split())
    assert "most likely: rank 2 has not arrived: ranks 0-1 wait in all_reduce (its launch 1 in each process)" in text
    assert text.count("ld.acquire.sys.global.u32") == 2
    own_page = ranks("show", "stuck", "-k", "all_reduce").stdout
    assert "launch 2 of #1 all_reduce: 2 warps on the GPU" in own_page
