"""One kernel from its captured image to a probed binary, and the files that tell of it."""

from __future__ import annotations

import contextlib
import re
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui_probe.engine.assemble import Assembler, AssemblyReport
from tui_probe.engine.edits import Edits
from tui_probe.engine.insertion import insert_probe, map_slots
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_info import kernel_info
from tui_probe.engine.module_variables import replay_hazard, share_variables
from tui_probe.engine.names import Names
from tui_probe.engine.originals import Originals
from tui_probe.engine.process_log import ProcessLog
from tui_probe.engine.toolchain import INSTALL_HINT
from tui_probe.errors import ImageError, ProbeError, ToolchainError, UnsupportedKernelError
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.model import Probe

Load: TypeAlias = Literal["bin", "ptx"]

_ARCH: Final = re.compile(r"sm_(\d+)[af]?")
_ASSEMBLERS: Final = 4
_SHORT: Final = 500
_SAMPLE: Final = """.version 8.0
.target sm_80
.address_size 64
.global .u32 counter;
.visible .entry sample(.param .u64 output)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [output];
	ld.global.v2.u32 {%r1, %r2}, [%rd1+8];
	setp.gt.u32 %p1, %r1, 2;
	@%p1 bra $end;
	atom.global.add.u32 %r3, [counter], 1;
$end:
	ret;
}
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of a kernel: ``ok`` with the file to load, ``skipped`` or ``failed`` with a reason on one line."""

    outcome: Literal["ok", "skipped", "failed"]
    text: str


@dataclass(frozen=True, slots=True)
class Options:
    """``load``: what the driver is given, machine code or PTX. The filters are those of the run, for the log."""

    load: Load = "bin"
    kernels: str = ""
    filtered: str = ""


def probed_kernel(kernel: Kernel, probe: Probe) -> tuple[str, str]:
    """The probed PTX of a kernel, and the text of its kernel.info. Raises UnsupportedKernelError."""
    names, edits = Names(kernel.pruned), Edits(kernel.module.source)
    shared = share_variables(kernel, names, edits)
    insert_probe(kernel, probe, names, edits, shared)
    entry, maps, hazard = kernel.entry, map_slots(probe), replay_hazard(kernel)
    info = kernel_info(entry.name, len(entry.parameters), maps, probe.callback, shared.variables, hazard)
    return kernel.edited(edits), info


class Preparer:
    """Prepares kernels with one probe. Safe to use from several threads; ``close`` waits for what still runs."""

    def __init__(self, probe: Probe, options: Options | None = None, assembler: Assembler | None = None) -> None:
        self._probe = probe
        self._options = options or Options()
        self._assembler = assembler or Assembler()
        self._originals = Originals()
        self._pool = ThreadPoolExecutor(_ASSEMBLERS, thread_name_prefix="assemble")

    def warm_up(self) -> None:
        """Do now what the first kernel would have to wait for: find assemblers, run once through all the code."""
        self._assembler.tools()
        with contextlib.suppress(UnsupportedKernelError):
            probed_kernel(Kernel.of(parse(_SAMPLE), "sample"), self._probe)

    def close(self) -> None:
        """Wait for assemblies that nobody waits for, then let the threads go."""
        self._pool.shutdown(wait=True)

    def prepare(self, directory: Path, arch: str, name: str) -> Answer:
        """Prepare the kernel ``name`` of ``directory/original.bin`` for a device of ``arch`` (``sm_90``).

        Writes the files of a kernel's directory. Never raises: a failure is an answer, its details in process.log.
        """
        try:
            log = ProcessLog(directory / "process.log")
        except (OSError, ValueError) as error:
            return Answer("failed", f"the engine cannot write to {str(directory)!r}: {error}")
        try:
            return _Preparation(self._probe, self._options, self._assembler, self._pool, directory, log).run(
                self._originals, arch, name
            )
        except (ImageError, UnsupportedKernelError) as error:
            return _ended(log, "skipped", str(error), str(error))
        except ProbeError as error:
            return _ended(log, "failed", str(error), str(error))
        except OSError as error:
            return _ended(log, "failed", f"{error.filename or directory}: {error.strerror or error}", str(error))
        except Exception as error:  # noqa: BLE001  whatever it is, the program's own kernel runs instead
            return _ended(log, "failed", f"{type(error).__name__}: {error}", traceback.format_exc())


def _ended(log: ProcessLog, outcome: Literal["skipped", "failed"], reason: str, details: str) -> Answer:
    """Write how it ended to the log and make the answer of it."""
    try:
        log.write(f"[{outcome}] {details}")
    except OSError as error:
        reason = f"{reason} (process.log: {error.strerror})"
    return Answer(outcome, " ".join(reason.partition("\n")[0].split())[:_SHORT])


@dataclass(slots=True)
class _Preparation:
    """The work on one kernel."""

    probe: Probe
    options: Options
    assembler: Assembler
    pool: ThreadPoolExecutor
    directory: Path
    log: ProcessLog

    def run(self, originals: Originals, arch: str, name: str) -> Answer:
        match = _ARCH.fullmatch(arch)
        if match is None:
            raise ProbeError(f"{arch} is no architecture such as sm_90")
        self.log.write(f"{self.options.kernels.split(':')} {self.options.filtered.split(':')}")
        image = (self.directory / "original.bin").read_bytes()
        original, found = originals.find(image, name, int(match[1]))
        self.log.write(f"[objdump] original.bin is {found}\n{name}\n[probe] {self.probe.name} from {self.probe.path}")
        with original.lock:
            original.write(self.directory / "original.ptx")
            kernel = Kernel.of(original.module, name)
        self._write("pruned.ptx", kernel.pruned)
        tools = self.assembler.tools()
        pruned_assembly = self._start("pruned", arch, name) if tools else None
        probed, info = probed_kernel(kernel, self.probe)
        self._write("probed.ptx", probed)
        self._write("kernel.info", info)
        if not tools:
            self.log.write(f"[assemble] no ptxas on this machine: the driver compiles probed.ptx; {INSTALL_HINT}")
            return self._ok("probed.ptx")
        probed_assembly = self._start("probed", arch, name)
        if self.options.load == "ptx":
            return self._ok("probed.ptx")
        failure = probed_assembly.result()
        if isinstance(failure, ToolchainError):
            self._wait(pruned_assembly)
            return Answer("failed", str(failure).partition("\n")[0][:_SHORT])
        return self._ok("probed.bin")

    def _ok(self, file: str) -> Answer:
        return Answer("ok", file)

    def _wait(self, assembly: Future[AssemblyReport | ToolchainError] | None) -> None:
        if assembly is not None:
            assembly.result()

    def _write(self, file: str, text: str) -> None:
        (self.directory / file).write_text(text, encoding="utf-8")

    def _start(self, variant: str, arch: str, name: str) -> Future[AssemblyReport | ToolchainError]:
        return self.pool.submit(self._assemble, variant, arch, name)

    def _assemble(self, variant: str, arch: str, name: str) -> AssemblyReport | ToolchainError:
        """Assemble one variant; its binary appears under its name when it is whole. What ptxas says is logged."""
        binary = self.directory / f"{variant}.bin"
        unfinished = self.directory / f".{variant}.bin.unfinished"
        try:
            report = self.assembler.assemble(self.directory / f"{variant}.ptx", unfinished, arch, name)
            unfinished.replace(binary)
        except ToolchainError as error:
            unfinished.unlink(missing_ok=True)
            self.log.write(f"[failed] {error}")
            return error
        self.log.write(f"{report.command}\n{report.output}")
        return report
