"""Copy the source files of a kernel into its trace, where the policy allows it.

Only files that lines of the kernel name, that are text, that this user can read, and that may be copied: see
``SourcePolicy``. What cannot be copied is left out and nothing is said: the line numbers are there all the same. A
copy can be read by anyone who can read the file.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import tempfile
import threading
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.input_limits import SOURCE_FILE
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.source_lines import SOURCE_FOLDER, copy_name, files_of
from tui_probe.trace.trace_directory import TraceDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SUFFIXES: Final = frozenset(
    {".c", ".cc", ".cl", ".cpp", ".cu", ".cuh", ".cxx", ".f90", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp"}
    | {".jl", ".ll", ".mlir", ".mojo", ".ptx", ".py", ".pyi", ".pyx", ".rs", ".tcc", ".ttir", ".ttgir"}
)
_PACKAGE_DIRECTORIES: Final = frozenset({"site-packages", "dist-packages"})
_CACHE_DIRECTORIES: Final = (
    ".triton",
    ".cupy",
    ".numba",
    ".cache/jax",
    ".cache/numba",
    ".cache/torch",
    ".cache/tinygrad",
)
"""Directories of generated code in the home directory."""
_CACHE_VARIABLES: Final = (
    "TRITON_CACHE_DIR", "TRITON_HOME", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUPY_CACHE_DIR",
    "JAX_COMPILATION_CACHE_DIR", "NUMBA_CACHE_DIR",
)  # fmt: skip
_GENERATED_DIRECTORY: Final = re.compile(r"torchinductor_|ipykernel_|tmp\w*_?triton")
"""Folders of compilers in that for temporary files."""
_EDITABLE_PATH: Final = re.compile(r"""['"](/[^'"]+)['"]""")
_ENVIRONMENTS: Final = ("VIRTUAL_ENV", "CONDA_PREFIX")
MAX_COPY_BYTES: Final = 16 << 20
"""Bytes of all copies in a trace."""
_READABLE_MODE: Final = 0o444


class SourcePolicy:
    """Rules for the source files that may be copied by a run in ``folder`` with this ``environment``: PTX can name any
    file, and traces are passed on.

    A file must have a suffix of source code and lie, once links are followed, below one of these: the working
    directory, packages installed for any Python (also as links to a checkout), folders of ``PYTHONPATH``, and the
    folders where compilers keep what they generate.
    """

    def __init__(self, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._folder = working_directory() if folder is None else folder
        self._environment = os.environ if environment is None else environment

    def allows(self, path: Path) -> bool:
        """Return whether a file may be copied. False for one that is not there."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return False
        if real.suffix.lower() not in SUFFIXES:
            return False
        return (
            any(part in _PACKAGE_DIRECTORIES for part in real.parts)
            or any(real.is_relative_to(root) for root in self._roots)
            or self._is_generated(real)
        )

    @cached_property
    def _roots(self) -> tuple[Path, ...]:
        return tuple(
            {root.resolve() for root in self._named_directories() if root.is_absolute() and root != Path(root.anchor)}
        )

    def _named_directories(self) -> Iterator[Path]:
        yield self._folder
        home = self._environment.get("HOME")
        for name in _CACHE_DIRECTORIES if home else ():
            yield Path(home or "", name)
        for name in _CACHE_VARIABLES:
            if value := self._environment.get(name):
                yield Path(value)
        for entry in self._environment.get("PYTHONPATH", "").split(os.pathsep):
            if entry:
                yield self._folder / entry
        yield from (root for root in self._editable_checkouts() if self._is_narrow(root))

    def _editable_checkouts(self) -> Iterator[Path]:
        """Yield the directories that installed packages link to, as pip and setuptools list them."""
        prefixes = {sys.prefix, *(self._environment.get(name, "") for name in _ENVIRONMENTS)} - {""}
        for prefix in prefixes:
            for packages in Path(prefix, "lib").glob("python3*/site-packages"):
                for path in [*packages.glob("*.pth"), *packages.glob("__editable__*_finder.py")]:
                    yield from _link_targets(path)

    def _is_narrow(self, root: Path) -> bool:
        """Return whether a directory contains neither HOME nor TMPDIR: installers may name the one above a checkout."""
        return not any(
            base.is_relative_to(root)
            for base in (Path(self._environment.get("HOME") or "/"), self._temporary_directory)
        )

    @property
    def _temporary_directory(self) -> Path:
        return Path(self._environment.get("TMPDIR") or tempfile.gettempdir()).resolve()

    def _is_generated(self, real: Path) -> bool:
        if not real.is_relative_to(self._temporary_directory):
            return False
        top_directory, *parts = real.relative_to(self._temporary_directory).parts
        return bool(parts) and _GENERATED_DIRECTORY.match(top_directory) is not None


def working_directory() -> Path:
    """Return the current directory; where it was deleted, the link to it, below which no file is found."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/proc/self/cwd")


def _link_targets(path: Path) -> Iterator[Path]:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return
    if path.suffix == ".pth":
        yield from (Path(line) for line in text.splitlines() if line.startswith("/"))
    else:
        yield from map(Path, _EDITABLE_PATH.findall(text))


class SourceCopies:
    """Copies source files into traces, each file of a trace once. Safe to use from several threads."""

    def __init__(self, max_bytes: int = MAX_COPY_BYTES, policy: SourcePolicy | None = None) -> None:
        """Set limits. ``max_bytes``: maximum bytes of all copies of a trace; files beyond it are left out."""
        self._max_bytes = max_bytes
        self._policy = policy or SourcePolicy()
        self._requested_files: set[tuple[Path, str]] = set()
        self._remaining_bytes: dict[Path, int] = {}
        self._lock = threading.Lock()

    def add(self, prepared_directory: Path, kernel_directory: Path | None = None) -> None:
        """Copy the files that the lines of a kernel name. ``prepared_directory`` has its ``pruned.ptx``;
        ``kernel_directory`` is ``TRACE/kernel/NAME`` if that is another one.
        """
        trace = (kernel_directory or prepared_directory).parent.parent
        for path in files_of(prepared_directory):
            with self._lock:  # not while a file is copied: kernels that name other files need not wait for it
                is_new = (trace, path) not in self._requested_files
                self._requested_files.add((trace, path))
            if is_new:
                with contextlib.suppress(OSError):
                    self._copy(trace, path)

    def _copy(self, trace: Path, path: str) -> None:
        """Copy a readable source file into the trace, if its share allows it. Raises OSError."""
        text = readable_text(Path(path)) if self._policy.allows(Path(path)) else None
        if text is None or not self._reserve(trace, len(text)):
            return
        mode = stat.S_IMODE(Path(path).stat().st_mode) & _READABLE_MODE
        with TraceDirectory(trace) as folder:
            folder.make(SOURCE_FOLDER)
        with TraceDirectory(trace, SOURCE_FOLDER) as folder:
            folder.write(copy_name(path), text, mode | stat.S_IWUSR)

    def _reserve(self, trace: Path, size: int) -> bool:
        with self._lock:
            remaining = self._remaining_bytes.setdefault(trace, self._max_bytes)
            if size <= remaining:
                self._remaining_bytes[trace] = remaining - size
            return size <= remaining


def readable_text(path: Path) -> bytes | None:
    """Return the bytes of a text file within the size limit, None for any other file. Raises OSError."""
    if not path.is_file() or path.stat().st_size > SOURCE_FILE.maximum:
        return None
    data = read_within(path, SOURCE_FILE)
    return None if b"\0" in data else data
