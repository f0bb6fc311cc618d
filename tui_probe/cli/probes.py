"""``tui-probe probes``: the built-in probes, what each measures, what it costs, and its source."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.catalogue import CatalogueEntry, describe, known_probes
from tui_probe.probe_files.loading import find_probe, load_probe
from tui_probe.probekit.registry import problems

from .output import warn
from .status import ExitStatus

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One probe, or all."""
    parser.add_argument(
        "probe", nargs="?", metavar="NAME", help="a built-in probe or a probe file: all about it, with its source"
    )
    parser.set_defaults(refuse=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """List the built-in probes, or describe one probe."""
    if arguments.probe is None:
        sys.stdout.write("\n\n".join(summary(probe) for probe in known_probes()) + "\n")
        for problem in problems():
            warn(f"not usable: {problem}")
    else:
        try:
            find_probe(arguments.probe)
        except ProbeFileError as error:
            arguments.refuse(str(error))
        sys.stdout.write(description(describe(load_probe(arguments.probe))))
    return ExitStatus.OK


def summary(probe: CatalogueEntry) -> str:
    """A probe in a few lines."""
    fields = (
        ("measures", probe.measures),
        ("unit", probe.unit),
        ("cost", probe.cost),
        ("saves", "; ".join(probe.saved)),
    )
    return "\n".join([f"{probe.name}: {probe.title}", *(f"    {label:<10}{words}" for label, words in fields if words)])


def description(probe: CatalogueEntry) -> str:
    """All about one probe, then its source as it is in the file."""
    fields = (
        ("probe", f"{probe.name}: {probe.title}" if probe.title else probe.name),
        ("measures", probe.measures),
        ("unit", probe.unit),
        ("cost", probe.cost),
        ("checked", probe.checked),
        *labelled("keeps", probe.records),
        *labelled("saves", probe.saved),
        *labelled("runs", probe.places),
        ("file", str(probe.path)),
    )
    lines = [f"{label:<10}{words}" for label, words in fields if words]
    return "\n".join(lines) + f"\n\n{probe.source.rstrip()}\n"


def labelled(label: str, items: Sequence[str]) -> list[tuple[str, str]]:
    """The items in lines, of which the first has the label."""
    return [("" if index else label, item) for index, item in enumerate(items)]
