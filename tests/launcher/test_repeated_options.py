"""Options that ``run --again`` and the command of a trace repeat."""

from __future__ import annotations

import argparse
import shlex

import pytest

from tui_probe.cli.run_options import add_arguments, options_of
from tui_probe.launcher.options import RunOptions, again_command, repeated_options
from tui_probe.trace.run_info import RunInfo

GIVEN = (
    "-k add:mul --exclude sub --launches 0-9,20 --sample 8 --nvtx step --machine-code all --min-free-disk 1G --after 2s"
    " --for 90s --max-trace-bytes none --max-result-files 5 --max-log-bytes 3000000 --max-write-rate none"
    " --max-probe-memory 5000000 --max-host-memory 6000000 --max-kept-bytes none --wait --replay --detail"
    " --capture-range --tensors --no-times --no-check --sim-arch sm_90 --keep-launch add@0 --keep-launch mul@1"
)


def options(text: str) -> RunOptions:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return options_of(parser.parse_args(shlex.split(text)), ("x",))


def info(recorded: RunOptions) -> RunInfo:
    return RunInfo(command=("x",), probe="dmat", options=recorded.record(), simulated=recorded.simulated)


@pytest.mark.parametrize("text", [GIVEN, "--benchmark --save-results", "--memusage", "--watchdog 10s", ""])
def test_command_of_a_trace_repeats_all_options_that_are_recorded(text: str) -> None:
    recorded = options(f"{text} -p dmat")
    command = again_command(info(recorded))
    start, *given, end, program = shlex.split(command)[1:]
    assert (start, end, program) == ("run", "--", "x")
    again = options(shlex.join(given))
    assert again.record() == recorded.record()
    assert again.simulated is recorded.simulated


def test_given_options_contain_all_that_are_recorded() -> None:
    """An option that is added to run.json is repeated, or excluded by another one."""
    usual, given = RunOptions(()).record(), options(GIVEN).record()
    excluded = {"benchmark", "memusage", "watchdog", "save_results"}
    assert {name for name, value in given.items() if value == usual[name]} == excluded


def test_modes_of_a_probe_are_not_repeated_with_another() -> None:
    measured = info(RunOptions(("x",), launches="all", sample="4", benchmark=True, replay=True))
    assert again_command(measured, ["-p", "nan_check"]) == "tui-probe run --sample 4 --replay -p nan_check -- x"
    assert again_command(measured, ["--watchdog", "9s"]) == "tui-probe run --launches all --watchdog 9s -- x"


def test_values_of_other_types_are_ignored() -> None:
    damaged = {"kernels": 3, "max_log_bytes": "9", "after": True, "wait": "yes", "keep_launch": [1, "a@0"], "times": 0}
    assert repeated_options(RunInfo(options=damaged)) == {"keep_launch": ["a@0"]}
