/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of keys, of memory regions and windows alike. A key is an index into the table and, in
 * its low eight bits, a tag that distinguishes the successive uses of an entry. Free entries wait
 * in a FIFO, so that an index is reused late. Everything here runs with the lock held.
 */
#include "host/hca/hca_priv.h"

#include "base/cacheline.h"

#include <stdlib.h>
#include <string.h>

static void to_free(struct hca *h, uint32_t i)
{
    h->key[i].next = UINT32_MAX;
    if (h->key_free_tail == UINT32_MAX)
        h->key_free_head = i;
    else
        h->key[h->key_free_tail].next = i;
    h->key_free_tail = i;
}

static int keys_grow(struct hca *h)
{
    uint32_t cap = h->key_cap ? h->key_cap * 2 : 16;
    struct hca_key *t;

    if (cap > HCA_MAX_KEYS)
        return -ENOMEM;
    t = cacheline_take(cap * sizeof(*t));
    if (!t)
        return -ENOMEM;
    if (h->key)
        memcpy(t, h->key, h->key_cap * sizeof(*t));
    cacheline_list_drop(rnic_cachelines(h->rnic), h->key);
    cacheline_list_add(rnic_cachelines(h->rnic), t, RTE_MIN(cap, 8u) * sizeof(*t));
    free(h->key);
    h->key = t;
    for (uint32_t i = h->key_cap; i < cap; i++) {
        t[i] = (struct hca_key){.tag = 1};
        if (i) /* key 0 never exists: programs use it as "none" */
            to_free(h, i);
    }
    h->key_cap = cap;
    return 0;
}

int key_take(struct hca *h, struct hca_mr *mr, struct hca_mw *mw, uint32_t *key)
{
    int rc = h->key_free_head == UINT32_MAX ? keys_grow(h) : 0;
    uint32_t i;

    if (rc)
        return rc;
    i = h->key_free_head;
    T_ASSERT(i && i < h->key_cap, "the free list leads out of the table of keys");
    T_ASSERT(!h->key[i].mr && !h->key[i].mw, "a key on the free list is in use");
    h->key_free_head = h->key[i].next;
    if (h->key_free_head == UINT32_MAX)
        h->key_free_tail = UINT32_MAX;
    h->key[i].mr = mr;
    h->key[i].mw = mw;
    h->key[i].unbacked = false;
    *key = i << 8 | h->key[i].tag;
    return 0;
}

void key_give(struct hca *h, uint32_t key)
{
    struct hca_key *k = &h->key[key >> 8];

    T_ASSERT(key >> 8 < h->key_cap, "a key's index is beyond the table");
    T_ASSERT(k->mr || k->mw, "a key is given back that is free");
    k->mr = NULL;
    k->mw = NULL;
    k->tag++;
    to_free(h, key >> 8);
}
