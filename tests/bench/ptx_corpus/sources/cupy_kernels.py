"""``python cupy_kernels.py FOLDER``: CuPy's own CUDA sources to PTX, by NVRTC; no GPU and no driver are needed."""

import ctypes
import importlib
import pkgutil
import sys
import warnings
from collections import Counter
from pathlib import Path

import cupy
import cupyx.scipy
import nvidia.cu13

ARCH = "sm_90"
OF_A_TEMPLATE = 2
"""Instances taken of each template: others differ in a type only."""
OMITTED = ("cupy.testing",)
ROOT = Path(nvidia.cu13.__path__[0])
CUPY = Path(cupy.__path__[0]) / "_core" / "include"
INCLUDES = [CUPY, *(CUPY / "cupy" / "_cccl" / part for part in ("libcudacxx", "thrust", "cub")), ROOT / "include"]

sources: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []


class Noted:
    """Instead of CuPy's RawModule and RawKernel: its source is noted, and nothing else happens."""

    def __init__(
        self, code: str, *_names: str, options: tuple[str, ...] = (), name_expressions: object = None, **_: object
    ):
        sources.append((code, tuple(name_expressions or ()), tuple(options)))

    def __getattr__(self, name: str) -> object:
        return lambda *_, **__: None


def chosen(names: tuple[str, ...]) -> list[str]:
    seen: Counter[str] = Counter()
    kernels = []
    for name in names:
        base = name.partition("<")[0]
        seen[base] += 1
        if seen[base] <= OF_A_TEMPLATE:
            kernels.append(name)
    return kernels


def compiled(nvrtc: ctypes.CDLL, code: str, names: list[str], options: list[str]) -> str | None:
    """The PTX of a source; None if NVRTC by itself does not compile it."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"module.cu", 0, None, None)
    for name in names:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    given = [f"-arch={ARCH}", "-default-device", *options, *(f"-I{path}" for path in INCLUDES)]
    encoded = (ctypes.c_char_p * len(given))(*(option.encode() for option in given))
    if nvrtc.nvrtcCompileProgram(program, len(given), encoded):
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        print(f"not compiled: {names[:1] or code[:40]}: {log.value.decode()[:300]}", file=sys.stderr)
        return None
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, text)
    return text.value.decode()


def note_sources() -> None:
    cupy.RawModule = cupy.RawKernel = Noted
    for package in (cupyx.scipy, cupy):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(OMITTED):
                try:
                    importlib.import_module(module.name)
                except ImportError as error:  # a module of a library that is not installed, such as cuFFT
                    print(f"not imported: {module.name}: {error}", file=sys.stderr)


def main() -> None:
    warnings.simplefilter("ignore")
    note_sources()
    nvrtc = ctypes.CDLL(str(next((ROOT / "lib").glob("libnvrtc.so.*"))))
    for number, (code, names, options) in enumerate(sources):
        text = compiled(nvrtc, code, chosen(names), list(options or ("-std=c++17",)))
        if text is not None:
            (Path(sys.argv[1]) / f"cupy_{number:02}.ptx").write_text(text)


main()
