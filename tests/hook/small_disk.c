/* Preloaded before the hook: a disk as large, and as free, as the file that SMALL_DISK names says: "FREE TOTAL". With
 * SMALL_DISK_QUOTA nothing can be written at a place of a file: the user has no more blocks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at)
{
    if (!getenv("SMALL_DISK_QUOTA"))
        return syscall(SYS_pwrite64, file, bytes, size, at);
    errno = EDQUOT;
    return -1;
}

int fstatvfs(int file, struct statvfs *disk)
{
    const char *name = getenv("SMALL_DISK");
    FILE *sizes = name ? fopen(name, "r") : NULL;
    unsigned long long free_bytes = 0, total = 0;
    int n = sizes ? fscanf(sizes, "%llu %llu", &free_bytes, &total) : 0;
    (void)file;
    if (sizes)
        fclose(sizes);
    memset(disk, 0, sizeof *disk);
    disk->f_frsize = 1;
    disk->f_bavail = free_bytes;
    disk->f_blocks = total;
    return n == 2 ? 0 : -1;
}
