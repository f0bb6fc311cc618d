"""Bias, activation and sums of rows in Triton, with a loss in each kernel; ``bias_layer.py fixed``: without."""

import sys

import torch
import triton
import triton.language as tl

ROWS, COLUMNS, STEPS = 4096, 4096, 20


@triton.jit
def activate(x_ptr, bias_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr, BY_ROWS: tl.constexpr):
    if BY_ROWS:
        row = tl.program_id(0)
        column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        mask = column < columns
    else:  # neighboring threads access different rows
        column = tl.program_id(0)
        row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        mask = row < rows
    x = tl.load(x_ptr + row * columns + column, mask=mask) + tl.load(bias_ptr + column)
    tl.store(y_ptr + row * columns + column, x * tl.sigmoid(1.702 * x), mask=mask)


@triton.jit
def sum_rows(y_ptr, sums_ptr, columns, ROWS_OF_BLOCK: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS_OF_BLOCK + tl.arange(0, ROWS_OF_BLOCK)
    total = tl.zeros((ROWS_OF_BLOCK, BLOCK), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(y_ptr + row[:, None] * columns + column[None, :])
    tl.store(sums_ptr + row, tl.sum(total, axis=1))


def main(*, fixed: bool) -> None:
    torch.manual_seed(1)
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    bias = torch.randn(COLUMNS, device="cuda")
    y, sums = torch.empty_like(x), torch.empty(ROWS, device="cuda")
    rows_of_block = 4 if fixed else 256
    grid = (ROWS, COLUMNS // 1024) if fixed else (COLUMNS, ROWS // 1024)
    for _ in range(STEPS):
        activate[grid](x, bias, y, ROWS, COLUMNS, BLOCK=1024, BY_ROWS=fixed)
        sum_rows[(ROWS // rows_of_block,)](y, sums, COLUMNS, ROWS_OF_BLOCK=rows_of_block, BLOCK=64)
    expected = (x + bias) * torch.sigmoid(1.702 * (x + bias))
    right = torch.allclose(y, expected, atol=1e-4), torch.allclose(sums, expected.sum(1), atol=1e-1)
    print("right", *right)


main(fixed=sys.argv[1:] == ["fixed"])
