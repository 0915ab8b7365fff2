/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which send is which receive's: by source, destination and tag, in the order in which they are
 * posted; a receive may leave source or tag open. A look-up takes a constant time.
 */
#ifndef TRIB_TRACE_MESSAGES_H
#define TRIB_TRACE_MESSAGES_H

#include "trace/number_map.h"

#include <stdbool.h>

struct message_queue {
    uint32_t head, tail; /* of entry + 1; 0: empty */
};

struct messages {
    struct number_map keys;
    struct message_queue *sends, *recvs; /* by key */
    struct message_entry {
        uint32_t post, next;
    } * entry;
    struct message_post {
        uint32_t op, entries;
        uint32_t order; /* of receives */
        bool met;
    } * post;
    bool open; /* receives may leave source or tag open */
    uint32_t n_entries, free_entry, n_posts, free_post, order;
    size_t key_room, recv_room, entry_room, post_room;
};

#define MESSAGE_NONE UINT32_MAX

/* Posts a send, or a receive: the operation of the other end that waits for it, which meets nobody
 * else then; MESSAGE_NONE: this one waits. */
uint32_t messages_send(struct messages *m, uint32_t op, uint32_t from, uint32_t to, uint32_t tag);
uint32_t messages_recv(struct messages *m, uint32_t op, uint32_t from, uint32_t to, uint32_t tag);
void messages_free(struct messages *m);

#endif
