/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kineto's traces of a PyTorch process, a file a rank: what its device did, by start. Dependencies are not in
 * the file: operations of a stream follow one another, and a stream that waits for an event of another one
 * waits for what that had begun before.
 */
#include "trace/formats/chakra_rank.h"
#include "trace/formats/trace_json.h"
#include "trace/grow.h"
#include "trace/number_map.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#define NONE      UINT32_MAX
#define TIME_MOST 1e15 /* us that a trace may last */

static const struct {
    const char *name;
    enum app_coll coll;
} kinds[] = {
    {"allreduce", APP_ALL_REDUCE},
    {"allreduce_coalesced", APP_ALL_REDUCE},
    {"allgather", APP_ALL_GATHER},
    {"_allgather_base", APP_ALL_GATHER},
    {"all_gather", APP_ALL_GATHER},
    {"allgather_into_tensor_coalesced", APP_ALL_GATHER},
    {"reduce_scatter", APP_REDUCE_SCATTER},
    {"_reduce_scatter_base", APP_REDUCE_SCATTER},
    {"reduce_scatter_tensor_coalesced", APP_REDUCE_SCATTER},
    {"all_to_all", APP_ALL_TO_ALL},
    {"all_to_allv", APP_ALL_TO_ALL},
    {"alltoall", APP_ALL_TO_ALL},
    {"broadcast", APP_BROADCAST},
    {"reduce", APP_REDUCE},
    {"gather", APP_GATHER},
    {"scatter", APP_SCATTER},
    {"barrier", APP_BARRIER},
};
/* What kernels are called; the first that fits counts. */
static const struct {
    const char *part;
    enum app_coll coll;
} kernels[] = {
    {"AllReduce", APP_ALL_REDUCE}, {"ReduceScatter", APP_REDUCE_SCATTER},
    {"AllGather", APP_ALL_GATHER}, {"Broadcast", APP_BROADCAST},
    {"Reduce", APP_REDUCE},
};
static const struct {
    const char *name;
    unsigned bytes;
} dtypes[] = {
    {"Float8", 1},   {"Double", 8}, {"Long", 8}, {"Float", 4}, {"Int", 4},  {"Half", 2},
    {"BFloat16", 2}, {"Short", 2},  {"Byte", 1}, {"Char", 1},  {"Bool", 1},
};

struct kineto {
    struct app_graph *g;
    struct trace_input *in;
    uint32_t rank;
    struct kineto_event {
        double ts, dur; /* us */
        const json_t *json;
        uint32_t record;
        enum app_kind kind;
        bool waits; /* for another stream */
    } * event;
    size_t n, room;
    struct number_map streams, groups; /* of device and stream; by group */
    uint32_t *stream_last, *group_next;
    size_t stream_room, group_room;
    double first, end;
};

static int kineto_refuse(struct kineto *k, uint32_t record, const char *found, const char *expected)
{
    char place[48];

    snprintf(place, sizeof(place), "rank %u, event %u", k->rank, record);
    return trace_refuse_at(k->in, place, "found %s, expected %s", found, expected);
}

/* ---- events of the device ---- */

static bool event_kind(const char *cat, const char *name, struct kineto_event *e)
{
    e->waits = false;
    e->kind = APP_COMPUTE;
    if (!strcasecmp(cat, "kernel"))
        e->kind = strcasestr(name, "nccl") ? APP_COLL : APP_COMPUTE;
    else if (!strcmp(cat, "gpu_memcpy") || !strcmp(cat, "gpu_memset") || !strcmp(cat, "Memcpy"))
        e->kind = APP_COPY;
    else if (!strcmp(cat, "cuda_sync") && !strcmp(name, "Stream Wait Event"))
        e->kind = APP_WAIT;
    else
        return false;
    e->waits = e->kind == APP_WAIT;
    return true;
}

static int event_read(struct kineto *k, const json_t *json, uint32_t record)
{
    const char *ph = json_string_value(json_object_get(json, "ph"));
    const char *cat = json_string_value(json_object_get(json, "cat"));
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *ts = json_object_get(json, "ts"), *dur = json_object_get(json, "dur");
    struct kineto_event e = {.json = json, .record = record};

    if (!ph || !cat || !name || strcmp(ph, "X") != 0 || !event_kind(cat, name, &e))
        return 0;
    e.ts = json_number_value(ts);
    e.dur = json_number_value(dur);
    if (!json_is_number(ts) || !isfinite(e.ts) || (dur && (!json_is_number(dur) || !(e.dur >= 0))))
        return kineto_refuse(k, record, "no ts and dur", "times in us");
    if (e.ts < k->first)
        k->first = e.ts;
    if (e.ts + e.dur > k->end)
        k->end = e.ts + e.dur;
    GROW(k->event, k->n + 1, &k->room);
    k->event[k->n++] = e;
    return 0;
}

