/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/buffer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int buffer_by_name(const char *s, int *gpu)
{
    char *end;
    long n;

    *gpu = strcmp(s, "host") ? 0 : BUFFER_HOST;
    if (!strcmp(s, "host") || !strcmp(s, "cuda"))
        return 0;
    if (strncmp(s, "cuda:", 5) || !isdigit((unsigned char)s[5]))
        return -EINVAL;
    n = strtol(s + 5, &end, 10);
    *gpu = (int)n;
    return *end || n > 1023 ? -EINVAL : 0;
}

int buffer_open(struct buffer_kind *w, int gpu, char *err)
{
    return gpu == BUFFER_HOST ? 0 : device_open(&w->device, (unsigned)gpu, err);
}

void buffer_close(struct buffer_kind *w)
{
    device_close(w->device);
    w->device = NULL;
}

void *buffer_alloc(struct buffer_kind *w, size_t bytes, char *err)
{
    void *p;

    if (w->device) {
        p = device_alloc(w->device, bytes);
        if (!p)
            snprintf(err, DEVICE_TEXT, "%s", device_error(w->device));
        return p;
    }
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        return p;
    snprintf(err, DEVICE_TEXT, "%s", strerror(errno));
    return NULL;
}

void buffer_free(struct buffer_kind *w, void *p, size_t bytes)
{
    if (p && w->device)
        device_free(w->device, p);
    else if (p)
        munmap(p, bytes);
}
