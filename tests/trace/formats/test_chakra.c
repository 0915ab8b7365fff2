/* SPDX-License-Identifier: BSD-3-Clause */
/* Chakra's traces, made field by field: what is read, in protobuf and in JSON, and what is refused by record. */
#include "tests/trace/trace_test.h"

#include <stdio.h>

#define BYTES 4096

struct et {
    uint8_t at[BYTES];
    size_t n;
};

static void put_varint(struct et *e, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        e->at[e->n++] = (uint8_t)(v | 0x80);
    e->at[e->n++] = (uint8_t)v;
}

static void put_field(struct et *e, unsigned field, uint64_t v)
{
    put_varint(e, field << 3);
    put_varint(e, v);
}

static void put_bytes(struct et *e, unsigned field, const void *bytes, size_t n)
{
    put_varint(e, field << 3 | 2);
    put_varint(e, n);
    memcpy(e->at + e->n, bytes, n);
    e->n += n;
}

static void put_text(struct et *e, unsigned field, const char *text)
{
    put_bytes(e, field, text, strlen(text));
}

/* An attribute whose value is a number in this field, or a text where there is one. */
static void put_attr(struct et *node, const char *name, unsigned field, uint64_t v,
                     const char *text)
{
    struct et a = {.n = 0};

    put_text(&a, 1, name);
    if (text)
        put_text(&a, field, text);
    else
        put_field(&a, field, v);
    put_bytes(node, 10, a.at, a.n);
}

static void put_message(struct et *e, const struct et *message)
{
    put_varint(e, message->n);
    memcpy(e->at + e->n, message->at, message->n);
    e->n += message->n;
}

static void put_metadata(struct et *e)
{
    struct et m = {.n = 0};

    put_text(&m, 1, "0.0.4");
    put_message(e, &m);
}

static struct et new_node(uint64_t id, uint64_t type, uint64_t micros)
{
    struct et n = {.n = 0};

    put_field(&n, 1, id);
    put_field(&n, 3, type);
    put_field(&n, 7, micros);
    return n;
}

/* 5: a computation of 10 us; 3: an all-reduce of 64 B behind it; 9: a send to rank 0 itself behind both. */
static void a_trace(struct et *e, bool reversed)
{
    struct et a = new_node(5, 4, 10), b = new_node(3, 7, 4), c = new_node(9, 5, 0),
              d = new_node(11, 6, 0);
    struct et packed = {.n = 0};

    put_attr(&b, "comm_type", 9, 0, NULL);
    put_attr(&b, "comm_size", 13, 64, NULL);
    put_field(&b, 5, 5);
    put_varint(&packed, 5);
    put_varint(&packed, 3);
    put_attr(&c, "comm_dst", 7, 0, NULL);
    put_attr(&c, "comm_size", 17, 2 * 77, NULL); /* zigzag */
    put_bytes(&c, 5, packed.at, packed.n);
    put_attr(&d, "comm_src", 11, 0, NULL);
    put_attr(&d, "comm_size", 9, 77, NULL);
    put_metadata(e);
    if (!reversed)
        put_message(e, &a);
    put_message(e, &b);
    put_message(e, &c);
    put_message(e, &d);
    if (reversed)
        put_message(e, &a);
}

static void check_trace(const struct looked *l)
{
    assert_string_equal(look_says(l, -1), "");
    assert_int_equal(l->g.n_ops, 4);
    assert_int_equal(l->d.all.deps, 3);
    assert_int_equal(l->d.all.coll_bytes[APP_ALL_REDUCE], 64);
    assert_int_equal(l->d.all.bytes[APP_SEND], 77);
    assert_int_equal(l->d.way.met, 1);
    assert_int_equal(l->d.way.ns, 10000);
}

static void nodes_are_read_in_any_order(void **state)
{
    (void)state;
    for (int reversed = 0; reversed < 2; reversed++) {
        struct et e = {.n = 0};
        struct looked l;

        a_trace(&e, reversed);
        look_bytes(&l, "x.et", e.at, e.n, NULL);
        check_trace(&l);
        look_end(&l);
    }
}

static void json_is_read_as_protobuf_is(void **state)
{
    static const char text[] = "{\"workload_graph\": [{\"Id\": 5, \"NodeType\": 4, \"runtime\": "
                               "10}, {\"Id\": 3, \"NodeType\": 7, "
                               "\"comm_type\": 0, \"comm_size\": 64, \"data_deps\": [5]}, {\"Id\": "
                               "9, \"NodeType\": 5, \"comm_dst\": 0,"
                               "\"comm_size\": 77, \"data_deps\": [5, 3]}, {\"Id\": 11, "
                               "\"NodeType\": 6, \"comm_src\": 0, \"comm_size\": 77}]}";
    struct looked l;

    (void)state;
    look_bytes(&l, "x.json", text, strlen(text), NULL);
    check_trace(&l);
    look_end(&l);
}

