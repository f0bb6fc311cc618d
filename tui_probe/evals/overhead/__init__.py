"""Evaluation of probe cost: slowdown and added registers of any kernels with any probes, from a study."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import answer, collect

EVALUATION: Final = Evaluation(
    name="overhead",
    question="how much slower does a probe make kernels, and how many registers does it add?",
    probes=("block_sched", "tensorop_count", "gmem_bytes", "dmat"),
    reading=(
        "Slowdown is probed time / original time, the median of five launches of each in a run, and of the runs where"
        " there are several; the spread is (most - least) / median of the runs. Registers are those that the assembler"
        " gave a thread, probed less pruned. Of several kernels that a row means the longest counts.",
        "A kernel that has no registers left spills: the cost is then that of memory, not of the probe's instructions."
        " Such rows are marked and listed, and means are given with and without them.",
        "What is run is a study: a TOML file with probes, repeats, and [[kernel]] tables, each with name, group, kernel"
        " (a part of the kernel's name), command, and the modules and tools that it needs; kernels of one run are"
        " measured together. Without a study it is a small one, of four kernels; published.study.toml has all of the"
        " published table. A study of your own: tui-probe eval overhead study.toml --run; to show it again name the"
        " folder and the study.",
    ),
    open=answer,
    collect=collect,
)
