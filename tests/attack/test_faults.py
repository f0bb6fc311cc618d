"""No matter which call of tui-probe fails, the program does not notice, and what is in the trace can be read.

Runs that start Python take three times as long as others, and those with graphs a second: an eighth of their places
fails here, all with ``--in-full``.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from tests.attack import fault_walk
from tests.attack.graph_scenarios import graph_scenarios
from tests.attack.scenarios import SCENARIOS
from tests.turns import is_due

if TYPE_CHECKING:
    from pathlib import Path

UNREACHED = 0.045
"""The share of places that no run may reach: `python -m tests.attack` names them."""
pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="calls are identified by machine code of x86-64"),
    pytest.mark.skipif(bool(fault_walk.missing()), reason=str(fault_walk.missing())),
]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> fault_walk.Tools:
    """To compile them takes 0.7 s."""
    return fault_walk.tools(tmp_path_factory.mktemp("tools"))


def test_the_first_call_at_each_place_fails(tools: fault_walk.Tools, tmp_path: Path) -> None:
    walk = fault_walk.Walk(is_due=is_due)
    for scenario in SCENARIOS:
        walk.go(tools, scenario, tmp_path / scenario.name, [1])
    assert not walk.complaints, "\n".join(walk.complaints)
    listed = fault_walk.listed(tools.built.hook, with_graphs=False)
    unreached = sorted(listed - walk.met - walk.behind)
    assert len(unreached) <= UNREACHED * len(listed), "\n".join(unreached)


def test_the_first_call_at_each_place_of_graphs_fails(tools: fault_walk.Tools, tmp_path: Path) -> None:
    walk = fault_walk.Walk(files=fault_walk.OF_GRAPHS, is_due=is_due)
    with graph_scenarios(tmp_path / "programs") as scenarios:
        for scenario in scenarios:
            walk.go(tools, scenario, tmp_path / scenario.name, [1])
    assert not walk.complaints, "\n".join(walk.complaints)
    listed = fault_walk.listed(tools.built.hook, with_graphs=True)
    older = {"graph.c", "graph_edges.c", "graph_probed.c"}
    unreached = {line for line in listed - walk.met if line.startswith(fault_walk.OF_GRAPHS)}
    assert {line.partition(":")[0] for line in unreached} <= older, sorted(unreached)
