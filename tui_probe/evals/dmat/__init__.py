"""Memory accesses of attention over time: how implementations of one computation walk through the same tensors."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import ACCESS_PROBES, answer, collect

EVALUATION: Final = Evaluation(
    name="dmat",
    question="how do implementations of attention walk through memory, and how much do they keep in use?",
    probes=ACCESS_PROBES,
    reading=(
        "Each figure has time to the right and addresses downwards, a band per tensor; darker is denser. A flat row is"
        " memory that is used again and again, a diagonal walks through memory.",
        "In use is the memory that is touched in one column of the figure, the mean over columns: what caches would"
        " have to hold. Its share of all memory that is touched tells how local the walk is: smaller is more local.",
        "Rows and columns are those of the figure, so what is reported is an upper bound. Where some blocks were"
        " sampled, as --run does, they are of these blocks.",
        "A kernel that could not be probed has no addresses to show: a note says why. Page maps of existing"
        " systems (.dmat) and pictures as data (show dmat TRACE --format json) can be given, too.",
    ),
    open=answer,
    collect=collect,
)
