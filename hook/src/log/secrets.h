/* Secrets in a command line, which goes into a log that people share: by pattern, so not all of them. */
#pragma once

#include <stddef.h>

/* Copies the words of a command line, each with a NUL behind it, and puts *** instead of what looks like a
   password, a token or a key; blanks are between the words of the copy. Returns its length, less than `size`. */
size_t secrets_masked(char *copy, size_t size, const char *words, size_t length);
