/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hands out the pages of a trib-switch (shared.h): a thread answers every connection to the socket
 * proc/NAME.page with one message, which carries the descriptors, and closes it. So it holds nothing
 * for those who connect, and works while the loop sleeps.
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
    uint32_t dilation;               /* of a clock that is made */
    const struct clock_state *clock; /* the line of a clock that is made; NULL: it starts now */
    /* Another process of this directory makes the clock, as the trunk does once it has agreed with other
     * machines: it is waited for until *joins is set. NULL: there is none. */
    const volatile sig_atomic_t *joins;
};

/*
 * Makes the pages of the calling process and serves them. *sh: what it has mapped. The first
 * process of a run directory makes the clock too. 0 or -errno, with a message on stderr.
 */
struct page_server;
int page_server_start(struct page_server **ps, struct shared **sh,
                      const struct page_server_cfg *cfg);
void page_server_stop(struct page_server *ps);

/* shared.c: to the list of those that are mapped. */
void shared_add(struct shared *sh, const char *name, uint64_t inode, const struct switch_page *page,
                struct loop_bell *bell);
/* As shared_refresh(); *clock_fd: a descriptor of the clock, the caller's. 0 or -errno; -ENOENT: there
 * is no clock. */
int shared_find(struct shared *sh, const char *dir, int *clock_fd);

#endif
