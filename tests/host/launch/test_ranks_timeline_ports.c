/* SPDX-License-Identifier: BSD-3-Clause */
/* What ports and hosts counted between two readings, by a process that answers as this test says. */
#include "base/units.h"
#include "host/launch/ranks_timeline.h"
#include "tests/fabric/load.h"
#include "tests/support/far_telemetry.h"

#include <jansson.h>

static struct sweep *s;
static struct fabric *fab;
static struct rundir rd;
static struct shared sh;
static struct clock_page page;
static struct far_telemetry process;
static unsigned asked; /* how often for the port that counts */

/* h1's port counts; what it says the second time is in the order of the struct. */
static void answer(void *ctx, const char *command, const char *what, char *text, size_t size)
{
    static const unsigned v[2][10] = {{1, 1000, 3, 4, 5, 6, 7, 500, 9, 10},
                                      {3, 6000, 33, 14, 25, 36, 47, 700, 69, 90}};
    bool counts = !strcmp(command, "/trib/ports") && !strcmp(what, "h1:0");
    const unsigned *n = v[counts && asked++];

    (void)ctx;
    snprintf(text, size,
             "{\"egress_frames\":%u,\"egress_link_bytes\":%u,\"egress_paused_us\":%u,"
             "\"egress_lost\":%u,\"egress_corrupted\":%u,\"egress_down_drops\":%u,"
             "\"egress_watchdog_drops\":%u,\"egress_peak_bytes\":%u,\"ecn_marks\":%u,"
             "\"pauses_received\":%u}",
             n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]);
}

static void begin(const char *conf)
{
    s = calloc(1, sizeof(*s));
    assert_non_null(s);
    fab = load_text(conf);
    process.answer = answer;
    far_telemetry_open(&process);
    snprintf(rd.path, sizeof(rd.path), "%s", process.dir);
    memset(&page, 0, sizeof(page));
    clock_set_dilation(&page, 1);
    sh.clock = &page;
    rd.sh = &sh;
    s->fab = fab;
    s->rd = &rd;
    s->nranks = 2;
    s->host_of_rank[0] = 1;
    asked = 0;
}

static void end(void)
{
    far_telemetry_close(&process);
    fabric_free(fab);
    free(s);
}

static void expect_json(json_t *j, const char *expected)
{
    char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(9));

    assert_string_equal(text, expected);
    free(text);
    json_decref(j);
}

#define LINK(of, from, to, pid, tid, tiers)                                                        \
    "{\"measured\":\"counters\",\"link\":\"" of "\",\"from\":\"" from "\",\"to\":\"" to            \
    "\",\"pid\":" pid ",\"tid\":" tid ",\"tiers\":[" tiers "],\"in_node\":false,"                  \
    "\"rate_Gbps\":400.0,\"latency_us\":0.3,\"buffer_bytes\":1048576,"
#define QUIET                                                                                      \
    "\"frames\":0,\"bytes\":0,\"busy_us\":0.0,\"queue_peak_bytes\":0,\"ecn_marks\":0,"             \
    "\"pauses\":0,\"paused_us\":0.0,\"lost\":0,\"corrupted\":0,\"queue_full\":0,"                  \
    "\"link_down\":0,\"flows\":[]}"
#define COUNTED                                                                                    \
    "\"frames\":2,\"bytes\":5000,\"busy_us\":0.1,\"queue_peak_bytes\":700,\"ecn_marks\":60,"       \
    "\"pauses\":80,\"paused_us\":30.0,\"lost\":10,\"corrupted\":20,\"queue_full\":0,"              \
    "\"link_down\":70,\"flows\":[]}"

static void links_are_told_as_they_counted(void **state)
{
    const struct timeline_cfg cfg = {.nranks = 2};
    struct ports_reading *before, *after;
    struct timeline *t;

    (void)state;
    begin(LINKS "single_switch = { hosts = 2; };\n");
    before = ports_read(s);
    after = ports_read(s);
    assert_int_equal(asked, 2);
    assert_true(ports_span_us(before, after) > 0);
    assert_int_equal(timeline_create(&t, &cfg), 0);
    expect_json(ports_links(s, before, after, t),
                "[" LINK("h0:0-switch0:0", "h0", "switch0", "3", "1", "0,1") QUIET
                "," LINK("h0:0-switch0:0", "switch0", "h0", "5", "1", "1,0") QUIET
                "," LINK("h1:0-switch0:1", "h1", "switch0", "4", "1", "0,1") COUNTED
                "," LINK("h1:0-switch0:1", "switch0", "h1", "5", "2", "1,0") QUIET "]");
    expect_json(ports_links(s, after, before, t), /* what counts backwards has counted nothing */
                "[" LINK("h0:0-switch0:0", "h0", "switch0", "3", "1", "0,1") QUIET
                "," LINK("h0:0-switch0:0", "switch0", "h0", "5", "1", "1,0") QUIET
                "," LINK("h1:0-switch0:1", "h1", "switch0", "4", "1", "0,1") QUIET
                "," LINK("h1:0-switch0:1", "switch0", "h1", "5", "2", "1,0") QUIET "]");
    timeline_destroy(t);
    ports_free(before);
    ports_free(after);
    ports_free(NULL);
    end();
}

