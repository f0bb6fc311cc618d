"""The subcommands of ``tui-probe``, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import argparse

GROUPS = ("runs", "pages", "probes", "agents", "start")
"""Groups of commands that ``tui-probe --help`` only names."""
READS_RESULTS = ("list", "watch", "open", "report", "show", "explain", "import", "compare", "eval", "roofline")
"""Commands that show results of probes, so they take ``--probe`` for one that is not installed."""


class Command(Protocol):
    """Functions of the module of a subcommand."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, arguments: argparse.Namespace) -> int: ...


@dataclass(frozen=True)
class Entry:
    """A command: its module, imported only when it is used, its line in the help, and its group; "" for a main one."""

    module: str
    help: str
    group: str = ""
    needs_hook: bool = False
    """True if the command needs the hook; the viewer wheel does not import its module, whose imports may be missing
    there.
    """


COMMANDS = {
    "run": Entry("run", "profile a program: live screen on a terminal, then a report", needs_hook=True),
    "open": Entry("open", "explore a trace, or files of Nsight Compute and Nsight Systems"),
    "report": Entry("report", "print the report of a run, or one page, as text, JSON or CSV"),
    "compare": Entry("compare", "compare two runs, kernels or launches"),
    "import": Entry("import_command", "print tables of Nsight Compute and Nsight Systems files"),
    "check": Entry("check", "verify a probe and try to insert it into kernels; needs no GPU"),
    "doctor": Entry("doctor", "check driver, tools and terminal, and suggest fixes"),
    "help": Entry("help", "show help pages: a tour, concepts, formats, a glossary"),
    "home": Entry("home", "show recent traces and a form to start a program (default on a terminal)", "runs"),
    "list": Entry("list_runs", "list recent runs by command, with findings and changes", "runs"),
    "watch": Entry("watch", "attach to an active run from another terminal", "runs"),
    "ctl": Entry("ctl", "switch an active run's recording on or off; change its budgets", "runs"),
    "show": Entry("show", "print one page of a kernel or trace as text, JSON, CSV or a picture", "pages"),
    "schema": Entry("schema", "print the JSON Schema of a document", "pages"),
    "explain": Entry("explain", "walk through a trace: files, log, one kernel, one result", "pages"),
    "extract": Entry("extract", "write a directory that runs one saved launch", "pages"),
    "roofline": Entry("roofline", "place kernels on the roofline of the GPU", "pages"),
    "eval": Entry("evaluation", "answer questions that need several traces", "pages"),
    "bandwidth": Entry("bandwidth", "measure the memory bandwidths of this machine", "pages"),
    "probes": Entry("probes", "list the built-in probes with their metrics, cost and source", "probes"),
    "new-probe": Entry("new_probe", "write a commented probe template in Python or TOML", "probes"),
    "gate": Entry("gate", "fail if a program became worse than its baseline", "agents", needs_hook=True),
    "mcp": Entry("mcp", "serve tools for agents over the Model Context Protocol", "agents"),
    "skill": Entry("skill", "print a skill file that teaches an agent to profile and compare", "agents"),
    "demo": Entry("demo", "profile a bundled example, without a GPU on the simulated GPU", "start", needs_hook=True),
    "completion": Entry("completion", "print the completion code for bash, zsh or fish", "start"),
}
