"""What is run: each program of a study with each probe in benchmark mode, as often as the study says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import UsageError
from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

from .study import SMALL, Row, Study, read_study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.evals.evaluation import Setting

_BENCHMARK: Final = ("--benchmark", "--launches", "all", "--exclude", "distribution:copy", "--no-times", "--no-source",
                     "--max-trace-bytes", "256M", "--max-log-bytes", "4M")  # fmt: skip
_SIMULATED: Final = Study(
    (Row("fill", (PYTHON, f"{PROGRAMS}/fill.py", "--elements", "16384", "--driver-only", "--times", "0", "plain")),),
    ("block_sched", "gmem_bytes"),
)


def collect(setting: Setting) -> list[Collection]:
    """A trace for each run, probe and repeat, named ``RUN.PROBE.REPEAT``. The first repeat of all comes first."""
    study = studied(setting)
    return [
        _run(rows, probe, repeat)
        for repeat in range(1, study.repeats + 1)
        for rows in study.runs()
        for probe in study.probes
    ]


def studied(setting: Setting) -> Study:
    """The study that was named, else the small one. UsageError for several."""
    if len(setting.files) > 1:
        raise UsageError(f"{setting.files[1]}: one study at a time")
    if setting.files:
        return read_study(setting.files[0])
    return _SIMULATED if setting.simulated else read_study(SMALL)


def _run(rows: Sequence[Row], probe: str, repeat: int) -> Collection:
    first = rows[0]
    kernels = ":".join(dict.fromkeys(row.kernel for row in rows))
    chosen = ("-k", kernels) if kernels else ()
    name = f"{first.key}.{probe.replace('/', '_')}.{repeat}"
    modules = tuple(dict.fromkeys(word for row in rows for word in row.modules))
    tools = tuple(dict.fromkeys(word for row in rows for word in row.tools))
    return Collection(name, first.command, ("-p", probe, *chosen, *_BENCHMARK), modules, tools)
