"""CuPy's stream capture: kernels of its own, replayed."""

import cupy

stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    x = cupy.linspace(0, 1, 10000, dtype=cupy.float32)
    y = cupy.zeros_like(x)
    kernel = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = y * 0.5f + x", "step")
    kernel(x, y, y)
    stream.synchronize()
    stream.begin_capture()
    for _ in range(5):
        kernel(x, y, y)
    graph = stream.end_capture()
    for _ in range(20):
        graph.launch(stream=stream)
    stream.synchronize()
    print("cupy", f"{float(y.sum()):.6e}")
