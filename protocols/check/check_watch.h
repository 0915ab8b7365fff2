/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches a protocol's switch half: stands between it and its host. It finds writes behind a slot's
 * end, and slots that change although no work is declared.
 */
#ifndef TRIB_PROTOCOLS_CHECK_CHECK_WATCH_H
#define TRIB_PROTOCOLS_CHECK_CHECK_WATCH_H

#include <tributary/protocol.h>

struct watch_seen {
    uint32_t most_bytes, most_ops; /* of work on one packet */
    uint64_t touched;              /* slots of packets */
    char why[256];                 /* what is wrong; "": nothing */
};

/* The same protocol, watched; there is one at a time. limit: its declared limits of work hold.
 * guard: slots have some bytes more, which nobody may write. */
const struct trib_protocol *watch_begin(const struct trib_protocol *p, bool limit, bool guard);
const struct watch_seen *watch_seen(void);
void watch_end(void);

#endif
