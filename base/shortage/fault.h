/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault injection: in checked builds (-DTRIB_CHECKED) every file is compiled as if it included this header
 * first, so that allocations, maps and opened files can fail on purpose. Other builds contain none of it.
 * TRIB_FAULT selects the calls that fail:
 *
 *   TRIB_FAULT=list            none; lists every site that was reached, and how often, on stderr at exit
 *   TRIB_FAULT=FILE:LINE       the first call there; FILE:LINE:3 the third one
 *   TRIB_FAULT=seed:7:1000     one call in 1,000, drawn from the seed 7
 *
 * A call that fails is named on stderr and sets errno as the real one does. Any thread may call; each site
 * counts its own calls, so with one thread the same setting fails the same call again.
 */
#ifndef TRIB_BASE_SHORTAGE_FAULT_H
#define TRIB_BASE_SHORTAGE_FAULT_H

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct fault_site {
    const char *what, *file;
    int line, err;
    _Atomic unsigned long calls;
    struct fault_site *_Atomic next; /* next site that was reached */
};

/* Whether this call of the site is to fail; if so, sets errno. */
bool fault_at(struct fault_site *s)
    __attribute__((weak)); /* tests of a few files may leave it out */

#define FAULT_HERE(name, number)                                                                   \
    __extension__({                                                                                \
        static struct fault_site site_ = {name, __FILE__, __LINE__, number, 0, NULL};              \
        fault_at &&fault_at(&site_);                                                               \
    })

/* A macro does not expand within itself: these expand to calls of the C library. */
#define malloc(n)           (FAULT_HERE("malloc", FAULT_ENOMEM) ? NULL : malloc(n))
#define calloc(n, size)     (FAULT_HERE("calloc", FAULT_ENOMEM) ? NULL : calloc(n, size))
#define realloc(p, n)       (FAULT_HERE("realloc", FAULT_ENOMEM) ? NULL : realloc(p, n))
#define aligned_alloc(a, n) (FAULT_HERE("aligned_alloc", FAULT_ENOMEM) ? NULL : aligned_alloc(a, n))
#define fopen(path, mode)   (FAULT_HERE("fopen", FAULT_EMFILE) ? NULL : fopen(path, mode))
#define mmap(...)           (FAULT_HERE("mmap", FAULT_ENOMEM) ? MAP_FAILED : mmap(__VA_ARGS__))

/* Values of <errno.h>, which not every file includes. */
enum { FAULT_ENOMEM = 12, FAULT_EMFILE = 24 };
#endif
