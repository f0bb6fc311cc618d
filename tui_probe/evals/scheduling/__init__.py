"""Block scheduling cost: how many cycles block slots wait for their next block, and what that costs a launch."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import PROBE, answer, collect

EVALUATION: Final = Evaluation(
    name="scheduling",
    question="how much of a launch do SMs spend on scheduling blocks, and what does less of it gain?",
    probes=(PROBE,),
    reading=(
        "Blocks on an SM take slots one after another. Running is the time in which a slot has a block, Scheduling the"
        " time from the end of one block to the start of the next in its slot. Both are means over the slots of an SM"
        " and over SMs, so they compare with the time of the launch.",
        "The published line sums over the slots of an SM instead: its numbers are larger by the number of blocks that"
        " are on an SM together (the factor), and only their ratio compares with a time. Lines of both kinds are"
        " given, so that either can be compared with older ones.",
        "While a slot waits, the other slots of its SM work, and writes to memory continue. So Scheduling is the most"
        " that a kernel of fewer, longer blocks can save by that alone, and mostly it saves less: of two kernels the"
        " difference of their spans says how much of the waiting showed.",
    ),
    open=answer,
    collect=collect,
)
