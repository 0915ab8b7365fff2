/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations are numbered through all ranks. Each has the number of those that it still waits for and
 * the latest time of one; whoever reaches 0 goes to the end of a queue. A receive and a collective
 * that have started wait for the others of theirs. All is linear in operations and dependencies.
 */
#include "trace/app_path.h"

#include "trace/app_sums.h"
#include "trace/grow.h"
#include "trace/messages.h"

#include <inttypes.h>
#include <stdio.h>

#define PLACE 256
#define NONE  UINT32_MAX

struct run {
    struct app_graph *g;
    const struct app_colls *c;
    struct messages messages;
    uint64_t *base;       /* [n_ranks + 1] number of a rank's first operation */
    uint32_t *waits;      /* what it still waits for; WAITS_STARTED: it has started */
    uint64_t *t;          /* when it can start; then when it has ended */
    uint32_t *via;        /* what it waited for last */
    uint32_t *next_first; /* those that wait for it, as app_rank.first */
    uint32_t *next;
    uint32_t *queue;
    uint32_t *joined; /* of each collective */
    bool *met;        /* messages with both ends */
    uint64_t head, tail;
    struct app_path *path;
};

#define WAITS_STARTED UINT32_MAX

struct run_op {
    const struct app_op *op;
    uint32_t rank, at; /* at: in the rank */
    uint32_t id;
};

static struct run_op op_of(const struct run *r, uint32_t id)
{
    uint32_t low = 0, high = r->g->n_ranks;

    while (high - low > 1) { /* the last rank that begins at id or before */
        uint32_t mid = low + (high - low) / 2;

        if (r->base[mid] <= id)
            low = mid;
        else
            high = mid;
    }
    id -= (uint32_t)r->base[low];
    return (struct run_op){&r->g->rank[low].op[id], low, id, id + (uint32_t)r->base[low]};
}

static void run_begin(struct run *r)
{
    struct app_graph *g = r->g;
    size_t n = g->n_ops + 1;
    uint32_t sum = 0;

    r->base = enough_memory(g->n_ranks + 1u, sizeof(*r->base));
    r->waits = enough_memory(n, sizeof(*r->waits));
    r->t = enough_memory(n, sizeof(*r->t));
    r->via = enough_memory(n, sizeof(*r->via));
    r->next_first = enough_memory(n + 1, sizeof(*r->next_first));
    r->next = enough_memory(g->n_deps + 1, sizeof(*r->next));
    r->queue = enough_memory(n, sizeof(*r->queue));
    r->joined = enough_memory(r->c->n + 1u, sizeof(*r->joined));
    r->met = enough_memory(n, sizeof(*r->met));
    for (uint32_t k = 0; k < g->n_ranks; k++)
        r->base[k + 1] = r->base[k] + g->rank[k].n;
    for (uint32_t k = 0; k < g->n_ranks; k++)
        for (uint32_t i = 0; g->rank[k].n && i < g->rank[k].first[g->rank[k].n]; i++)
            r->next_first[r->base[k] + (g->rank[k].dep[i] & ~APP_AT_START) + 1]++;
    for (size_t i = 0; i <= g->n_ops; i++)
        r->next_first[i] = sum += r->next_first[i];
}

/* Turns dependencies round: next of an operation are those that wait for it. */
static void run_turn(struct run *r)
{
    uint32_t *fill = enough_memory(r->g->n_ops + 1, sizeof(*fill));

    for (uint32_t k = 0; k < r->g->n_ranks; k++) {
        const struct app_rank *rank = &r->g->rank[k];
        uint32_t base = (uint32_t)r->base[k];

        for (uint32_t i = 0; i < rank->n; i++) {
            r->waits[base + i] = rank->first[i + 1] - rank->first[i];
            r->via[base + i] = NONE;
            for (uint32_t d = rank->first[i]; d < rank->first[i + 1]; d++) {
                uint32_t on = base + (rank->dep[d] & ~APP_AT_START);

                r->next[r->next_first[on] + fill[on]++] = i | (rank->dep[d] & APP_AT_START);
            }
        }
    }
    free(fill);
}

