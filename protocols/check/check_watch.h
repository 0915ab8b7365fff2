/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches a protocol's switch half, from between it and its host. Finds writes beyond a slot's end,
 * and slots that change without declared work.
 */
#ifndef TRIB_PROTOCOLS_CHECK_CHECK_WATCH_H
#define TRIB_PROTOCOLS_CHECK_CHECK_WATCH_H

#include <tributary/protocol.h>

struct watch_seen {
    uint32_t most_bytes, most_ops; /* most work on one packet */
    uint64_t touched;              /* slots that packets touched */
    char why[256];                 /* the defect found; "": none */
};

/* Returns the protocol with its switch half watched; one at a time. limit: enforce its declared
 * limits of work. guard: add bytes to each slot that nobody may write. */
const struct trib_protocol *watch_begin(const struct trib_protocol *p, bool limit, bool guard);
const struct watch_seen *watch_seen(void);
void watch_end(void);

#endif
