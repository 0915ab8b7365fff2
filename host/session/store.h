/* SPDX-License-Identifier: BSD-3-Clause */
/* Base of a store: its calls and how it closes. store_tcp.c and plugins/pmix each implement one. */
#ifndef TRIB_HOST_SESSION_STORE_H
#define TRIB_HOST_SESSION_STORE_H

#include <tributary/coll.h>

#define STORE_MAGIC 0x73746f72652e7472u /* closed stores have 0 */

struct trib_store {
    uint64_t magic;
    struct trib_oob oob; /* ctx: the store */
    void (*close)(struct trib_store *store);
};

/* In store_pmix.so, which trib_store_pmix() loads. err: TRIB_TEXT bytes; "": out of memory. */
int trib_pmix_open(struct trib_store **store, double timeout_s, char *err);

#endif
