"""The files of the hook and of the simulated GPU form layers: each calls only files below it.

So one can be read without those above.
"""

from __future__ import annotations

import graphlib
import subprocess
from pathlib import Path

import pytest

from .conftest import Build
from .object_files import references


def circle(units: list[Path]) -> list[str]:
    """Return the files of one circle, the first of them last again; none if there is no circle."""
    try:
        graphlib.TopologicalSorter(references(units)).prepare()
    except graphlib.CycleError as error:
        return [unit.stem for unit in error.args[1]]
    return []


# the object files of a target under the build directory, files that must be among them, and one reference of theirs
TARGETS = [
    ("CMakeFiles/hook.dir", {"event_log.c", "launch_log.c", "launch_calls.c"}, ("event_log.c", "launch_log.c")),
    ("simgpu/CMakeFiles/sim.dir", {"work.c", "capture.c", "launch_api.c"}, ("capture.c", "graph.c")),
]


@pytest.mark.parametrize(("directory", "some", "reference"), TARGETS, ids=["hook", "simgpu"])
def test_object_files_have_no_call_cycle(
    built: Build, directory: str, some: set[str], reference: tuple[str, str]
) -> None:
    units = sorted((built.hook.parent.parent / directory).rglob("*.o"))
    assert some <= {unit.stem for unit in units}
    graph = {unit.stem: {other.stem for other in others} for unit, others in references(units).items()}
    assert reference[1] in graph[reference[0]]
    assert circle(units) == []


def test_circle_returns_the_files_of_a_cycle(tmp_path: Path) -> None:
    calls = {"a": "b", "b": "c", "c": "a", "d": "a"}
    for name, called in calls.items():
        (tmp_path / f"{name}.c").write_text(
            f"void {called}(void);\nvoid {name}(void);\nvoid {name}(void) {{ {called}(); }}\n"
        )
        subprocess.run(["cc", "-c", "-o", tmp_path / f"{name}.c.o", tmp_path / f"{name}.c"], check=True)
    units = sorted(tmp_path.glob("*.o"))
    assert set(circle(units)) == {"a.c", "b.c", "c.c"}
    assert circle([tmp_path / "a.c.o", tmp_path / "b.c.o", tmp_path / "d.c.o"]) == []
