/* What the simulated GPU does not have, and programs ask for by name: a word on what to do instead, not only a code. */

#include "driver.h"
#include "report.h"

#define REFUSED(name, text)              \
    API name(void)                       \
    {                                    \
        report("%s: %s", #name, text);   \
        return CUDA_ERROR_NOT_SUPPORTED; \
    }

#define TENSOR_MAPS                                                                                                  \
    "the simulated GPU has no tensor maps. Have kernels copy with cp.async, or with cp.async.bulk from an address; " \
    "Triton does for an sm_80 GPU (--sim-arch sm_80). See tui-probe help simulated-gpu"
#define TEXTURES                                                                                       \
    "the simulated GPU has no textures and surfaces. Have kernels read the data through a pointer, in" \
    " memory of cuMemAlloc, or run on an NVIDIA GPU. See tui-probe help simulated-gpu"

REFUSED(cuTensorMapEncodeTiled, TENSOR_MAPS)
REFUSED(cuTensorMapEncodeIm2col, TENSOR_MAPS)
REFUSED(cuTensorMapEncodeIm2colWide, TENSOR_MAPS)
REFUSED(cuTensorMapReplaceAddress, TENSOR_MAPS)
REFUSED(cuArrayCreate_v2, TEXTURES)
REFUSED(cuArray3DCreate_v2, TEXTURES)
REFUSED(cuMipmappedArrayCreate, TEXTURES)
REFUSED(cuTexObjectCreate, TEXTURES)
REFUSED(cuSurfObjectCreate, TEXTURES)
