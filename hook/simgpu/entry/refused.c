/* Functions that the simulated GPU lacks and programs look up by name: each call reports an alternative. */

#include "driver.h"
#include "report.h"

#define REFUSED(name, text)              \
    API name(void)                       \
    {                                    \
        report("%s: %s", #name, text);   \
        return CUDA_ERROR_NOT_SUPPORTED; \
    }

#define PIXELS                                                                                              \
    "tensor maps for im2col are not simulated, only tensor maps for tiles. Encode with "                    \
    "cuTensorMapEncodeTiled, as Triton and most of CUTLASS do, or run on an NVIDIA GPU. See tui-probe help" \
    " simulated-gpu"
#define TEXTURES                                                                                       \
    "the simulated GPU has no textures and surfaces. Have kernels read the data through a pointer, in" \
    " memory of cuMemAlloc, or run on an NVIDIA GPU. See tui-probe help simulated-gpu"

REFUSED(cuTensorMapEncodeIm2col, PIXELS)
REFUSED(cuTensorMapEncodeIm2colWide, PIXELS)
REFUSED(cuArrayCreate_v2, TEXTURES)
REFUSED(cuArray3DCreate_v2, TEXTURES)
REFUSED(cuMipmappedArrayCreate, TEXTURES)
REFUSED(cuTexObjectCreate, TEXTURES)
REFUSED(cuSurfObjectCreate, TEXTURES)
