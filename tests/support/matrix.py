"""Fill the support matrix: ``python -m tests.support.matrix --python PYTHON``.

Runs the programs on the GPU of this machine, four at a time, and begins none after ``--seconds``; with ``--sim``
those that can run on the simulated GPU. Results replace earlier ones of the same program in ``results.json``, and
the page ``help support`` is made anew. A program that was not run keeps what it had, so several calls fill the
matrix, each with another ``--python``. Results of the simulated GPU never replace those of a GPU. ``--json FILE``
writes the records of this call, to be added on another machine with ``--add FILE``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import page
from tests.support.architectures import graft_architectures
from tests.support.catalogue import PROGRAMS
from tests.support.running import Machine, Record, gpu_of_machine, run_program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.catalogue import Program

SIMULATED = "Simulated GPU"
_NOT_RUN = "not run"


def run_all(programs: Iterable[Program], machine: Machine, seconds: float, jobs: int) -> list[Record]:
    """Run programs side by side, and begin none after ``seconds``."""
    end = time.monotonic() + seconds

    def run(program: Program) -> Record:
        if time.monotonic() > end:
            return Record(program.name, _NOT_RUN, "no time was left")
        record = run_program(program, machine)
        print(program.name, record.outcome, record.problem, file=sys.stderr, flush=True)
        return record

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(run, programs))


def add_records(results: dict[str, Any], records: Iterable[dict[str, Any]]) -> None:
    """Put records into results; what was not run, or only simulated, replaces nothing of a GPU."""
    for record in records:
        before = results["programs"].get(record["program"])
        keeps = before is not None and before["outcome"] != _NOT_RUN and before["hardware"] != SIMULATED
        if record["outcome"] != _NOT_RUN and not (keeps and record["hardware"] == SIMULATED):
            results["programs"][record["program"]] = record


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="interpreter of the programs; may be repeated")
    parser.add_argument("--only", action="append", choices=[program.name for program in PROGRAMS])
    parser.add_argument("--sim", action="store_true", help="use the simulated GPU")
    parser.add_argument("--seconds", type=float, default=300, help="begin no program after that; default 300")
    parser.add_argument("--limit", type=float, default=100, help="seconds of one run of a program; default 100")
    parser.add_argument("--jobs", type=int, default=4, help="programs side by side; default 4")
    parser.add_argument("--json", type=Path, help="write the records to a file, and change nothing else")
    parser.add_argument("--add", type=Path, help="run nothing; add the records of such a file")
    parser.add_argument("--architectures", action="store_true", help="graft into cubins of all architectures, too")
    arguments = parser.parse_args()
    if arguments.add:
        records = json.loads(arguments.add.read_text())
    else:
        gpu = None if arguments.sim else gpu_of_machine()
        if gpu is None and not arguments.sim:
            parser.error("no GPU on this machine; use --sim")
        chosen = [program for program in PROGRAMS if not arguments.only or program.name in arguments.only]
        with tempfile.TemporaryDirectory() as folder:
            machine = Machine(tuple(arguments.python) or (sys.executable,), gpu, Path(folder), arguments.limit)
            done = run_all(chosen, machine, arguments.seconds, arguments.jobs)
        records = [dataclasses.asdict(record) for record in done]
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=1))
        return 0
    results = page.read_results()
    add_records(results, records)
    if arguments.architectures:
        results["architectures"] = [dataclasses.asdict(grafts) for grafts in graft_architectures()]
    page.write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
