"""``tui-probe run --shake N``: find races by runs with random delays; exit status 1 if one was found."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.integrations.shake import Shaker

from .output import ExitStatus, inform, put

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from tui_probe.integrations.shake import Race


def shake(arguments: argparse.Namespace, command: Sequence[str]) -> int:
    """Run the command with each seed, and print what was found."""
    if arguments.probe or arguments.benchmark or arguments.memusage or arguments.replay or arguments.watchdog:
        arguments.refuse("--shake cannot be combined with -p, --benchmark, --memusage, --replay or --watchdog")
    shaker = Shaker(_options(arguments), command, arguments.compare_file or (), arguments.compare_memory or ())
    seeds = range(arguments.seed, arguments.seed + arguments.shake)
    race = shaker.find(seeds, inform)
    put(_race_lines(race) if race else [f"no difference in {units.counted(len(seeds), 'run')} with delays"])
    put(f"not delayed: {kernel}: {reason}" for kernel, reason in shaker.unprobed.items())
    if race:
        put(f"{shaker.runs} runs; to repeat: tui-probe run --shake 1 --seed {race.seed} -- {shlex.join(command)}")
    return ExitStatus.FAILED if race else ExitStatus.OK


def _options(arguments: argparse.Namespace) -> list[str]:
    """The options of each run."""
    given = {
        "-k": arguments.kernel, "--exclude": arguments.exclude, "--machine-code": arguments.machine_code,
        "--sim-arch": arguments.sim_arch, "--driver": arguments.driver,
    }  # fmt: skip
    return [*(["--sim"] if arguments.sim else []), *(f"{name}={value}" for name, value in given.items() if value)]


def _race_lines(race: Race) -> Iterator[str]:
    yield f"seed {race.seed} changes the results of the program: {race.difference}"
    yield f"reduced to delays in front of these instructions; {race.shown} of {race.tried} runs with them differed:"
    for site in race.sites:
        yield f"  {site.kernel}: PTX line {site.line} {site.text}"
