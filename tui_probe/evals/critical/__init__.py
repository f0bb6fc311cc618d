"""Sectors that stores take, expected and counted, and the critical kernel of a program with its data type."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import PROBE, answer, collect

EVALUATION: Final = Evaluation(
    name="critical",
    question="which kernel of a program is the critical one, and does it store as few sectors as it could?",
    probes=(PROBE,),
    reading=(
        "A sector is 32 bytes. A request is one instruction of a warp: 32 lanes that store 4 bytes next to each other"
        " take 4 sectors, with a gap after each 8. A probe counts what ncu counts, with no permission for counters.",
        "A kernel that writes a tensor once stores elements × bytes / 32 sectors (expected), and at most one per"
        " element. The critical kernel is the one that does the matrix work: it keeps the tensor cores busy, and among"
        " several it is the one that stores the tensor; why it was chosen is said step by step.",
        "Its data type is identified by the operands of tensor cores, by the instructions that were counted, or by"
        " its name. Files of ncu and traces named PROGRAM-ncu.csv and PROGRAM-probes are set side by side; for your own"
        " tensor: tui-probe import ncu FILE.csv --page critical --seq-len N --head-dim N --dtype bf16.",
    ),
    open=answer,
    collect=collect,
)
