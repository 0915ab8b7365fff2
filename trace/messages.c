/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send may be looked for by four keys: its source or any, its tag or any. It waits in the queues of
 * all four, where receives may be open; who takes it out of one leaves the entries of the others, which
 * are dropped when they come to the head. A receive waits in the queue of its own key alone, and
 * a send takes the first of four heads. The rejected way, a list of sends for each destination that
 * an open receive searches, takes a time that grows with the square of what waits.
 */
#include "trace/messages.h"

#include "trace/app_graph.h"
#include "trace/grow.h"

static uint32_t messages_key(struct messages *m, uint32_t from, uint32_t to, uint32_t tag)
{
    uint32_t old = m->keys.n, key = number_map_enter(&m->keys, (uint64_t)from << 32 | to, tag);

    if (m->keys.n != old) {
        GROW(m->sends, m->keys.n, &m->key_room);
        GROW(m->recvs, m->keys.n, &m->recv_room);
        m->sends[key] = m->recvs[key] = (struct message_queue){0, 0};
    }
    return key;
}

static uint32_t post_new(struct messages *m, uint32_t op)
{
    uint32_t p = m->free_post;

    if (p) {
        m->free_post = m->post[p - 1].op;
        p--;
    } else {
        GROW(m->post, m->n_posts + 1u, &m->post_room);
        p = m->n_posts++;
    }
    m->post[p] = (struct message_post){.op = op, .order = m->order++};
    return p;
}

static void post_drop(struct messages *m, uint32_t p)
{
    if (--m->post[p].entries)
        return;
    m->post[p].op = m->free_post;
    m->free_post = p + 1;
}

static void queue_push(struct messages *m, struct message_queue *q, uint32_t post)
{
    uint32_t e = m->free_entry;

    if (e) {
        m->free_entry = m->entry[e - 1].next;
    } else {
        GROW(m->entry, m->n_entries + 1u, &m->entry_room);
        e = ++m->n_entries;
    }
    m->entry[e - 1] = (struct message_entry){.post = post};
    m->post[post].entries++;
    if (q->tail)
        m->entry[q->tail - 1].next = e;
    else
        q->head = e;
    q->tail = e;
}

static void queue_pop(struct messages *m, struct message_queue *q)
{
    uint32_t e = q->head;

    q->head = m->entry[e - 1].next;
    if (!q->head)
        q->tail = 0;
    post_drop(m, m->entry[e - 1].post);
    m->entry[e - 1].next = m->free_entry;
    m->free_entry = e;
}

/* The first one of the queue that has met nobody; MESSAGE_NONE: it is empty. */
static uint32_t queue_first(struct messages *m, struct message_queue *q)
{
    while (q->head && m->post[m->entry[q->head - 1].post].met)
        queue_pop(m, q);
    return q->head ? m->entry[q->head - 1].post : MESSAGE_NONE;
}

static uint32_t queue_meet(struct messages *m, struct message_queue *q)
{
    uint32_t post = queue_first(m, q), op;

    if (post == MESSAGE_NONE)
        return MESSAGE_NONE;
    op = m->post[post].op;
    m->post[post].met = true;
    queue_pop(m, q);
    return op;
}

uint32_t messages_send(struct messages *m, uint32_t op, uint32_t from, uint32_t to, uint32_t tag)
{
    uint32_t key[4], first = MESSAGE_NONE, at = 0, n = m->open ? 4 : 1, post;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t waits;

        key[i] = messages_key(m, i & 1 ? APP_ANY : from, to, i & 2 ? APP_ANY : tag);
        waits = queue_first(m, &m->recvs[key[i]]);
        if (waits != MESSAGE_NONE &&
            (first == MESSAGE_NONE || m->post[waits].order < m->post[first].order)) {
            first = waits;
            at = key[i];
        }
    }
    if (first != MESSAGE_NONE)
        return queue_meet(m, &m->recvs[at]);
    post = post_new(m, op);
    for (uint32_t i = 0; i < n; i++)
        queue_push(m, &m->sends[key[i]], post);
    return MESSAGE_NONE;
}

uint32_t messages_recv(struct messages *m, uint32_t op, uint32_t from, uint32_t to, uint32_t tag)
{
    uint32_t key = messages_key(m, from, to, tag);
    uint32_t met = queue_meet(m, &m->sends[key]);

    if (met == MESSAGE_NONE)
        queue_push(m, &m->recvs[key], post_new(m, op));
    return met;
}

void messages_free(struct messages *m)
{
    number_map_free(&m->keys);
    free(m->sends);
    free(m->recvs);
    free(m->entry);
    free(m->post);
}