static void run_end(struct run *r)
{
    messages_free(&r->messages);
    free(r->base);
    free(r->waits);
    free(r->t);
    free(r->via);
    free(r->next_first);
    free(r->next);
    free(r->queue);
    free(r->joined);
    free(r->met);
}

/* Those that wait for the start, or for the end, of o, which is at time t. */
static void op_tell(struct run *r, const struct run_op *o, uint64_t t, uint32_t which)
{
    uint32_t base = o->id - o->at;

    for (uint32_t i = r->next_first[o->id]; i < r->next_first[o->id + 1]; i++) {
        uint32_t id = base + (r->next[i] & ~APP_AT_START);

        if ((r->next[i] & APP_AT_START) != which)
            continue;
        if (t >= r->t[id]) {
            r->t[id] = t;
            r->via[id] = o->id;
        }
        if (!--r->waits[id])
            r->queue[r->tail++] = id;
    }
}

static void op_end(struct run *r, const struct run_op *o, uint64_t t)
{
    r->t[o->id] = t;
    r->path->ended++;
    if (t >= r->path->ns) {
        r->path->ns = t;
        r->path->rank = o->rank;
        r->path->op = o->at;
    }
    op_tell(r, o, t, 0);
}

static void size_check(struct run *r, const struct run_op *send, const struct run_op *recv)
{
    char place[PLACE];

    if (send->op->bytes != recv->op->bytes)
        finding_note(&r->g->found, FINDING_SIZE,
                     "%s: found a receive of %" PRIu64 " B by rank %u, expected the %" PRIu64
                     " B that rank %u sends",
                     app_graph_place(r->g, recv->rank, recv->op, place, PLACE), recv->op->bytes,
                     recv->rank, send->op->bytes, send->rank);
}

/* Both ends of a message are there. */
static void message_met(struct run *r, const struct run_op *send, const struct run_op *recv)
{
    r->path->met++;
    r->met[send->id] = r->met[recv->id] = true;
    size_check(r, send, recv);
}

/* The receive ends when the later of both has started. */
static void recv_end(struct run *r, const struct run_op *send, const struct run_op *recv,
                     uint64_t sent)
{
    uint64_t t = r->t[recv->id];

    if (sent > t) {
        t = sent;
        r->via[recv->id] = send->id;
    }
    op_end(r, recv, t);
}

/* Posts one end; *other is the one that it meets. */
static bool message_post(struct run *r, const struct run_op *o, struct run_op *other)
{
    const struct app_op *op = o->op;
    uint32_t id = op->kind == APP_SEND
                      ? messages_send(&r->messages, o->id, o->rank, op->peer, op->tag)
                      : messages_recv(&r->messages, o->id, op->peer, o->rank, op->tag);

    if (id == MESSAGE_NONE)
        return false;
    *other = op_of(r, id);
    return true;
}

static bool peer_exists(const struct run *r, const struct app_op *op)
{
    return op->peer < r->g->n_ranks || (op->kind == APP_RECV && op->peer == APP_ANY);
}

/* Of a part of a trace: what the other end does is not known. */
static bool peer_elsewhere(const struct run *r, const struct app_op *op)
{
    return r->g->partial && (op->peer == APP_ANY || !app_rank_known(r->g, op->peer));
}

static void send_start(struct run *r, const struct run_op *o)
{
    struct run_op other;
    bool met = peer_exists(r, o->op) && message_post(r, o, &other);

    op_end(r, o, r->t[o->id]);
    if (!met)
        return;
    message_met(r, o, &other);
    recv_end(r, o, &other, r->t[o->id]);
}

static void recv_start(struct run *r, const struct run_op *o)
{
    struct run_op other;

    if (peer_elsewhere(r, o->op))
        op_end(r, o, r->t[o->id]);
    if (!peer_exists(r, o->op) || peer_elsewhere(r, o->op) || !message_post(r, o, &other))
        return;
    message_met(r, &other, o);
    recv_end(r, &other, o, r->t[other.id]);
}

