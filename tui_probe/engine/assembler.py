"""Assemble PTX with ptxas, read its report, and keep the empty kernel that calibrates event times."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.binaries import elf
from tui_probe.engine.cache import digest
from tui_probe.engine.grafting.snippet_ptx import ptx_version
from tui_probe.engine.whole_files import read_file, write_file
from tui_probe.errors import ImageError, NewerPtxError, ProbeError, ToolchainError
from tui_probe.ptx.lexer import ptx_target
from tui_probe.reasons import because
from tui_probe.toolchain import PTXAS_HINT, Tool, find_tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.engine.cache import Cache
    from tui_probe.reasons import Reason

EMPTY_KERNEL: Final = "nothing"
EMPTY_KERNEL_ARCHITECTURES: Final = (75, 80, 90, 100, 120)
"""The machine code of each runs on all later devices of its generation: sm_80 also on 86, 87 and 89."""
_ASSEMBLY_SECONDS: Final = 600
"""Guard against an assembler that hangs, for callers without a limit of their own; a run passes its own."""
_ANSWER_SECONDS: Final = 2
"""Time for ``--version``, which compiles nothing: a tool that does not answer by then hangs."""
_MIN_CACHED_SECONDS: Final = 0.1
"""Time of ptxas from which its output is kept: what takes less is not worth the disk."""
_TOO_OLD: Final = re.compile(r"Unsupported \.version|is not defined for option|Unsupported .*target")
_UNKNOWN_ARCHITECTURE: Final = re.compile(r"is not defined for option 'gpu-name'")
_SERIALISED_REMARK: Final = re.compile(
    r"wgmma\.mma_async instructions are serialized|(?:wait_group|warpgroup\.wait) is injected"
)
_HEAD_BYTES: Final = 65536
"""Beginning of a PTX file that is searched for ``.target``: comments may come before it."""
_CODE_PREFIX: Final = ".text."
_PTX_MARK: Final = "\0ptx\0"
"""Placeholder in stored output for the path of the PTX."""


@dataclass(frozen=True, slots=True)
class AssemblyReport:
    """Result of one run of ptxas. Sizes are bytes, for one thread (spills) or block (shared); None where ptxas does not
    say.

    ``output`` is its verbose output as it came; ``elapsed`` is in seconds. ``code_bytes`` is the size of the machine
    code that it made, with that of the functions which the kernel calls.
    """

    command: str
    output: str
    registers: int | None
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    shared_bytes: int | None
    constant_bytes: int | None
    elapsed: float
    tool: Tool
    code_bytes: int | None = None


def count_serialised(output: str) -> int:
    """Count the remarks of ptxas that it serialised ``wgmma`` instructions or waits for them by itself."""
    return len(_SERIALISED_REMARK.findall(output))


class Assembler:
    """Assembles with the newest ptxas that accepts the PTX.

    The machine is searched for tools once, when the first one is needed or at ``tools()``. A tool has ``seconds`` for
    each PTX. One that needs more, and then does not even tell its version, hangs, and is not started again. What took
    ``min_cached_seconds`` is kept in the ``cache``: programs share kernels of header libraries, though no image.
    """

    def __init__(
        self,
        tools: list[Tool] | None = None,
        *,
        seconds: float = _ASSEMBLY_SECONDS,
        cache: Cache | None = None,
        min_cached_seconds: float = _MIN_CACHED_SECONDS,
    ) -> None:
        self._tools = tools
        self._seconds = seconds
        self._cache, self._min_cached_seconds = cache, min_cached_seconds
        self._hanging_tools: set[Tool] = set()

    def tools(self) -> list[Tool]:
        """Return the assemblers, newest first; an empty list if there are none."""
        if self._tools is None:
            self._tools = find_tools("ptxas")
        return self._tools

    def assemble(
        self,
        ptx: Path,
        binary: Path,
        arch: str,
        entry: str,
        on_start: Callable[[], object] | None = None,
        *,
        lines: bool = False,
    ) -> AssemblyReport:
        """Assemble ``ptx`` for a device of ``arch`` (sm_90). The report is about the kernel ``entry``.

        With ``lines`` the binary has a table of source lines.
        ``on_start`` is called each time that a ptxas begins to work, which is when other work can be done next to it.
        Raises ToolchainError with ptxas's own words, or if there is no ptxas.
        """
        error: ToolchainError | None = None
        for tool in self.tools():
            if tool in self._hanging_tools:
                error = error or ToolchainError(_slow_reason(tool, self._seconds), str(tool.path))
                continue
            try:
                return self._assemble(tool, ptx, binary, arch, entry, on_start, lines=lines)
            except subprocess.TimeoutExpired as expired:
                error = error or ToolchainError(_slow_reason(tool, self._seconds), shlex.join(expired.cmd))
                if _is_responsive(tool):
                    break
                self._hanging_tools.add(tool)
            except ToolchainError as failure:
                error = error or failure
                if not _TOO_OLD.search(failure.details):
                    break
        raise error or ToolchainError(because("assembler-missing", hint=PTXAS_HINT))

    def _assemble(
        self,
        tool: Tool,
        ptx: Path,
        binary: Path,
        arch: str,
        entry: str,
        on_start: Callable[[], object] | None,
        *,
        lines: bool,
    ) -> AssemblyReport:
        """Take the binary from the cache, or assemble it with one tool. Raises ToolchainError and TimeoutExpired."""
        target = _assembly_target(ptx, arch)
        command = _ptxas_command(tool, ptx, binary, target, lines=lines)
        key = "" if self._cache is None else _assembly_key(tool, ptx, target, lines=lines)
        files = None if self._cache is None else self._cache.get(key)
        if files is not None:
            write_file(binary, files["binary"])
            output = files["output"].decode().replace(_PTX_MARK, str(ptx))
            report = _read_report(shlex.join(command), output, entry, 0.0, tool)
            return replace(report, code_bytes=_code_bytes(binary))
        report = _run_ptxas(tool, command, binary, target, entry, on_start, self._seconds)
        if self._cache is not None and report.elapsed >= self._min_cached_seconds:
            output = report.output.replace(str(ptx), _PTX_MARK)
            with contextlib.suppress(OSError):  # the disk is full: it is assembled again another time
                self._cache.put(key, {"binary": read_file(binary), "output": output.encode()})
        return report


def _assembly_key(tool: Tool, ptx: Path, target: str, *, lines: bool) -> str:
    """Return the key of an assembly in the cache: a digest of all inputs of the binary."""
    options = repr((str(tool.path), tool.version, target, lines))
    return digest(b"assembly", options.encode(), read_file(ptx))


def _ptxas_command(tool: Tool, ptx: Path, binary: Path, target: str, *, lines: bool) -> list[str]:
    options = ["-v", f"-arch={target}", *(["-lineinfo"] if lines else [])]
    return [str(tool.path), *options, str(ptx), "-o", str(binary)]


def _assembly_target(ptx: Path, arch: str) -> str:
    """Return the architecture to assemble for: ``sm_90a`` PTX needs sm_90a on a device of sm_90."""
    with ptx.open("rb", buffering=0) as file:
        target = ptx_target(file.read(_HEAD_BYTES).decode("utf-8", "replace"))
    return str(target) if target and f"sm_{target.arch}" == arch else arch


def _slow_reason(tool: Tool, seconds: float) -> Reason:
    return because("assembler-slow", version=tool.version, seconds=round(seconds))


def _is_responsive(tool: Tool) -> bool:
    """Return whether it was the PTX that took so long."""
    try:
        _run_command([str(tool.path), "--version"], None, _ANSWER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return True


def _run_ptxas(
    tool: Tool,
    command: list[str],
    binary: Path,
    arch: str,
    entry: str,
    on_start: Callable[[], object] | None,
    seconds: float,
) -> AssemblyReport:
    """Assemble PTX and return the report. Raises ToolchainError and TimeoutExpired."""
    start = time.perf_counter()
    try:
        status, output = _run_command(command, on_start, seconds)
    except OSError as error:
        error_text = error.strerror or type(error).__name__
        broken_reason = because("assembler-broken", ptxas=str(tool.path), error=error_text)
        raise ToolchainError(broken_reason, shlex.join(command)) from error
    elapsed = time.perf_counter() - start
    if status != 0 and _UNKNOWN_ARCHITECTURE.search(output):
        unknown_reason = because("architecture-unknown", version=tool.version, gpu=arch)
        raise ToolchainError(unknown_reason, "\n".join([shlex.join(command), output.strip()]))
    if status != 0:
        message_lines = [line for line in output.splitlines() if line.strip()] or [f"exit status {status}"]
        refusal_reason = because("ptxas-refused", version=tool.version, words=message_lines[0])
        kind = NewerPtxError if _TOO_OLD.search(output) else ToolchainError
        raise kind(refusal_reason, "\n".join([shlex.join(command), *message_lines]))
    return replace(_read_report(shlex.join(command), output, entry, elapsed, tool), code_bytes=_code_bytes(binary))


def _run_command(command: list[str], on_start: Callable[[], object] | None, seconds: float) -> tuple[int, str]:
    """Return the exit status of a command and its output. Raises OSError and TimeoutExpired, and leaves no process."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, errors="replace") as process:
        if on_start is not None:
            on_start()
        try:
            output, complaints = process.communicate(timeout=seconds)
        except BaseException:
            process.kill()
            raise
        return process.returncode, output + complaints


