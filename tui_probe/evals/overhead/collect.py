"""What is run: each program of a study with each probe in benchmark mode, as often as the study says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import UsageError
from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

from .study import PUBLISHED, Row, Study, read_study

if TYPE_CHECKING:
    from tui_probe.evals.evaluation import Setting

_BENCHMARK: Final = ("--benchmark", "--launches", "all", "--exclude", "distribution:copy", "--no-times", "--no-source",
                     "--max-trace-bytes", "256M", "--max-log-bytes", "4M")  # fmt: skip
_SMALL: Final = Study(
    (Row("fill", (PYTHON, f"{PROGRAMS}/fill.py", "--elements", "16384", "--driver-only", "--times", "0", "plain")),),
    ("block_sched", "gmem_bytes"),
)


def collect(setting: Setting) -> list[Collection]:
    """A trace for each kernel, probe and repeat, named ``KERNEL.PROBE.REPEAT``. The first repeat of all comes first."""
    study = studied(setting)
    return [
        _run(row, probe, repeat)
        for repeat in range(1, study.repeats + 1)
        for row in study.rows
        for probe in study.probes
    ]


def studied(setting: Setting) -> Study:
    """The study that was named, else the published one. UsageError for several."""
    if len(setting.files) > 1:
        raise UsageError(f"{setting.files[1]}: one study at a time")
    if setting.files:
        return read_study(setting.files[0])
    return _SMALL if setting.simulated else read_study(PUBLISHED)


def _run(row: Row, probe: str, repeat: int) -> Collection:
    chosen = ("-k", row.kernel) if row.kernel else ()
    name = f"{row.key}.{probe.replace('/', '_')}.{repeat}"
    return Collection(name, row.command, ("-p", probe, *chosen, *_BENCHMARK), row.modules, row.tools)
