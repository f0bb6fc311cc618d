"""The files of other profilers that are read: how each is named, of which versions, and the command that makes it."""

from __future__ import annotations

from typing import Final, NamedTuple

from tui_probe.nsight.importers.nsys_csv_reports import KINDS


class Format(NamedTuple):
    """One kind of file. ``tool`` is that of ``tui-probe import TOOL``."""

    tool: str
    name: str
    files: str
    versions: str
    made_with: str


NCU_REPORT: Final = Format(
    "ncu", "report, with `pip install 'tui-probe[ncu]'`", "`.ncu-rep`", "those that ncu-report reads",
    "ncu -o FILE --set full COMMAND",
)  # fmt: skip
NCU_DETAILS: Final = Format(
    "ncu", "details page, `--metrics`", "`.csv`", "2019 to 2026",
    "ncu --csv --log-file FILE.csv --metrics dram__bytes.sum COMMAND",
)  # fmt: skip
NCU_RAW: Final = Format(
    "ncu", "raw page", "`.csv`", "2019 to 2026", "ncu --import FILE.ncu-rep --page raw --csv > FILE.csv"
)
NCU_SUMMARY: Final = Format(
    "ncu", "summary, without single launches", "`.csv`", "2020 to 2026",
    "ncu --csv --print-summary per-kernel --log-file FILE.csv COMMAND",
)  # fmt: skip
NSYS_SQLITE: Final = Format("nsys", "export", "`.sqlite`", "2020 to 2026", "nsys export --type sqlite REPORT")
NSYS_STATS: Final = Format(
    "nsys", f"reports of nsys stats: {', '.join(kind.name for kind in KINDS)}, by older names too", "`.csv`",
    "2020 to 2026", "nsys stats --format csv --report cuda_gpu_trace,nvtx_gpu_proj_trace --output . REPORT",
)  # fmt: skip
PYTORCH: Final = Format(
    "chrome",
    "trace of PyTorch's profiler",
    "`.json`, `.json.gz`",
    "1.8 to 2.11",
    'prof.export_chrome_trace("FILE.json.gz")',
)
JAX: Final = Format(
    "chrome", "trace of JAX", "`.trace.json.gz`", "0.4 to 0.8",
    "jax.profiler.start_trace(DIR, create_perfetto_trace=True)",
)  # fmt: skip
PROTON: Final = Format(
    "chrome", "trace of Triton's Proton", "`.chrome_trace`, `.json`", "3.4 to 3.9",
    'proton.start("FILE", data="trace")',
)  # fmt: skip
FORMATS: Final = (NCU_REPORT, NCU_DETAILS, NCU_RAW, NCU_SUMMARY, NSYS_SQLITE, NSYS_STATS, PYTORCH, JAX, PROTON)


def markdown_table() -> str:
    """All formats, for the help."""
    rows = [
        f"| `{each.tool}` | {each.name} | {each.files} | {each.versions} | `{each.made_with}` |" for each in FORMATS
    ]
    return "\n".join(["| Tool | File | Named | Versions | Made with |", "|---|---|---|---|---|", *rows])
