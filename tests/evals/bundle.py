"""Puts collected traces into the package: what an evaluation is shown with where no one names a trace.

    tui-probe eval NAME --run --out collected/NAME
    python -m tests.evals.bundle collected/NAME [--without-results | --without-ptx | --logs-only] [--into FOLDER]
    python -m tests.evals.bundle collected/dmat --as-pictures

Kept are the log, run.json, the probe, the program's output, results, and of kernels what was reported of them and their
PTX, but no machine code. Of a table of ncu those rows are left out whose metric is a rate, a mean or the like of a
count that is kept, and of a log the launches that ran while recording was switched off; collected.json then says how
many. Paths of the machine that they were collected on are cut to their last part. Says how large each trace is.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tui_probe.draw import units
from tui_probe.evals.dmat import ACCESS_PROBES, read_picture
from tui_probe.evals.dmat import SAVED_PICTURES as PICTURES
from tui_probe.evals.evaluation import FOLDER
from tui_probe.evals.inputs import EvaluationInput, read_collected, write_collected
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import is_trace

KEPT = ("event.log", "run.json", "probe.toml", "stdout.log")
OF_KERNELS = ("kernel.info", "process.log", "pruned.ptx", "probed.ptx", "sites.json")
OF_ASSEMBLER = ("kernel.info", "process.log")
PATH = re.compile(rb"(?<![\w./])(?:/[\w.+@~-]+)+/(?=[\w.])")
PASSED = b"[exec] backup "
SWITCHED_OFF = b" code switched-off\n"
DERIVED = re.compile(r'"sm__ops_path_tensor_src_\w+\.(?!sum")')
COMMAND = re.compile(rb"^(\[(?:init\] )?cmd\]?) \d+ (.*)$", re.MULTILINE)


def without_paths(content: bytes) -> bytes:
    """A text file, its absolute paths cut to their last part; the length of the command is asked anew."""
    cut = PATH.sub(b"", content)
    return COMMAND.sub(lambda found: b"%s %d %s" % (found[1], len(found[2]), found[2]), cut)


def bundle(
    collected: Path, target: Path, *, results: bool = True, of_kernels: Sequence[str] = OF_KERNELS
) -> dict[str, int]:
    """Copy all runs of a folder; returns the bytes of each."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted(collected.iterdir()):
        if is_trace(path) and not path.name.startswith("."):
            copy_trace(path, target / path.name, results=results, of_kernels=of_kernels)
        elif path.suffix != ".log" and path.is_file():
            (target / path.name).write_bytes(without_paths(path.read_bytes()))
    runs = read_collected(target)
    for name, run in runs.items():
        if run.problem is None and run.file.endswith(".csv"):
            runs[name] = replace(run, note=keep_counts(target / run.file))
        elif run.problem is None and (target / run.file).is_dir():
            runs[name] = replace(run, note=keep_recorded(target / run.file / "event.log"))
    write_collected(target, runs)
    return {name: size_of(target / run.file) for name, run in runs.items() if run.problem is None}


def keep_counts(table: Path) -> str | None:
    """Leave out of a table of ncu what an expression for metrics brought along. Returns what was left out, in words."""
    lines = table.read_text().splitlines(keepends=True)
    log_lines = [line for line in lines if not DERIVED.search(line)]
    if len(log_lines) == len(lines):
        return None
    table.write_text("".join(log_lines))
    left_out = f"{len(lines) - len(log_lines):,} of {len(lines):,} lines".replace(",", " ")
    return f"{left_out} are left out of its table: rates and means of tensor core operations, whose sums are kept"


def keep_recorded(log: Path) -> str | None:
    """Leave out of a log the launches before and after the part that was recorded. Returns how many, in words."""
    lines = log.read_bytes().splitlines(keepends=True)
    log_lines = [line for line in lines if not (line.startswith(PASSED) and line.endswith(SWITCHED_OFF))]
    if len(log_lines) == len(lines):
        return None
    log.write_bytes(b"".join(log_lines))
    left_out = units.counted(len(lines) - len(log_lines), "launch")
    return f"left out of its log: {left_out} while recording was switched off"


def copy_trace(trace: Path, target: Path, *, results: bool, of_kernels: Sequence[str]) -> None:
    texts = [trace / name for name in KEPT]
    paths = (path for form in ("*/*", "*/*/*") for path in (trace / "kernel").glob(form))  # with several probes deeper
    texts += [path for path in paths if path.name in of_kernels]
    for path in filter(Path.is_file, texts):
        copy = target / path.relative_to(trace)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(without_paths(path.read_bytes()))
    if results and (trace / "result").is_dir():
        shutil.copytree(trace / "result", target / "result")


def keep_picture(trace: Path, target: Path) -> None:
    """Put the accesses of the first result into the copy of a trace, as ``tui-probe eval dmat`` reads a picture."""
    opened = open_trace(trace)
    for result in islice(EvaluationInput("", trace, opened).results(*ACCESS_PROBES), 1):
        assert result.problem is None, result.problem
        picture = read_picture(ViewSource(opened, result.kernel, result.launch), lambda _: None)
        (target / PICTURES[0]).write_bytes(gzip.compress(json.dumps(picture).encode(), mtime=0))


def size_of(path: Path) -> int:
    """Bytes of a file, or of all in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collected", type=Path)
    less = parser.add_mutually_exclusive_group()
    less.add_argument("--without-results", action="store_true", help="for evaluations that read none")
    less.add_argument("--without-ptx", action="store_true", help="nor PTX: for those of registers and times")
    less.add_argument("--as-pictures", action="store_true", help="nor results of dmat: their pictures as data")
    less.add_argument("--logs-only", action="store_true", help="nor anything of kernels but what the log says")
    parser.add_argument("--into", type=Path, help="default: the folder of the package, by the name of COLLECTED")
    options = parser.parse_args()
    target = options.into or FOLDER / "traces" / options.collected.name
    fewer = options.without_results or options.without_ptx or options.logs_only or options.as_pictures
    of_kernels = () if options.logs_only else OF_ASSEMBLER if options.without_ptx else OF_KERNELS
    sizes = bundle(options.collected, target, results=not fewer, of_kernels=of_kernels)
    for name in sizes if options.as_pictures else ():
        keep_picture(options.collected / name, target / name)
    for name, size in sizes.items():
        print(f"{size / 1e6:8.3f} MB  {name}")
    print(f"{sum(sizes.values()) / 1e6:8.3f} MB  {target}")


if __name__ == "__main__":
    main()
