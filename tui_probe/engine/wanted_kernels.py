"""Which kernels of a file are meant: by exact name, else by a regular expression; of C++ names in both spellings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImageError
from tui_probe.near import meant
from tui_probe.trace.demangle import demangle

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tui_probe.engine.kernel_file import FoundKernel, KernelFile

_NO_PTX: Final = "compile with PTX in it, such as -gencode arch=compute_90,code=compute_90"
_ARGUMENTS: Final = re.compile(r"[<(].*", re.DOTALL)
_MOST_MEANT: Final = 3
_MOST_LISTED: Final = 5


def wanted_kernels(
    file: KernelFile,
    words: Sequence[str],
    arch: int | None,
    known: Collection[int],
    progress: Callable[[float], object] = lambda _: None,
) -> list[FoundKernel]:
    """The kernels of a file that ``words`` name, or all; ``arch`` and ``known`` as for ``KernelFile.kernels``.

    Where all words are exact names, the file is read no further than needed. Raises ImageError where there is nothing
    of that name, or no kernel that such a device runs.
    """
    found: list[FoundKernel] = []
    missing = set(words)
    try:
        for kernel in file.kernels(arch, known, progress):
            found.append(kernel)
            missing -= _spellings(kernel) if words else set()
            if words and not missing:
                break
    except ImageError as error:
        raise ImageError(f"{file.path}: {error}") from error
    if not found:
        raise ImageError(f"{file.path}: {_nothing(file, arch)}")
    return _picked(file, found, words, arch) if words else found


def _picked(
    file: KernelFile, found: Sequence[FoundKernel], words: Iterable[str], arch: int | None
) -> list[FoundKernel]:
    named = [kernel for word in words for kernel in _named(file, found, word, arch)]
    return list({kernel.name: kernel for kernel in named}.values())


def _named(file: KernelFile, found: Sequence[FoundKernel], word: str, arch: int | None) -> list[FoundKernel]:
    """Those that a word means. Raises ImageError for none."""
    exactly = [kernel for kernel in found if word in _spellings(kernel)]
    if exactly:
        return exactly
    fits = _pattern(word)
    if fitting := [kernel for kernel in found if any(map(fits, _spellings(kernel)))]:
        return fitting
    gpu = f" for sm_{arch}" if arch else ""
    raise ImageError(
        f"{file.path}: no kernel {word}{gpu} among the {len(found)} in it{_no_pattern(word)}{_instead(found, word)}"
    )


def _no_pattern(word: str) -> str:
    """That a word is no regular expression, and why; "" where it is one."""
    try:
        re.compile(word)
    except re.error as error:
        return f"; it is no regular expression: {error}"
    return ""


def _instead(found: Sequence[FoundKernel], word: str) -> str:
    """The names that may be meant, or all where they are few."""
    near = meant(word, dict.fromkeys(name for kernel in found for name in _known_as(kernel)), _MOST_MEANT)
    few = len(found) <= _MOST_LISTED
    return near or (f"; there are {', '.join(next(_known_as(kernel)) for kernel in found)}" if few else "")


def _pattern(word: str) -> Callable[[str], object]:
    """Whether a name has it, as a regular expression or as it stands: C++ names are full of signs."""
    try:
        pattern = re.compile(word)
    except re.error:
        return lambda name: word in name
    return lambda name: pattern.search(name) or word in name


def _spellings(kernel: FoundKernel) -> set[str]:
    return {kernel.name, demangle(kernel.name)}


def _known_as(kernel: FoundKernel) -> Iterator[str]:
    """What a person would call it: the name without the types, of which there are fewer; then the compiler's."""
    readable = demangle(kernel.name)
    if readable != kernel.name:
        yield _ARGUMENTS.sub("", readable).rpartition(" ")[2]
    yield kernel.name


def _nothing(file: KernelFile, arch: int | None) -> str:
    """Why a file has no kernel."""
    held = file.held()
    if not held:
        return f"there is neither PTX nor machine code of a kernel in it: {_NO_PTX}"
    if arch and not any(image.fits(arch) for image in file.images):
        return f"it has no kernel for a GPU of sm_{arch}, but {held}"
    return f"there is no kernel in it, in {held}"
