/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of memory, and a pair of HCAs that check and guard memory as a real process's do. */
#ifndef TRIB_TESTS_HOST_HCA_MEMORY_PAGES_H
#define TRIB_TESTS_HOST_HCA_MEMORY_PAGES_H

#include "tests/host/hca/pair.h"

#include "host/hca/io/process_priv.h"

#include <sys/mman.h>

#define PAGE  4096u
#define PAGES 6u
#define LW    IBV_ACCESS_LOCAL_WRITE

static inline void open_real(struct pair *p)
{
    static const struct hca_driver real = {
        .check_memory = process_check_memory, .prefetch = process_prefetch, .guarded = true};

    pair_open_driven(p, &real);
}

static inline char *map_pages(int prot)
{
    char *m = mmap(NULL, PAGES * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(m, MAP_FAILED);
    return m;
}

/* Takes and acknowledges all asynchronous events of a side. */
static inline void drop_async_events(struct side *s)
{
    struct ibv_async_event ev;

    while (!ibv_get_async_event(s->ctx, &ev))
        ibv_ack_async_event(&ev);
}

#endif
