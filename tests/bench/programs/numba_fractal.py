"""numba-cuda: a fractal, branches that diverge."""

import numpy
from numba import cuda


@cuda.jit
def fractal(image, zoom):
    x, y = cuda.grid(2)
    if x >= image.shape[1] or y >= image.shape[0]:
        return
    c = complex((x / image.shape[1] - 0.7) * 3 / zoom, (y / image.shape[0] - 0.5) * 2 / zoom)
    z, steps = 0j, 0
    while steps < 200 and z.real * z.real + z.imag * z.imag < 4:
        z = z * z + c
        steps += 1
    image[y, x] = steps


image = cuda.device_array((1024, 1024), numpy.int32)
for frame in range(300):
    fractal[(64, 64), (16, 16)](image, 1 + frame / 100)
print(int(image.copy_to_host().sum()))
