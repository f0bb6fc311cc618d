"""Maximum probe memory: what the records of the largest launch take, beside the memory of the program."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import PROBES, answer, collect

EVALUATION: Final = Evaluation(
    name="memory",
    question="how much device memory would the records of a probe take, beside that of the program?",
    probes=PROBES,
    reading=(
        "Probe memory is that of the launch whose records take most: the number that event.log gives as probe-mem. On"
        " the device they take a little more, for marks of what was written, and padding. Several launches may be"
        " under way at the same time; --max-probe-memory limits all of them together.",
        "Models are one block of each, run eagerly with random weights: the launch that takes most is the same in every"
        " block (a Llama of 1B has 16 of them, of 3B 28, of 8B 32), while the memory of a whole model is more."
        " Products, convolutions and attention are Triton kernels. Runs of several probes size them alternately.",
        "Sized: computed from the shape of each launch, with nothing probed (run --memusage). Counted: only the kernel"
        " can tell how many records there are, so one that counts and keeps none ran in its place. Probed: an ordinary"
        " run, whose budgets may have left records out.",
        "Original memory is what the program says in a line of its output, max memory: BYTES, else the peak of its"
        " allocations in event.log, in which what a framework keeps for later counts too.",
        "The published system kept its records for each launch of a kernel in memory of that launch's size; the ratio"
        " compares with that. Kernels that have no probe, such as those of closed libraries, have no memory here.",
    ),
    open=answer,
    collect=collect,
)
