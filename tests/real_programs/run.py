"""Real programs on the simulated GPU, each library in an environment of its own: ``python -m tests.real_programs.run``.

Makes a virtual environment per library (in ``--folder``, where it is kept) from the pinned versions of
``requirements/``, or with ``--newest`` from the newest, runs the programs of ``programs/`` under ``tui-probe run --sim``,
and prints a table with versions. Each case compares with NumPy. They run without a probe, and once more with each
``-p PROBE``. ``--only triton`` runs one of them. Needs pip's index; nvcc with g++ for PyCUDA. The status is 1 if a case was wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real_programs.suites import SUITES, environment_of, versions_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.real_programs.suites import Suite

LIMIT = 1800  # seconds for the cases of one library
NEVER = ["--after", "9999h"]
"""The option of a run that probes nothing."""


@dataclass(frozen=True)
class Outcome:
    """Results of the cases of a suite, by their lines.

    ``probed`` of its ``kernels`` had the probe; None where there was none.
    """

    suite: str
    versions: dict[str, str]
    architecture: str
    probe: str | None
    right: list[str]
    wrong: list[str]
    kernels: int
    probed: int | None

    @property
    def is_right(self) -> bool:
        return bool(self.right) and not self.wrong and self.probed != 0

    def row(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        probed = "–" if self.probed is None else f"{self.probed} of {self.kernels}"
        cases = f"{len(self.right)} of {len(self.right) + len(self.wrong)}"
        wrong = ", ".join(self.wrong) or "–"
        return f"| {versions} | {self.architecture} | {self.probe or '–'} | {cases} | {probed} | {wrong} |"


def run_suite(
    suite: Suite, python: Path, architecture: str, probe: str | None, folder: Path, cases: Sequence[str] = ()
) -> Outcome:
    """Run its cases, or those named, under the tool. A case without a line of its own was not right."""
    traces = folder / "traces" / f"{suite.name}-{architecture}-{probe and Path(probe).stem}"
    how = ["-p", probe, "--launches", "all"] if probe else NEVER
    tool = [sys.executable, "-m", "tui_probe", "run", "--sim", "--sim-arch", architecture, *how]
    command = [*tool, "--no-report", "--tracedir", str(traces), "--", str(python), str(suite.program), *cases]
    variables = os.environ | dict(suite.variables)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=LIMIT)
    traces.with_suffix(".log").write_text(done.stdout + done.stderr)
    right = set(re.findall(r"^(\w+) ok$", done.stdout, re.MULTILINE))
    kernels = [
        kernel for trace in re.findall(r"trace in (.*)$", done.stderr, re.MULTILINE) for kernel in kernels_of(trace)
    ]
    return Outcome(
        suite=suite.name,
        versions=versions_of(suite, python),
        architecture=architecture,
        probe=probe,
        right=[case for case in cases or suite.cases() if case in right],
        wrong=[case for case in cases or suite.cases() if case not in right],
        kernels=len(kernels),
        probed=kernels.count("probed") if probe else None,
    )


def kernels_of(trace: str) -> list[str]:
    """The outcome of each kernel of a trace: ``probed``, ``skipped``, ``failed``, ``filtered``."""
    command = [sys.executable, "-m", "tui_probe", "report", trace, "--format", "json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return [kernel["status"] for kernel in report["kernels"]]


def outcomes(arguments: argparse.Namespace, folder: Path) -> Iterator[Outcome]:
    for suite in SUITES:
        if arguments.only and suite.name not in arguments.only:
            continue
        python = environment_of(suite, folder, arguments.newest)
        for architecture in suite.architectures:
            for probe in [None, *arguments.probe]:
                yield run_suite(suite, python, architecture, probe, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("real-programs"), help="where environments and logs are")
    parser.add_argument("--only", choices=[suite.name for suite in SUITES], action="append")
    parser.add_argument("--newest", action="store_true", help="the newest versions, not those of requirements/")
    parser.add_argument("-p", "--probe", action="append", default=[], help="run each program with this probe, too")
    parser.add_argument("--json", action="store_true", help="a list of outcomes instead of the table")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if not arguments.json:
        print("| Library | GPU | Probe | Right | Kernels probed | Wrong |\n|---|---|---|--:|--:|---|", flush=True)
    seen = []
    for outcome in outcomes(arguments, folder):
        seen.append(outcome)
        if not arguments.json:
            print(outcome.row(), flush=True)
    if arguments.json:
        print(json.dumps([dataclasses.asdict(outcome) for outcome in seen], indent=1))
    return 0 if all(outcome.is_right for outcome in seen) else 1


if __name__ == "__main__":
    sys.exit(main())
