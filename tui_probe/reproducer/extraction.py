"""Write a directory that runs a saved launch without tui-probe: launchers in Python and C, and the launch as data.

``launch.json`` is read by launch.py, ``launch.h`` is included by launch.c; images and memory are copied from the trace.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from tui_probe.errors import TraceError, UsageError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.reproducer.kept_launch import IMAGES, MEMORY_AFTER, MEMORY_BEFORE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.reproducer.kept_launch import KeptLaunch

LAUNCHERS: Final = ("launch.py", "launch.c")
_TEMPLATES: Final = Path(__file__).parent
_OWNER_ONLY: Final = 0o600
_BYTES_PER_LINE: Final = 16
_TEXTURE_OPERATIONS: Final = re.compile(rb"\b(?:tex|tld4|txq|suld|sust|sured|suq)\.")


def extract(launch: KeptLaunch, directory: Path) -> None:
    """Write the directory, which is new or empty. Raises UsageError if it is not, TraceError for missing files.

    Memory may hold secrets: only the user can read what is written.
    """
    files = saved_files(launch)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UsageError(f"{directory} is not empty; pass a new directory")
        for name, path in files.items():
            _write(directory / name, path)
        for name in LAUNCHERS:
            _write(directory / name, _TEMPLATES / name)
        _write_text(directory / "launch.json", json.dumps(description(launch), indent=1) + "\n")
        _write_text(directory / "launch.h", c_header(launch))
        _write_text(directory / "README.txt", readme(launch))
    except OSError as error:
        raise UsageError(f"{error.filename or directory}: {error.strerror}; pass another directory") from error
    (directory / "launch.py").chmod(_OWNER_ONLY | 0o100)


def saved_files(launch: KeptLaunch) -> dict[str, Path]:
    """Return the saved files by name. Raises TraceError if one is missing, or not as long as launch.info states."""
    files = {name: path for name in (*IMAGES, MEMORY_BEFORE, MEMORY_AFTER) if (path := launch.file(name)) is not None}
    for name in (MEMORY_BEFORE, *([MEMORY_AFTER] if launch.has_result else [])):
        size = files[name].stat().st_size if name in files else 0
        if size != launch.saved_bytes or name not in files:
            raise TraceError(
                f"{launch.folder / name} has {size} bytes, not {launch.saved_bytes}: the program ended while the launch"
                " was saved, or the file was truncated; record the launch again"
            )
    if not set(IMAGES) & set(files):
        raise TraceError(f"{launch.folder}: the image of the kernel is missing; record the launch again")
    return files


def _write(target: Path, source: Path) -> None:
    with source.open("rb") as original, _create(target) as copy:
        shutil.copyfileobj(original, copy)


def _write_text(target: Path, text: str) -> None:
    with _create(target) as file:
        file.write(text.encode("utf-8", "surrogateescape"))


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb")


def description(launch: KeptLaunch) -> dict[str, Any]:
    """Return the launch as launch.py reads it."""
    return {
        "kernel": launch.name,
        "grid": launch.grid,
        "block": launch.block,
        "shared": launch.shared,
        "parameters": launch.parameters.hex(),
        "images": _image_names(launch),
        "function_attributes": launch.function_attributes,
        "launch_attributes": [(number, value.hex()) for number, value in launch.launch_attributes],
        "limits": launch.limits,
        "variables": [{"name": variable.name, "size": variable.size} for variable in launch.variables],
        "memory": [{"address": part.address, "size": part.size} for part in launch.memory],
        "has_result": launch.has_result,
    }


def _image_names(launch: KeptLaunch) -> list[str]:
    return [name for name in IMAGES if launch.file(name) is not None]


def c_header(launch: KeptLaunch) -> str:
    """Return the launch as launch.c includes it. Arrays end in an element that is not used: C has no empty ones."""
    arrays = (
        ("static const char *const images[]", [c_text(name) for name in _image_names(launch)], ""),
        ("static const unsigned grid[3]", map(str, launch.grid), ""),
        ("static const unsigned block[3]", map(str, launch.block), ""),
        ("static const unsigned char parameters[]", [*map(str, launch.parameters), "0"], ""),
        ("static const int function_attributes[][2]", _pairs(launch.function_attributes), "0"),
        (
            "static const struct {\n    unsigned id;\n    unsigned char value[64];\n} launch_attributes[]",
            [f"{{{number}, {{{', '.join(map(str, value))}}}}}" for number, value in launch.launch_attributes],
            "0",
        ),
        ("static const struct {\n    int limit;\n    size_t value;\n} limits[]", _pairs(launch.limits), "0"),
        (
            "static const struct {\n    const char *name;\n    size_t size;\n} variables[]",
            [f"{{{c_text(variable.name)}, {variable.size}u}}" for variable in launch.variables],
            "0",
        ),
        (
            "static const struct memory {\n    unsigned long long address;\n    size_t size;\n} memory[]",
            [f"{{{part.address:#x}u, {part.size}u}}" for part in launch.memory],
            "0",
        ),
    )
    return "\n".join([*_constants(launch), *(line for array in arrays for line in _array(*array)), ""])


def _constants(launch: KeptLaunch) -> Iterator[str]:
    yield "#include <stddef.h>\n"
    yield f"#define KERNEL {c_text(launch.name)}"
    yield f"#define SHARED_BYTES {launch.shared}u"
    yield f"#define PARAMETER_BYTES {len(launch.parameters)}"
    for name in ("function_attributes", "launch_attributes", "limits", "variables"):
        yield f"#define {name.upper().removesuffix('S')}_COUNT {len(getattr(launch, name))}"
    yield f"#define MEMORY_COUNT {len(launch.memory)}"
    yield f"#define HAS_RESULT {int(launch.has_result)}"


def _array(declaration: str, elements: Iterable[str], filler: str) -> Iterator[str]:
    values = [*elements, *([f"{{{filler}}}"] if filler else [])]
    yield f"\n{declaration} = {{"
    for start in range(0, len(values), _BYTES_PER_LINE):
        yield f"    {', '.join(values[start : start + _BYTES_PER_LINE])},"
    yield "};"


def _pairs(pairs: Sequence[tuple[int, int]]) -> list[str]:
    return [f"{{{number}, {value}}}" for number, value in pairs]


def c_text(text: str) -> str:
    """Return a C string literal of any text: a name in a trace may have any bytes."""
    encoded = text.encode("utf-8", "surrogateescape")
    printable = bytes(range(0x20, 0x7F)).translate(None, b'"\\?')
    return '"' + "".join(chr(byte) if byte in printable else f"\\{byte:03o}" for byte in encoded) + '"'


def readme(launch: KeptLaunch) -> str:
    """Return the text that says how to run it, and what differs from the program."""
    grid, block = (" x ".join(map(str, shape)) for shape in (launch.grid, launch.block))
    facts = [
        f"Launch {launch.number} of {launch.demangled!a}",
        f"Grid {grid}, block {block}, {launch.shared} bytes of dynamic shared memory, GPU {launch.architecture}.",
        f"Memory: {len(launch.memory)} allocations and {len(launch.variables)} variables,"
        f" {launch.saved_bytes} bytes. The saved memory may contain secrets of the program.",
        "",
        "python3 launch.py [--repeat N] [--device N]",
        "cc -O2 -o launch launch.c -ldl && ./launch [--repeat N]",
        "",
        "Both commands need only the CUDA driver (libcuda.so.1). Both commands map memory at the same addresses as"
        " the program,",
        "launch the kernel, and compare the memory with the program's memory after the launch. Exit status: 0 same,",
        "1 different, 2 launch failed. Floating-point atomics can give a different result in each run.",
        *([""] if (notes := list(differences(launch))) else []),
        *notes,
    ]
    return "\n".join(facts) + "\n"


def differences(launch: KeptLaunch) -> Iterator[str]:
    """Yield sentences about what of the program's launch the directory lacks."""
    if not launch.has_result:
        yield (
            "No result: in the program, the launch failed or did not end. Exit status 0: the launch ended here; 2: the"
            " launch failed."
        )
    if launch.unknown:
        addresses = ", ".join(f"{address:#x}" for address in launch.unknown)
        yield f"Not saved: memory at {addresses}, because the hook did not see its allocation."
    if not launch.variables_known:
        yield "Not saved: variables of the module (__device__, __constant__), because the kernel could not be prepared."
    if _reads_textures(launch):
        yield "Not saved: textures and surfaces of this kernel; launch.py and launch.c cannot repeat the launch."
    if launch.load_options:
        yield "Not repeated: JIT options that the program passed when it loaded the module."
    if launch.left_out:
        yield f"Not repeated: launch attributes {', '.join(map(str, launch.left_out))} (CUlaunchAttributeID)."


def _reads_textures(launch: KeptLaunch) -> bool:
    """Return whether the kernel's own PTX has an instruction for textures or surfaces; False without PTX."""
    path = launch.file(IMAGES[1])
    if path is None or path.stat().st_size > PTX_TEXT.maximum:
        return False
    code = path.read_bytes()
    entry = re.search(rb"\.entry\s+" + re.escape(launch.name.encode("utf-8", "surrogateescape")) + rb"\s*[({]", code)
    if entry is None:
        return False
    end = code.find(b".entry", entry.end())
    return _TEXTURE_OPERATIONS.search(code, entry.end(), end if end > 0 else len(code)) is not None
