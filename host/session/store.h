/* SPDX-License-Identifier: BSD-3-Clause */
/* What stores have in common: the calls, and how one ends. store_tcp.c and plugins/pmix have one each. */
#ifndef TRIB_HOST_SESSION_STORE_H
#define TRIB_HOST_SESSION_STORE_H

#include <tributary/coll.h>

#define STORE_MAGIC 0x73746f72652e7472u /* not of one that is closed */

struct trib_store {
    uint64_t magic;
    struct trib_oob oob; /* ctx: the store */
    void (*close)(struct trib_store *store);
};

/* In store_pmix.so, which trib_store_pmix() loads. err: TRIB_TEXT bytes, "" if memory is out. */
int trib_pmix_open(struct trib_store **store, double timeout_s, char *err);

#endif
