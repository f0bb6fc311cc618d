"""What the machine's memories carry, measured, and how long dense matrix products take."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import answer
from .collect import collect

EVALUATION: Final = Evaluation(
    name="bandwidth",
    question="how much do this machine's memories and its disk carry, and how long do matrix products take?",
    probes=(),
    reading=(
        "Bandwidths are those of tui-probe bandwidth --auto: the best of several launches, and for shared memory of"
        " several numbers of blocks and of bytes under way. “Could” is what clock and bus width of the memory give.",
        "A published test value that is far below what the hardware could carry is of a test that had too few bytes"
        " under way, not of the hardware.",
        "Products are of PyTorch (cuBLAS), timed by events on the GPU after a warm-up. Those with so short an inner"
        " dimension are bound by the store of their result.",
    ),
    open=answer,
    collect=collect,
)
