/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between ranks are sealed, so that nobody can end the job who merely knows the group's
 * id and a rank's queue pair. Each begins with struct ctl_head, whose MAC (SipHash-2-4 under the
 * job's key) covers the whole message, its number and the rank that it is for. A receiver takes
 * each number of a sender once, so a captured message that is sent again is dropped.
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_SEAL_H
#define TRIB_HOST_COLL_TRANSPORT_SEAL_H

#include <rte_byteorder.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl_head {
    rte_be32_t magic; /* which message */
    rte_be32_t seq;   /* messages from this rank to the receiver, from 1 */
    rte_be32_t from;  /* rank */
    rte_be64_t mac;   /* with 0 in this field */
} __attribute__((packed));
_Static_assert(sizeof(struct ctl_head) == 20, "start of every message between ranks");

struct seal_key {
    uint64_t key; /* of the job */
    uint32_t group;
};

/* The numbers that were received: all up to top - 32, and those in bits (bit i: top - i). */
struct seal_seen {
    uint32_t top, bits;
};
#define SEAL_WINDOW 32u

/* Fills in the head of a message of len bytes for rank `to`; magic is set. */
void seal_put(const struct seal_key *k, uint32_t from, uint32_t to, uint32_t seq, void *msg,
              size_t len);
/* Whether the MAC of the message is right for rank `to`. */
bool seal_right(const struct seal_key *k, uint32_t to, const void *msg, size_t len);
/* Whether the number is new; marks it as received. */
bool seal_new(struct seal_seen *s, uint32_t seq);

/* A number that ranks of one key and group have in common, and that does not reveal the key. */
uint64_t seal_of_job(uint64_t key, uint32_t group);

/* SipHash-2-4 (Aumasson, Bernstein). */
uint64_t siphash(uint64_t k0, uint64_t k1, const void *p, size_t n);

#endif
