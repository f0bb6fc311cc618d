/* Wrappers of the functions by which a program says what of it to profile. */
#include "control.h"
#include "hook_state.h"
#include "real.h"
#include "settings.h"

/* The program's call succeeds or fails as it does without us; what it says of the range holds either way. */
static void range(bool open)
{
    if (settings.capture_range && hook_active())
        control_gate(CONTROL_CAPTURE_RANGE, open);
}

CUresult cuProfilerStart(void)
{
    range(true);
    return REAL_OR_NOT_FOUND(cuProfilerStart);
}

CUresult cuProfilerStop(void)
{
    range(false);
    return REAL_OR_NOT_FOUND(cuProfilerStop);
}
