"""The page ``tui-probe help support``, from ``results.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support.catalogue import PROGRAMS
from tests.support.running import ROOT
from tui_probe.engine.refusals import ARCHITECTURE_SUPPORT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.catalogue import Program

RESULTS: Final = Path(__file__).with_name("results.json")
PAGE: Final = ROOT / "tui_probe" / "help" / "support.md"
HEAD: Final = """# support: programs, GPUs and drivers with which tui-probe was run

`python -m tests.support.matrix` makes this page from `tests/support/results.json`. The command runs each program of
`tests/support/programs` twice: without tui-probe, and with `run --machine-code all --tensors --wait` and the default
probes. *Unharmed* means that the output and the exit status are the same in both runs. *Not run* means that the program
was not tried; the program may work.

"""
PROGRAM_NOTES: Final = """
*Outcome* is `unharmed` if output and exit status are the same with tui-probe. A program with `failed` fails without
tui-probe, too: the compiler of cuTile does not compile this program for an H200. *Kernels* is the number of
kernels that the program launched. *PTX* and *SASS* are the numbers of kernels with a probe in that mode. *Lines* is the
number of source files that the trace names, *tensors* the number of tensors with names. The simulated GPU uses the same
hook, engine and probes as a GPU; programs that need the CUDA runtime cannot run there.

## Kernels without a probe

Without `--wait`, tui-probe prepares kernels in the background, and launches run unprobed until their kernel is ready.
If a short program launches a kernel once, this launch can be unprobed in the first run. The next run probes it, because
prepared kernels are cached. With `--wait`, each launch waits for its kernel, and the first run probes it.

"""
ALL_PROBED: Final = "Every kernel in the table above is probed.\n"
UNPROBED_HEAD: Final = ("program", "kernels without a probe, by reason", "run")
EARLIER: Final = """
## Earlier runs

The programs of the next table were run before the first table existed (`tui-probe help measured`):

"""
EARLIER_HEAD: Final = ("program", "GPU", "kernels", "probed in PTX", "probed with `--machine-code all`", "versions")
GPU_NOTES: Final = """
## Architectures

*Run* lists the GPUs on which programs ran. Without a GPU, each of the probes `block_sched`, `gmem_sectors`, `dmat` and
`inst_mix` was inserted into the SASS of test kernels. *Grafted* is the number of pairs of a kernel and a probe for
which `nvdisasm` could read the result. tui-probe refuses the other pairs.
`tui-probe help architectures` lists the kinds of probes. PTX mode does not depend on the architecture.

"""
DRIVER_NOTES: Final = """
## CUDA and drivers

Runs on GPUs used driver 580.159 with CUDA 13.0, on H100 and H200. Other drivers were not tried. A wheel works
with any CUDA version, because the hook is built without CUDA headers. `ptxas` 13.0 and 13.5 were used.
"""


def markdown(results: Mapping[str, Any]) -> str:
    """Return the whole page."""
    rows = [program_row(program, results["programs"].get(program.name)) for program in PROGRAMS]
    head = ("program", "GPU", "outcome", "kernels", "PTX", "SASS", "lines", "tensors", "versions")
    earlier = [
        (row["program"], row["hardware"], row["kernels"], row["ptx"], row["sass"], row["versions"])
        for row in results["documented"]
    ]
    grafts = {row["arch"]: row for row in results["architectures"]}
    tools = sorted({row["tools"] for row in results["architectures"] if row["tools"]})
    gpus = [
        architecture_row(support.arch, support.gpus, grafts.get(support.arch), results["run_architectures"])
        for support in ARCHITECTURE_SUPPORT
    ]
    return "".join(
        (
            HEAD, table(head, rows), PROGRAM_NOTES,
            *unprobed_texts(results["programs"]), EARLIER,
            table(EARLIER_HEAD, earlier), GPU_NOTES,
            table(("architecture", "GPUs", "run", "grafted"), gpus),
            f"\nTools: {'; '.join(tools)}.\n" if tools else "", DRIVER_NOTES,
        )
    )  # fmt: skip


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines) + "\n"


def program_row(program: Program, record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the cells of a program."""
    title = program.title
    if record is None or record["outcome"] == "not run":
        needed = program.variable or program.packages[0]
        lacked = f"`{needed}` was not {'set' if program.variable else 'installed'}"
        return (title, "–", f"not run: {lacked}", *["–"] * 6)
    problem = f": {record['problem']}" if record["problem"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items()) or "–"
    numbers = (number(record[key]) for key in ("kernels", "ptx", "sass", "source_files", "tensors"))
    return (title, f"{record['hardware']}", f"{record['outcome']}{problem}", *numbers, versions)


def unprobed_texts(records: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """Return what has no probe, and the programs that ran without ``--wait``."""
    rows = unprobed_rows(records)
    ran = [(program.title, records.get(program.name, {})) for program in PROGRAMS]
    without = [title for title, record in ran if record.get("kernels") and not record.get("waits")]
    return (
        table(UNPROBED_HEAD, rows) if rows else ALL_PROBED,
        f"\nPrograms that ran without `--wait`: {', '.join(without)}.\n" if without else "",
    )


def unprobed_rows(records: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the programs that have kernels without a probe, with the reasons."""
    rows = []
    for program in PROGRAMS:
        record = records.get(program.name, {})
        if reasons := record.get("unprobed"):
            text = "; ".join(f"{count}: {reason}" for reason, count in sorted(reasons.items()))
            rows.append((program.title, text, "with `--wait`" if record.get("waits") else "without `--wait`"))
    return rows


def number(value: int | None) -> str:
    return "–" if value is None else str(value)


def architecture_row(arch: int, gpus: str, grafts: Mapping[str, Any] | None, run: Mapping[str, str]) -> tuple[str, ...]:
    made = "not tested" if grafts is None or grafts["tried"] is None else f"{grafts['grafted']} of {grafts['tried']}"
    return (f"sm_{arch}", gpus or "–", run.get(str(arch), "not run"), made)


def read_results() -> dict[str, Any]:
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def write(results: Mapping[str, Any], page: Path = PAGE) -> None:
    """Store results, and make the page of them."""
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(markdown(results), encoding="utf-8")


if __name__ == "__main__":
    write(read_results())
