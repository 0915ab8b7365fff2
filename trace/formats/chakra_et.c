/* SPDX-License-Identifier: BSD-3-Clause */
/* Chakra's execution traces: messages of protobuf, each behind its length as a varint. */
#include "trace/formats/chakra_rank.h"
#include "trace/formats/trace_readers.h"

#include "trace/formats/chakra.pb-c.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_MOST   (64u << 20)
#define OLD_ATTRIBUTES 11 /* the field of attributes before October 2023 */

typedef Chakra__Node ChakraNode;
typedef Chakra__Attribute ChakraAttribute;

static const struct {
    const char *name;
    size_t offset;
} numbers[] = {
    {"comm_type", offsetof(struct chakra_node, comm_type)},
    {"comm_src", offsetof(struct chakra_node, src)},
    {"comm_dst", offsetof(struct chakra_node, dst)},
    {"comm_tag", offsetof(struct chakra_node, tag)},
    {"comm_size", offsetof(struct chakra_node, bytes)},
};

/* A number of any of the kinds of whole numbers. */
static bool attribute_number(const ChakraAttribute *a, int64_t *v)
{
    switch (a->value_case) {
    case CHAKRA__ATTRIBUTE__VALUE_INT32_VAL:
        *v = a->int32_val;
        return true;
    case CHAKRA__ATTRIBUTE__VALUE_INT64_VAL:
        *v = a->int64_val;
        return true;
    case CHAKRA__ATTRIBUTE__VALUE_UINT32_VAL:
        *v = a->uint32_val;
        return true;
    case CHAKRA__ATTRIBUTE__VALUE_UINT64_VAL:
        *v = (int64_t)a->uint64_val;
        return a->uint64_val <= INT64_MAX;
    case CHAKRA__ATTRIBUTE__VALUE_SINT32_VAL:
        *v = a->sint32_val;
        return true;
    case CHAKRA__ATTRIBUTE__VALUE_SINT64_VAL:
        *v = a->sint64_val;
        return true;
    case CHAKRA__ATTRIBUTE__VALUE_FIXED32_VAL:
        *v = a->fixed32_val;
        return true;
    case CHAKRA__ATTRIBUTE__VALUE_FIXED64_VAL:
        *v = (int64_t)a->fixed64_val;
        return a->fixed64_val <= INT64_MAX;
    case CHAKRA__ATTRIBUTE__VALUE_SFIXED32_VAL:
        *v = a->sfixed32_val;
        return true;
    case CHAKRA__ATTRIBUTE__VALUE_SFIXED64_VAL:
        *v = a->sfixed64_val;
        return true;
    case CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL:
        *v = a->bool_val;
        return true;
    default:
        return false;
    }
}

static int attribute_read(struct chakra_rank *c, const ChakraAttribute *a, uint32_t record,
                          struct chakra_node *n)
{
    int64_t v;

    if (!strcmp(a->name, "pg_name")) {
        if (a->value_case != CHAKRA__ATTRIBUTE__VALUE_STRING_VAL)
            return chakra_refuse(c, record, "found pg_name of another kind, expected a string");
        n->group = a->string_val.data ? (const char *)a->string_val.data : "";
        n->group_n = a->string_val.len;
        return 0;
    }
    if (!strcmp(a->name, "is_cpu_op") && attribute_number(a, &v))
        n->cpu = v != 0;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(a->name, numbers[i].name) != 0)
            continue;
        if (!attribute_number(a, &v) || v < 0)
            return chakra_refuse(c, record,
                                 "found %s that is no whole number of 0 and more, "
                                 "expected one",
                                 a->name);
        *(uint64_t *)(void *)((char *)n + numbers[i].offset) = (uint64_t)v;
    }
    return 0;
}

/* A tensor's size is what a copy moves. */
static void tensor_read(const ChakraNode *node, struct chakra_node *n)
{
    int64_t v;

    for (size_t i = 0; i < node->n_attr && (n->type == 2 || n->type == 3); i++)
        if (!strcmp(node->attr[i]->name, "tensor_size") && attribute_number(node->attr[i], &v))
            n->bytes = v > 0 ? (uint64_t)v : 0;
}

