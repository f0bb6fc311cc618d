"""Images, pruned kernels and prepared kernels that several probes or runs share, each made once."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from tui_probe.engine.cache import Cache, KeyLocks, digest
from tui_probe.engine.image_kernels import fitting_cubins, ptx_of_kernel
from tui_probe.engine.probed_forms import LARGEST_BLOCK
from tui_probe.engine.whole_files import put_file, put_link, read_file, write_file
from tui_probe.ptx.images import HeldPtx, held_ptx, image_entries, image_kind
from tui_probe.ptx.parser import parse
from tui_probe.trace.kernel_files import SITES_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from concurrent.futures import Future

    from tui_probe.binaries.fatbin import FatbinEntry
    from tui_probe.engine.assembler import AssemblyReport
    from tui_probe.errors import ToolchainError
    from tui_probe.probe_model.probe import Probe
    from tui_probe.ptx.tree import Module
    from tui_probe.toolchain import Tool

LoadKind: TypeAlias = Literal["bin", "ptx"]
MachineCode: TypeAlias = Literal["auto", "all", "off"]
"""Kernels without PTX that are probed in SASS. Of closed libraries the hook asks with ``all`` only."""
FileIdentity: TypeAlias = tuple[int, int, int, int]
"""Device, inode, size and time of a file: links to it have the same."""
_DIGEST_PART: Final = 1 << 20
_DIGEST_THREADS: Final = 4
"""Threads that compute the digest of an image: 28 MB take one of them 30 ms, for which a launch waits."""
_MAX_IMAGE_BYTES: Final = 256 << 20
"""Bytes of images that are kept in memory, apart from the newest one, which may be larger."""
_MAX_ASSEMBLIES: Final = 256
"""Kernels whose assemblies are remembered: the probes of one ask for it at about the same time."""
PRUNED_FILE: Final = "pruned.bin"
PROBED_PTX: Final = "probed.ptx"


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """``load``: what the driver is given, machine code or PTX. The filters are those of the run, for the log.

    ``samples_blocks``: only the blocks of a sample are probed, which the hook tells each launch.
    """

    load: LoadKind = "bin"
    kernels: str = ""
    excluded_kernels: str = ""
    sources: int = 0
    """Bytes that copies of source files may have in each trace; 0: there are none."""
    samples_blocks: bool = False
    folder: str = ""
    """Subdirectory of a kernel's directory for the files of this probe; "" for a single probe."""
    machine_code: MachineCode = "auto"
    """Kernels without PTX that are probed in SASS; the hook leaves out closed libraries."""
    max_assembled_snippets: int | None = None
    """Snippets of a kernel whose PTX is assembled; one with more gets them in SASS if it can. None: always PTX."""


@dataclass(slots=True)
class OriginalModule:
    """One PTX module of an image. ``saved_path`` is where its text already is on disk.

    Bodies are parsed when a kernel needs them: ``lock`` is for those who may be the first.
    """

    text: str
    module: Module
    saved_path: Path | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, path: Path) -> None:
        """Put the text at ``path``; a copy that exists is linked to, for an image may hold hundreds of kernels."""
        if self.saved_path is not None and put_link(self.saved_path, path):
            return
        put_file(path, self.text.encode())
        self.saved_path = path


@dataclass(slots=True)
class _Image:
    kind: str
    size: int
    ptx_texts: list[HeldPtx]
    cubins: list[FatbinEntry]
    originals: dict[int, OriginalModule] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def read(cls, image: bytes) -> _Image:
        """Raise ImageError."""
        return cls(image_kind(image), len(image), held_ptx(image), list(image_entries(image)))


