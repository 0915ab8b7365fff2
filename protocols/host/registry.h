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
/* Gives a protocol a seat, unless it has one. Returns the seat; or -EPROTO (another version of the
 * interface), -EINVAL, -EEXIST (another protocol has its name) or -ENOSPC, with a sentence in err
 * (PROTO_TEXT bytes). */
int proto_add(const struct trib_protocol *p, char *err);
unsigned proto_keys(const struct trib_protocol *p); /* number of its keys */
unsigned proto_counters(const char *const *names);  /* number of a half's counters */
/* Index of a key; -ENOENT. */
int proto_key(const struct trib_protocol *p, const char *name);
/* Fills in the usual values of its keys. */
void proto_usual(const struct trib_protocol *p, int64_t key[TRIB_KEYS]);

#endif
