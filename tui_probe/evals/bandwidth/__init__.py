"""Evaluation of measured memory bandwidth and of times of dense matrix products."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import answer, collect

EVALUATION: Final = Evaluation(
    name="bandwidth",
    question="how much do this machine's memories and its disk carry, and how long do matrix products take?",
    probes=(),
    reading=(
        "Bandwidths are those of tui-probe bandwidth --auto: the best of several launches, and for shared memory of"
        " several numbers of blocks and of bytes under way. “Could” is what clock and bus width of the memory give.",
        "Published figures are of other GPUs and other machines: a difference is theirs first of all. A published test"
        " value that is far below what its hardware could carry is of a test that had too few bytes under way.",
        "Products are of PyTorch (cuBLAS), timed by events on the GPU after a warm-up. Rows of 700 numbers of 2 bytes"
        " are 1 400 bytes, no multiple of 16: the fastest kernels need that alignment of their inputs.",
    ),
    open=answer,
    collect=collect,
)
