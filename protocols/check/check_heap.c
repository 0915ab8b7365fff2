/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interposes the allocator's functions. mallinfo2() will not do: it counts blocks in a thread's
 * cache as allocated.
 */
#include "protocols/check/check_heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

static size_t live;

size_t heap_bytes(void)
{
    return live;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define PUBLIC __attribute__((visibility("default")))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static void *block_count(void *p)
{
    live += p ? malloc_usable_size(p) : 0;
    return p;
}

PUBLIC void *malloc(size_t n)
{
    return block_count(__libc_malloc(n));
}

PUBLIC void *calloc(size_t n, size_t size)
{
    return block_count(__libc_calloc(n, size));
}

PUBLIC void *realloc(void *p, size_t n)
{
    size_t before = p ? malloc_usable_size(p) : 0;
    void *q = __libc_realloc(p, n);

    if (q || !n)
        live -= before;
    return block_count(q);
}

PUBLIC void *memalign(size_t align, size_t n)
{
    return block_count(__libc_memalign(align, n));
}

PUBLIC void *aligned_alloc(size_t align, size_t n)
{
    return block_count(__libc_memalign(align, n));
}

PUBLIC int posix_memalign(void **p, size_t align, size_t n)
{
    void *q = block_count(__libc_memalign(align, n));

    if (!q)
        return ENOMEM;
    *p = q;
    return 0;
}

PUBLIC void free(void *p)
{
    live -= p ? malloc_usable_size(p) : 0;
    __libc_free(p);
}

#endif
