"""Make the cubins one directory up: `python compile.py`, with nvcc 13.5 on PATH and Triton 3.9."""

import lzma
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
KERNELS = HERE.parent.parent / "ptx" / "sources" / "triton_kernels.py"
ARCHITECTURES = (75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121)
NOT_IN_TRITON = (88, 107)
PATH = re.compile(rb"(?<![ -~])/[!-~]+(?=\0)")


def neutral(path: re.Match[bytes]) -> bytes:
    """Another absolute path of the same length: ``/./././src``."""
    size = len(path[0])
    return b"/." * ((size - 4) // 2) + (b"/" if size % 2 else b"") + b"/src" if size > 4 else path[0]


def keep(name: str, cubin: bytes) -> None:
    """Pack a cubin, without paths of this machine."""
    (HERE.parent / f"{name}.cubin.xz").write_bytes(lzma.compress(PATH.sub(neutral, cubin), preset=9))


def with_nvcc(folder: Path) -> None:
    """Compile the CUDA source for every architecture."""
    for arch in ARCHITECTURES:
        output = folder / "lines.cubin"
        command = ["nvcc", "-std=c++17", "-cubin", "-lineinfo", f"-arch=sm_{arch}", HERE / "lines.cu", "-o", output]
        subprocess.run(command, check=True)
        keep(f"lines.sm_{arch}", output.read_bytes())


def with_triton(folder: Path) -> None:
    """Compile two kernels of the PTX corpus, whose module would also compile and write them for other targets."""
    import triton  # noqa: PLC0415
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415

    (folder / "kernels.py").write_text(KERNELS.read_text().partition("\nfor kernel, types")[0])
    sys.path.insert(0, str(folder))
    from kernels import CASES  # noqa: PLC0415

    for kernel, types, constants in CASES[:2]:
        names = [name for name in kernel.arg_names if name not in constants]
        signature = dict(zip(names, types.split(), strict=True)) | dict.fromkeys(constants, "constexpr")
        aligned = {(index,): [["tt.divisibility", 16]] for index in range(len(names))}
        for arch in sorted(set(ARCHITECTURES).difference(NOT_IN_TRITON)):
            source = triton.compiler.ASTSource(kernel, signature, constants, aligned)
            keep(f"{kernel.__name__}.sm_{arch}", triton.compile(source, target=GPUTarget("cuda", arch, 32)).asm["cubin"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        with_nvcc(Path(name))
        with_triton(Path(name))
