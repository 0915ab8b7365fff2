/* SPDX-License-Identifier: BSD-3-Clause */
/* Kineto's traces: the device's operations in order of their streams, collectives by their fields; mistakes are named by event. */
#include "tests/trace/trace_test.h"

#define INFO(r)                                                                                    \
    "{\"distributedInfo\": {\"rank\": " r ", \"world_size\": 2, \"pg_config\": [{\"pg_name\": "    \
    "\"0\", \"ranks\": [0, 1]}]}, \"traceEvents\": ["
#define EVENT(cat, name, ts, dur, args)                                                            \
    "{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name "\", \"ts\": " ts ", \"dur\": " dur  \
    ", \"args\": {" args "}}"
#define COLL(stream, fields)                                                                       \
    EVENT("kernel", "ncclDevKernel_AllReduce_Sum_f32", "110.5", "3", "\"stream\": " stream fields)
#define FIELDS(name, n, type)                                                                      \
    ", \"Collective name\": \"" name "\", \"In msg nelems\": " n ", \"dtype\": \"" type            \
    "\", \"Process Group Name\": \"0\""

static void look(struct looked *l, const char *text)
{
    look_bytes(l, "x.json", text, strlen(text), NULL);
}

static void streams_are_in_order(void **state)
{
    struct looked l;

    (void)state;
    look(
        &l,
        INFO("0")
            EVENT("kernel", "gemm", "120", "2.5", "\"stream\": 7") "," EVENT("kernel", "gemm", "100", "10", "\"stream\": 7") "," EVENT(
                "gpu_memcpy", "Memcpy HtoD", "99", "1",
                "\"stream\": 9, \"bytes\": 64") "," EVENT("cpu_op", "aten::mm", "1", "1",
                                                          "") "," EVENT("cuda_sync",
                                                                        "Stream Wait Event", "105",
                                                                        "0",
                                                                        "\"stream\": 20, "
                                                                        "\"wait_on_stream\": "
                                                                        "7") "," COLL("20",
                                                                                      FIELDS(
                                                                                          "all"
                                                                                          "red"
                                                                                          "uc"
                                                                                          "e",
                                                                                          "10"
                                                                                          "0",
                                                                                          "Flo"
                                                                                          "a"
                                                                                          "t")) "]"
                                                                                                "}");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.g.n_ops, 5);
    assert_int_equal(l.g.rank[0].op[0].kind, APP_COPY);
    assert_int_equal(l.d.all.ns[APP_COMPUTE], 12500);
    assert_int_equal(l.d.all.bytes[APP_COPY], 64);
    assert_int_equal(l.d.all.coll_bytes[APP_ALL_REDUCE], 400);
    assert_int_equal(l.g.repaired[REPAIR_STREAM_ORDER], 2);
    assert_int_equal(l.d.all.deps, 3); /* the collective's stream waits for the first computation */
    assert_int_equal(l.g.span_ns, 23500);
    look_end(&l);
}

static void kernels_without_fields_have_a_kind(void **state)
{
    struct looked l;

    (void)state;
    look(&l, "{\"traceEvents\": [" COLL("3", "") "," EVENT("kernel", "ncclKernel_SendRecv", "1",
                                                           "1", "\"stream\": 3") "]}");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.d.all.coll_n[APP_ALL_REDUCE], 1);
    assert_int_equal(l.d.all.coll_n[APP_UNTYPED], 1);
    assert_int_equal(l.g.repaired[REPAIR_KERNEL_NAME], 1);
    assert_int_equal(l.g.repaired[REPAIR_LOCAL], 1);
    look_end(&l);
}

static const struct {
    const char *text, *says;
} broken[] = {
    {"{\"traceEvents\": {}}", "x.json: found traceEvents that are no list, expected events"},
    {"{\"distributedInfo\": {\"rank\": -1}, \"traceEvents\": []}",
     "x.json: found no rank in distributedInfo"},
    {"{\"distributedInfo\": {\"rank\": 3, \"world_size\": 3}, \"traceEvents\": []}",
     "x.json: found no world_size"},
    {"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\", \"ts\": \"1\"}]}",
     "x.json: rank 0, event 0: found no ts and dur, expected times in us"},
    {"{\"traceEvents\": [" EVENT("kernel", "a", "1", "-1", "") "]}",
     "x.json: rank 0, event 0: found no ts and dur"},
    {"{\"traceEvents\": [" EVENT("kernel", "a", "1", "1e30", "") "]}",
     "x.json: rank 0, event 0: found a trace of more than 30 years"},
    {INFO("0") COLL("1", FIELDS("allreduce", "100", "Complex")) "]}",
     "x.json: rank 0, event 0: found no dtype that is known, expected elements of a type"},
    {INFO("0") COLL("1", FIELDS("allreduce", "9000000000000000000", "Float")) "]}",
     "x.json: rank 0, event 0: found too many elements"},
    {INFO("0") COLL("1", FIELDS("send", "100", "Float")) "]}",
     "x.json: rank 0, event 0: found no rank of the other end, expected Src Rank or Dst Rank"},
    {INFO("0")
         COLL("1", ", \"Collective name\": \"allreduce\", \"Process Group Name\": \"9\"") "]}",
     "x.json: rank 0, record 0: found a collective on group \"9\", expected one that is defined"},
};

static void broken_traces_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct looked l;
        bool said = false;

        look(&l, broken[i].text);
        for (int k = -1; k < (int)FINDING_KINDS; k++)
            said |= !strncmp(look_says(&l, k), broken[i].says, strlen(broken[i].says));
        if (!said)
            fail_msg("%s: found \"%s\", expected \"%s\"", broken[i].text, look_says(&l, -1),
                     broken[i].says);
        look_end(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_in_order),
        cmocka_unit_test(kernels_without_fields_have_a_kind),
        cmocka_unit_test(broken_traces_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
