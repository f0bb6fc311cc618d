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

`python -m tests.support.matrix` makes this page. The command runs each program of `tests/support/programs` twice. The
first run is without tui-probe. The second run is with `run --machine-code all --tensors --wait` and the default probes.
A program with the outcome `not run` was not tried, but may work.

"""
PROGRAM_NOTES: Final = """
| column | meaning |
|---|---|
| outcome | `unharmed`: output and exit status are the same with tui-probe |
| kernels | number of launched kernels |
| PTX | number of kernels probed in PTX mode |
| SASS | number of kernels probed in SASS mode |
| lines | number of source files in the trace |
| tensors | number of named tensors |

The cuTile program also fails without tui-probe: the cuTile compiler does not compile this program for an H200. The
simulated GPU uses the same hook, engine and probes as a GPU. Programs that need the CUDA runtime cannot run on the
simulated GPU.

## Kernels without a probe

Without `--wait`, tui-probe prepares kernels in the background. Launches run unprobed until their kernel is prepared. If
a short program launches a kernel once, the first run may have no result for this kernel. The next run takes the
prepared kernel from the cache. With `--wait`, each launch waits until its kernel is prepared.

"""
ALL_PROBED: Final = "Every kernel in the table above is probed.\n"
UNPROBED_HEAD: Final = ("program", "kernels without a probe, by reason", "run")
EARLIER: Final = """
## Earlier runs

The next programs ran with an earlier version of tui-probe. `tui-probe help measured` has run times.

"""
EARLIER_HEAD: Final = ("program", "GPU", "kernels", "probed in PTX", "probed with `--machine-code all`", "versions")
GPU_NOTES: Final = """
## Architectures

The column *run* lists the GPUs on which programs ran. The column *grafted* was measured without a GPU. Four probes
(`block_sched`, `gmem_sectors`, `dmat`, `inst_mix`) were inserted into the SASS of test kernels. A probe is counted
as grafted if `nvdisasm` can read the kernel's new SASS. tui-probe refuses all other pairs of probe and kernel. The
table is only for SASS mode: PTX mode does not depend on the architecture. `tui-probe help architectures` lists the
kinds of probes.

"""
DRIVER_NOTES: Final = """
## CUDA and drivers

All runs on GPUs used an H100 or H200, driver 580.159 and CUDA 13.0. Other drivers were not tried. A wheel works with
any CUDA version, because the hook is built without CUDA headers. `ptxas` 13.0 and 13.5 were used.
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
