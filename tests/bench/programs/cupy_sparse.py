"""CuPy: a power iteration with a sparse matrix, in many small launches."""

import cupy
from cupyx.scipy import sparse

rows = cupy.arange(200_000)
columns = (rows * 7919) % 200_000
matrix = sparse.csr_matrix((cupy.ones(200_000, dtype=cupy.float64), (rows, columns)), shape=(200_000, 200_000))
vector = cupy.linspace(0, 1, 200_000)
for _ in range(3000):
    vector = matrix @ vector + 0.1
    vector /= cupy.linalg.norm(vector)
print(f"{float(vector.sum()):.6g}")
