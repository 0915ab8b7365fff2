/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/live.h"

#include "machine/telemetry_client.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_S 1
#define PATIENCE 5 /* a process that did not answer is asked again at this look after */
#define HEAD     3

struct live_reading {
    struct live_fabric *x;
    struct live_proc *p;
    int64_t now_ps; /* of the answer */
};
typedef void take_row(struct live_reading *r, const uint64_t *v);

static uint64_t live_read_number(const json_t *a, size_t i)
{
    return (uint64_t)json_integer_value(json_array_get(a, i));
}

/* Takes the rows of an answer. Returns the row to ask for next, 0 after the last one, or -errno. */
static int64_t live_reading_take(struct live_reading *r, const json_t *a, take_row *row)
{
    uint64_t used = live_read_number(a, 2), v[64];
    unsigned width = (unsigned)__builtin_popcountll(used);
    size_t n = json_array_size(a);

    if (n < HEAD || !(used & 1) || (n - HEAD) % width)
        return -EPROTO;
    r->now_ps = (int64_t)live_read_number(a, 0);
    for (size_t i = HEAD; i < n; i += width) {
        memset(v, 0, sizeof(v));
        for (unsigned c = 0, k = 0; c < 64; c++)
            if (used & 1ull << c)
                v[c] = live_read_number(a, i + k++);
        row(r, v); /* it ignores columns that this program does not know */
    }
    return (int64_t)live_read_number(a, 1);
}

static int read_table(struct live_reading *r, const char *table, take_row *row)
{
    int64_t next = 0;

    do {
        char first[24];
        json_t *a;
        int64_t at = next;

        snprintf(first, sizeof(first), "%lld", (long long)next);
        a = telemetry_client_ask(r->p->fd, table, first);
        next = a ? live_reading_take(r, a, row) : -ETIMEDOUT;
        json_decref(a);
        if (next > 0 && next <= at)
            next = -EPROTO;
    } while (next > 0);
    return (int)next;
}

/* ---- tables ---- */

static void take_port(struct live_reading *r, const uint64_t *v)
{
    const struct fabric *f = r->x->f;
    struct live_dir *dir = r->x->now.dir;
    unsigned d = (unsigned)v[PORT_direction];

    if (v[PORT_direction] >= 2u * f->n_links)
        return;
    dir[d].known = true;
    dir[d].now_ps = r->now_ps;
    memcpy(dir[d].v, v, PORT_COLUMNS_N * sizeof(*v));
    /* Drops on receipt at this port belong to the link's other direction. */
    memcpy(&dir[d ^ 1].v[PORT_drops], &v[PORT_drops], DROP_REASONS * sizeof(*v));
    if (f->nodes[live_ends(f, d ^ 1).from].outside) {
        struct live_dir *in = &dir[d ^ 1];

        in->known = true;
        in->now_ps = r->now_ps;
        in->v[PORT_down] = v[PORT_down];
        in->v[PORT_frames] = v[PORT_rx_frames];
        in->v[PORT_bytes] = v[PORT_rx_bytes];
        in->v[PORT_link_bytes] = v[PORT_rx_bytes] + 24 * v[PORT_rx_frames];
    }
}

static void take_group(struct live_reading *r, const uint64_t *v)
{
    if (v[GROUP_node] < r->x->f->n_nodes && v[GROUP_child] <= r->x->f->n_nodes &&
        v[GROUP_founder] <= r->x->f->n_nodes)
        live_group_row(&r->x->now, v);
}

static void program_of(uint64_t pid, char *name, size_t size)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%llu/comm", (unsigned long long)pid);
    f = pid ? fopen(path, "re") : NULL;
    if (!f || !fgets(name, (int)size, f))
        *name = 0;
    if (f)
        fclose(f);
    name[strcspn(name, "\n")] = 0;
    for (char *c = name; *c; c++) /* a process may call itself anything */
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            *c = '?';
}

static void take_slot(struct live_reading *r, const uint64_t *v)
{
    struct live_look *k = &r->x->now;
    struct live_slot *s;

    if (v[SLOT_node] >= r->x->f->n_nodes)
        return;
    s = reallocarray(k->slot, k->n_slots + 1u, sizeof(*s));
    if (!s)
        return;
    k->slot = s;
    memcpy(s[k->n_slots].v, v, sizeof(s->v));
    program_of(v[SLOT_pid], s[k->n_slots].program, sizeof(s->program));
    k->n_slots++;
}

static void take_lag(struct live_reading *r, const uint64_t *v)
{
    if (v[LAG_bucket] >= LIVE_LAG)
        return;
    r->x->lag_top[v[LAG_bucket]] = (int64_t)v[LAG_until_ns];
    r->x->now.lag[v[LAG_bucket]] += v[LAG_handoffs];
}

/* ---- other answers ---- */

