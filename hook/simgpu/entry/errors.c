#include "driver.h"

static const struct {
    CUresult value;
    const char *name, *text;
} results[] = {
#define CUDA_RESULT(name, value, text) {value, #name, text},
#include "results.def"
#undef CUDA_RESULT
};

static CUresult find(CUresult value, const char **answer, bool name)
{
    if (!answer)
        return CUDA_ERROR_INVALID_VALUE;
    *answer = NULL;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (results[i].value == value)
            *answer = name ? results[i].name : results[i].text;
    }
    return *answer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuGetErrorName(CUresult error, const char **name)
{
    return find(error, name, true);
}
API cuGetErrorString(CUresult error, const char **text)
{
    return find(error, text, false);
}
