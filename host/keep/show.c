/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/own_path.h"
#include "host/keep/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOW_MOST (16u << 20) /* bytes */
#define SHOW_STEP 4096u

/* Opens the file. Returns a descriptor or -errno. A file that is not this user's gives a message,
 * unless quiet. */
static int file_open(const char *dir, const char *file, bool quiet)
{
    char why[OWN_WHY] = "";
    int at = own_dir_open(dir, false, why, sizeof(why));
    int fd = at >= 0 ? own_file_open(at, file, O_RDONLY) : at;

    if (at >= 0 && fd == -EPERM)
        own_file_why(at, file, why, sizeof(why));
    if (fd == -EPERM && !quiet)
        fprintf(stderr, "trib: cannot use %s of %s: %s\n", file, dir, why);
    if (at >= 0)
        close(at);
    return fd;
}

static void plain_make(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') || text[i] == 0x7f)
            text[i] = '?';
}

/* Reads the whole file. NULL: it is longer than SHOW_MOST, or cannot be read. */
static char *all_of(int fd, size_t *size)
{
    char *text = NULL;
    ssize_t n = 1;

    for (*size = 0; n > 0 && *size<SHOW_MOST; *size += n> 0 ? (size_t)n : 0) {
        char *more = realloc(text, *size + SHOW_STEP + 1);

        if (!more)
            break;
        text = more;
        n = read(fd, text + *size, SHOW_STEP);
    }
    if (n) {
        free(text);
        return NULL;
    }
    text[*size] = 0;
    return text;
}

char *show_file(const char *dir, const char *file, bool quiet, size_t *size)
{
    int fd = file_open(dir, file, quiet);
    char *text = fd < 0 ? NULL : all_of(fd, size);

    if (fd >= 0)
        close(fd);
    if (text)
        plain_make(text, *size);
    return text;
}
