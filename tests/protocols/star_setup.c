/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/protocols/star_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- set-up ---- */

static int64_t round_trip(const struct star *s)
{
    int64_t links = s->c.leaves > 1 ? 4 : 2;
    double bits = (s->c.payload + OVERHEAD) * 8e12;

    return (int64_t)((double)(links * s->c.latency_ps) + 2 * bits / (double)s->c.rate_bps +
                     (s->c.leaves > 1 ? 2 * bits / (double)s->sw[0].up.rate_bps : 0));
}

struct star *star_new(const struct star_conf *c)
{
    struct star *s = calloc(1, sizeof(*s));
    const struct trib_key *k = c->protocol->keys;

    s->c = *c;
    s->rnd = c->seed;
    s->c.payload = c->payload ? c->payload : 2048;
    s->c.window = c->window ? c->window : 4096;
    s->c.buffers = c->buffers ? c->buffers : 64;
    s->c.rate_bps = c->rate_bps ? c->rate_bps : 100000000000;
    s->c.latency_ps = c->latency_ps ? c->latency_ps : 1000000;
    for (int i = 0; k && k[i].name; i++) {
        s->key[i] = k[i].usual;
        for (int x = 0; x < TRIB_KEYS && c->key[x]; x++)
            if (!strcmp(c->key[x], k[i].name))
                s->key[i] = c->value[x];
    }
    for (int i = 0; i <= LEAVES; i++) {
        struct sw *w = &s->sw[i];

        w->h = (struct half){.star = s, .timer_ps = TRIB_NEVER};
        w->up.rate_bps = w->down.rate_bps = 16 * s->c.rate_bps;
        w->s =
            (struct trib_switch){.api = &star_switch_api, .key = s->key, .payload = s->c.payload};
    }
    return s;
}

static int join(struct star *s, int job, int k)
{
    struct sw *w = &s->sw[k];
    const struct trib_switch_half *half = s->c.protocol->sw;
    struct job *j = &s->job[job];
    struct trib_job *tj = calloc(1, sizeof(*tj));
    unsigned first, leaves = s->c.leaves < j->nranks ? s->c.leaves : j->nranks;
    int rc = 0;

    *tj = (struct trib_job){.nranks = j->nranks,
                            .index = (uint32_t)job,
                            .rate_bps = s->c.rate_bps,
                            .round_trip_ps = round_trip(s)};
    tj->n_below = k == ROOT ? j->nranks : star_ranks_below(s, job, k, &first);
    tj->n_children = k == ROOT ? leaves : tj->n_below;
    tj->root = k == ROOT || leaves == 1;
    w->setting_up = true;
    w->jobs[job] = tj;
    if (!w->opened && half->open)
        rc = half->open(&w->s);
    w->opened = !rc;
    if (!rc)
        rc = half->job_open(&w->s, tj);
    w->setting_up = false;
    if (rc) {
        w->jobs[job] = NULL;
        free(tj);
    }
    return rc;
}

static int rank_new(struct star *s, int job, unsigned i)
{
    struct job *j = &s->job[job];
    struct rank *r = &j->rank[i];

    r->h = (struct half){.star = s, .timer_ps = TRIB_NEVER};
    r->up.rate_bps = r->down.rate_bps = s->c.rate_bps;
    r->r = (struct trib_rank){.api = &star_rank_api,
                              .key = s->key,
                              .rank = i,
                              .nranks = j->nranks,
                              .switch_of = j->switch_of,
                              .job = (uint32_t)job,
                              .payload = s->c.payload,
                              .window = s->c.window,
                              .rate_bps = s->c.rate_bps,
                              .round_trip_ps = round_trip(s)};
    return s->c.protocol->rank->open(&r->r);
}

int star_job(struct star *s, unsigned nranks)
{
    int job = 0, rc = 0;
    struct job *j;
    unsigned leaves = s->c.leaves < nranks ? s->c.leaves : nranks;

    while (s->job[job].live)
        job++;
    j = &s->job[job];
    *j = (struct job){.nranks = nranks, .live = true};
    j->rank = calloc(nranks, sizeof(*j->rank));
    for (unsigned r = 0; r < nranks; r++) {
        unsigned first = r;

        star_ranks_below(s, job, star_leaf(s, job, r), &first);
        j->switch_of[r] = (uint16_t)first;
    }
    for (unsigned k = 0; s->c.protocol->sw && k < leaves && !rc; k++)
        rc = join(s, job, (int)k);
    if (s->c.protocol->sw && leaves > 1 && !rc)
        rc = join(s, job, ROOT);
    for (unsigned r = 0; r < nranks && !rc; r++) {
        rc = rank_new(s, job, r);
        j->rank[r].open = !rc;
    }
    if (!rc)
        return job;
    star_job_end(s, job);
    return rc;
}

