/* Descriptors of tui-probe among those of the program, which may close any of them and get the same number for a file of its
 * own. Ours are high, where programs do not look; each is known by its device and inode, and looked at before each use.
 * No write of tui-probe ends the program by SIGXFSZ, in any thread. */
#ifndef TUI_PROBE_OWN_FILE_H
#define TUI_PROBE_OWN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct own_file {
    int number; /* less than 0: none */
    dev_t device;
    ino_t inode;
};

#define NO_OWN_FILE ((struct own_file){.number = -1})

/* Takes a descriptor, moves it up and remembers what it is. NUMBER may be the -1 of a call that failed. False, with
 * errno, if there is none. */
bool own_file_take(struct own_file *file, int number);

/* Creates the file PATH in FOLDER and takes it, with FLAGS besides. Its owner may read and write it, and those of a
 * folder look into it, no matter what umask the program has: others of the run read it. */
bool own_file_create(struct own_file *file, int folder, const char *path, int flags);
bool own_folder_create(int folder, const char *path, mode_t mode);

/* The descriptor while it is ours, to be used immediately; -1 with an errno of EBADF if there is none or the program has
 * closed it. */
int own_file_number(const struct own_file *file);

/* Writes at offset AT, or where the file is with OWN_FILE_END. As write, but beyond the limit of files' sizes without a
 * signal. */
enum { OWN_FILE_END = -1 };
ssize_t own_file_write(const struct own_file *file, const void *bytes, size_t size, off_t at);

/* The same until all is written; false, with errno, if not. */
bool own_file_write_all(const struct own_file *file, const void *bytes, size_t size);

bool own_file_resize(const struct own_file *file, off_t size);

/* False, with errno, where writing has failed late. A descriptor that the program has got meanwhile stays open. */
bool own_file_close(struct own_file *file);

/* True if the program has closed a descriptor of tui-probe that was in use. */
bool own_file_any_lost(void);
void own_file_reset(void);

#endif