static void links_within_a_node_are_marked(void **state)
{
    struct ports_reading *p;
    const struct timeline_cfg cfg = {.nranks = 2};
    struct timeline *t;
    json_t *j;

    (void)state;
    begin(LINKS "single_switch = { hosts = 2; };\n");
    p = ports_read(s);
    assert_int_equal(timeline_create(&t, &cfg), 0);
    for (unsigned k = 0; k < 3; k++) { /* neither, one, both */
        fab->nodes[0].domain = k > 0 ? 7 : FAB_NONE;
        fab->nodes[fab->links[0].b].domain = k > 1 ? 7 : k ? 8 : FAB_NONE;
        j = ports_links(s, p, p, t);
        assert_int_equal(json_is_true(json_object_get(json_array_get(j, 0), "in_node")), k == 2);
        json_decref(j);
    }
    fab->links[0].rate_bps = 0;
    j = ports_links(s, p, p, t);
    assert_true(json_real_value(json_object_get(json_array_get(j, 0), "busy_us")) == 0);
    json_decref(j);
    timeline_destroy(t);
    ports_free(p);
    end();
}

/* Of the choices of a flow nobody knows, where there are several. */
static void paths_between_hosts_are_told(void **state)
{
    (void)state;
    begin(LINKS "leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 1; "
                "spine_link = { cables = 1; }; };\n");
    /* Directions 0: h0 to leaf0, 4: leaf0 to spine0, 9: spine0 to leaf1, 3: leaf1 to h1. */
    s->nranks = 3;
    s->host_of_rank[0] = s->host_of_rank[2] = 0, s->host_of_rank[1] = 1;
    fab->ecmp = FAB_ECMP_HASH;
    expect_json(ports_paths(s), "{\"h0>h1\":[0,9,3],\"h1>h0\":[2,5,1]}");
    fab->ecmp = FAB_ECMP_BALANCED;
    expect_json(ports_paths(s), "{\"h0>h1\":[0,4,9,3],\"h1>h0\":[2,8,5,1]}");
    s->nranks = 65; /* too many */
    expect_json(ports_paths(s), "{}");
    s->nranks = 64;
    expect_json(ports_paths(s), "{\"h0>h1\":[0,4,9,3],\"h1>h0\":[2,8,5,1]}");
    end();
}

/* Of several ranks on a host the first has it all. */
static void hosts_are_told_by_their_first_rank(void **state)
{
    static const char *const files[] = {"packet_seq_err", "local_ack_timeout_err",
                                        "duplicate_request", "rnr_nak_retry_err",
                                        "rx_icrc_encapsulated"};
    struct ports_reading *before = NULL, *after = NULL;
    struct timeline_counts c;

    (void)state;
    begin(LINKS "single_switch = { hosts = 2; };\n");
    s->nranks = 3;
    s->host_of_rank[0] = 0, s->host_of_rank[1] = s->host_of_rank[2] = 1;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned k = 0; k < LEN(files); k++) {
            char name[96], number[16];

            snprintf(name, sizeof(name), "port/h1/0.counters/hw_counters/%s", files[k]);
            snprintf(number, sizeof(number), "%u\n", 10 + round * (k + 1));
            far_telemetry_put(&process, name, number);
        }
        if (round)
            after = ports_read(s);
        else
            before = ports_read(s);
    }
    c = ports_rank(s, before, after, 1);
    assert_int_equal(c.seq_naks, 1);
    assert_int_equal(c.timeouts, 2);
    assert_int_equal(c.duplicates, 3);
    assert_int_equal(c.rnr_naks, 4);
    assert_int_equal(c.icrc_errors, 5);
    assert_int_equal(c.retransmits + c.rate_cuts, 0);
    for (unsigned r = 0; r < 3; r += 2) {
        c = ports_rank(s, before, after, r);
        assert_int_equal(c.seq_naks + c.timeouts + c.duplicates + c.rnr_naks + c.icrc_errors, 0);
    }
    ports_free(before);
    ports_free(after);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_told_as_they_counted),
        cmocka_unit_test(links_within_a_node_are_marked),
        cmocka_unit_test(paths_between_hosts_are_told),
        cmocka_unit_test(hosts_are_told_by_their_first_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