static void leave(struct star *s, struct sw *w, int job)
{
    struct trib_array **p = &w->arrays, *a;

    s->c.protocol->sw->job_close(&w->s, w->jobs[job]);
    while ((a = *p)) {
        for (uint32_t i = 0; i < a->n; i++)
            if (a->own[i] == w->jobs[job]) {
                star_fault(s, "a job has kept a slot");
                a->own[i] = NULL;
            }
        if (a->job != w->jobs[job]) {
            p = &a->next;
            continue;
        }
        *p = a->next;
        w->used -= (uint64_t)a->n * a->bytes;
        free(a->own);
        free(a->mem);
        free(a->scratch);
        free(a);
    }
    free(w->jobs[job]);
    w->jobs[job] = NULL;
}

void star_job_end(struct star *s, int job)
{
    struct job *j = &s->job[job];

    for (unsigned r = 0; r < j->nranks; r++)
        if (j->rank[r].open)
            s->c.protocol->rank->close(&j->rank[r].r);
    for (int k = 0; k <= LEAVES; k++)
        if (s->sw[k].jobs[job])
            leave(s, &s->sw[k], job);
    for (uint32_t i = 0; i < s->n; i++) { /* what is on its way to nobody */
        struct event *e = s->heap[i];

        if (e->what == PACKET ? e->job == job
                              : e->rank >= j->rank && e->rank < j->rank + j->nranks) {
            e->what = DEAD;
            e->rank = NULL;
        }
    }
    free(j->rank);
    *j = (struct job){0};
}

int star_free(struct star *s)
{
    int rc;

    for (int j = 0; j < JOBS; j++)
        if (s->job[j].live)
            star_job_end(s, j);
    for (int k = 0; k <= LEAVES; k++) {
        struct sw *w = &s->sw[k];

        if (w->opened && s->c.protocol->sw->close)
            s->c.protocol->sw->close(&w->s);
        while (w->arrays) {
            struct trib_array *a = w->arrays;

            w->arrays = a->next;
            free(a->own);
            free(a->mem);
            free(a->scratch);
            free(a);
        }
    }
    while (s->n) {
        struct event *e = star_next(s);

        free(e->data);
        free(e);
    }
    rc = s->broken ? -1 : 0;
    if (rc)
        fprintf(stderr, "star: %s\n", s->why);
    free(s->heap);
    free(s);
    return rc;
}

/* ---- queries ---- */

int64_t star_took_ps(const struct star *s, int job)
{
    return s->job[job].to_ps - s->job[job].from_ps;
}

static const struct star *modelled;

static int64_t way_ps(uint32_t bytes, int links, int trunks)
{
    double bits = (bytes + OVERHEAD) * 8e12 / (double)modelled->c.rate_bps;

    return (int64_t)(links * bits + trunks * bits / 16) + (links + trunks) * modelled->c.latency_ps;
}

static int64_t one_way(const struct trib_model *m, uint32_t bytes)
{
    return way_ps(bytes, 1, m->levels > 1);
}

static int64_t across(const struct trib_model *m, uint32_t bytes)
{
    return way_ps(bytes, 2, m->levels > 1 ? 2 : 0);
}

/* Trunks are faster than all that comes to them. */
static double busiest(const struct trib_model *m, unsigned servers, bool back, double *one)
{
    unsigned parts = m->nranks - 1, both = parts + servers - 1;

    if (one)
        *one = 1;
    return !back ? parts : both > servers ? both : servers;
}

int64_t star_model_ps(const struct star *s, int job, uint64_t count, enum trib_type type)
{
    unsigned n = s->job[job].nranks;
    struct trib_model m = {.key = s->key,
                           .nranks = n,
                           .count = count,
                           .type = type,
                           .payload = s->c.payload,
                           .overhead = OVERHEAD,
                           .rate_bps = s->c.rate_bps,
                           .ranks_a_link = 1,
                           .levels = s->c.leaves > 1 ? 2 : 1,
                           .leaves = s->c.leaves,
                           .window = s->c.window,
                           .up_ps = one_way,
                           .down_ps = one_way,
                           .across_ps = across,
                           .busiest = busiest};

    modelled = s;
    return s->c.protocol->model(&m);
}

static uint64_t counter_of(const char *const *names, const struct half *h, const char *name)
{
    for (int i = 0; names && names[i]; i++)
        if (!strcmp(names[i], name))
            return h->counter[i];
    return 0;
}

uint64_t star_counter(const struct star *s, const char *name)
{
    const struct trib_protocol *p = s->c.protocol;
    uint64_t n = 0;

    for (int k = 0; p->sw && k <= LEAVES; k++)
        n += counter_of(p->sw->counters, &s->sw[k].h, name);
    for (int j = 0; j < JOBS; j++)
        for (unsigned r = 0; r < s->job[j].nranks; r++)
            n += counter_of(p->rank->counters, &s->job[j].rank[r].h, name);
    return n;
}

uint32_t star_most_to_a_rank(const struct star *s)
{
    return s->most;
}

uint32_t star_slots_in_use(const struct star *s)
{
    uint32_t n = 0;

    for (int k = 0; k <= LEAVES; k++)
        for (const struct trib_array *a = s->sw[k].arrays; a; a = a->next)
            for (uint32_t i = 0; i < a->n; i++)
                n += a->own[i] != NULL;
    return n;
}
