// Events: moments of simulated time.
#pragma once

#include "driver.h"

// Destroys the events of a context. The caller holds the driver's lock.
void events_destroy_owner(const struct context *owner);
