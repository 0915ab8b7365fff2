/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of an operation, by a clock that the test sets, as they are in the file. */
#include "base/units.h"
#include "host/bench/timeline.h"
#include "host/coll/comm.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US ((int64_t)PS_PER_US)

static int64_t clock_ps;

static int64_t now_ps(void *ctx)
{
    (void)ctx;
    return clock_ps;
}

/* Ranks 0 and 1 are on the hosts b and a. */
static struct fab_node nodes[3] = {{.name = "switch"}, {.name = "a"}, {.name = "b"}};
static fab_id hosts[2] = {1, 2};
static const struct fabric fab = {.name = "two",
                                  .n_nodes = 3,
                                  .n_hosts = 2,
                                  .nodes = nodes,
                                  .hosts = hosts,
                                  .mtu = 1024,
                                  .transport = {.window = 7, .round_trip_ps = 3 * 1000000 / 2}};
static const uint16_t host_of_rank[2] = {1, 0};

static struct timeline *open_timeline(void)
{
    const struct timeline_cfg cfg = {
        .fab = &fab, .nranks = 2, .host_of_rank = host_of_rank, .now_ps = now_ps};
    struct timeline *t;

    clock_ps = 5 * US;
    assert_int_equal(timeline_create(&t, &cfg), 0);
    return t;
}

/* ---- operations, step by step ---- */

static struct step step_memory[2 * LANE_KINDS][2];
static struct lane lane_memory[2 * LANE_KINDS];

static struct coll_req request(uint32_t seq)
{
    struct coll_req r = {
        .s = {.in = {.kind = COLL_ALLREDUCE, .algo = ALGO_RING}, .lane = lane_memory},
        .id = {.seq = seq, .kind = COLL_ALLREDUCE}};

    memset(step_memory, 0, sizeof(step_memory));
    return r;
}

/* Adds a lane of one or two steps of so many bytes. */
static struct step *add_lane(struct coll_req *r, enum lane_kind kind, unsigned peer, unsigned chan,
                             enum step_op op, unsigned first, unsigned second)
{
    unsigned i = r->s.n_lanes++;
    struct step *st = step_memory[i];

    st[0] = (struct step){.op = op, .len = first};
    st[1] = (struct step){.op = op, .len = second};
    lane_memory[i] = (struct lane){.kind = kind,
                                   .peer = peer,
                                   .chan = chan,
                                   .n = second ? 2 : 1,
                                   .deps = SCHED_DEPS,
                                   .steps = (uint8_t *)st};
    r->s.n_steps += lane_memory[i].n;
    return st;
}

struct moment {
    int64_t us;
    char what; /* b: begin, p: posted, d: done, e: end */
    unsigned lane;
    uint64_t n;
};

static void play(struct timeline *t, unsigned rank, const struct coll_req *r,
                 const struct moment *m, unsigned n)
{
    const struct comm_watch *w = timeline_watch(t, rank);

    for (; n; n--, m++) {
        clock_ps = m->us * US;
        if (m->what == 'b')
            w->begin(w->ctx, r);
        else if (m->what == 'p')
            w->posted(w->ctx, r, m->lane, m->n);
        else if (m->what == 'd')
            w->done(w->ctx, r, m->lane, m->n);
        else
            w->end(w->ctx, r);
    }
}

#define PLAY(t, rank, r, m) play(t, rank, r, m, sizeof(m) / sizeof((m)[0]))

/* ---- what is in the file ---- */

static char *events(struct timeline *t)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    assert_int_equal(trace_events_copy_to(timeline_events(t), f), 0);
    fclose(f);
    return text;
}

static void expect_events(struct timeline *t, const char *expected)
{
    char *text = events(t);

    assert_string_equal(text, expected);
    free(text);
}

static bool has_event(struct timeline *t, const char *part)
{
    char *text = events(t);
    bool found = strstr(text, part);

    free(text);
    return found;
}

static void expect_json(json_t *j, const char *expected)
{
    char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(9));

    assert_string_equal(text, expected);
    free(text);
    json_decref(j);
}

#define META(tid, kind, args)                                                                      \
    "{\"ph\":\"M\",\"pid\":1,\"tid\":" tid ",\"ts\":0.0,\"name\":\"" kind "\",\"args\":{" args "}" \
    "}"
#define PROCESS(name)                                                                              \
    META("0", "process_name", "\"name\":\"" name "\"")                                             \
    ",\n" META("0", "process_sort_index", "\"sort_index\":1")
