"""``tui-probe help``: how things work and what words mean, page by page."""

from __future__ import annotations

import os
import pydoc
import sys
from typing import TYPE_CHECKING

from tui_probe.draw.spans import pad, to_ascii
from tui_probe.errors import HelpError
from tui_probe.help import document, topics
from tui_probe.probe_files.catalogue import known_probes
from tui_probe.ui.help_text import help_page

from .output import ExitStatus, complain, on_terminal, write_stdout
from .parser import COMMANDS
from .probes import probe_page

if TYPE_CHECKING:
    import argparse

GLOSSARY = "glossary"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the topic and glossary terms."""
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="the page, or the probe; default: list the pages")
    parser.add_argument("term", nargs="*", metavar="TERM", help=f"with topic {GLOSSARY}: the term to explain")
    parser.set_defaults(refuse=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """List the topics, or show one: through a pager on a terminal, else as Markdown."""
    if arguments.topic is None:
        write_stdout(contents())
        return ExitStatus.OK
    if arguments.term and arguments.topic != GLOSSARY:
        arguments.refuse(f"only the {GLOSSARY} takes a term: tui-probe help {GLOSSARY} {' '.join(arguments.term)}")
    try:
        page = _page(arguments.topic)
        page = document.glossary_entry(page, " ".join(arguments.term)) if arguments.term else page
    except HelpError as error:
        complain(f"{error}{'' if arguments.term else _command_hint(arguments.topic)}")
        if not arguments.term:
            sys.stderr.write(f"\n{contents()}")
        return ExitStatus.USAGE
    show(page)
    return ExitStatus.OK


def _page(name: str) -> str:
    """Return the page of a topic, or of a probe. Raises HelpError."""
    try:
        return help_page(name)
    except HelpError:
        probe = next((probe for probe in known_probes() if probe.name == name.replace("-", "_")), None)
        if probe is None:
            raise
        return probe_page(probe)


def contents() -> str:
    """Return the list of topics."""
    name_width = max(len(topic.name) for topic in topics())
    lines = [f"  {pad(topic.name, name_width)}  {topic.summary}" for topic in topics()]
    return "\n".join(["Topics; to read one: tui-probe help TOPIC", *lines, ""])


def _command_hint(name: str) -> str:
    """Return how to see the options of a command, if the name is that of one."""
    return f" ({name} is a command: tui-probe {name} --help)" if name in COMMANDS else ""


def show(page: str) -> None:
    """Show a page: in a pager on a terminal, which leaves short pages on the screen; else as it is."""
    ascii_only = "utf" not in sys.stdout.encoding.lower()
    if not on_terminal():
        write_stdout(page, ascii_only=ascii_only)
        return
    text = draw(page)
    os.environ.setdefault("LESS", "FRX")  # as git does: colours, and no pager for what fits
    pydoc.pager(to_ascii(text) if ascii_only else text)


def draw(page: str) -> str:
    """Render a page with colours."""
    from rich.console import Console

    from tui_probe.help.document import WIDEST, HelpPage

    console = Console(legacy_windows=False)
    console.width = min(console.width, WIDEST)
    with console.capture() as captured:
        console.print(HelpPage(page, hyperlinks=False))
    return captured.get()