def _code_bytes(binary: Path) -> int | None:
    """Return the bytes of machine code in a cubin; None for a file that is not a cubin."""
    try:
        sections = elf.section_slices(binary.read_bytes())
        return sum(
            len(range(section.start, section.stop)) for name, section in sections if name.startswith(_CODE_PREFIX)
        )
    except (OSError, ImageError):
        return None


def _read_report(command: str, output: str, entry: str, elapsed: float, tool: Tool) -> AssemblyReport:
    """Read ``-v`` output: the block of lines about the kernel itself, not about functions it calls."""
    _, _, kernel_output = output.partition(f"Function properties for {entry}\n")
    kernel_lines = kernel_output.partition("Function properties for ")[0] or output

    def find_number(pattern: str, text: str) -> int | None:
        match = re.search(pattern, text)
        return int(match[1]) if match else None

    return AssemblyReport(
        command=command,
        output=output,
        registers=find_number(r"Used (\d+) registers", output),
        spill_store_bytes=find_number(r"(\d+) bytes spill stores", kernel_lines),
        spill_load_bytes=find_number(r"(\d+) bytes spill loads", kernel_lines),
        shared_bytes=find_number(r"(\d+) bytes smem", output),
        constant_bytes=find_number(r"(\d+) bytes cmem\[0\]", output),
        elapsed=elapsed,
        tool=tool,
    )


def keep_empty_kernels(assembler: Assembler, folder: Path) -> None:
    """Put a kernel that does nothing into ``folder``, for each architecture that the assembler knows, as
    ``sm_90.cubin``: the hook takes the time of an empty pair of events around it.

    The driver could compile it from PTX, in the program's own process. But it aborts a process that ends meanwhile.
    Where it cannot be done there is no file, and the pair is empty: the log says so.
    """
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for arch in EMPTY_KERNEL_ARCHITECTURES:
            path = folder / f"sm_{arch}.cubin"
            if not path.exists():
                _assemble_empty_kernel(assembler, arch, path)


def _assemble_empty_kernel(assembler: Assembler, arch: int, path: Path) -> None:
    """Assemble it under another name first: a hook may look for the file at any time."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch, contextlib.suppress(ProbeError):
        ptx, binary = Path(scratch) / "nothing.ptx", Path(scratch) / "nothing.cubin"
        head = f".version {ptx_version(arch)}\n.target sm_{arch}\n.address_size 64\n"
        ptx.write_text(head + f".visible .entry {EMPTY_KERNEL}() {{ ret; }}\n")
        assembler.assemble(ptx, binary, f"sm_{arch}", EMPTY_KERNEL)
        binary.replace(path)