#define THREAD(tid, name)                                                                          \
    META(tid, "thread_name", "\"name\":\"" name "\"")                                              \
    ",\n" META(tid, "thread_sort_index", "\"sort_index\":" tid)
#define SPAN(tid, ts, name, cat, dur, args)                                                        \
    "{\"ph\":\"X\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts ",\"name\":\"" name "\",\"cat\":\"" cat   \
    "\",\"dur\":" dur ",\"args\":{" args "}}"
#define STEP(n, bytes, posted) "\"step\":" n ",\"bytes\":" bytes ",\"posted_us\":" posted
#define FLOW(ph, tid, ts, more, id)                                                                \
    "{\"ph\":\"" ph "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts ",\"name\":\"message\",\"cat\":"     \
    "\"message\"" more ",\"id\":\"" id "\"}"

static const char lanes_of_every_kind[] =
    PROCESS("rank 0 (b)") ",\n" THREAD("0", "operation") ",\n" SPAN(
        "0", "1.0", "all_reduce by ring", "operation", "14.0",
        "\"operation\":3,\"schedules\":1") ",\n" THREAD("1",
                                                        "compute 4") ",\n" SPAN("1", "6.0",
                                                                                "reduce", "compute",
                                                                                "1.0",
                                                                                STEP(
                                                                                    "0", "64",
                                                                                    "6.0") ",\""
                                                                                           "aft"
                                                                                           "er"
                                                                                           "\":"
                                                                                           "[["
                                                                                           "3,"
                                                                                           "0],"
                                                                                           "[2,"
                                                                                           "1]"
                                                                                           "]") ","
                                                                                                "\n" /* its second is not done */
    THREAD("2", "send to rank 1, channel 2") ",\n" SPAN(
        "2", "2.0", "send", "send", "3.0",
        STEP("0", "64",
             "2.0") ",\"peer\":1,\"channel\":2") ",\n" FLOW("s", "2", "2.0",
                                                            "", "0>1.2.0") ",\n" SPAN("2", "5.0",
                                                                                      "send",
                                                                                      "send", "3.0",
                                                                                      STEP(
                                                                                          "1", "32",
                                                                                          "3.0") ","
                                                                                                 "\"peer\":1,\"channel\":2") ","
                                                                                                                             "\n" FLOW(
                                                                                                                                 "s",
                                                                                                                                 "2",
                                                                                                                                 "3.0",
                                                                                                                                 "", "0>1.2.1") ",\n" THREAD("3", "from rank 1, channel 2") ",\n" SPAN("3", "1.0", "receive", "receive", "3.0", STEP("0", "64", "1.0") ",\"peer\":1,\"channel\":2") ",\n" FLOW("f",
                                                                                                                                                                                                                                                                                                               "3",
                                                                                                                                                                                                                                                                                                               "4.0", ",\"bp\":\"e\"", "1>0.2.0") ",\n" SPAN("3",
                                                                                                                                                                                                                                                                                                                                                             "4.0", "receive", "receive", "0.0", STEP("1", "32", "4.0") ",\"peer\":1,\"channel\":2") ",\n" FLOW("f",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                "3",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                "4.0", ",\"bp\":\"e\"", "1>0.2.1") ",\n" THREAD("4",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                "tree 1") ",\n" SPAN("4",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "9.0", "switch",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "switch",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "1.0",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     STEP(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         "0",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         "128",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         "9.0") ",\"channel\":1,\"sent_bytes\":128,\"rail\":false") ",\n" THREAD("5",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "rail tree 0") ",\n" SPAN("5",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           "11.0", "switch",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           "switch",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           "0.0", /* nobody said when it was posted */
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           STEP("0",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                "256", "11.0") ",\"channel\":0,\"sent_bytes\":0,\"rail\":true") ",\n" THREAD("6", "multimem plane 3") ",\n" SPAN("6",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "12.0", "load",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "multimem", "1.0", STEP("0", "8", "12.0") ",\"channel\":3") ",\n" SPAN("6",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "13.0",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "store",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "multimem",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "0.0", STEP("1", "9", "13.0") ",\"channel\":3") ",\n" THREAD("7",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "protocol 1, tree 2") ",\n" SPAN("7",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      "14.0", "protocol", "protocol", "0.0", STEP("0", "512", "14.0") ",\"channel\":1");

