#include "gate.h"

#include <stdatomic.h>

#include "control.h"
#include "nvtx.h"
#include "schedule.h"
#include "settings.h"

static atomic_uint_fast64_t generation; /* of the switch, as launches saw it last */

/* The switch was turned since a launch last looked: every kernel is new again. */
static void begin_anew(uint64_t now)
{
    if (atomic_exchange(&generation, now) != now)
        schedule_renew();
}

const struct reason *gate_closed(void)
{
    if (!control_is_on())
        return reason(SWITCHED_OFF);
    const uint64_t now = control_generation();
    if (now != atomic_load_explicit(&generation, memory_order_relaxed))
        begin_anew(now);
    return settings.nvtx && !nvtx_is_inside() ? reason(OUTSIDE_RANGE) : NULL;
}
