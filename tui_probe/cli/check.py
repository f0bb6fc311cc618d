"""``tui-probe check``: a probe verified without a GPU, and tried on kernels."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.engine.assembler import Assembler
from tui_probe.engine.image_kernels import read_kernel_file, select_kernels
from tui_probe.engine.kernel_check import check_kernels, list_waits
from tui_probe.errors import LaunchError, ProbeError, ProbeFileError
from tui_probe.pages.check_report import CheckResult, check_json, check_text, error_json
from tui_probe.probe_files.catalogue import find_set
from tui_probe.probe_files.choices import split_choice
from tui_probe.probe_files.loading import find_probe, load_probe
from tui_probe.probe_model.storage import fold_sums
from tui_probe.toolchain import tool_architectures

from .output import ExitStatus, Progress, is_utf8, warn, write_stdout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.image_kernels import FileKernel
    from tui_probe.engine.kernel_check import KernelCheck
    from tui_probe.probe_model.probe import Probe
    from tui_probe.trace.kernel_files import ProcessLog

EPILOG = (
    "Exit status: 0 if all kernels can be probed, 1 if the probe or a kernel is refused or fails, 2 for wrong usage."
)

_PROBE_FILES = (".toml", ".py")
_IMAGES = (".ptx", ".cubin", ".fatbin", ".cu", ".o", ".so")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A probe, and what to try it on; or a file whose wait sites are listed."""
    parser.epilog = EPILOG
    parser.add_argument(
        "probe",
        metavar="PROBE",
        help="a built-in probe (see `tui-probe probes`) or a probe file; optional with --waits",
    )
    parser.add_argument(
        "ptx",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="PTX, cubin, fatbin, object, library or executable. As in tui-probe run, SASS is probed only if"
        " the file has no PTX",
    )
    parser.add_argument(
        "-k",
        "--kernel",
        action="append",
        metavar="A:B",
        help="check only kernels with A or B in their mangled or C++ names; regex:RE selects names that match RE",
    )
    parser.add_argument(
        "--arch", type=architecture, metavar="sm_XY", help="the GPU's architecture; default: the newest in the file"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="save the files of each kernel in DIR")
    parser.add_argument(
        "--waits",
        action="store_true",
        help="list the SASS instructions at which warps wait, each with its source line and the instruction that it"
        " waits for: check FILE --waits",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default %(default)s")
    parser.set_defaults(refuse=parser.error)


def architecture(word: str) -> str:
    """``sm_90``, ``sm_90a``."""
    if not re.fullmatch(r"sm_\d{2,3}[af]?", word):
        raise argparse.ArgumentTypeError(f"{word!r} is not an architecture; write e.g. sm_90")
    return word


def run(arguments: argparse.Namespace) -> int:
    """Check, and write the result; nothing else goes to stdout."""
    refuse_usage(arguments)
    try:
        check = check_probe(arguments)
    except KeyboardInterrupt:
        warn("interrupted")
        os._exit(ExitStatus.INTERRUPTED)  # Python would wait for the threads, which may need minutes for a kernel
    except ProbeError as error:
        if arguments.format != "json":
            raise
        write_stdout(error_json(str(error)))
        return ExitStatus.FAILED
    arrow = "→" if is_utf8(sys.stdout) else "->"
    write_stdout(check_json(check) if arguments.format == "json" else check_text(check, arrow))
    return ExitStatus.OK if check.is_ok else ExitStatus.FAILED


def refuse_usage(arguments: argparse.Namespace) -> None:
    """Refuse contradictory options with status 2. A file that is the only word with ``--waits`` needs no probe."""
    if arguments.waits and arguments.ptx is None and is_no_probe(arguments.probe):
        arguments.probe, arguments.ptx = None, Path(arguments.probe)
    if arguments.probe is not None:
        refuse_probe(arguments)
    file_options = [option for option in ("kernel", "arch", "out") if getattr(arguments, option) is not None]
    if arguments.waits:
        file_options.append("waits")
    if arguments.ptx is None and file_options:
        arguments.refuse(
            f"--{file_options[0]} needs a file with kernels to probe: PTX, cubin, fatbin, executable or object"
        )
    if arguments.ptx is not None and not arguments.ptx.is_file():
        advice = "not a regular file; pass a PTX, cubin, fatbin, executable or object"
        arguments.refuse(f"{arguments.ptx}: {advice if arguments.ptx.exists() else 'no such file'}")


def is_no_probe(word: str) -> bool:
    """Return whether a word is a file, and neither a probe file nor the name of a probe or a set."""
    path = Path(word)
    if path.suffix in _IMAGES:
        return True
    return path.is_file() and path.suffix not in _PROBE_FILES and find_set(word) is None and find_probe(word) == path


def refuse_probe(arguments: argparse.Namespace) -> None:
    """Refuse what is not one probe."""
    if Path(arguments.probe).suffix in _IMAGES:
        arguments.refuse(
            f"{arguments.probe} is not a probe; pass the probe before the file: tui-probe check PROBE {arguments.probe}"
        )
    try:
        if (probe_set := find_set(arguments.probe)) is not None:
            names = list(dict.fromkeys(split_choice(choice)[0] for choice in probe_set.choices))
            waits = "; --waits needs no probe: tui-probe check FILE --waits" if arguments.waits else ""
            arguments.refuse(f"{arguments.probe} is a set of probes; check one of them: {', '.join(names)}{waits}")
        find_probe(arguments.probe)
    except ProbeFileError as error:
        arguments.refuse(str(error))


def check_probe(arguments: argparse.Namespace) -> CheckResult:
    """Check the probe, alone or in the kernels of a file, or list the waits of these. Raises ProbeError."""
    probe = fold_sums(load_probe(arguments.probe)) if arguments.probe is not None else None
    assembler = Assembler()
    tool = next(iter(assembler.tools()), None)
    if arguments.ptx is None:
        return CheckResult(probe, tool)
    with Progress() as reading:
        file = read_kernel_file(arguments.ptx)
        architectures = {arch for tool in assembler.tools() for arch in tool_architectures(tool)}
        number = int(re.sub(r"\D", "", arguments.arch)) if arguments.arch else None
        in_sass = probe is None or probe.needs_machine_code
        kernels = select_kernels(file, arguments.kernel or (), number, architectures, reading, in_sass=in_sass)
    with work_folder(arguments.out) as folder:
        outcomes = try_on_kernels(probe, kernels, arguments, folder, assembler)
        return CheckResult(probe, tool, file, outcomes, arguments.out)


def try_on_kernels(
    probe: Probe | None,
    kernels: Sequence[FileKernel],
    arguments: argparse.Namespace,
    folder: Path,
    assembler: Assembler,
) -> list[tuple[KernelCheck, ProcessLog]]:
    """The probe in each kernel, or its wait sites. Raises LaunchError where the folders cannot be written."""
    keep = arguments.out is not None
    try:
        with Progress("checking") as checking:
            if probe is None:
                return list_waits(kernels, arguments.arch, folder, assembler, checking)
            return check_kernels(
                probe,
                kernels,
                arguments.arch,
                folder,
                assembler,
                keep=keep,
                waits=arguments.waits,
                progress=checking,
            )
    except OSError as error:
        raise LaunchError(f"--out {folder}: {error.filename}: {error.strerror}") from error


@contextlib.contextmanager
def work_folder(out: Path | None) -> Iterator[Path]:
    """Yield the folder in which kernels are prepared: that of ``--out``, or a temporary one."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="tui-probe-check-", ignore_cleanup_errors=True) as name:
        yield Path(name)
