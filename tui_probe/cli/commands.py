"""The subcommands of ``tui-probe``, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import argparse


class Command(Protocol):
    """Functions of the module of a subcommand."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, arguments: argparse.Namespace) -> int: ...


@dataclass(frozen=True)
class Entry:
    """A subcommand: its module, imported only when it is used, and its line in the help."""

    module: str
    help: str


COMMANDS = {
    "home": Entry("home", "recent traces, a form to start a program, and what works here (the default on a terminal)"),
    "run": Entry("run", "start a command under the hook, and show what its kernels do"),
    "watch": Entry("watch", "attach read-only to the newest active run, from another terminal"),
    "ctl": Entry("ctl", "switch an active run on and off, and change its budgets, from another terminal"),
    "list": Entry("list_runs", "recent runs by command: what each found, and what changed against the run before"),
    "open": Entry("open", "explore a trace, files of Nsight Compute or Systems, or a saved bandwidth result"),
    "report": Entry("report", "a trace as a table, JSON, CSV or Markdown"),
    "show": Entry("show", "one view of a kernel as text, data or a picture"),
    "explain": Entry("explain", "a walk through a trace: its files, its log in words, a kernel, a result"),
    "import": Entry("import_command", "files of Nsight Compute and Nsight Systems: tables, and a timeline"),
    "compare": Entry("compare", "compare two traces, kernels or launches"),
    "probes": Entry("probes", "the built-in probes: what each measures, what it costs, its source"),
    "eval": Entry("evaluation", "evaluations: a question that several traces answer, as tables and figures"),
    "roofline": Entry("roofline", "kernels on the roofline of this machine's memory and tensor cores"),
    "bandwidth": Entry("bandwidth", "measure the bandwidth of this machine's memories"),
    "check": Entry("check", "verify a probe, and try it on kernels without a GPU"),
    "new-probe": Entry("new_probe", "write a commented start of a probe of your own, in Python or TOML"),
    "completion": Entry("completion", "what bash, zsh or fish needs to complete tui-probe's command lines"),
    "help": Entry("help", "help pages: how things work, formats, and a glossary"),
    "doctor": Entry("doctor", "check what works on this machine, and how to fix what does not"),
    "demo": Entry("demo", "the whole pipeline on a bundled example, simulated where there is no GPU"),
}
READS_RESULTS = ("list", "watch", "open", "report", "show", "explain", "import", "compare", "eval", "roofline")
"""Subcommands that show what probes measured, and so may need one that no package brings."""
