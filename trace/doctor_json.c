/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/doctor.h"

#include <jansson.h>
#include <string.h>

#define PLACE 256

static void number_set(json_t *to, const char *key, uint64_t v)
{
    json_object_set_new(to, key, json_integer((json_int_t)v));
}

/* Kinds that there are: {"send": {"count": 2, "bytes": 300000}}. */
static json_t *sums_json(const struct app_sums *s)
{
    json_t *all = json_object();

    for (unsigned k = 0; k < APP_KINDS; k++) {
        json_t *one = s->n[k] ? json_object() : NULL;

        if (!one)
            continue;
        number_set(one, "count", s->n[k]);
        number_set(one, "bytes", s->bytes[k]);
        number_set(one, "ns", s->ns[k]);
        json_object_set_new(all, app_kind_name(k), one);
    }
    return all;
}

static json_t *colls_json(const struct app_sums *s)
{
    json_t *all = json_object();

    for (unsigned k = 0; k < APP_COLLS; k++) {
        json_t *one = s->coll_n[k] ? json_object() : NULL;

        if (!one)
            continue;
        number_set(one, "count", s->coll_n[k]);
        number_set(one, "bytes", s->coll_bytes[k]);
        json_object_set_new(all, app_coll_name(k), one);
    }
    return all;
}

static void sums_set(json_t *to, const struct app_sums *s)
{
    json_object_set_new(to, "operations", sums_json(s));
    json_object_set_new(to, "collectives", colls_json(s));
    number_set(to, "dependencies", s->deps);
    number_set(to, "start_dependencies", s->start_deps);
    number_set(to, "any_receives", s->any);
    number_set(to, "marks", s->marks);
}

static json_t *ranks_json(const struct doctor *d)
{
    json_t *all = json_array();

    for (uint32_t r = 0; r < d->g->n_ranks; r++) {
        json_t *one = json_object();

        number_set(one, "rank", r);
        sums_set(one, &d->rank[r]);
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *groups_json(const struct app_graph *g)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < g->n_groups; i++) {
        json_t *one = json_array();

        for (uint32_t k = 0; k < g->group[i].n; k++)
            json_array_append_new(one, json_integer(g->group[i].rank[k]));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *path_json(const struct doctor *d)
{
    json_t *one = json_object();
    char place[PLACE];

    number_set(one, "ns", d->way.ns);
    number_set(one, "operations", d->way.ops);
    if (d->way.ended) {
        number_set(one, "rank", d->way.rank);
        app_graph_place(d->g, d->way.rank, &d->g->rank[d->way.rank].op[d->way.op], place, PLACE);
        json_object_set_new(one, "place", json_string(place));
    }
    number_set(one, "busiest_stream_ns", d->all.busy_ns);
    return one;
}

static json_t *found_json(const struct findings *f)
{
    json_t *all = json_array();

    for (unsigned k = 0; k < FINDING_KINDS; k++) {
        json_t *one = f->n[k] ? json_object() : NULL, *first = one ? json_array() : NULL;

        if (!one)
            continue;
        for (unsigned i = 0; i < finding_kept(f, k); i++)
            json_array_append_new(first, json_string(f->text[k][i]));
        json_object_set_new(one, "kind", json_string(finding_name(k)));
        number_set(one, "count", f->n[k]);
        json_object_set_new(one, "first", first);
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *repaired_json(const struct app_graph *g)
{
    json_t *all = json_object();

    for (unsigned r = 0; r < REPAIRS; r++)
        if (g->repaired[r])
            number_set(all, repair_name(r), g->repaired[r]);
    return all;
}

json_t *doctor_json(const struct doctor *d)
{
    json_t *top = json_object(), *totals = json_object();

    if (!top || !totals) {
        json_decref(top);
        json_decref(totals);
        return NULL;
    }
    json_object_set_new(top, "file", json_string(d->path));
    json_object_set_new(top, "format", json_string(d->g->format));
    number_set(top, "ranks", d->g->n_ranks);
    number_set(top, "alike", d->g->alike);
    number_set(top, "collectives", d->colls);
    sums_set(totals, &d->all);
    json_object_set_new(top, "totals", totals);
    json_object_set_new(top, "per_rank", ranks_json(d));
    json_object_set_new(top, "groups", groups_json(d->g));
    json_object_set_new(top, "critical_path", path_json(d));
    number_set(top, "span_ns", d->g->span_ns);
    json_object_set_new(top, "repaired", repaired_json(d->g));
    json_object_set_new(top, "wrong", found_json(&d->g->found));
    return top;
}
