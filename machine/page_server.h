/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares the pages of a trib-switch (shared.h). A thread answers every connection to the socket
 * proc/NAME.page with one message that carries the descriptors, and closes it: it keeps no state of
 * clients, and works while the loop sleeps.
 */
#ifndef TRIB_MACHINE_PAGE_SERVER_H
#define TRIB_MACHINE_PAGE_SERVER_H

#include "machine/shared.h"

#include <signal.h>

enum page_fd { PAGE_CLOCK, PAGE_SWITCH, PAGE_BELL, PAGE_FDS };

struct page_offer {
    uint32_t magic, version;
};

struct page_server_cfg {
    const char *dir, *name;
    unsigned proc;
    const struct fabric *fab;
    const bool *mine;                /* [fab->n_nodes]; NULL: all */
    uint32_t dilation;               /* of the clock, if this process makes it */
    const struct clock_state *clock; /* line of a clock that this process makes; NULL: starts now */
    /* Set if another process of this directory makes the clock, as the trunk does once the machines have
     * agreed: waits for that process until *joins is set. NULL: no other process makes it. */
    const volatile sig_atomic_t *joins;
};

/*
 * Makes the pages of the calling process and serves them. *sh: the pages that it has mapped. The first
 * process of a run directory also makes the clock. 0 or -errno, with a message on stderr.
 */
struct page_server;
int page_server_start(struct page_server **ps, struct shared **sh,
                      const struct page_server_cfg *cfg);
void page_server_stop(struct page_server *ps);

/* shared.c: adds a mapped page to the list. */
void shared_add(struct shared *sh, const char *name, uint64_t inode, const struct switch_page *page,
                struct loop_bell *bell);
/* Like shared_refresh(). *clock_fd: a descriptor of the clock, which the caller owns. 0 or -errno;
 * -ENOENT: there is no clock. */
int shared_find(struct shared *sh, const char *dir, int *clock_fd);

#endif
