"""cuda.core: NVRTC compiles a kernel, which is launched through cuda-python."""

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """extern "C" __global__ void scale(float *x, float factor, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= factor; }"""

device = Device()
device.set_current()
stream = device.create_stream()
major, minor = device.compute_capability
program = Program(SOURCE, "c++", ProgramOptions(arch=f"compute_{major}{minor}", lineinfo=True))
kernel = program.compile("ptx").get_kernel("scale")
from gpu import Array  # the context exists now

x = Array(np.arange(1000, dtype=np.float32))
launch(stream, LaunchConfig(grid=4, block=256), kernel, x.address, np.float32(3), np.int32(1000))
stream.sync()
np.testing.assert_array_equal(x.download(), 3 * np.arange(1000, dtype=np.float32))
print("ok")