/* The last one that joins ends it for all. */
static void coll_start(struct run *r, const struct run_op *o)
{
    uint32_t i = app_colls_of(r->c, o->op);
    const struct app_coll_all *a = &r->c->all[i];
    uint64_t t = 0;
    uint32_t last = NONE;

    if (++r->joined[i] < a->n || !a->whole)
        return;
    for (uint32_t k = 0; k < a->n; k++) {
        const struct app_coll_member *m = &r->c->member[a->first + k];
        uint32_t id = (uint32_t)r->base[m->rank] + m->op;

        if (last == NONE || r->t[id] > t) {
            t = r->t[id];
            last = id;
        }
    }
    for (uint32_t k = 0; k < a->n; k++) {
        const struct app_coll_member *m = &r->c->member[a->first + k];
        struct run_op member = {&r->g->rank[m->rank].op[m->op], m->rank, m->op,
                                (uint32_t)r->base[m->rank] + m->op};

        if (member.id != last)
            r->via[member.id] = last;
        op_end(r, &member, t);
    }
}

static void op_start(struct run *r, const struct run_op *o)
{
    uint64_t t = r->t[o->id];

    r->waits[o->id] = WAITS_STARTED;
    r->path->started++;
    op_tell(r, o, t, APP_AT_START);
    if (o->op->kind == APP_SEND)
        send_start(r, o);
    else if (o->op->kind == APP_RECV)
        recv_start(r, o);
    else if (app_op_joins(o->op))
        coll_start(r, o);
    else
        op_end(r, o,
               o->op->kind != APP_COLL && __builtin_add_overflow(t, o->op->ns, &t) ? UINT64_MAX
                                                                                   : t);
}

static void run_all(struct run *r)
{
    for (uint32_t id = 0; id < r->g->n_ops; id++)
        if (!r->waits[id])
            r->queue[r->tail++] = id;
    while (r->head < r->tail) {
        struct run_op o = op_of(r, r->queue[r->head++]);

        op_start(r, &o);
    }
}

static void path_count(struct run *r)
{
    uint32_t at = r->path->ended ? r->path->op + (uint32_t)r->base[r->path->rank] : NONE;

    for (; at != NONE; at = r->via[at])
        r->path->ops++;
}

/* ---- what is wrong ---- */

static bool op_unstarted(const struct run *r, uint32_t id)
{
    return r->waits[id] != WAITS_STARTED;
}

/* How many operations that have not started this one waits for. */
static uint32_t unstarted_before(const struct run *r, const struct app_rank *rank, uint32_t base,
                                 uint32_t i)
{
    uint32_t n = 0;

    for (uint32_t d = rank->first[i]; d < rank->first[i + 1]; d++)
        n += op_unstarted(r, base + (rank->dep[d] & ~APP_AT_START));
    return n;
}

/* Starts what of a rank can be started when all messages and collectives end: what is left waits for
 * itself. left: for each operation what it waits for then. Returns how many are left. */
static uint32_t rank_settle(struct run *r, uint32_t k, uint32_t *left)
{
    const struct app_rank *rank = &r->g->rank[k];
    uint32_t base = (uint32_t)r->base[k], n = 0, head = 0, tail = 0;

    for (uint32_t i = 0; i < rank->n; i++) {
        left[i] = op_unstarted(r, base + i) ? unstarted_before(r, rank, base, i) : 0;
        n += op_unstarted(r, base + i);
        if (op_unstarted(r, base + i) && !left[i])
            r->queue[tail++] = i;
    }
    for (; head < tail; head++, n--) {
        uint32_t id = base + r->queue[head];

        for (uint32_t d = r->next_first[id]; d < r->next_first[id + 1]; d++)
            if (!--left[r->next[d] & ~APP_AT_START])
                r->queue[tail++] = r->next[d] & ~APP_AT_START;
    }
    return n;
}

