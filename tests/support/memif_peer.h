/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end of a memif, message by message: right by default, and wrong wherever a test or a
 * fuzzer says so. It has mappings of its own of what it has sent, or received.
 */
#ifndef TRIB_TESTS_SUPPORT_MEMIF_PEER_H
#define TRIB_TESTS_SUPPORT_MEMIF_PEER_H

#include "io/memif/memif.h"

#define MEMIF_PEER_QUEUES 2u
#define MEMIF_PEER_LOG2   2u
#define MEMIF_PEER_ID     7u
#define MEMIF_PEER_PAGE   4096u
#define MEMIF_PEER_PAGES  64u /* of a region that it makes, at most */

struct memif_peer {
    const char *socket;
    bool serves; /* what is tested is a client */
    int listen, fd;
    unsigned n_regions, n_rings[2];
    int memfd[MEMIF_REGIONS];
    uint8_t *at[MEMIF_REGIONS];
    size_t size[MEMIF_REGIONS];
    uint32_t ring_at[2 * MEMIF_PEER_QUEUES]; /* in region 0; C2S, then S2C */
};

/* Listens where it serves. False: errno. */
bool memif_peer_open(struct memif_peer *p, const char *socket, bool serves);
void memif_peer_close(struct memif_peer *p);
/* Connects, or accepts if a client waits; the last connection and its regions are forgotten. */
bool memif_peer_join(struct memif_peer *p);
void memif_peer_forget(struct memif_peer *p);

/* A descriptor that comes with a message: the two top bits say how many, 0: those that the message
 * needs; the others are of kinds by the lower ones: MEMORY, SEALED, else an eventfd. */
enum { MEMIF_PEER_MEMORY = 1, MEMIF_PEER_SEALED = 2 };

/*
 * Sends a message that is right in the other end's state, as far as its type is. how: flags of
 * ADD_RING, pages - 1 of ADD_REGION, and descriptors. patch: pairs of offset and byte; a last odd byte
 * is the length to cut the message to.
 */
void memif_peer_say(struct memif_peer *p, uint8_t type, uint8_t how, const uint8_t *patch,
                    size_t n);
/* Reads what the other end has sent; maps the regions of a client. */
void memif_peer_take(struct memif_peer *p);

/* A field of a ring by the lowest three bits: head, tail, flags; length, offset, region, flags of the
 * descriptor in the next bits; cookie. NULL: there is no such ring yet. bytes: its size. */
void *memif_peer_field(const struct memif_peer *p, unsigned ring, unsigned which, unsigned *bytes);

#endif