static int event_compare(const void *a, const void *b)
{
    const struct kineto_event *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return x->record < y->record ? -1 : x->record > y->record;
}

/* ---- collectives ---- */

static const json_t *event_arg(const struct kineto_event *e, const char *name)
{
    return json_object_get(json_object_get(e->json, "args"), name);
}

static uint64_t arg_number(const struct kineto_event *e, const char *name, uint64_t otherwise)
{
    const json_t *v = event_arg(e, name);

    return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v)
                                                            : otherwise;
}

static unsigned dtype_bytes(const char *name)
{
    for (size_t i = 0; name && i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        if (!strncmp(name, dtypes[i].name, strlen(dtypes[i].name)))
            return dtypes[i].bytes;
    return 0;
}

/* Members that the event has itself, where distributedInfo has none: a list as text. */
static void group_of_event(struct kineto *k, const struct kineto_event *e, const char *name)
{
    const char *ranks = json_string_value(event_arg(e, "Process Group Ranks"));
    json_t *list = ranks ? json_loads(ranks, 0, NULL) : NULL, *one = list ? json_object() : NULL;

    if (one && json_array_size(list)) {
        json_object_set_new(one, "pg_name", json_string(name));
        json_object_set(one, "ranks", list);
        chakra_process_group(k->g, one, k->in->name);
    }
    json_decref(one);
    json_decref(list);
}

static uint32_t event_group(struct kineto *k, const struct kineto_event *e)
{
    const char *name = json_string_value(event_arg(e, "Process Group Name"));
    uint32_t group;

    if (!name)
        return APP_WORLD;
    if (!app_graph_group_find(k->g, name, strlen(name), &group)) {
        group_of_event(k, e, name);
        if (!app_graph_group_find(k->g, name, strlen(name), &group))
            group = app_graph_group_new(k->g, name, strlen(name));
    }
    return group;
}

/* Collectives of a group are one over ranks by their order. */
static uint32_t group_tag(struct kineto *k, uint32_t group)
{
    uint32_t old = k->groups.n, i = number_map_enter(&k->groups, group, 0);

    GROW(k->group_next, k->groups.n, &k->group_room);
    if (k->groups.n != old)
        k->group_next[i] = 0;
    return k->group_next[i]++;
}

static void coll_by_kernel(struct kineto *k, const struct kineto_event *e, struct app_op *op)
{
    const char *name = json_string_value(json_object_get(e->json, "name"));

    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]) && op->coll == APP_UNTYPED; i++)
        if (strstr(name, kernels[i].part))
            op->coll = kernels[i].coll;
    k->g->repaired[op->coll == APP_UNTYPED ? REPAIR_LOCAL : REPAIR_KERNEL_NAME]++;
}

static int coll_message(struct kineto *k, const struct kineto_event *e, const char *name,
                        struct app_op *op)
{
    uint64_t peer = arg_number(e, !strcmp(name, "send") ? "Dst Rank" : "Src Rank", UINT64_MAX);

    if (peer >= APP_RANKS_MOST)
        return kineto_refuse(k, e->record, "no rank of the other end", "Src Rank or Dst Rank");
    op->kind = !strcmp(name, "send") ? APP_SEND : APP_RECV;
    op->peer = (uint32_t)peer;
    return 0;
}

static int coll_read(struct kineto *k, const struct kineto_event *e, struct app_op *op)
{
    const char *name = json_string_value(event_arg(e, "Collective name"));
    uint64_t n = arg_number(e, "In msg nelems", 0);
    unsigned bytes = dtype_bytes(json_string_value(event_arg(e, "dtype")));

    op->coll = APP_UNTYPED;
    op->peer = APP_ANY;
    op->group = event_group(k, e);
    if (n && (!bytes || n > UINT64_MAX / 8))
        return kineto_refuse(k, e->record, bytes ? "too many elements" : "no dtype that is known",
                             "elements of a type");
    op->bytes = n * bytes;
    if (name && (!strcmp(name, "send") || !strcmp(name, "recv")))
        return coll_message(k, e, name, op);
    for (size_t i = 0; name && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(name, kinds[i].name))
            op->coll = kinds[i].coll;
    if (op->coll == APP_UNTYPED)
        coll_by_kernel(k, e, op);
    if (op->coll != APP_UNTYPED)
        op->tag = group_tag(k, op->group);
    return 0;
}

/* ---- operations ---- */

/* The number of a stream of a device. */
static uint32_t stream_of(struct kineto *k, uint64_t device, uint64_t stream)
{
    uint32_t old = k->streams.n, i = number_map_enter(&k->streams, device, stream);

    GROW(k->stream_last, k->streams.n, &k->stream_room);
    if (k->streams.n != old)
        k->stream_last[i] = NONE;
    return i;
}

