"""numba-cuda is asked for line tables, in which its cubins keep PTX, and nothing else of a program changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import run

LINKERS = """
class Linker:
    def __init__(self, max_registers=None, lineinfo=False, cc=None):
        self.asked = (max_registers, lineinfo, cc)

class PlainLinker:
    def __init__(self, cc=None):
        self.asked = (cc,)

class OtherLinker(Linker):
    pass
"""


@pytest.fixture
def numba(tmp_path: Path) -> Path:
    """A package with a module instead of numba-cuda's driver."""
    folder = tmp_path / "packages"
    place = folder / "numba" / "cuda" / "cudadrv"
    place.mkdir(parents=True)
    for package in (place, place.parent, place.parent.parent):
        (package / "__init__.py").touch()
    (place / "driver.py").write_text(LINKERS)
    return folder


def test_every_linker_is_asked_for_lines(tmp_path: Path, numba: Path) -> None:
    source = """
from numba.cuda.cudadrv import driver
print(driver.Linker(32, cc=(8, 0)).asked, driver.Linker(None, False, 9).asked)
print(driver.PlainLinker(7).asked, driver.OtherLinker().asked)
"""
    ran = run(tmp_path, source, tensors=False, more=str(numba))
    assert ran.stdout.splitlines() == ["(32, True, (8, 0)) (None, True, 9)", "(7,) (None, True, None)"], ran.stderr


def test_program_without_numba_is_unchanged(tmp_path: Path, numba: Path) -> None:
    source = """
import sys
print("numba" in sys.modules, [entry for entry in sys.path if entry.endswith("start")])
import numba.cuda.cudadrv
print(any("Numba" in type(finder).__name__ for finder in sys.meta_path))
import numba.cuda.cudadrv.driver
print(any("Numba" in type(finder).__name__ for finder in sys.meta_path), numba.cuda.cudadrv.driver.__spec__.origin[-9:])
"""
    ran = run(tmp_path, source, tensors=False, more=str(numba))
    assert ran.stdout.splitlines() == ["False []", "True", "False driver.py"], ran.stderr
