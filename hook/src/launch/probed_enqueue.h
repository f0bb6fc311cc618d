/* The driver's launch of a probed kernel, with the resources that were taken for it. */
#ifndef TUI_PROBE_PROBED_ENQUEUE_H
#define TUI_PROBE_PROBED_ENQUEUE_H

#include "launch.h"
#include "launch_resources.h"
#include "probed_launch.h"

/* Enqueues the probed kernel of RESOURCES for LAUNCH, with ARGUMENTS as room (NULL: there is none), and sets RESULT to
 * the driver's answer, after which launch_resources_launched is to be called. Returns why nothing was launched, and
 * the resources are given back; NULL if it was. */
const struct reason *probed_enqueue(const struct launch *launch, struct launch_resources *resources,
                                    struct arguments *arguments, CUresult *result);

#endif
