"""Three steps of a small model, with NVTX ranges around the steps and their parts. Prints a checksum."""

import torch
import triton
import triton.language as tl

ROWS, COLUMNS = 512, 1024


@triton.jit
def scale_rows(x, y, columns, BLOCK: tl.constexpr):
    """Each row of y is that of x by its largest element."""
    row = tl.program_id(0) * columns
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row + at, mask=at < columns, other=float("-inf"))
    tl.store(y + row + at, values / tl.max(values, 0), mask=at < columns)


@triton.jit
def add(x, y, out, length, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < length
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def main() -> None:
    torch.manual_seed(0)
    x = torch.rand(ROWS, COLUMNS, device="cuda") + 1
    y, out = torch.empty_like(x), torch.empty_like(x)
    for step in range(3):
        with torch.cuda.nvtx.range(f"step {step}"):
            with torch.cuda.nvtx.range("forward"):
                scale_rows[(ROWS,)](x, y, COLUMNS, BLOCK=COLUMNS)
                add[(ROWS * COLUMNS // 1024,)](x, y, out, ROWS * COLUMNS, BLOCK=1024)
            with torch.cuda.nvtx.range("update"):
                x = out * 0.5
    torch.cuda.synchronize()
    print(f"{x.double().sum().item():.6f}")


main()