static void lanes_of_every_kind_have_their_events(void **state)
{
    static const struct moment m[] = {
        {6, 'b', 0, 0},  {7, 'p', 1, 0},  {8, 'p', 1, 1},  {9, 'd', 2, 2},
        {10, 'd', 1, 1}, {11, 'p', 0, 0}, {12, 'd', 0, 1}, {13, 'd', 1, 2},
        {14, 'p', 3, 0}, {15, 'd', 3, 1}, {16, 'd', 4, 1}, {17, 'p', 5, 0},
        {18, 'd', 5, 1}, {18, 'd', 5, 2}, {19, 'd', 6, 1}, {20, 'e', 0, 0},
    };
    struct timeline *t = open_timeline();
    struct coll_req r = request(3);
    struct step *st;

    (void)state;
    st = add_lane(&r, LANE_CPU, 0, 4, STEP_REDUCE, 64, 16);
    st[0].n_deps = 2;
    st[0].dep[0] = (struct dep){2, 1};
    st[0].dep[1] = (struct dep){1, 2};
    st[1].op = STEP_COPY;
    add_lane(&r, LANE_SEND, 1, 2, STEP_SEND, 64, 32);
    add_lane(&r, LANE_RECV, 1, 2, STEP_RECV, 64, 32);
    add_lane(&r, LANE_AGG, GROUP_ALL, 1, STEP_AGG, 128, 0)->a.buf = BUF_IN;
    add_lane(&r, LANE_AGG, GROUP_RAIL, 0, STEP_AGG, 256, 0);
    add_lane(&r, LANE_MM, 0, 3, STEP_MM_LOAD, 8, 9)[1].op = STEP_MM_STORE;
    add_lane(&r, LANE_PROTOCOL, 2, 1, STEP_PROTOCOL, 512, 0);
    timeline_begin(t, 0);
    assert_int_equal(timeline_origin(t), 5 * US);
    PLAY(t, 0, &r, m);
    expect_events(t, lanes_of_every_kind);
    timeline_destroy(t);
}

static void the_operation_behind_those_skipped_is_recorded_once(void **state)
{
    static const struct moment whole[] = {
        {6, 'b', 0, 0}, {7, 'p', 0, 0}, {8, 'd', 0, 1}, {9, 'e', 0, 0}};
    static const struct moment later[] = {
        {10, 'b', 0, 0}, {11, 'p', 0, 0}, {12, 'd', 0, 1}, {13, 'e', 0, 0}};
    struct timeline *t = open_timeline();
    struct coll_req r = request(0);

    (void)state;
    add_lane(&r, LANE_SEND, 1, 0, STEP_SEND, 4, 0);
    PLAY(t, 0, &r, whole); /* nothing has begun */
    expect_events(t, "");
    assert_int_equal(timeline_origin(t), PS_NEVER);
    timeline_begin(t, 1);
    assert_int_equal(timeline_origin(t), PS_NEVER);
    PLAY(t, 0, &r, whole);
    expect_events(t, "");
    assert_int_equal(timeline_origin(t), PS_NEVER);
    r.id.seq = 1;
    PLAY(t, 0, &r, later);
    assert_int_equal(timeline_origin(t), 10 * US);
    assert_true(has_event(t, SPAN("0", "0.0", "all_reduce by ring", "operation", "3.0",
                                  "\"operation\":1,\"schedules\":1")));
    assert_true(has_event(t, SPAN("1", "1.0", "send", "send", "1.0",
                                  STEP("0", "4", "1.0") ",\"peer\":1,\"channel\":0")));
    assert_int_equal(trace_events_count(timeline_events(t)), 3);
    r.id.seq = 2;
    PLAY(t, 0, &r, later);
    assert_int_equal(trace_events_count(timeline_events(t)), 3);
    timeline_end(t);
    assert_int_equal(timeline_origin(t), PS_NEVER);
    timeline_begin(t, 0);
    expect_events(t, ""); /* forgotten */
    timeline_end(t);
    PLAY(t, 0, &r, later);
    expect_events(t, "");
    assert_true(timeline_span(t, 0).begin_ps == INT64_MIN); /* nor begun */
    timeline_destroy(t);
}

