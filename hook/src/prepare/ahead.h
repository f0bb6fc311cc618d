/* Images go to the engine when they are loaded, which prepares their kernels ahead of the first launch. */
#ifndef TUI_PROBE_AHEAD_H
#define TUI_PROBE_AHEAD_H

#include "image.h"

/* Sends IMAGE, which the program has loaded, unless one with the same content was sent. Never waits for the engine: an
 * image that cannot be sent is left to the launches of its kernels. */
void ahead_image_loaded(struct image *image);

/* In a forked child, which may launch kernels of images that the parent has loaded: those were sent. */
void ahead_reset(void);

#endif
