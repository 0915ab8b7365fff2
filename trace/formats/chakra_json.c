/* SPDX-License-Identifier: BSD-3-Clause */
/* Chakra's JSON: {"workload_graph": [{"Id", "NodeType", "data_deps", ..}, ..], ..}. Any key may lack. */
#include "trace/formats/chakra_rank.h"
#include "trace/formats/trace_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

static const struct {
    const char *key;
    size_t offset;
    bool needed;
} numbers[] = {
    {"Id", offsetof(struct chakra_node, id), true},
    {"NodeType", offsetof(struct chakra_node, type), true},
    {"runtime", offsetof(struct chakra_node, duration_us), false},
    {"comm_type", offsetof(struct chakra_node, comm_type), false},
    {"comm_size", offsetof(struct chakra_node, bytes), false},
    {"comm_src", offsetof(struct chakra_node, src), false},
    {"comm_dst", offsetof(struct chakra_node, dst), false},
    {"comm_tag", offsetof(struct chakra_node, tag), false},
};

static int node_numbers(struct chakra_rank *c, const json_t *one, uint32_t record,
                        struct chakra_node *n)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const json_t *v = json_object_get(one, numbers[i].key);

        if (!v && !numbers[i].needed)
            continue;
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return chakra_refuse(c, record,
                                 "found %s that is no whole number of 0 and more, "
                                 "expected one",
                                 numbers[i].key);
        *(uint64_t *)(void *)((char *)n + numbers[i].offset) = (uint64_t)json_integer_value(v);
    }
    return 0;
}

static int node_waits(struct chakra_rank *c, const json_t *one, uint32_t record, const char *key,
                      void (*wait)(struct chakra_rank *, uint64_t))
{
    const json_t *list = json_object_get(one, key), *id;
    size_t i;

    if (list && !json_is_array(list))
        return chakra_refuse(c, record, "found %s that is no list, expected ids", key);
    json_array_foreach(list, i, id)
    {
        if (!json_is_integer(id) || json_integer_value(id) < 0)
            return chakra_refuse(c, record, "found something else in %s, expected ids", key);
        wait(c, (uint64_t)json_integer_value(id));
    }
    return 0;
}

static int node_read(struct chakra_rank *c, const json_t *one, uint32_t record)
{
    struct chakra_node n = {.comm_type = CHAKRA_NO_TYPE,
                            .src = CHAKRA_NO_TYPE,
                            .dst = CHAKRA_NO_TYPE,
                            .tag = CHAKRA_NO_TYPE};
    const json_t *group = json_object_get(one, "pg_name");
    int rc;

    if (!json_is_object(one))
        return chakra_refuse(c, record, "found no object, expected a node");
    n.cpu = json_is_true(json_object_get(one, "is_cpu_op"));
    n.group = json_string_value(group);
    n.group_n = json_string_length(group);
    rc = node_numbers(c, one, record, &n);
    if (!rc)
        rc = chakra_rank_node(c, &n, record);
    if (!rc)
        rc = node_waits(c, one, record, "data_deps", chakra_rank_data);
    return rc ? rc : node_waits(c, one, record, "ctrlDeps", chakra_rank_ctrl);
}

int chakra_json_read(struct app_graph *g, struct trace_input *in, const struct json_t *top,
                     uint32_t rank)
{
    const json_t *list = json_object_get(top, "workload_graph"), *one;
    struct chakra_rank c;
    size_t i;
    int rc;

    g->format = "Chakra JSON";
    if (!json_is_array(list))
        return trace_refuse_at(in, "", "found a workload_graph that is no list, expected nodes");
    rc = chakra_rank_begin(&c, g, in, rank == APP_ANY ? 0 : rank);
    json_array_foreach(list, i, one)
    {
        if (!rc)
            rc = node_read(&c, one, (uint32_t)i);
    }
    chakra_rank_end(&c);
    return rc;
}