/* Old files begin with a node; where a rank has no data dependency, control dependencies count. */
static void old_files_lose_no_node(void **state)
{
    struct et e = {.n = 0}, a = new_node(1, 4, 7), b = new_node(2, 4, 8);
    struct looked l;

    (void)state;
    put_field(&b, 4, 1);
    put_message(&e, &a);
    put_message(&e, &b);
    look_bytes(&l, "x.et", e.at, e.n, NULL);
    assert_int_equal(l.g.n_ops, 2);
    assert_int_equal(l.d.way.ns, 15000);
    look_end(&l);
}

static void make_length(struct et *e)
{
    memcpy(e->at + e->n, "\xff\xff\xff\xff\xff\x01", 6);
    e->n += 6;
}

static void make_large(struct et *e)
{
    put_varint(e, 1u << 30);
}

static void make_garbage(struct et *e)
{
    put_varint(e, 3);
    memcpy(e->at + e->n, "\x08\xff\xff", 3);
    e->n += 3;
}

static void make_cut(struct et *e)
{
    put_varint(e, 100);
    e->at[e->n++] = 8;
}

static void make_ended(struct et *e)
{
    put_varint(e, 100);
}

static void make_type(struct et *e)
{
    struct et n = new_node(1, 8, 0);

    put_message(e, &n);
}

static void make_twice(struct et *e)
{
    struct et n = new_node(1, 4, 0);

    put_message(e, &n);
    put_message(e, &n);
}

static void make_duration(struct et *e)
{
    struct et n = new_node(1, 4, UINT64_MAX / 2);

    put_message(e, &n);
}

static void make_nobody(struct et *e)
{
    struct et n = new_node(1, 5, 0);

    put_message(e, &n);
}

static void make_peer(struct et *e)
{
    struct et n = new_node(1, 5, 0);

    put_attr(&n, "comm_dst", 9, 1ull << 40, NULL);
    put_message(e, &n);
}

static void make_other_rank(struct et *e)
{
    struct et n = new_node(1, 5, 0);

    put_attr(&n, "comm_dst", 9, 1, NULL);
    put_attr(&n, "comm_src", 9, 1, NULL);
    put_message(e, &n);
}

static void make_negative(struct et *e)
{
    struct et n = new_node(1, 7, 0);

    put_attr(&n, "comm_size", 9, UINT64_MAX, NULL);
    put_message(e, &n);
}

static void make_size_text(struct et *e)
{
    struct et n = new_node(1, 7, 0);

    put_attr(&n, "comm_size", 29, 0, "64");
    put_message(e, &n);
}

static void make_group_number(struct et *e)
{
    struct et n = new_node(1, 7, 0);

    put_attr(&n, "pg_name", 9, 1, NULL);
    put_message(e, &n);
}

static void make_old(struct et *e)
{
    struct et n = new_node(1, 7, 0);

    put_bytes(&n, 11, "", 0);
    put_message(e, &n);
}

static void make_dangling(struct et *e)
{
    struct et n = new_node(1, 4, 0);

    put_field(&n, 5, 2);
    put_message(e, &n);
}

static void make_no_group(struct et *e)
{
    struct et n = new_node(1, 7, 0);

    put_attr(&n, "comm_type", 9, 0, NULL);
    put_attr(&n, "pg_name", 29, 0, "tp");
    put_message(e, &n);
}

static void make_cycle(struct et *e)
{
    struct et n = new_node(1, 4, 0);

    put_field(&n, 5, 1);
    put_message(e, &n);
}

static const struct {
    const char *name;
    void (*make)(struct et *e);
    const char *says;
} broken[] = {
    {"a length without end", make_length, "x.et: rank 0, record 1: found a length without end"},
    {"a length of a GiB", make_large, "x.et: rank 0, record 1: found a length of 1073741824 bytes"},
    {"garbage", make_garbage, "x.et: rank 0, record 1: found 3 bytes that are no Node"},
    {"a cut record", make_cut, "x.et: byte 9: found 1 bytes, expected 100 of a record"},
    {"a record that lacks", make_ended, "x.et: rank 0, record 1: found the end of the file"},
    {"an unknown type", make_type, "x.et: rank 0, record 1: found type 8, expected 0 to 7"},
    {"an id twice", make_twice, "x.et: rank 0, record 2: found id 1 again, expected another"},
    {"a duration beyond all", make_duration, "x.et: rank 0, record 1: found a duration of"},
    {"a send to nobody", make_nobody, "x.et: rank 0, record 1: found no comm_dst, expected a rank"},
    {"a rank beyond all", make_peer, "x.et: rank 0, record 1: found comm_dst 1099511627776"},
    {"another rank's send", make_other_rank, "x.et: rank 0, record 1: found a message of rank 1"},
    {"a negative size", make_negative, "x.et: rank 0, record 1: found comm_size that is no whole"},
    {"a size as a text", make_size_text,
     "x.et: rank 0, record 1: found comm_size that is no whole"},
    {"a group by number", make_group_number,
     "x.et: rank 0, record 1: found pg_name of another kind"},
    {"attributes of 2023", make_old, "x.et: rank 0, record 1: found attributes as field 11"},
    {"a dependency on nothing", make_dangling,
     "x.et: rank 0, record 1: found a dependency on id 2"},
    {"a group that is not there", make_no_group,
     "x.et: rank 0, record 1: found a collective on group \"tp\", expected one that is defined"},
    {"itself", make_cycle,
     "x.et: rank 0, record 1: found an operation of rank 0 that waits for itself"},
};

