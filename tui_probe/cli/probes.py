"""``tui-probe probes``: the built-in probes, what each measures, what it costs, and its source."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from tui_probe.errors import ProbeFileError
from tui_probe.help import topics_with_word
from tui_probe.probe_files.catalogue import (
    CatalogueEntry,
    ProbeSet,
    built_in_sets,
    describe_probe,
    find_set,
    known_probes,
)
from tui_probe.probe_files.choices import split_choice
from tui_probe.probe_files.loading import find_probe, installed_directories, load_probe

from .output import ExitStatus, warn, write_stdout

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

WEIGHT_WORDS = {
    "light": "about 75 of 1 000 000 launches with the same launch shape are probed",
    "heavy": "about 16 of 1 000 000 launches with the same launch shape are probed",
}
"""Text per weight of a probe: its sampling in a run without ``--launches``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the probe's name and the output format."""
    parser.add_argument(
        "probe", nargs="?", metavar="NAME", help="show details and source of a built-in probe or a probe file"
    )
    parser.set_defaults(refuse=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """List the built-in probes, or describe one probe."""
    if arguments.probe is None:
        sets = (f"{probe_set.name}: {set_title(probe_set)}" for probe_set in built_in_sets().values())
        paragraphs = ["Sets of probes:", *sets, "Probes:", *(summary(probe) for probe in known_probes())]
        write_stdout("\n\n".join(paragraphs))
        for problem in problems_of_installed():
            warn(f"not usable: {problem}")
    elif (probes := _set_named(arguments)) is not None:
        write_stdout(set_description(probes))
    else:
        try:
            find_probe(arguments.probe)
        except ProbeFileError as error:
            arguments.refuse(str(error))
        write_stdout(description(describe_probe(load_probe(arguments.probe))))
    return ExitStatus.OK


def problems_of_installed() -> list[str]:
    """Return why installed probes cannot be used. If none is installed, nothing that reads results is imported."""
    if not installed_directories():
        return []
    from tui_probe.probekit.registry import registry_problems

    return registry_problems()


def _set_named(arguments: argparse.Namespace) -> ProbeSet | None:
    try:
        return find_set(arguments.probe)
    except ProbeFileError as error:
        arguments.refuse(str(error))
        raise  # not reached: refusing ends the process


def set_title(probes: ProbeSet) -> str:
    """Describe a set and its probes."""
    return f"{probes.title}\n    {'probes':<10}{', '.join(probes.choices)}"


def set_description(probes: ProbeSet) -> str:
    """All about one set: its probes in a few lines each, then its file as it is."""
    summaries = (summary(describe_probe(load_probe(split_choice(choice)[0]))) for choice in probes.choices)
    source = probes.path.read_text(encoding="utf-8").rstrip()
    return "\n\n".join([f"{probes.name}: {probes.title}", *summaries, f"file      {probes.path}", source]) + "\n"


def summary(probe: CatalogueEntry) -> str:
    """A probe in a few lines."""
    fields = (
        ("measures", probe.measures),
        ("unit", probe.unit),
        ("cost", probe.cost),
        ("weight", probe.weight),
        ("saves", "; ".join(probe.saved)),
    )
    return "\n".join([f"{probe.name}: {probe.title}", *(f"    {label:<10}{text}" for label, text in fields if text)])


def description(probe: CatalogueEntry) -> str:
    """All about one probe, then its source as it is in the file."""
    fields = (
        ("probe", f"{probe.name}: {probe.title}" if probe.title else probe.name),
        ("measures", probe.measures),
        ("unit", probe.unit),
        ("cost", probe.cost),
        ("weight", f"{probe.weight}: {WEIGHT_WORDS[probe.weight]}"),
        ("checked", probe.checked),
        *labelled_rows("keeps", probe.records),
        *labelled_rows("saves", probe.saved),
        *labelled_rows("runs", probe.places),
        ("file", str(probe.path)),
    )
    lines = [f"{label:<10}{text}" for label, text in fields if text]
    return "\n".join(lines) + f"\n\n{probe.source.rstrip()}\n"


def probe_page(probe: CatalogueEntry) -> str:
    """Return the help page of a probe as Markdown: its file's introduction, its numbers and columns, and its pages."""
    from tui_probe.pages.views import kinds
    from tui_probe.probekit.registry import probe_named

    registered_probe = probe_named(probe.name)
    metrics = registered_probe.metrics if registered_probe is not None else ()
    lines = (
        registered_probe.lines.measures if registered_probe is not None and registered_probe.lines is not None else ()
    )
    choices = {
        probe_set.name: {split_choice(word)[0] for word in probe_set.choices} for probe_set in built_in_sets().values()
    }
    facts = (
        ("Measures", probe.measures), ("Unit", probe.unit), ("Cost", probe.cost),
        ("Weight", f"{probe.weight}: {WEIGHT_WORDS[probe.weight]}"), ("Checked", probe.checked),
        ("Sets", ", ".join(name for name, probes in choices.items() if probe.name in probes)),
        ("Pages of a kernel", ", ".join(kind.title for kind in kinds() if probe.name in kind.probes)),
        ("Columns of the Lines page", ", ".join(measure.title or measure.name for measure in lines)),
        ("Help pages", ", ".join(f"`tui-probe help {name}`" for name in topics_with_word(probe.name))),
        ("File", str(probe.path)),
    )  # fmt: skip
    rows = [
        f"| `{metric.key}` | {metric.standalone_title or metric.title} |"
        f" {metric.unit or ('position' if metric.place else 'count')} |"
        for metric in metrics
    ]
    table = ["## Values", "", "| Key | Value | Unit |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join([
        f"# {probe.name}: {probe.title}", "", introduction(probe.source), "", "```console",
        f"$ tui-probe run -p {probe.name} -- COMMAND", "```", "",
        *(f"- {label}: {text}" for label, text in facts if text), "", *table,
    ])  # fmt: skip


def introduction(source: str) -> str:
    """Return the comment at the top of a probe's file, without its marks."""
    lines = takewhile(lambda line: line.startswith("#"), source.splitlines())
    return "\n".join(line.removeprefix("#").strip() for line in lines)


def labelled_rows(label: str, items: Sequence[str]) -> list[tuple[str, str]]:
    """The items in lines; the first has the label."""
    return [("" if index else label, item) for index, item in enumerate(items)]
