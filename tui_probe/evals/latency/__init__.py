"""Exposed latency: what a program waits for before, in and after a probed kernel, beside the original and ncu."""

from __future__ import annotations

from typing import Final

from tui_probe.evals.evaluation import Evaluation

from .answer import PROBES, answer, collect

EVALUATION: Final = Evaluation(
    name="latency",
    question="what does a program wait for before, in and after a probed kernel?",
    probes=PROBES,
    reading=(
        "Each operation is called many times; the time of a call is from the moment when the program calls until the"
        " result is there, by the host's clock, one call at a time. The original is the same call with nothing probed,"
        " ncu the same under Nsight Compute.",
        "Records are kept in pooled buffers, cleared in bulk and copied back while the program continues. So the"
        " parts of a call are defined by what waits. The prologue is the host's wait until the launching call returns:"
        " all that is done before. The kernel is what the stream waits for, between two events around the launch with"
        " the GPU kept busy ahead: the probed kernel and anything that is beside it in the stream. The epilogue is the"
        " rest until the result is there. Each is a median; the epilogue is what is left of the median of the whole,"
        " and never less than nothing. The original call has these parts, too: only what is above it was added. What"
        " the program waits for at its very end, until the last records are in files, is in none of them.",
        "Files of the columns probe, original, ncu, neutrino, prologue, kernel, epilogue are read as well, one per"
        " operation; --csv --table OPERATION writes one. Their column neutrino is the probed call.",
    ),
    open=answer,
    collect=collect,
)