/* A failover leaves another schedule: its steps are those of the file, from the first's beginning. */
static void a_second_schedule_replaces_the_steps_of_the_first(void **state)
{
    static const struct moment first[] = {{6, 'b', 0, 0}, {7, 'p', 0, 0}, {8, 'd', 0, 1}};
    static const struct moment second[] = {
        {9, 'b', 0, 0}, {10, 'p', 0, 0}, {12, 'd', 0, 1}, {13, 'e', 0, 0}, {15, 'e', 0, 0}};
    static const struct moment other[] = {{11, 'd', 0, 1}, {11, 'e', 0, 0}};
    struct timeline *t = open_timeline();
    struct coll_req r = request(4), stray;

    (void)state;
    timeline_begin_at(t, 2 * US);
    assert_int_equal(timeline_origin(t), 2 * US);
    add_lane(&r, LANE_SEND, 1, 0, STEP_SEND, 4, 0);
    PLAY(t, 0, &r, first);
    stray = r;
    stray.id.seq = 5;
    PLAY(t, 0, &stray, other);
    expect_events(t, "");
    r.s.in.algo = ALGO_TREE;
    PLAY(t, 0, &r, second);
    assert_true(has_event(t, SPAN("0", "4.0", "all_reduce by tree", "operation", "7.0",
                                  "\"operation\":4,\"schedules\":2")));
    assert_true(has_event(t, SPAN("1", "8.0", "send", "send", "2.0",
                                  STEP("0", "4", "8.0") ",\"peer\":1,\"channel\":0")));
    assert_int_equal(trace_events_count(timeline_events(t)), 3);
    timeline_destroy(t);
}

static json_int_t ranks_left_out(struct timeline *t)
{
    struct row r = {.nranks = 2};
    json_t *about = timeline_about(t, &r, OUT_OF_PLACE);
    json_int_t n = json_integer_value(json_object_get(json_object_get(about, "left_out"), "ranks"));

    json_decref(about);
    return n;
}

/* TIMELINE_STEPS of all ranks that run at a time. */
static void ranks_whose_steps_have_no_room_are_left_out(void **state)
{
    static const struct {
        unsigned steps; /* of rank 1, beside one of rank 0 */
        unsigned left_out;
    } rows[] = {{TIMELINE_STEPS - 1, 0}, {TIMELINE_STEPS, 1}};
    static const struct moment begin[] = {{6, 'b', 0, 0}, {7, 'p', 0, 0}};
    static const struct moment again[] = {{7, 'b', 0, 0}};
    static const struct moment end[] = {{8, 'd', 0, 1}, {9, 'e', 0, 0}};
    struct timeline *t = open_timeline();

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct coll_req r = request(0), big;

        add_lane(&r, LANE_SEND, 1, 0, STEP_SEND, 4, 0);
        big = r;
        timeline_begin(t, 0);
        r.s.n_steps = TIMELINE_STEPS;
        PLAY(t, 0, &r, begin);
        assert_int_equal(ranks_left_out(t), 0);
        big.s.n_steps = rows[i].steps;
        PLAY(t, 1, &big, begin);
        PLAY(t, 1, &big, again);
        assert_int_equal(ranks_left_out(t), rows[i].left_out);
        PLAY(t, 0, &r, end);
        PLAY(t, 1, &big, end);
        /* An operation each, and a step with its arrow of those that had room. */
        assert_int_equal(trace_events_count(timeline_events(t)), rows[i].left_out ? 4 : 6);
        PLAY(t, 1, &big, end);
    }
    timeline_destroy(t);
}

/* ---- about the operation ---- */

#define COUNTS(n, m)                                                                               \
    "\"retransmits\":" n ",\"timeouts\":" m ",\"rnr_naks\":" m ",\"seq_naks\":" m                  \
    ",\"duplicates\":" m ",\"icrc_errors\":" m ",\"rate_cuts\":" m

