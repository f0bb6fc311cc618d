#include "image_parts.h"

#include "device.h"
#include "graft_faults.h"
#include "settings.h"

const struct reason *image_parts_code_refused(const char *name, const struct image *image)
{
    const struct machine_code *code = image->code;
    if (!code)
        return reason(NO_PTX);
    const char *closed = code->closed ? code->closed : machine_code_closed_name(name);
    if (closed && settings.machine_code != MACHINE_CODE_ALL)
        return reason_with(CLOSED_LIBRARY, closed);
    return code->lost ? code->lost : graft_faults_refuse(name);
}

/* A driver that compiles the PTX of each image runs what the PTX says, also if the SASS is other code. */
static enum fatbin_ptx ptx_for(const struct image *image, unsigned capability)
{
    const enum fatbin_ptx ptx = image_ptx_for(image, capability);
    return ptx == FATBIN_PTX_OF_OTHER_CODE && settings.runs_ptx ? FATBIN_PTX_RUNS : ptx;
}

const struct reason *image_parts_choose(const char *name, const struct image *image, CUdevice device, unsigned *parts)
{
    const unsigned capability = device_capability(device);
    const enum fatbin_ptx ptx = ptx_for(image, capability);
    *parts = image->ptx ? FATBIN_PTX : 0;
    if (ptx == FATBIN_PTX_RUNS && settings.needs_machine_code && !image_parts_code_refused(name, image))
        *parts |= capability;
    if (ptx == FATBIN_PTX_RUNS || !capability)
        return image->ptx ? NULL : reason(NO_PTX);
    const struct reason *reason = image_parts_code_refused(name, image);
    if (!reason)
        *parts |= capability;
    if (ptx == FATBIN_PTX_OF_OTHER_CODE && reason && reason->code == REASON_NO_PTX)
        return reason(PTX_OF_OTHER_CODE);
    if (ptx == FATBIN_PTX_MAY_RUN || (ptx == FATBIN_PTX_NEWER && reason && reason->code == REASON_NO_PTX))
        return NULL; /* the engine tells which devices the PTX is for */
    return reason;
}
