#include "errors.h"

bool error_is_fault(CUresult error)
{
    switch (error) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

bool error_is_sticky(CUresult error)
{
    return error_is_fault(error) || error == CUDA_ERROR_DEINITIALIZED || error == CUDA_ERROR_ECC_UNCORRECTABLE ||
           error == CUDA_ERROR_CONTEXT_IS_DESTROYED || error == CUDA_ERROR_ASSERT;
}
