"""Programs with CUDA graphs under the hook: on the simulated GPU, and with the engine that real runs have."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.attack.scenarios import Scenario
from tests.conftest import build_natives
from tests.graphs.cuda_graph import KERNELS
from tests.hook.conftest import ROOT, compile_c
from tests.warm_start import simulator_python
from tui_probe.launcher.engine import Engine
from tui_probe.launcher.options import RunOptions
from tui_probe.probe_files.choices import choose_probes

GRAPHS = ROOT / "tests" / "graphs"
PROBE = "block_sched"


@contextmanager
def graph_scenarios(folder: Path) -> Iterator[tuple[Scenario, ...]]:
    """They can be run as long as the context lasts."""
    folder.mkdir(parents=True)
    program, kernels = folder / "busy_graphs", folder / "kernels.ptx"
    compile_c(GRAPHS / "busy_graphs.c", program, str(build_natives() / "hook" / "libcuda.so.1"))
    kernels.write_bytes(KERNELS)
    busy = (str(program), str(kernels), "1", "4")
    nodes = (sys.executable, str(GRAPHS / "programs" / "each_node.py"))
    options = RunOptions(command=("true",), probes=(PROBE,), trace_root=folder)
    engine = Engine(choose_probes([PROBE]), options, True, folder / "engine.log")
    simulated = _simulated() | {"TUI_PROBE_ENGINE": str(engine.socket), "TUI_PROBE_DRIVER": _driver()}
    patient = simulated | {"TUI_PROBE_PATIENT": "1"}
    auto, timed = {"TUI_PROBE_LAUNCHES": "auto"}, {"TUI_PROBE_GRAPHS": "timed"}
    try:
        yield (
            Scenario("graphs, all", patient, command=busy, output=_alone(busy)),
            Scenario("each kind of node", patient, command=nodes, output=_alone(nodes)),
            Scenario("graphs, some", simulated | auto, command=busy, output=_alone(busy)),
            Scenario("graphs, some, timed", patient | auto | timed, command=busy, output=_alone(busy)),
            Scenario("each kind of node, some", simulated | auto, command=nodes, output=_alone(nodes)),
        )
    finally:
        engine.stop()


def _driver() -> str:
    return str(build_natives() / "sim" / "libcuda.so.1")


def _simulated() -> dict[str, str]:
    return {
        "TUI_PROBE_SIM_PYTHON": simulator_python(),
        "TUI_PROBE_SIM_PYTHONPATH": str(ROOT),
        "PYTHONPATH": str(ROOT),
    }


def _alone(command: Sequence[str]) -> str:
    """Return its output without the hook."""
    environment = os.environ | _simulated() | {"LD_LIBRARY_PATH": str(Path(_driver()).parent)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout
