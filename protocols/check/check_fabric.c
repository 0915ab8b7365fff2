/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event loop of a run. A packet is passed to the protocol in memory whose end is the packet's
 * end, before a page that cannot be read. After the call the memory is gone.
 */
#include "protocols/check/check_fabric_priv.h"

#include "base/random.h"
#include "protocols/check/check_watch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_EVENTS  2000000u
#define MOST_TIME    30000000000000 /* 30 s of fabric time */
#define KEYS_MOST    1000000u       /* most events, as a key may make packets of one element */
#define HOSTILE_MOST 8000u          /* events after which a run with hostile packets may stop */

void fabric_fail(struct check_fabric *f, const char *fmt, ...)
{
    va_list ap;

    if (f->r->failed)
        return;
    f->r->failed = true;
    va_start(ap, fmt);
    vsnprintf(f->r->why, sizeof(f->r->why), fmt, ap);
    va_end(ap);
}

bool fabric_tolerates(const struct check_fabric *f, const char *why)
{
    return (f->c->hostile || f->c->any_key) && strncmp(why, "protocol ", 9) != 0;
}

/* ---- memory of the packet that is being handled ---- */

#define AREA 8192u /* bytes before the page that cannot be read */

static uint8_t *area(unsigned i)
{
    static uint8_t *at[2];

    if (!at[i]) {
        at[i] = mmap(NULL, AREA + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at[i] == MAP_FAILED)
            abort();
        mprotect(at[i] + AREA, 4096, PROT_NONE);
    }
    return at[i];
}

static const void *lend(unsigned i, const uint8_t *bytes, uint32_t n, uint32_t align)
{
    uint8_t *to = area(i) + AREA - (n + align - 1) / align * align;

    memset(area(i), 0xdb, AREA);
    memcpy(to, bytes, n);
    return to;
}

static void take_back(void)
{
    memset(area(0), 0xdb, AREA);
    memset(area(1), 0xdb, AREA);
}

/* ---- packets ---- */

static const char *sender_text(int from, char *text, size_t size)
{
    if (from == TRIB_SWITCH || from == TRIB_PARENT)
        snprintf(text, size, "%s", from == TRIB_SWITCH ? "its switch" : "its parent");
    else
        snprintf(text, size, "%s %d", TRIB_IS(from, TRIB_CHILD(0)) ? "child" : "rank",
                 TRIB_INDEX(from));
    return text;
}

static void trace(const struct check_fabric *f, const struct packet *p)
{
    char from[32];

    fprintf(f->trace, "packet %" PRIu64 "  %" PRId64 ".%03" PRId64 " us  job %u, %s %u, from %s:",
            *f->progress, f->now / 1000000, f->now / 1000 % 1000, p->job,
            p->to_rank                             ? "rank"
            : f->c->n_leafs > 1 && p->node != ROOT ? "leaf"
                                                   : "switch",
            p->node, sender_text(p->from, from, sizeof(from)));
    fprintf(f->trace, "%s %u + %u bytes, head", p->forged ? " forged," : "", p->head_bytes,
            p->data_bytes);
    for (uint32_t i = 0; i < p->head_bytes; i++)
        fprintf(f->trace, "%s%02x", i % 8 ? "" : " ", p->bytes[i]);
    fputc('\n', f->trace);
}

static void check_fabric_note(struct check_fabric *f, const struct packet *p)
{
    struct fabric_result *r = f->r;
    uint64_t h = random_mix((uint64_t)f->now ^ (uint64_t)p->node << 52 ^
                            (uint64_t)(unsigned)p->from << 40 ^ (uint64_t)p->to_rank << 39);

    for (uint32_t i = 0; i < p->head_bytes + p->data_bytes; i++)
        h = (h ^ p->bytes[i]) * 0x100000001b3u;
    if (r->packets == f->hash_room) {
        size_t room = f->hash_room ? 2 * f->hash_room : 1024;
        uint64_t *more = realloc(r->hash, room * sizeof(*more));

        if (!more) {
            fabric_fail(f, "out of memory");
            return;
        }
        r->hash = more;
        f->hash_room = room;
    }
    r->hash[r->packets++] = random_mix(h ^ p->head_bytes);
    *f->progress = r->packets;
    if (f->trace)
        trace(f, p);
}

static void handle_packet(struct check_fabric *f, const struct packet *p)
{
    struct fabric_job *j = &f->job[p->job];
    struct node_rank *r = &j->rank[p->node % CASE_RANKS];
    struct at *a = &j->at[p->node % SWITCHES];
    struct trib_packet t = {.head_bytes = p->head_bytes,
                            .data_bytes = p->data_bytes,
                            .from = p->from,
                            .marked = p->marked};

    if (j->ended || (p->to_rank ? !r->r || r->dead : !a->pj))
        return;
    check_fabric_note(f, p);
    links_forge(f, p);
    t.head = lend(0, p->bytes, p->head_bytes, 8);
    t.data = lend(1, p->bytes + p->head_bytes, p->data_bytes, 4);
    if (p->to_rank) {
        proto_rank_packet(r->r, &t, f->now);
        take_back();
        check_job_after_rank(f, p->job, p->node);
    } else {
        links_handle(p);
        proto_switch_packet(f->sw[p->node].s, a->pj, &t, f->now);
        links_handle(NULL);
        take_back();
        check_job_after_switch(f, p->node);
    }
}

/* ---- other events ---- */

static void rank_event(struct check_fabric *f, const struct queue_event *e)
{
    struct node_rank *r = &f->job[e->a].rank[e->b];

    if (e->kind == E_ROOM)
        r->buffers--;
    if (e->kind == E_RANK_TICK)
        r->tick_ps = INT64_MAX;
    if (!r->r || r->dead)
        return;
    if (e->kind == E_START) {
        check_job_start_op(f, e->a, e->b);
        return;
    }
    if (e->kind == E_DEATH) {
        r->dead = true;
        if (queue_push(&f->q, f->now + 20 * case_round_trip(f->c), E_LOST, e->a, 0, NULL))
            fabric_fail(f, "out of memory");
        return;
    }
    if (e->kind == E_RANK_TICK)
        proto_rank_tick(r->r, f->now);
    else if (proto_rank_waits(r->r))
        proto_rank_room(r->r, f->now);
    check_job_after_rank(f, e->a, e->b);
}

static void handle(struct check_fabric *f, struct queue_event *e)
{
    struct node_switch *n;

    switch (e->kind) {
    case E_PACKET:
        handle_packet(f, e->data);
        free(e->data);
        break;
    case E_SWITCH_TICK:
        n = &f->sw[e->a];
        n->tick_ps = INT64_MAX;
        if (n->s)
            proto_switch_tick(n->s, f->now);
        check_job_after_switch(f, e->a);
        break;
    case E_JOB:
        check_job_begin(f, e->a);
        break;
    case E_LOST:
        check_job_end(f, e->a);
        break;
    default:
        rank_event(f, e);
        break;
    }
}

/* ---- the run ---- */

/* Fails the run, and names the first rank that has not ended. */
static void not_ended(struct check_fabric *f, const char *why)
{
    for (unsigned j = 0; j < f->c->n_jobs; j++)
        for (unsigned r = 0; f->job[j].open && !f->job[j].ended && r < f->c->job[j].nranks; r++)
            if (!f->job[j].rank[r].finished) {
                fabric_fail(f,
                            "job %u of %u ranks, rank %u: operation %u of %" PRIu64
                            " elements does not end: %s",
                            j, f->c->job[j].nranks, r, f->job[j].rank[r].op,
                            f->c->job[j].op[f->job[j].rank[r].op].count, why);
                return;
            }
}

static void loop(struct check_fabric *f)
{
    struct queue_event e;

    while (f->n_ended < f->c->n_jobs && !f->r->failed) {
        if (!queue_pop(&f->q, &e)) {
            if (!f->c->hostile)
                not_ended(f, "no packet is in flight and no timer is set");
            break;
        }
        f->now = e.at_ps;
        handle(f, &e);
        if (watch_seen()->why[0] && (f->c->property == P_WORK || watch_seen()->why[0] != 'w'))
            fabric_fail(f, "%s", watch_seen()->why);
        if (f->c->hostile && (f->events > HOSTILE_MOST || f->now > MOST_TIME))
            break;
        if (f->c->any_key && f->events > KEYS_MOST)
            break;
        if (++f->events > MOST_EVENTS)
            not_ended(f, "2,000,000 events");
        if (f->now > MOST_TIME)
            not_ended(f, "30 s of fabric time");
    }
}

void fabric_run(const struct check_case *c, const struct trib_protocol *p, FILE *to,
                volatile uint64_t *progress, struct fabric_result *r)
{
    struct check_fabric *f = calloc(1, sizeof(*f));

    memset(r, 0, sizeof(*r));
    if (!f) {
        r->failed = true;
        snprintf(r->why, sizeof(r->why), "out of memory");
        return;
    }
    f->c = c;
    f->p = p;
    f->r = r;
    f->trace = to;
    f->progress = progress;
    *progress = 0;
    f->random = random_mix(c->seed + 77);
    for (unsigned s = 0; s < SWITCHES; s++)
        f->sw[s].f = f;
    for (unsigned j = 0; j < c->n_jobs; j++)
        if (queue_push(&f->q, c->job[j].start_ps, E_JOB, j, 0, NULL))
            fabric_fail(f, "out of memory");
    if (c->dies >= 0 && queue_push(&f->q, c->dies_ps, E_DEATH, 0, (unsigned)c->dies, NULL))
        fabric_fail(f, "out of memory");
    loop(f);
    for (unsigned j = 0; j < c->n_jobs; j++)
        check_job_end(f, j);
    queue_fini(&f->q);
    free(f);
}