/* Reads the links with faults: lines "LINK: loss=0.1%" or "LINK: down". */
static int read_faults(struct live_reading *r)
{
    json_t *a = telemetry_client_ask(r->p->fd, "/trib/link", NULL), *e;
    size_t i;

    json_array_foreach(a, i, e)
    {
        const char *text = json_string_value(e), *colon = text ? strstr(text, ": ") : NULL;
        char name[128];
        int link;

        if (!colon)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
        link = fabric_link_by_name(r->x->f, name);
        colon += strncmp(colon, ": down", 6) ? 2 : 6;
        if (link >= 0)
            snprintf(r->x->faults[link], sizeof(r->x->faults[0]), "%s", colon + (*colon == ' '));
    }
    i = a ? 1 : 0;
    json_decref(a);
    return i ? 0 : -ETIMEDOUT;
}

static void read_kinds(struct live_reading *r)
{
    json_t *a = telemetry_client_ask(r->p->fd, "/trib/table/kinds", NULL), *e;
    size_t i;

    json_array_foreach(a, i, e)
    {
        if (i < sizeof(r->x->kind) / sizeof(r->x->kind[0]) && json_is_string(e))
            snprintf(r->x->kind[i], sizeof(r->x->kind[i]), "%s", json_string_value(e));
    }
    r->x->n_kinds = (unsigned)json_array_size(a);
    json_decref(a);
}

/* Adds counters; for peaks keeps the larger one. */
static void add_totals(json_t *sum, const json_t *of)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)of, key, v)
    {
        json_int_t a = json_integer_value(json_object_get(sum, key)), b = json_integer_value(v);

        if (json_is_integer(v))
            json_object_set_new(sum, key,
                                json_integer(strncmp(key, "peak_", 5) ? a + b
                                             : a > b                  ? a
                                                                      : b));
    }
}

static int read_totals(struct live_reading *r)
{
    json_t *t = telemetry_client_ask(r->p->fd, "/trib/totals", NULL);

    if (!t)
        return -ETIMEDOUT;
    add_totals(r->x->totals, t);
    json_decref(t);
    telemetry_client_proc(r->x->aggregation, r->p->fd, r->p->name, "/trib/an");
    return 0;
}

static int read_dilation(struct live_reading *r)
{
    json_t *v = telemetry_client_ask(r->p->fd, "/trib/dilation", NULL);

    r->x->dilation = (unsigned)json_integer_value(json_object_get(v, "dilation"));
    json_decref(v);
    return v ? 0 : -ETIMEDOUT;
}

/* ---- a process ---- */

static int read_proc(struct live_reading *r, unsigned what)
{
    int rc = read_table(r, "/trib/table/ports", take_port);

    if (!rc && (!r->x->now.now_ps || r->now_ps < r->x->now.now_ps))
        r->x->now.now_ps = r->now_ps;
    rc = rc ? rc : read_table(r, "/trib/table/groups", take_group);
    rc = rc ? rc : read_table(r, "/trib/table/slots", take_slot);
    rc = rc ? rc : read_table(r, "/trib/table/lag", take_lag);
    rc = rc ? rc : read_faults(r);
    if (!rc && !r->x->n_kinds)
        read_kinds(r);
    return rc ? rc : what & LIVE_TOTALS ? read_totals(r) : 0;
}

/* Connects to a process, or checks the connection: the server may have closed it while it was idle. */
static bool process_reach(struct live_reading *r)
{
    if (r->p->fd >= 0 && !read_dilation(r))
        return true;
    live_close(r->p);
    r->p->fd = telemetry_client_open(r->x->rd.path, r->p->name, ANSWER_S);
    return r->p->fd >= 0 && !read_dilation(r);
}

static void live_read_ask(struct live_fabric *x, struct live_proc *p, unsigned what)
{
    struct live_reading r = {.x = x, .p = p};

    if (p->state == LIVE_STARTING || (p->patience && --p->patience))
        return;
    if (process_reach(&r) && !read_proc(&r, what)) {
        p->state = LIVE_READY;
        return;
    }
    live_close(p);
    p->state = LIVE_SILENT;
    p->patience = PATIENCE;
}

/* Makes the last look the one before. False: no memory. */
static bool live_read_turn(struct live_fabric *x)
{
    size_t dirs = 2u * x->f->n_links;
    struct live_dir *dir = x->before.dir;

    live_groups_free(&x->before);
    free(x->before.slot);
    x->before = x->now;
    x->now = (struct live_look){.dir = dir ? dir : calloc(dirs + 1, sizeof(*dir))};
    if (!x->before.dir)
        x->before.dir = calloc(dirs + 1, sizeof(*dir));
    if (!x->now.dir || !x->before.dir)
        return false;
    memset(x->now.dir, 0, dirs * sizeof(*dir));
    return true;
}

void live_read(struct live_fabric *x, unsigned what)
{
    if (!live_read_turn(x))
        return;
    memset(x->faults, 0, x->f->n_links * sizeof(*x->faults));
    json_decref(x->totals);
    json_decref(x->aggregation);
    x->totals = json_object();
    x->aggregation = json_object();
    for (unsigned i = 0; i < x->n_procs; i++)
        live_read_ask(x, &x->proc[i], what);
}
