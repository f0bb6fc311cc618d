#include "memory_pressure.h"

#include "buffers.h"
#include "drain.h"
#include "graph_probed_copy.h"
#include "hook_state.h"
#include "signals.h"
#include "streams.h"

/* Launches that have not ended by then may wait for the calling thread. */
enum { PATIENCE_MILLISECONDS = 2000 };

bool memory_press(void)
{
    if (!hook_is_on())
        return false;
    signals_hold();
    buffers_press();
    probed_copies_give_back();
    drain_give_back(!streams_any_capture(), PATIENCE_MILLISECONDS);
    signals_release();
    return true;
}

void memory_relieve(void)
{
    buffers_relieve();
}
