"""The cost benchmark: its tables tell what was not measured, its naive probes are probes, its kernels are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.cost_tables import Cost, tables
from tests.bench.probe_cost import ATTENTION, ATTENTION_PHASES, NAIVE, Variant, cost_of, static_costs, variants
from tests.bench.workloads import WORKLOADS
from tests.engine.conftest import ptxas
from tests.ptx.corpus import corpus
from tui_probe.probe_files.loading import built_in_names
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ptxas"]

COSTS = [
    Cost("GEMM", "control", False, "", 200, 200, 0, 0, 1.0, 0.5),
    Cost("GEMM", "block_sched", False, "", 200, 202, 0, 16, 1.25, 0.5),
    Cost("GEMM", "block_sched", True, "", 200, 210, 0, 0, 3.0, 0.5),
    Cost("sum", "block_sched", False, "", 20, 20, 0, 0, 1.05, 0.125),
    Cost("sum", "block_sched", True, reason="no room"),
    Cost("tiled matmul", "block_sched", False, "", 32, 42, 0, 0, 9.0, 0.3),
]


def test_tables_tell_means_and_what_was_not_measured() -> None:
    control, ours, means = tables(COSTS, timed=True)
    assert "| GEMM | 200 | +0 | – | 0 | – | 0.500 | 1.00 | 1.00 | – |  |" in control
    assert "| GEMM | 200 | +2 | +10 | 16 | 0 | 0.500 | 1.25 | 1.25 | 3.00 |  |" in ours
    assert "| sum | 20 | +0 | – | 0 | – | 0.125 | 1.05 | – | – | naive: no room |" in ours
    assert "| tiled matmul | 32 | +10 | – | 0 | – | 0.300 | 9.00 | – | – |  |" in ours
    assert "| block_sched | 2 | 1 | 1.00 | 0.00 | 1.15 | 1.05 | 1.25 |" in means
    assert "| block_sched, naive | 1 | 0 | 10.00 | 10.00 | 3.00 | 3.00 | 3.00 |" in means


def test_a_kernel_that_was_not_probed_has_a_reason_and_no_figures() -> None:
    kernel: dict[str, object] = {
        "name": "my_softmax",
        "status": "skipped",
        "reason": "no PTX in image",
        "slowdown": None,
        "time_ms": None,
    }
    softmax = next(workload for workload in WORKLOADS if workload.name == "softmax")
    cost = cost_of(softmax, Variant("dmat", False, "dmat"), [kernel])
    assert (cost.reason, cost.registers, cost.slowdown) == ("no PTX in image", None, None)
    assert cost_of(softmax, Variant("dmat", False, "dmat"), []).reason == "not launched"


def test_each_workload_names_the_one_kernel_of_its_ptx() -> None:
    for workload in WORKLOADS:
        (entry,) = parse(corpus(workload.ptx)).entries()
        assert workload.kernel in entry.name


@pytest.mark.usefixtures("ptxas")
def test_phases_of_the_user_are_measured_in_the_kernel_with_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    costs = static_costs(list(WORKLOADS), [Variant(ATTENTION_PHASES, False, ATTENTION_PHASES)], "sm_90")
    (cost,) = costs
    assert (cost.kernel, cost.reason) == (ATTENTION, "")
    assert cost.added is not None
    assert (cost.spills, cost.spills_probed) == (0, 0)


def test_naive_probes_have_a_built_in_counterpart() -> None:
    stems = {path.stem for path in NAIVE.glob("*.toml")}
    assert stems
    assert stems <= set(built_in_names())


@pytest.mark.parametrize("probe", sorted(path.stem for path in NAIVE.glob("*.toml")))
@pytest.mark.usefixtures("ptxas")
def test_naive_probes_assemble_and_cost_more(probe: str) -> None:
    small = [workload for workload in WORKLOADS if workload.name in ("embedding", "layer norm")]
    costs = static_costs(small, list(variants([probe])), "sm_90")
    added = {naive: [cost.added for cost in costs if cost.naive is naive] for naive in (False, True)}
    assert all(cost.reason == "" for cost in costs)
    # Equal where a probe spends what it saves on another test, such as that of addresses that rise evenly.
    assert sum(n or 0 for n in added[False]) <= sum(n or 0 for n in added[True])