static void the_operation_and_its_ranks_are_told(void **state)
{
    const struct timeline_span span = {8 * US, 10 * US, ALGO_TREE, 2, 3 * US / 2, 4 * US};
    const struct timeline_counts counts = {1, 2, 3, 4, 5, 6, 7};
    struct row r = {.coll = COLL_ALLREDUCE,
                    .algo = ALGO_SHARP,
                    .type = DT_FP32,
                    .op = OP_SUM,
                    .nranks = 2,
                    .bytes = 4096,
                    .link_bps = 400000000000,
                    .pred = {.time_ps = 2 * US, .busiest_link_bytes = 50000}};
    struct timeline *t = open_timeline();
    struct timeline_span got;

    (void)state;
    r.run[IN_PLACE] = (struct run_result){
        .time_us = 2.5, .dilation = 7, .fid.ok = false, .fell_back = "one switch failed"};
    timeline_begin(t, 0);
    timeline_set_span(t, 1, &span);
    timeline_count(t, 1, &counts);
    got = timeline_span(t, 1);
    assert_memory_equal(&got, &span, sizeof(span));
    expect_json(
        timeline_about(t, &r, IN_PLACE),
        "{\"fabric\":\"two\",\"collective\":\"all_reduce\",\"algorithm\":\"sharp\",\"ran_by\":"
        "\"ring\",\"size_bytes\":4096,\"type\":\"float\",\"op\":\"sum\",\"in_place\":true,"
        "\"time_us\":2.5,\"dilation\":7,\"fidelity\":\"lag\",\"predicted_us\":2.0,"
        "\"predicted_utilisation\":0.5,\"fell_back\":\"one switch failed\",\"transport\":{\"mtu\":"
        "1024,\"window_packets\":7,\"round_trip_us\":1.5},\"left_out\":{\"events\":0,\"ranks\":0},"
        "\"ranks\":[{\"rank\":0,\"pid\":1,\"host\":\"b\",\"entered_us\":null,\"ended_us\":null,"
        "\"schedules\":0," COUNTS(
            "0",
            "0") "},{\"rank\":1,\"pid\":2,\"host\":\"a\","
                 "\"entered_us\":3.0,\"ended_us\":5.0,\"schedules\":2,\"retransmits\":1,"
                 "\"timeouts\":2,"
                 "\"rnr_naks\":3,\"seq_naks\":4,\"duplicates\":5,\"icrc_errors\":6,\"rate_cuts\":7,"
                 "\"slow_us\":1.5,\"slow_of_us\":4.0}]}");
    timeline_begin(t, 0); /* forgets all of this */
    got = timeline_span(t, 1);
    assert_int_equal(got.begin_ps, INT64_MIN);
    assert_int_equal(got.end_ps, INT64_MIN);
    assert_int_equal(got.schedules, 0);
    assert_int_equal(got.slow_ps, 0);
    assert_int_equal(got.slow_of_ps, 0);
    timeline_destroy(t);
}

/* What a row says of its fidelity and its prediction: of each, where there is one. */
static void fidelity_and_prediction_are_those_of_the_row(void **state)
{
    static const struct {
        uint32_t dilation;
        bool ok, guessed;
        int64_t pred_ps;
        const char *fidelity;
        int shown;
        double predicted;
    } rows[] = {
        {0, false, false, 3 * US, "ok", 1, 3}, /* in virtual time */
        {1, true, false, 3 * US, "ok", 1, 3},  {1, false, false, 3 * US, "lag", 1, 3},
        {2, true, true, 3 * US, "ok", 2, -1},  {2, true, false, 0, "ok", 2, -1},
    };
    struct timeline *t = open_timeline();

    (void)state;
    timeline_begin(t, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row r = {.coll = COLL_ALLREDUCE,
                        .nranks = 2,
                        .pred = {.time_ps = rows[i].pred_ps, .guessed = rows[i].guessed}};
        json_t *j, *p;

        r.run[OUT_OF_PLACE].dilation = rows[i].dilation;
        r.run[OUT_OF_PLACE].fid.ok = rows[i].ok;
        j = timeline_about(t, &r, OUT_OF_PLACE);
        p = json_object_get(j, "predicted_us");
        assert_string_equal(json_string_value(json_object_get(j, "fidelity")), rows[i].fidelity);
        assert_int_equal(json_integer_value(json_object_get(j, "dilation")), rows[i].shown);
        assert_true(json_is_false(json_object_get(j, "in_place")));
        assert_true(rows[i].predicted < 0 ? json_is_null(p)
                                          : json_real_value(p) == rows[i].predicted);
        json_decref(j);
    }
    timeline_destroy(t);
}

static void processes_are_ranks_then_nodes(void **state)
{
    struct timeline *t = open_timeline();

    (void)state;
    assert_int_equal(timeline_rank_pid(0), 1);
    assert_int_equal(timeline_rank_pid(1), 2);
    assert_int_equal(timeline_node_pid(t, 0), 3);
    assert_int_equal(timeline_node_pid(t, 2), 5);
    timeline_destroy(t);
    timeline_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_of_every_kind_have_their_events),
        cmocka_unit_test(the_operation_behind_those_skipped_is_recorded_once),
        cmocka_unit_test(a_second_schedule_replaces_the_steps_of_the_first),
        cmocka_unit_test(ranks_whose_steps_have_no_room_are_left_out),
        cmocka_unit_test(the_operation_and_its_ranks_are_told),
        cmocka_unit_test(fidelity_and_prediction_are_those_of_the_row),
        cmocka_unit_test(processes_are_ranks_then_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
