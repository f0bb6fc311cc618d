"""CuPy: element by element, reductions, sorts, transforms and products."""

import cupy

cupy.random.seed(0)
values = cupy.random.random((2048, 2048), dtype=cupy.float32)
total = 0.0
for step in range(150):
    scaled = cupy.tanh(values * (1 + step / 100)) + cupy.sqrt(values)
    total += float(scaled.sum()) + float(cupy.sort(scaled[step % 2048])[7])
    if step % 5 == 0:
        total += float(cupy.abs(cupy.fft.rfft(scaled, axis=1)).mean())
        total += float((scaled @ values).max())
print(f"{total:.4g}")
