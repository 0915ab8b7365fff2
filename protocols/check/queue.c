/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/check/queue.h"

#include <errno.h>
#include <stdlib.h>

static bool queue_event_before(const struct queue_event *x, const struct queue_event *y)
{
    return x->at_ps < y->at_ps || (x->at_ps == y->at_ps && x->order < y->order);
}

int queue_push(struct queue *q, int64_t at_ps, unsigned kind, unsigned a, unsigned b, void *data)
{
    struct queue_event e = {at_ps, q->order++, kind, a, b, data};
    size_t i = q->n;

    if (q->n == q->room) {
        size_t room = q->room ? 2 * q->room : 256;
        struct queue_event *more = realloc(q->e, room * sizeof(*more));

        if (!more)
            return -ENOMEM;
        q->e = more;
        q->room = room;
    }
    q->n++;
    for (; i && queue_event_before(&e, &q->e[(i - 1) / 2]); i = (i - 1) / 2)
        q->e[i] = q->e[(i - 1) / 2];
    q->e[i] = e;
    return 0;
}

bool queue_pop(struct queue *q, struct queue_event *e)
{
    struct queue_event last;
    size_t i = 0;

    if (!q->n)
        return false;
    *e = q->e[0];
    last = q->e[--q->n];
    for (size_t k; (k = 2 * i + 1) < q->n; i = k) {
        if (k + 1 < q->n && queue_event_before(&q->e[k + 1], &q->e[k]))
            k++;
        if (!queue_event_before(&q->e[k], &last))
            break;
        q->e[i] = q->e[k];
    }
    q->e[i] = last;
    return true;
}

void queue_fini(struct queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        free(q->e[i].data);
    free(q->e);
    *q = (struct queue){.e = NULL};
}