class SharedDigests:
    """Digests of images, computed once for all processes forked from this one: that takes 0.1 s for a library's image,
    and each of its kernels may be prepared by another process.

    The place of a file is that of a hash of its identity: another file there takes it over. Processes write without a
    lock; a record with parts of two writers has a wrong check and counts as none.
    """

    _SLOT_COUNT: Final = 1024
    _RECORD: Final = struct.Struct("=3Qq64s16s")
    """Identity of the file, digest, check."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self._SLOT_COUNT * self._RECORD.size)

    def get(self, file: FileIdentity) -> bytes | None:
        """Return the digest of a file; None if no process has computed it."""
        *identity, image_digest, check = self._RECORD.unpack_from(self._memory, self._offset(file))
        is_whole = tuple(identity) == file and check == self._check(file, image_digest)
        return image_digest if is_whole else None

    def put(self, file: FileIdentity, image_digest: bytes) -> None:
        """Keep the digest of a file."""
        record = self._RECORD.pack(*file, image_digest, self._check(file, image_digest))
        offset = self._offset(file)
        self._memory[offset : offset + len(record)] = record

    def _offset(self, file: FileIdentity) -> int:
        return hash(file) % self._SLOT_COUNT * self._RECORD.size

    @staticmethod
    def _check(file: FileIdentity, image_digest: bytes) -> bytes:
        return digest(repr(file).encode(), image_digest)[:16].encode()


class ImageCache:
    """Reads images, finds the PTX of kernels and keeps what it parsed of the images last used.

    Images are found again by their bytes, whose hash Python computes once per object: one file is one object.
    """

    def __init__(self) -> None:
        self._images: OrderedDict[bytes, _Image] = OrderedDict()
        self._files: OrderedDict[FileIdentity, bytes] = OrderedDict()
        self._digests = SharedDigests()
        self._lock = threading.Lock()

    def digest(self, path: Path) -> bytes:
        """Return the digest of an image. Raises OSError."""
        file = _identity(path)
        image_digest = self._digests.get(file)
        if image_digest is None:
            image_digest = digest_in_parts(self.read(path)).encode()
            self._digests.put(file, image_digest)
        return image_digest

    def read(self, path: Path) -> bytes:
        """Return the bytes of an image. Its kernels have links to one file, which is read once. Raises OSError."""
        file = _identity(path)
        with self._lock:  # while it is read, too: all kernels of an image ask for it at about the same time
            if (image := self._files.get(file)) is None:
                image = self._files[file] = read_file(path)
                while len(self._files) > 1 and sum(map(len, self._files.values())) > _MAX_IMAGE_BYTES:
                    self._files.popitem(last=False)
            self._files.move_to_end(file)
            return image

    def find(self, image: bytes, entry: str, arch: int, *, simulated: bool = False) -> tuple[OriginalModule, str]:
        """Return the PTX module with the kernel ``entry`` for a device of ``arch`` (90), and how it was found.

        A ``simulated`` device runs the PTX, even if the image has SASS. Raises ImageError if there is none, PtxError
        if it cannot be parsed.
        """
        parsed_image = self._parsed_image(image)
        with parsed_image.lock:  # of this image only: parsing takes long, and kernels of other images need not wait
            cubins = [] if simulated else fitting_cubins(parsed_image.cubins, arch)
            text = ptx_of_kernel(parsed_image.ptx_texts, cubins, entry, arch)
            original = parsed_image.originals.get(id(text))
            if original is None:
                original = parsed_image.originals[id(text)] = OriginalModule(text.text, parse(text.text))
        return (
            original,
            f"{parsed_image.kind} of {parsed_image.size} bytes: PTX for sm_{text.arch}, {len(text.text)} characters",
        )

    def _parsed_image(self, image: bytes) -> _Image:
        with self._lock:
            parsed_image = self._images.get(image)
            if parsed_image is None:
                parsed_image = self._images[image] = _Image.read(image)
                self._forget()
            self._images.move_to_end(image)
            return parsed_image

    def _forget(self) -> None:
        """Let go of the images used longest ago, except the last."""
        while len(self._images) > 1 and sum(image.size for image in self._images.values()) > _MAX_IMAGE_BYTES:
            self._images.popitem(last=False)


def digest_in_parts(image: bytes) -> str:
    """Return a digest of an image, from those of its parts: threads compute these at the same time."""
    view = memoryview(image)
    parts = [view[start : start + _DIGEST_PART] for start in range(0, len(view), _DIGEST_PART)]
    if len(parts) <= 1:
        return digest(image)
    with ThreadPoolExecutor(min(len(parts), _DIGEST_THREADS)) as pool:
        return digest(*(part.encode() for part in pool.map(digest, parts)))


def _identity(path: Path) -> FileIdentity:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class PrunedAssemblies:
    """Assemblies of kernels without a probe, by kernel. Safe to use from several threads."""

    def __init__(self) -> None:
        self._assemblies: OrderedDict[Path, tuple[Path, Future[AssemblyReport | ToolchainError]]] = OrderedDict()
        self._lock = threading.Lock()

    def assembly(
        self, kernel: Path, directory: Path, begin: Callable[[], Future[AssemblyReport | ToolchainError]]
    ) -> tuple[Path, Future[AssemblyReport | ToolchainError]]:
        """Return the directory in which ``kernel`` is assembled, and its assembly, which the first call starts."""
        with self._lock:  # ``begin`` only submits the work
            if kernel not in self._assemblies:
                self._assemblies[kernel] = directory, begin()
                while len(self._assemblies) > _MAX_ASSEMBLIES:
                    self._assemblies.popitem(last=False)
            return self._assemblies[kernel]

    def wait(self, kernel: Path) -> Path | None:
        """Wait for the assembly of a kernel, and return the folder in which it was made; None if none was begun."""
        with self._lock:
            assembly = self._assemblies.get(kernel)
        if assembly is None:
            return None
        assembly[1].result()
        return assembly[0]


def link_pruned_binary(source: Path, directory: Path) -> None:
    """Link, or copy, the binary that another probe's preparation assembled. Raises OSError."""
    try:
        os.link(source / PRUNED_FILE, directory / PRUNED_FILE)
    except OSError:
        shutil.copyfile(source / PRUNED_FILE, directory / PRUNED_FILE)


