/* References of the program to contexts that several of its libraries may hold: the primary context of each device, and
 * contexts that were attached to. */
#ifndef TUI_PROBE_CONTEXT_HOLDS_H
#define TUI_PROBE_CONTEXT_HOLDS_H

#include <stdbool.h>

#include "cuda_abi.h"

/* One thread at a time retains, releases or resets the primary context of DEVICE: the driver may use the handle of one
 * that is gone for the next one. */
void primary_context_lock(CUdevice device);
void primary_context_unlock(CUdevice device);

/* The program has retained the primary context of DEVICE, or released it. The lock of the device is held. */
void primary_context_retained(CUdevice device, CUcontext context);
void primary_context_released(CUdevice device);

/* The primary context of DEVICE, no matter who retained it; NULL: there is none. The lock of the device is held. */
CUcontext primary_context_of(CUdevice device);

/* True if a release by the program may be the last one. The lock of the device is held. */
bool primary_context_is_held_once(CUdevice device);

/* True if it is there at all, as the driver says. */
bool primary_context_is_active(CUdevice device);

/* True if CONTEXT is the primary context of a device, if it was retained through us. */
bool context_is_primary(CUcontext context);

/* The program has attached to CONTEXT once more. */
void context_attached(CUcontext context);

/* It detaches from it. False: that destroys the context. */
bool context_stays_attached(CUcontext context);

/* It is gone. */
void context_holds_forget(CUcontext context);

void context_holds_reset(void);

#endif
