/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/trunk/trunk_flow.h"

#include "base/assert.h"

#include <string.h>

/* Whether number a is before b; numbers wrap around. */
static bool trunk_flow_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* ---- the sender ---- */

void flow_out_init(struct flow_out *o)
{
    memset(o, 0, sizeof(*o));
    o->next = o->acked = 1;
    o->wait_ns = FLOW_TAIL_NS;
}

uint32_t flow_out_put(struct flow_out *o, void *frame, int64_t now_ns)
{
    uint32_t at = o->next % FLOW_WINDOW;

    T_ASSERT_HOT(flow_room(o) && !o->sent[at], "a frame is sent beyond the window");
    o->sent[at] = frame;
    o->again_ns[at] = now_ns;
    if (o->next == o->acked) {
        o->asked_ns = now_ns;
        o->wait_ns = FLOW_TAIL_NS;
    }
    return o->next++;
}

unsigned flow_out_ack(struct flow_out *o, const struct flow_ack *a, int64_t now_ns,
                      uint32_t again[FLOW_WINDOW])
{
    int64_t soon = o->way_ns + o->way_ns / 4 + FLOW_GAP_NS; /* the last copy may still arrive */
    unsigned n = 0;

    if (trunk_flow_before(a->next, o->acked) || trunk_flow_before(o->next, a->next))
        return 0; /* a late duplicate, or about frames that were never sent */
    if (a->next != o->acked) {
        o->asked_ns = now_ns;
        o->wait_ns = FLOW_TAIL_NS;
    }
    o->acked = a->next;
    for (uint32_t k = a->next; trunk_flow_before(k, o->next) && !trunk_flow_before(a->upto, k);
         k++) {
        uint32_t bit = k - a->next, at = k % FLOW_WINDOW;

        if (a->held[bit / 8] >> bit % 8 & 1 || now_ns - o->again_ns[at] < soon)
            continue;
        o->again_ns[at] = now_ns;
        again[n++] = k;
    }
    return n;
}

/* Starts from the oldest number that the window can hold. */
void *flow_out_done(struct flow_out *o)
{
    for (uint32_t k = o->next - FLOW_WINDOW; trunk_flow_before(k, o->acked); k++) {
        void *frame = o->sent[k % FLOW_WINDOW];

        if (!frame)
            continue;
        o->sent[k % FLOW_WINDOW] = NULL;
        return frame;
    }
    return NULL;
}

void *flow_out_drop(struct flow_out *o)
{
    o->acked = o->next;
    return flow_out_done(o);
}

bool flow_out_asks(struct flow_out *o, int64_t now_ns)
{
    if (o->next == o->acked || now_ns - o->asked_ns < o->wait_ns)
        return false;
    o->asked_ns = now_ns;
    o->wait_ns = 2 * o->wait_ns < FLOW_TAIL_MAX ? 2 * o->wait_ns : FLOW_TAIL_MAX;
    return true;
}

/* ---- the receiver ---- */

/* Skips numbers that the sender no longer has and so never sends, as after a restart of its process:
 * up to a frame that is held, which is within the window, or all of them. */
static void skip(struct flow_in *i)
{
    if (!i->n_held && trunk_flow_before(i->next, i->oldest))
        i->next = i->oldest;
    while (trunk_flow_before(i->next, i->oldest) && !i->held[i->next % FLOW_WINDOW])
        i->next++;
}

static void flow_in_begin(struct flow_in *i, uint32_t oldest)
{
    if (!i->begun) {
        i->begun = true;
        i->next = i->oldest = oldest;
        i->highest = oldest - 1;
    }
    if (trunk_flow_before(i->oldest, oldest))
        i->oldest = oldest;
    skip(i);
}

bool flow_in_take(struct flow_in *i, uint32_t number, uint32_t oldest, void *frame, int64_t now_ns)
{
    uint32_t at = number % FLOW_WINDOW;

    flow_in_begin(i, oldest);
    if (trunk_flow_before(number, i->next)) {
        i->asked = true; /* its acknowledgement was lost */
        return false;
    }
    if (number - i->next >= FLOW_WINDOW || i->held[at])
        return false;
    T_ASSERT_HOT(i->n_held < FLOW_WINDOW, "more frames are held back than the window has");
    i->held[at] = frame;
    i->n_held++;
    if (trunk_flow_before(i->highest, number))
        i->highest = number;
    if (number != i->next && !i->gap_ns)
        i->gap_ns = now_ns;
    return true;
}

void *flow_in_next(struct flow_in *i)
{
    void *frame = i->n_held ? i->held[i->next % FLOW_WINDOW] : NULL;

    if (!frame)
        return NULL;
    i->held[i->next % FLOW_WINDOW] = NULL;
    i->next++;
    i->in_order++;
    if (!--i->n_held)
        i->gap_ns = 0;
    skip(i);
    return frame;
}

void *flow_in_drop(struct flow_in *i)
{
    for (unsigned k = 0; i->n_held && k < FLOW_WINDOW; k++) {
        void *frame = i->held[k];

        if (!frame)
            continue;
        i->held[k] = NULL;
        i->n_held--;
        return frame;
    }
    memset(i, 0, sizeof(*i));
    return NULL;
}

void flow_in_asked(struct flow_in *i, uint32_t last, uint32_t oldest)
{
    flow_in_begin(i, oldest);
    if (trunk_flow_before(i->highest, last) && last - i->next < FLOW_WINDOW)
        i->highest = last;
    i->asked = true;
}

bool flow_in_ack(struct flow_in *i, int64_t now_ns, struct flow_ack *a)
{
    bool gap = i->gap_ns && now_ns - i->gap_ns >= FLOW_GAP_NS;

    if (!i->begun || (!i->asked && !gap && i->in_order < FLOW_ACK_EACH))
        return false;
    *a = (struct flow_ack){.next = i->next, .upto = i->next - 1};
    if (gap || i->asked)
        a->upto = i->highest;
    for (uint32_t k = 0; i->n_held && k < FLOW_WINDOW; k++)
        if (i->held[(i->next + k) % FLOW_WINDOW])
            a->held[k / 8] |= (uint8_t)(1u << k % 8);
    if (gap)
        i->gap_ns = now_ns;
    i->in_order = 0;
    i->asked = false;
    return true;
}

int64_t flow_out_next_ns(const struct flow_out *o)
{
    return o->next == o->acked ? INT64_MAX : o->asked_ns + o->wait_ns;
}

int64_t flow_in_next_ns(const struct flow_in *i)
{
    return i->gap_ns ? i->gap_ns + FLOW_GAP_NS : INT64_MAX;
}