static bool name_is(const ProtobufCBinaryData *name, const char *text)
{
    return name->len == strlen(text) && !memcmp(name->data, text, name->len);
}

static int node_read(struct chakra_rank *c, const ChakraNode *node, uint32_t record)
{
    struct chakra_node n = {.id = node->id,
                            .type = node->type,
                            .duration_us = node->duration_micros,
                            .comm_type = CHAKRA_NO_TYPE,
                            .src = CHAKRA_NO_TYPE,
                            .dst = CHAKRA_NO_TYPE,
                            .tag = CHAKRA_NO_TYPE};
    int rc = 0;

    for (size_t i = 0; i < node->base.n_unknown_fields; i++)
        if (node->base.unknown_fields[i].tag == OLD_ATTRIBUTES)
            return chakra_refuse(c, record,
                                 "found attributes as field 11, of before October 2023, "
                                 "expected field 10");
    for (size_t i = 0; !rc && i < node->n_attr; i++)
        rc = attribute_read(c, node->attr[i], record, &n);
    tensor_read(node, &n);
    if (!rc && n.type == 1 && node->inputs && name_is(&node->name, "## process_group:init ##"))
        chakra_process_groups(c->g, (const char *)node->inputs->values.data,
                              node->inputs->values.len, c->in->name);
    if (!rc)
        rc = chakra_rank_node(c, &n, record);
    for (size_t i = 0; !rc && i < node->n_data_deps; i++)
        chakra_rank_data(c, node->data_deps[i]);
    for (size_t i = 0; !rc && i < node->n_ctrl_deps; i++)
        chakra_rank_ctrl(c, node->ctrl_deps[i]);
    return rc;
}

/* The length of the next message. 0, 1: the file ends, or -errno. */
static int length_read(struct chakra_rank *c, uint32_t record, uint32_t *length)
{
    const char *at, *skip;
    int64_t n = trace_input_peek(c->in, 5, &at);
    uint64_t v = 0;

    if (n <= 0)
        return n < 0 ? (int)n : 1;
    for (int64_t i = 0; i < n; i++) {
        v |= (uint64_t)((uint8_t)at[i] & 0x7f) << 7 * i;
        if ((uint8_t)at[i] & 0x80)
            continue;
        *length = (uint32_t)v;
        if (v > MESSAGE_MOST)
            return chakra_refuse(c, record,
                                 "found a length of %" PRIu64 " bytes, expected %u at "
                                 "most",
                                 v, MESSAGE_MOST);
        return trace_input_bytes(c->in, (size_t)i + 1, &skip, "a length");
    }
    return chakra_refuse(c, record, "found a length without end, expected a varint of 32 bits");
}

static int message_read(struct chakra_rank *c, uint32_t record, uint32_t length)
{
    const char *at = "";
    int rc = length ? trace_input_bytes(c->in, length, &at, "a record") : 0;
    ChakraNode *node;

    if (rc == 1)
        return chakra_refuse(c, record, "found the end of the file, expected %u bytes", length);
    /* the first one is metadata, whose first field has no type of a number; old files have none */
    if (rc || (!record && (!length || at[0] != 0x08)))
        return rc;
    node = chakra__node__unpack(NULL, length, (const uint8_t *)at);
    if (!node)
        return chakra_refuse(c, record, "found %u bytes that are no Node, expected protobuf",
                             length);
    rc = node_read(c, node, record);
    chakra__node__free_unpacked(node, NULL);
    return rc;
}

int chakra_et_read(struct app_graph *g, struct trace_input *in, uint32_t rank)
{
    struct chakra_rank c;
    uint32_t length = 0;
    int rc = chakra_rank_begin(&c, g, in, rank == APP_ANY ? 0 : rank);

    g->format = "Chakra ET";
    for (uint32_t record = 0; !rc; record++) {
        rc = length_read(&c, record, &length);
        if (rc == 1 && !record)
            rc = trace_refuse_at(in, "", "found no bytes, expected a trace");
        if (!rc)
            rc = message_read(&c, record, length);
    }
    chakra_rank_end(&c);
    return rc == 1 ? 0 : rc;
}
