"""Collection of an evaluation's traces: each run through ``tui-probe run``, in its own process."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.draw.units import elapsed
from tui_probe.errors import UsageError
from tui_probe.evals.evaluation import FOLDER, PROGRAMS_PLACEHOLDER, PYTHON_PLACEHOLDER, Setting
from tui_probe.evals.evaluation import PROGRAMS_FOLDER as PROGRAM_FOLDER
from tui_probe.evals.inputs import CollectedRun, is_finished, read_collected, write_collected
from tui_probe.launcher.driver import find_driver
from tui_probe.own_python import OWN_COMMAND
from tui_probe.trace.locate import traces_in
from tui_probe.trace.recent import exit_counts

from .output import inform

if TYPE_CHECKING:
    import argparse

    from tui_probe.evals.evaluation import Collection, Evaluation

PARTIAL = ".collecting"


def collect(evaluation: Evaluation, folder: Path, arguments: argparse.Namespace) -> bool:
    """Collect what is not there yet; returns whether nothing went wrong. What needs something else is left out."""
    driver = find_driver(None, arguments.sim, os.environ)
    setting = Setting(simulated=driver.simulated, files=files_from_arguments(arguments))
    selection = selected_collections(evaluation.collect(setting), arguments.only)
    folder.mkdir(parents=True, exist_ok=True)
    runs = _CollectionRuns(folder, setting, arguments, [collection.name for collection in selection])
    with ThreadPoolExecutor(arguments.jobs) as pool:
        return all(list(pool.map(runs.collect_run, range(1, len(selection) + 1), selection)))


class _CollectionRuns:
    """The runs of one evaluation, any number at a time. The outcome of each is on the disk before the next begins."""

    def __init__(self, folder: Path, setting: Setting, arguments: argparse.Namespace, names: list[str]) -> None:
        self._folder, self._setting, self._arguments, self._names = folder, setting, arguments, names
        self._runs = read_collected(folder)
        self._lock = threading.Lock()

    def collect_run(self, number: int, collection: Collection) -> bool:
        """Collect one run; returns whether nothing went wrong."""
        command = command_of(collection, self._arguments)
        label = f"{number} of {len(self._names)}, {collection.name}"
        if is_finished(self._folder, self._runs.get(collection.name), command):
            inform(f"{label}: already collected")
            return True
        skip_reason = missing_requirement(collection, self._setting, self._arguments.python)
        inform(f"{label}: {skip_reason or command}")
        start = time.monotonic()
        problem = skip_reason or run_one(collection, self._folder, self._arguments)
        if skip_reason is None:
            inform(f"{label}: {problem or 'collected'}, {elapsed(time.monotonic() - start)}")
        path = None if problem else collection.output_name
        with self._lock:  # the file has all runs
            self._runs[collection.name] = CollectedRun(collection.name, command, problem, path)
            write_collected(self._folder, dict(sorted(self._runs.items(), key=self._order)))
        return problem is None or skip_reason is not None

    def _order(self, run: tuple[str, CollectedRun]) -> int:
        """Return the sort key of a run: its order in the evaluation; others first."""
        return self._names.index(run[0]) if run[0] in self._names else -1


def selected_collections(collections: list[Collection], selected_names: list[str] | None) -> list[Collection]:
    """Return the selected collections. Raises UsageError for an unknown name."""
    names = [collection.name for collection in collections]
    unknown = [name for name in selected_names or () if name not in names]
    if unknown:
        raise UsageError(f"--only {unknown[0]}: not a run; use one of {', '.join(names)}")
    return [collection for collection in collections if not selected_names or collection.name in selected_names]


def files_from_arguments(arguments: argparse.Namespace) -> tuple[Path, ...]:
    """Files on the command line, such as a study, or by name one that comes with the evaluation.

    UsageError for a trace, since traces are what is collected.
    """
    directory = FOLDER / arguments.name
    paths = tuple(
        directory / word if not Path(word).is_file() and word in own_files(directory) else Path(word)
        for word in arguments.trace
    )
    trace = next((path for path in paths if not path.is_file()), None)
    if trace is not None:
        raise UsageError(
            f"{trace}: --run collects traces and accepts only files as arguments; omit the argument or --run"
        )
    return paths


def own_files(folder: Path) -> set[str]:
    """The names of the data that an evaluation brings along."""
    return {path.name for path in folder.glob("*.toml")}


def argv_of(collection: Collection, python: str) -> list[str]:
    """The program and its arguments."""
    return [
        word.replace(PYTHON_PLACEHOLDER, python).replace(PROGRAMS_PLACEHOLDER, str(PROGRAM_FOLDER))
        for word in collection.argv
    ]


def command_of(collection: Collection, arguments: argparse.Namespace) -> str:
    """The command as a user would type it."""
    simulated = ["--sim"] if arguments.sim else []
    return shlex.join(
        ["tui-probe", "run", *simulated, *collection.options, "--", *argv_of(collection, arguments.python)]
    )


def missing_requirement(collection: Collection, setting: Setting, python: str) -> str | None:
    """Return the missing requirement of the run, as text."""
    if collection.gpu and setting.simulated:
        return "skipped: not meaningful on the simulated GPU"
    for tool in collection.tools:
        if shutil.which(tool) is None:
            return f"skipped: {tool} is not on PATH"
    for module in collection.modules:
        if not has_module(module, python):
            return f"skipped: {python} has no module {module}; choose another interpreter with --python"
    return None


def has_module(module: str, python: str) -> bool:
    """Return whether an interpreter finds a module, without importing it."""
    if python == sys.executable:
        return find_spec(module) is not None
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def run_one(collection: Collection, folder: Path, arguments: argparse.Namespace) -> str | None:
    """Run it, and move its trace to where it belongs; returns what went wrong."""
    partial = folder / f"{PARTIAL}-{collection.name}"
    shutil.rmtree(partial, ignore_errors=True)
    prefix = [*OWN_COMMAND, "run", "--tracedir", str(partial), "--no-ui", "--no-report"]
    command = [*prefix, *(["--sim"] if arguments.sim else []), *collection.options, "--"]
    log = folder / f"{collection.name}.log"
    with log.open("wb") as output:
        status = subprocess.run(
            [*command, *argv_of(collection, arguments.python)], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        ).returncode
    if status:
        return f"failed with exit status {status}; see {log}"
    collected = log if collection.output_kind == "output" else collected_output(partial, collection)
    if collected is None:
        return f"wrote no {'ncu table' if collection.output_kind == 'ncu' else 'trace'}; see {log}"
    target = folder / collection.output_name
    shutil.rmtree(target, ignore_errors=True)
    collected.rename(target)
    shutil.rmtree(partial, ignore_errors=True)
    return None


def collected_output(partial: Path, collection: Collection) -> Path | None:
    """Return the output of a run to keep."""
    if not partial.is_dir():
        return None
    if collection.output_kind == "ncu":
        return next(iter(partial.glob("*.ncu.csv")), None)
    traces = traces_in(partial)
    return most_probed(traces) if traces else None


def most_probed(traces: list[Path]) -> Path:
    """Return the trace of the process that launched most probed kernels."""
    counts = {trace: exit_counts(trace) for trace in traces}
    return max(
        traces, key=lambda trace: (trace_counts.probed_launches if (trace_counts := counts[trace]) else -1, trace.name)
    )
