"""The hook for 64-bit ARM, where its compiler and an emulator are at hand: compiled without warnings, and run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT, Build, Engine, Host

HERE = Path(__file__).resolve().parent
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
SYSROOT = Path("/usr/aarch64-linux-gnu")
ARGUMENTS = """
#include <stdint.h>
#include <stdio.h>
typedef uint64_t u64;
int cuTexRefSetAddress2D_v3(u64, u64, u64, u64, u64, u64, u64, u64);
int cuTexRefSetMipmapLevelBias(double, double, double, double, double, double, double, double);
int main(void)
{
    for (int i = 0; i < 2; i++)
        printf("%d %d\\n", cuTexRefSetAddress2D_v3(1, 2, 3, 4, 5, 6, 7, 8),
               cuTexRefSetMipmapLevelBias(1, 2, 3, 4, 5, 6, 7, 8));
    return 0;
}
"""

pytestmark = pytest.mark.skipif(
    not (shutil.which(COMPILER) and shutil.which(EMULATOR) and shutil.which("cmake") and SYSROOT.is_dir()),
    reason=f"needs {COMPILER}, {EMULATOR} and cmake",
)


def compile_c(source: Path, output: Path, *more: str) -> Path:
    flags = ["-std=gnu17", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-Wl,-Bsymbolic"]
    subprocess.run([COMPILER, *flags, "-o", output, source, *more, "-lpthread", "-ldl"], check=True)
    return output


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("aarch64")
    target = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DTUI_PROBE_WERROR=ON"]
    tools = [f"-DCMAKE_C_COMPILER={COMPILER}", f"-DCMAKE_ASM_COMPILER={COMPILER}"]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    subprocess.run(
        ["cmake", "-S", ROOT / "hook", "-B", folder, *generator, *target, *tools], check=True, stdout=subprocess.DEVNULL
    )
    made = subprocess.run(["cmake", "--build", folder, "--target", "hook"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout
    (folder / "stub").mkdir()
    shared = ("-shared", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1")
    stub = compile_c(HERE / "stub_driver.c", folder / "stub" / "libcuda.so.1", *shared)
    return Build(folder / "hook" / "libcuda.so.1", stub)


def emulated(host: Host, program: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program of that machine, linked with the hook."""
    environment = host.environment(**more)
    passed_on = {name: text for name, text in environment.items() if name.startswith(("TUI_PROBE_", "STUB_"))}
    passed_on |= {"LD_LIBRARY_PATH": str(host.built.hook.parent)}
    given = [word for name, text in passed_on.items() for word in ("-E", f"{name}={text}")]
    plain = {name: text for name, text in environment.items() if name != "LD_PRELOAD" and name not in passed_on}
    command = [EMULATOR, "-L", str(SYSROOT), *given, str(program)]
    return subprocess.run(command, env=plain, capture_output=True, text=True, check=False, timeout=100)


def test_trampoline_keeps_every_argument(arm: Build, tmp_path: Path, engine: Engine) -> None:
    source = tmp_path / "arguments.c"
    source.write_text(ARGUMENTS)
    program = compile_c(source, tmp_path / "arguments", str(arm.hook))
    run = emulated(Host(arm, tmp_path, engine), program)
    assert (run.returncode, run.stdout.split(), run.stderr) == (0, ["204"] * 4, "")


def test_busy_program(arm: Build, tmp_path: Path, engine: Engine) -> None:
    host = Host(arm, tmp_path, engine)
    run = emulated(host, compile_c(HERE / "busy_program.c", tmp_path / "busy", str(arm.hook)))
    assert (run.returncode, run.stderr) == (0, "")
    (trace,) = host.root.iterdir()
    log = (trace / "event.log").read_text().splitlines()
    ended = re.match(r"\[exit\] launches 2196 probed (\d+) dropped 0 ", log[-1])
    assert ended
    assert len(list((trace / "result").iterdir())) == int(ended[1]) > 2000
