"""A Triton matrix product whose blocks go through the output in groups, which the L2 cache likes. Prints a checksum."""

import torch
import triton
import triton.language as tl

M, N, K = 2048, 2048, 2048


@triton.jit
def grouped_matmul(
    a, b, c, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr
):
    block = tl.program_id(0)
    columns = tl.cdiv(N, TILE_N)
    group = block // (GROUP * columns)
    first = group * GROUP
    height = min(tl.cdiv(M, TILE_M) - first, GROUP)
    row = first + (block % (GROUP * columns)) % height
    column = (block % (GROUP * columns)) // height
    rows = (row * TILE_M + tl.arange(0, TILE_M)) % M
    cols = (column * TILE_N + tl.arange(0, TILE_N)) % N
    inner = tl.arange(0, TILE_K)
    left = a + rows[:, None] * K + inner[None, :]
    right = b + inner[:, None] * N + cols[None, :]
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for k in range(0, K, TILE_K):
        x = tl.load(left, mask=inner[None, :] < K - k, other=0.0)
        y = tl.load(right, mask=inner[:, None] < K - k, other=0.0)
        total = tl.dot(x, y, total)
        left += TILE_K
        right += TILE_K * N
    out_rows = row * TILE_M + tl.arange(0, TILE_M)
    out_cols = column * TILE_N + tl.arange(0, TILE_N)
    inside = (out_rows[:, None] < M) & (out_cols[None, :] < N)
    tl.store(c + out_rows[:, None] * N + out_cols[None, :], total.to(tl.float16), mask=inside)


def main() -> None:
    torch.manual_seed(0)
    a, b = (torch.randn(rows, columns, device="cuda", dtype=torch.float16) for rows, columns in ((M, K), (K, N)))
    c = torch.empty(M, N, device="cuda", dtype=torch.float16)
    for _ in range(3):
        grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128),)
        grouped_matmul[grid](a, b, c, M, N, K, TILE_M=128, TILE_N=128, TILE_K=64, GROUP=8, num_warps=8, num_stages=3)
    torch.cuda.synchronize()
    print("grouped matmul", f"{c.double().abs().sum().item():.6e}")


if __name__ == "__main__":
    main()