# Prepared kernels in the cache: their files, their key, and the directory restored from them.
#
# The key is the digest of all inputs of the preparation: the image's bytes, the kernel's name, the device, the
# probe's name and text, our own code, the assemblers, and the load kind. So a look-up parses nothing.

_CODE_FOLDERS: Final = ("binaries", "dsl", "engine", "probe_model", "ptx", "sass")
_CODE_FILES: Final = ("toolchain.py", "trace/kernel_files.py", "trace/sites.py", "trace/source_lines.py")
"""Our files, with those in these folders, that decide what is written."""
PREPARED_FILES: Final = ("pruned.ptx", PROBED_PTX, "kernel.info", SITES_FILE, "pruned.bin", "probed.bin")
_ORIGINAL_ENTRY: Final = "original.ptx"
_DIRECTORY_MARK: Final = "\0directory\0"
"""Placeholder in stored ptxas output for the directory in which it worked."""


class DriverNeed(StrEnum):
    """Features used by a prepared kernel that the next driver may not allow."""

    SLOTS = "slots"
    """Values kept in slots."""
    PRUNED = "pruned"
    """A cubin of its own."""
    SHORT_RECORDS = "short_records"
    """Records of phases in shorter code."""
    COPIES = "copies"
    """Records of bulk copies only."""


class RestoredKernel(NamedTuple):
    """A kernel prepared before: the file to ``load``, the ``source`` of the PTX, and the text of kernel.info.

    ``log_text`` is the output of the assemblers. ``is_ahead``: this run prepared it, ahead of its first launch.
    """

    load: str
    source: str
    log_text: str
    info: str
    is_ahead: bool


