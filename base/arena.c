/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"

#include "base/assert.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#define CHUNK_BYTES 65536u

/* Present where a program is linked with AddressSanitizer: the bytes beside an object are poisoned. */
void __asan_poison_memory_region(const volatile void *at, size_t bytes) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *at, size_t bytes) __attribute__((weak));

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    alignas(max_align_t) unsigned char mem[];
};

void *arena_alloc(void **arena, size_t n, size_t size)
{
    struct arena_chunk *c = *arena;
    size_t own, bytes;
    void *p;

    if (__builtin_mul_overflow(n, size, &own) || own > SIZE_MAX / 2)
        return NULL;
    bytes = (own + alignof(max_align_t)) & ~(alignof(max_align_t) - 1);
    if (!c || c->size - c->used < bytes) {
        size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

        c = calloc(1, sizeof(*c) + room);
        if (!c)
            return NULL;
        c->size = room;
        c->next = *arena;
        *arena = c;
        if (__asan_poison_memory_region)
            __asan_poison_memory_region(c->mem, room);
    }
    T_ASSERT_HOT(c->used <= c->size, "a chunk has given away more bytes than it has");
    p = c->mem + c->used;
    c->used += bytes;
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(p, own);
    return p;
}

void arena_free(void *arena)
{
    struct arena_chunk *c = arena;

    while (c) {
        struct arena_chunk *next = c->next;

        free(c);
        c = next;
    }
}
