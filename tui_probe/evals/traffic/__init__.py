"""Memory traffic of programs that compute the same, by the counters of Nsight Compute."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import answer, collect

EVALUATION: Final = Evaluation(
    name="traffic",
    question="how many bytes do ways to compute the same move through DRAM, L2 and L1?",
    probes=(),
    reading=(
        "Bytes are per call, means over the measured calls: kernels that run in every call count, the warm-up does not."
        " Which kernels those are is found in the sequence of launches; nothing needs to be named by hand.",
        "Counters need permission, and ncu; a file of it from another machine will do: tui-probe eval traffic A.csv"
        " B.csv. ncu empties caches before each kernel, so what one kernel leaves in L2 for the next is not seen.",
        "Sparse attention of blocks (bigbird) computes less than the others do, so it has a table of its own: “of best”"
        " is of the best of the same kind. Figures have both kinds, to see how much less is moved.",
    ),
    open=answer,
    collect=collect,
)