/* Names an operation that waits for itself by way of others: a walk back along what is left. */
static void rank_cycle(struct run *r, uint32_t k)
{
    const struct app_rank *rank = &r->g->rank[k];
    uint32_t *left = enough_memory(rank->n + 1u, sizeof(*left)), at = 0;
    char place[PLACE];

    if (rank_settle(r, k, left)) {
        while (!left[at])
            at++;
        for (uint32_t steps = 0; steps < rank->n; steps++)
            for (uint32_t d = rank->first[at]; d < rank->first[at + 1]; d++)
                if (left[rank->dep[d] & ~APP_AT_START]) {
                    at = rank->dep[d] & ~APP_AT_START;
                    break;
                }
        finding_note(&r->g->found, FINDING_CYCLE,
                     "%s: found an operation of rank %u that waits for itself, expected no cycle",
                     app_graph_place(r->g, k, &rank->op[at], place, PLACE), k);
    }
    free(left);
}

/* Messages of what never starts meet, too: what then has one end lacks the other in the trace. */
static void messages_settle(struct run *r)
{
    for (uint32_t id = 0; id < r->g->n_ops; id++) {
        struct run_op o, other;

        if (!op_unstarted(r, id))
            continue;
        o = op_of(r, id);
        if ((o.op->kind != APP_SEND && o.op->kind != APP_RECV) || !peer_exists(r, o.op))
            continue;
        if (message_post(r, &o, &other))
            message_met(r, o.op->kind == APP_SEND ? &o : &other,
                        o.op->kind == APP_SEND ? &other : &o);
    }
}

static void message_alone(struct run *r, const struct run_op *o)
{
    bool sends = o->op->kind == APP_SEND;
    char place[PLACE], peer[16] = "any", tag[16] = "any";

    if (o->op->peer != APP_ANY)
        snprintf(peer, sizeof(peer), "%u", o->op->peer);
    if (o->op->tag != APP_ANY)
        snprintf(tag, sizeof(tag), "%u", o->op->tag);
    app_graph_place(r->g, o->rank, o->op, place, PLACE);
    if (!peer_exists(r, o->op))
        finding_note(&r->g->found, FINDING_PEER, "%s: found rank %s, expected one below %u", place,
                     peer, r->g->n_ranks);
    else
        finding_note(&r->g->found, sends ? FINDING_NO_RECEIVER : FINDING_NO_SENDER,
                     "%s: found a %s of rank %u %s rank %s, tag %s, without the other end, "
                     "expected both",
                     place, sends ? "send" : "receive", o->rank, sends ? "to" : "from", peer, tag);
}

static void run_judge(struct run *r)
{
    char place[PLACE];

    if (r->path->started < r->g->n_ops) {
        for (uint32_t k = 0; k < r->g->n_ranks; k++)
            rank_cycle(r, k);
        messages_settle(r);
    }
    for (uint32_t id = 0; id < r->g->n_ops; id++) {
        struct run_op o = op_of(r, id);

        if ((o.op->kind == APP_SEND || o.op->kind == APP_RECV) && !r->met[id] &&
            !app_op_is_mark(r->g, o.op) && !peer_elsewhere(r, o.op))
            message_alone(r, &o);
        if (op_unstarted(r, id))
            finding_note(&r->g->found, FINDING_NEVER,
                         "%s: found an operation of rank %u that never starts, expected the end of "
                         "what it waits for",
                         app_graph_place(r->g, o.rank, o.op, place, PLACE), o.rank);
    }
}

static bool graph_is_open(const struct app_graph *g)
{
    for (uint32_t k = 0; k < g->n_ranks; k++)
        for (uint32_t i = 0; i < g->rank[k].n; i++) {
            const struct app_op *op = &g->rank[k].op[i];

            if (op->kind == APP_RECV && (op->peer == APP_ANY || op->tag == APP_ANY))
                return true;
        }
    return false;
}

void app_path_find(struct app_path *p, struct app_graph *g, const struct app_colls *c)
{
    struct run r = {.g = g, .c = c, .path = p};

    *p = (struct app_path){.ns = 0};
    run_begin(&r);
    run_turn(&r);
    r.messages.open = graph_is_open(g);
    run_all(&r);
    path_count(&r);
    run_judge(&r);
    run_end(&r);
}