static void broken_traces_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct et e = {.n = 0};
        struct looked l;

        put_metadata(&e);
        broken[i].make(&e);
        look_bytes(&l, "x.et", e.at, e.n, NULL);
        if (strncmp(look_says(&l, -1), broken[i].says, strlen(broken[i].says)) != 0)
            fail_msg("%s: found \"%s\", expected \"%s\"", broken[i].name, look_says(&l, -1),
                     broken[i].says);
        look_end(&l);
    }
}

static const struct {
    const char *text, *says;
} broken_json[] = {
    {"{\"workload_graph\": 1}", "x.json: found a workload_graph that is no list, expected nodes"},
    {"{\"graph\": []}",
     "x.json: found JSON without workload_graph and traceEvents, expected a trace"},
    {"{\"workload_graph\": [}", "x.json: line 1: found "},
    {"{\"workload_graph\": [\n3]}", "x.json: rank 0, record 0: found no object, expected a node"},
    {"{\"workload_graph\": [{}]}", "x.json: rank 0, record 0: found Id that is no whole number"},
    {"{\"workload_graph\": [{\"Id\": 1, \"NodeType\": \"COMP\"}]}",
     "x.json: rank 0, record 0: found NodeType that is no whole number"},
    {"{\"workload_graph\": [{\"Id\": 1, \"NodeType\": 4, \"runtime\": -1}]}",
     "x.json: rank 0, record 0: found runtime that is no whole number"},
    {"{\"workload_graph\": [{\"Id\": 1, \"NodeType\": 4, \"data_deps\": 1}]}",
     "x.json: rank 0, record 0: found data_deps that is no list, expected ids"},
    {"{\"workload_graph\": [{\"Id\": 1, \"NodeType\": 4, \"data_deps\": [\"1\"]}]}",
     "x.json: rank 0, record 0: found something else in data_deps, expected ids"},
    {"{\"workload_graph\": [{\"Id\": 1, \"NodeType\": 4}, {\"Id\": 1, \"NodeType\": 4}]}",
     "x.json: rank 0, record 1: found id 1 again, expected another"},
};

static void broken_json_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(broken_json) / sizeof(broken_json[0]); i++) {
        struct looked l;

        look_bytes(&l, "x.json", broken_json[i].text, strlen(broken_json[i].text), NULL);
        if (strncmp(look_says(&l, -1), broken_json[i].says, strlen(broken_json[i].says)) != 0)
            fail_msg("%s: found \"%s\", expected \"%s\"", broken_json[i].text, look_says(&l, -1),
                     broken_json[i].says);
        look_end(&l);
    }
}

static const struct {
    const char *text, *says;
} groups[] = {
    {"{\"1\": [0, 1], \"2\": []}", ""},
    {"{\"1\": [0, 0]}", "g.json: group \"1\": found no list of different ranks, expected one"},
    {"{\"1\": [-1]}", "g.json: group \"1\": found no list of different ranks, expected one"},
    {"{\"1\": 2}", "g.json: group \"1\": found no list of different ranks, expected one"},
    {"{\"1\": [1048576]}", "g.json: group \"1\": found no list"},
    {"[1]", "g.json:1: found \"no object\", expected {\"NAME\": [RANK, ...], ...}"},
    {"{\n\"1\": [0}", "g.json:2: found "},
};

static void groups_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        struct trace_input in;
        struct app_graph g;

        app_graph_init(&g);
        trace_input_memory(&in, "g.json", groups[i].text, strlen(groups[i].text));
        chakra_groups_read(&g, &in);
        if (groups[i].says[0] ? strncmp(in.err, groups[i].says, strlen(groups[i].says)) != 0
                              : in.err[0])
            fail_msg("%s: found \"%s\", expected \"%s\"", groups[i].text, in.err, groups[i].says);
        trace_input_close(&in);
        app_graph_free(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_read_in_any_order),
        cmocka_unit_test(json_is_read_as_protobuf_is),
        cmocka_unit_test(old_files_lose_no_node),
        cmocka_unit_test(broken_traces_are_named),
        cmocka_unit_test(broken_json_is_named),
        cmocka_unit_test(groups_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
