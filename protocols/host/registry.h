/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocols of this process: those that are built in, then those of shared objects. Each has a
 * seat, which is its number among the algorithms.
 *
 * Threads: protocols are added before the first is used by several threads.
 */
#ifndef TRIB_PROTOCOLS_HOST_REGISTRY_H
#define TRIB_PROTOCOLS_HOST_REGISTRY_H

#include <tributary/protocol.h>

#define PROTO_SEATS 6u
#define PROTO_TEXT  256

/* NULL: the seat is empty. */
const struct trib_protocol *proto_at(unsigned seat);
int proto_seat(const char *name); /* -ENOENT */
/* Gives it a seat, unless it has one. The seat, or -EPROTO (another version), -EINVAL, -EEXIST (its
 * name is another's), -ENOSPC, and a sentence in err (PROTO_TEXT bytes). */
int proto_add(const struct trib_protocol *p, char *err);
unsigned proto_keys(const struct trib_protocol *p); /* how many it has */
unsigned proto_counters(const char *const *names);  /* of a half */
/* Index of a key; -ENOENT. */
int proto_key(const struct trib_protocol *p, const char *name);
/* Fills in the usual values of its keys. */
void proto_usual(const struct trib_protocol *p, int64_t key[TRIB_KEYS]);

#endif
