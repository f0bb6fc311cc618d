/* Preloaded before the hook: a disk as large, and as free, as the file that SMALL_DISK names says: "FREE TOTAL". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

int fstatvfs(int file, struct statvfs *disk)
{
    const char *name = getenv("SMALL_DISK");
    FILE *said = name ? fopen(name, "r") : NULL;
    unsigned long long free_bytes = 0, total = 0;
    int n = said ? fscanf(said, "%llu %llu", &free_bytes, &total) : 0;
    (void)file;
    if (said)
        fclose(said);
    memset(disk, 0, sizeof *disk);
    disk->f_frsize = 1;
    disk->f_bavail = free_bytes;
    disk->f_blocks = total;
    return n == 2 ? 0 : -1;
}