static void op_waits(struct kineto *k, uint32_t op, uint32_t stream, bool rule)
{
    if (k->stream_last[stream] == NONE)
        return;
    app_graph_dep(k->g, op, k->stream_last[stream], false);
    k->g->repaired[REPAIR_STREAM_ORDER] += rule;
}

static int op_read(struct kineto *k, const struct kineto_event *e)
{
    uint64_t device = arg_number(e, "device", 0);
    uint32_t stream = stream_of(k, device, arg_number(e, "stream", 0)), other = stream;
    struct app_op op = {.line = e->record, .kind = (uint8_t)e->kind};
    int rc = e->kind == APP_COLL ? coll_read(k, e, &op) : 0;
    int64_t i;

    if (rc)
        return rc;
    op.ns = e->waits ? 0 : (uint64_t)llround(e->dur * 1000);
    op.stream = (uint16_t)(stream < UINT16_MAX ? stream : UINT16_MAX);
    if (e->kind == APP_COPY)
        op.bytes = arg_number(e, "bytes", 0);
    i = app_graph_op(k->g, &op);
    if (i < 0)
        return kineto_refuse(k, e->record, "too many operations", "fewer");
    op_waits(k, (uint32_t)i, stream, true);
    if (e->waits)
        other = stream_of(k, device, arg_number(e, "wait_on_stream", UINT64_MAX));
    if (other != stream)
        op_waits(k, (uint32_t)i, other, false);
    k->stream_last[stream] = (uint32_t)i;
    return 0;
}

static int kineto_events(struct kineto *k, const json_t *list)
{
    int rc = 0;

    k->first = INFINITY;
    for (size_t i = 0; !rc && i < json_array_size(list); i++)
        rc = event_read(k, json_array_get(list, i), (uint32_t)i);
    if (!rc && k->n && k->end - k->first > TIME_MOST)
        rc = kineto_refuse(k, 0, "a trace of more than 30 years", "times in us");
    if (k->n)
        qsort(k->event, k->n, sizeof(*k->event), event_compare);
    for (size_t i = 0; !rc && i < k->n; i++)
        rc = op_read(k, &k->event[i]);
    if (!rc && k->n && (uint64_t)llround((k->end - k->first) * 1000) > k->g->span_ns)
        k->g->span_ns = (uint64_t)llround((k->end - k->first) * 1000);
    return rc;
}

static int kineto_info(struct kineto *k, const json_t *info, uint32_t rank)
{
    const json_t *own = json_object_get(info, "rank"), *world = json_object_get(info, "world_size");
    const json_t *groups = json_object_get(info, "pg_config");

    k->rank = rank == APP_ANY ? 0 : rank;
    if (own && (!json_is_integer(own) || json_integer_value(own) < 0 ||
                json_integer_value(own) >= APP_RANKS_MOST))
        return trace_refuse_at(k->in, "", "found no rank in distributedInfo, expected one below %u",
                               APP_RANKS_MOST);
    if (own)
        k->rank = (uint32_t)json_integer_value(own);
    if (world && (!json_is_integer(world) || json_integer_value(world) <= (json_int_t)k->rank ||
                  json_integer_value(world) > APP_RANKS_MOST))
        return trace_refuse_at(k->in, "",
                               "found no world_size in distributedInfo, expected one above "
                               "rank %u",
                               k->rank);
    if (world)
        app_graph_ranks(k->g, (uint32_t)json_integer_value(world));
    for (size_t i = 0; i < json_array_size(groups); i++)
        chakra_process_group(k->g, json_array_get(groups, i), k->in->name);
    return 0;
}

int kineto_read(struct app_graph *g, struct trace_input *in, const struct json_t *top,
                uint32_t rank)
{
    const json_t *list = json_object_get(top, "traceEvents");
    struct kineto k = {.g = g, .in = in};
    int rc;

    g->format = "Kineto";
    if (!json_is_array(list) || json_array_size(list) > UINT32_MAX - 1)
        return trace_refuse_at(in, "", "found traceEvents that are no list, expected events");
    rc = kineto_info(&k, json_object_get(top, "distributedInfo"), rank);
    if (!rc && app_graph_rank(g, k.rank, app_graph_file(g, in->name, true)))
        rc = trace_refuse_at(in, "", "found rank %u again, expected a file of each rank", k.rank);
    else if (!rc) {
        rc = kineto_events(&k, list);
        app_graph_rank_end(g);
    }
    number_map_free(&k.streams);
    number_map_free(&k.groups);
    free(k.stream_last);
    free(k.group_next);
    free(k.event);
    return rc;
}
