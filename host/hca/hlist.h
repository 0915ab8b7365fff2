/* SPDX-License-Identifier: BSD-3-Clause */
/* Intrusive doubly linked list; a head points at itself. */
#ifndef TRIB_HOST_HCA_HLIST_H
#define TRIB_HOST_HCA_HLIST_H

#include "base/assert.h"

#include <stdbool.h>
#include <stddef.h>

struct hlist {
    struct hlist *prev, *next;
};

static inline void hlist_init(struct hlist *l)
{
    l->prev = l->next = l;
}

static inline void hlist_add(struct hlist *head, struct hlist *l)
{
    T_ASSERT_HOT(head->prev->next == head, "the list's last entry does not point at its head");
    l->prev = head->prev, l->next = head;
    head->prev->next = l, head->prev = l;
}

static inline void hlist_del(struct hlist *l)
{
    T_ASSERT_HOT(l->prev->next == l && l->next->prev == l,
                 "a list entry's neighbours do not point at it");
    l->prev->next = l->next, l->next->prev = l->prev;
    hlist_init(l);
}

static inline bool hlist_empty(const struct hlist *l)
{
    return l->next == l;
}

#define hlist_entry(l, type, field) ((type *)((char *)(l)-offsetof(type, field)))
#define hlist_for(l, head)          for (struct hlist *l = (head)->next; l != (head); l = l->next)

#endif