class KernelCache:
    """The prepared kernels of one probe, one choice of what is loaded and one set of assemblers."""

    def __init__(self, cache: Cache, probe: Probe, options: PrepareOptions, tools: Sequence[Tool]) -> None:
        self._cache = cache
        options_text = repr((options.load, options.samples_blocks, options.max_assembled_snippets))
        assemblers = repr([(str(tool.path), tool.version) for tool in tools])
        self.input_digest = digest(
            *(part.encode() for part in (code_digest(), assemblers, options_text, probe.name, probe.source)),
            repr([own_map.folded for own_map in probe.maps]).encode(),
        )
        """Digest of all inputs except the image, the kernel and the device."""
        self._original_paths: dict[str, Path] = {}
        self.locks = KeyLocks(cache.folder)

    def key(self, image_digest: bytes, arch: str, name: str) -> str:
        """Return the key of one kernel of an image with that digest on a device of ``arch``."""
        inputs = self.input_digest, arch, name
        return digest(*(text.encode("utf-8", "surrogateescape") for text in inputs), image_digest)

    def entry_path(self, key: str) -> Path:
        """Return the path of a key's entry."""
        return self._cache.path(key)

    def restore(
        self,
        key: str,
        directory: Path,
        kernel: Path | None = None,
        threads: int = 0,
        *,
        allows: Callable[[DriverNeed], bool] = lambda _: True,
    ) -> RestoredKernel | None:
        """Fill a folder from the cache; None if that kernel is not in it, or not all of it, or needs what is not
        allowed any more, or has too many registers for a block of ``threads``. What does not depend on the probe goes
        to the folder ``kernel``, if that is another one. Raises OSError.
        """
        entry = self._cache.get(key)
        if entry is None or not all(allows(DriverNeed(need)) for need in entry["needs"].decode().split()):
            return None
        if threads > int(entry["threads"]):
            return None
        original = entry["original"].decode()
        if original and not self._write_original(original, (kernel or directory) / _ORIGINAL_ENTRY):
            return None
        for file in PREPARED_FILES:
            if file in entry:
                write_file(directory / file, entry[file])
        output = entry["said"].decode().replace(_DIRECTORY_MARK, str(directory))
        load, source, info = (entry[file].decode() for file in ("load", "found", "kernel.info"))
        return RestoredKernel(load, source, output, info, is_ahead=entry["ahead"].decode() == self._cache.run_id)

    def keep(
        self,
        key: str,
        directory: Path,
        kernel: Path,
        load: str,
        description: str,
        outputs: Sequence[str],
        driver_needs: Collection[DriverNeed] = (),
        threads: int = LARGEST_BLOCK,
        *,
        ahead: bool = False,
    ) -> None:
        """Put the kernel of finished folders into the cache, good for blocks of that many ``threads``. Raises
        OSError. ``ahead``: no launch has asked for it.
        """
        name = self._keep_original(kernel / _ORIGINAL_ENTRY) if (kernel / _ORIGINAL_ENTRY).exists() else ""
        log_text = "\n".join(outputs).replace(str(directory), _DIRECTORY_MARK)
        files = {file: (directory / file).read_bytes() for file in PREPARED_FILES if (directory / file).exists()}
        texts = {
            "original": name,
            "load": load,
            "found": description,
            "said": log_text,
            "needs": " ".join(driver_needs),
            "threads": str(threads),
            "ahead": self._cache.run_id if ahead else "",
        }
        self._cache.put(key, files | {field: text.encode() for field, text in texts.items()})

    def _keep_original(self, path: Path) -> str:
        """Put the image's PTX into the cache; the name of its entry."""
        original = read_file(path)
        name = digest(original)
        if name not in self._original_paths:  # many kernels of an image have it in common
            self._cache.put(name, {_ORIGINAL_ENTRY: original})
            self._original_paths[name] = path
        return name

    def _write_original(self, name: str, path: Path) -> bool:
        """Put the image's PTX there: as a link to a copy that this process wrote, else from its own entry."""
        if (original_path := self._original_paths.get(name)) is not None and put_link(original_path, path):
            return True
        entry = self._cache.get(name)
        if entry is None:
            return False
        put_file(path, entry[_ORIGINAL_ENTRY])
        self._original_paths[name] = path
        return True


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return the digest of the code that prepares kernels: a new version must not use kernels of an older one."""
    package = Path(__file__).parents[1]
    files = [str(package / file) for file in _CODE_FILES]
    for code_folder in _CODE_FOLDERS:  # not by Path.glob, which takes as long as reading the files
        for folder, _, names in os.walk(package / code_folder):
            files += [f"{folder}/{name}" for name in names if name.endswith(".py")]
    start = len(str(package))
    return digest(*(part for file in sorted(files) for part in (file[start:].encode(), Path(file).read_bytes())))
