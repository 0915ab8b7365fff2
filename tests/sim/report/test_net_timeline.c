/* SPDX-License-Identifier: BSD-3-Clause */
/* What a time line looks up from time to time: queues, drops, slots, packets sent again. */
#include "tests/sim/report/line_bed.h"

/* At the next time that it looks. */
static void look(struct bed *b, int64_t ps)
{
    go_to(b, ps);
    net_timeline_step(b->n);
}

/* Each change since the last look, once; of a queue all classes together. */
static void samples(void **state)
{
    static const int64_t t = PS_PER_US;
    struct bed b;

    (void)state;
    bed_up(&b);
    counters(&b, 1)->retransmits = 100; /* before */
    counters(&b, 1)->timeouts = 7;
    go_to(&b, t);
    net_timeline_begin(b.n, b.w, 0, 0);
    net_timeline_step(b.n);
    assert_int_equal(trace_events_count(timeline_events(b.t)), 0);
    egress_pause(queue(&b, LEAF1, 1), FRAME_LOSSLESS, PS_PER_S, t);
    egress_pause(queue(&b, LEAF1, 1), FRAME_LOSSY, PS_PER_S, t);
    push(&b, LEAF1, 1, FRAME_LOSSLESS, 3);
    push(&b, LEAF1, 1, FRAME_LOSSY, 2);
    slots(&b, SPINE0)->slots_used = 9;
    slots(&b, LEAF0)->slots_used = 4;
    counters(&b, 1)->retransmits = 103;
    counters(&b, 0)->timeouts = 2;
    look(&b, t + 9999); /* too early: every 10 ns, however short it is expected to be */
    assert_int_equal(trace_events_count(timeline_events(b.t)), 0);
    look(&b, t + 10000);
    look(&b, t + 20000);
    assert_int_equal(trace_events_count(timeline_events(b.t)), 5);
    counters(&b, 1)->retransmits = 104;
    counters(&b, 1)->timeouts = 8;
    slots(&b, SPINE0)->slots_used = 2;
    push(&b, LEAF1, 1, FRAME_LOSSLESS, 1);
    look(&b, t + 30000);
    egress_pause(queue(&b, LEAF1, 1), FRAME_LOSSLESS, 0, t + 30000);
    go_to(&b, t + 35000);
    slots(&b, LEAF0)->slots_used = 1;
    net_timeline_end(b.n); /* looks, too */
    assert_string_equal(events(&b, "queue"), "C 6.0 0.010000 queue of port 1 {\"bytes\":300}\n"
                                             "C 6.0 0.030000 queue of port 1 {\"bytes\":360}\n"
                                             "C 6.0 0.035000 queue of port 1 {\"bytes\":180}\n");
    assert_string_equal(events(&b, "slots"), "C 5.0 0.010000 slots in use {\"slots\":4}\n"
                                             "C 7.0 0.010000 slots in use {\"slots\":9}\n"
                                             "C 7.0 0.030000 slots in use {\"slots\":2}\n"
                                             "C 5.0 0.035000 slots in use {\"slots\":1}\n");
    assert_string_equal(events(&b, "retransmit"),
                        "i 1.0 0.010000 packets sent again {\"packets\":0,\"timeouts\":2}\n"
                        "i 2.0 0.010000 packets sent again {\"packets\":3,\"timeouts\":0}\n"
                        "i 2.0 0.030000 packets sent again {\"packets\":1,\"timeouts\":1}\n");
    assert_non_null(strstr(events(&b, NULL), "{\"name\":\"port 1 to spine0\"}"));
    bed_down(&b);
}

/* A 400th of the time that the operation is expected to take. */
static void every(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    net_timeline_begin(b.n, b.w, 0, 8 * PS_PER_US);
    for (int64_t ps = 0; ps < 20000; ps += 19999) {
        look(&b, ps);
        slots(&b, LEAF0)->slots_used++;
    }
    assert_int_equal(trace_events_count(timeline_events(b.t)), 0);
    look(&b, 20000);
    slots(&b, LEAF0)->slots_used++;
    look(&b, 39999);
    assert_string_equal(events(&b, "slots"), "C 5.0 0.020000 slots in use {\"slots\":2}\n");
    slots(&b, LEAF0)->slots_used = 0;
    bed_down(&b);
}

static void drops(void **state)
{
    static const struct egress_faults loss = {.loss = 1}, corrupt = {.corrupt = 1}, none;
    struct egress *q;
    struct bed b;

    (void)state;
    bed_up(&b);
    q = queue(&b, LEAF0, 1);
    net_timeline_begin(b.n, b.w, 0, 0);
    net_timeline_step(b.n);
    egress_set_faults(q, &loss);
    push(&b, LEAF0, 1, FRAME_LOSSLESS, 2);
    look(&b, 10000);
    egress_set_faults(q, &corrupt);
    push(&b, LEAF0, 1, FRAME_LOSSLESS, 1);
    look(&b, 20000);
    look(&b, 30000);
    egress_set_faults(q, &none);
    egress_set_down(q, true, 30000);
    push(&b, LEAF0, 1, FRAME_LOSSLESS, 3);
    look(&b, 40000);
    egress_set_down(q, false, 40000);
    egress_discard(q, true, 40000);
    refused(&b, LEAF0, 1, FRAME_LOSSLESS);
    look(&b, 50000);
    egress_discard(q, false, 50000);
    egress_pause(q, FRAME_LOSSY, PS_PER_S, 50000);
    refused(&b, LEAF0, 1, FRAME_LOSSY);
    look(&b, 60000);
    egress_set_down(q, true, 60000);
    go_to(&b, 65000);
    net_timeline_end(b.n);
    assert_string_equal(
        events(&b, "drop"),
        "i 5.2 0.010000 frames lost {\"lost\":2,\"corrupted\":0,\"queue_full\":0,\"link_down\":0}\n"
        "i 5.2 0.020000 frames lost {\"lost\":0,\"corrupted\":1,\"queue_full\":0,\"link_down\":0}\n"
        "i 5.2 0.040000 frames lost {\"lost\":0,\"corrupted\":0,\"queue_full\":0,\"link_down\":3}\n"
        "i 5.2 0.050000 frames lost {\"lost\":0,\"corrupted\":0,\"queue_full\":0,\"link_down\":1}\n"
        "i 5.2 0.060000 frames lost {\"lost\":0,\"corrupted\":0,\"queue_full\":1,\"link_down\":0}\n"
        "i 5.2 0.065000 frames lost "
        "{\"lost\":0,\"corrupted\":0,\"queue_full\":0,\"link_down\":4}\n");
    bed_down(&b);
}

/* With as many events as there may be nothing is added; time goes on. */
static void no_more_events_than_there_may_be(void **state)
{
    FILE *lines = tmpfile();
    struct bed b;

    (void)state;
    bed_up(&b);
    net_timeline_begin(b.n, b.w, 0, 0);
    for (uint64_t i = 2; i < NET_TIMELINE_EVENTS; i++) /* lines are one more */
        fputc('\n', lines);
    assert_int_equal(trace_events_append(timeline_events(b.t), lines), 0);
    assert_int_equal(trace_events_count(timeline_events(b.t)), NET_TIMELINE_EVENTS - 1);
    frame(&b, H0_LEAF0, H0, H1, 325000);
    slots(&b, LEAF0)->slots_used = 4;
    net_timeline_step(b.n);
    assert_int_equal(trace_events_count(timeline_events(b.t)), NET_TIMELINE_EVENTS);
    slots(&b, LEAF0)->slots_used = 5;
    look(&b, PS_PER_US);
    assert_int_equal(trace_events_count(timeline_events(b.t)), NET_TIMELINE_EVENTS);
    slots(&b, LEAF0)->slots_used = 4;
    frame(&b, H0_LEAF0, H0, H1, 725000); /* not seen: it would begin a run */
    net_timeline_end(b.n);
    assert_int_equal(trace_events_count(timeline_events(b.t)), NET_TIMELINE_EVENTS + 1);
    slots(&b, LEAF0)->slots_used = 0;
    fclose(lines);
    bed_down(&b);
}

/* A later operation: it begins when the first rank does, with what the ranks had counted by then. */
static void later_operations(void **state)
{
    struct roce_counters c = {.retransmits = 1,
                              .timeouts = 20,
                              .rnr_naks_received = 300,
                              .seq_naks_received = 4000,
                              .duplicates = 50000,
                              .icrc_errors = 600000,
                              .rate_cuts = 7000000};
    struct row r = {.coll = COLL_ALLREDUCE};
    json_t *about, *rank;
    char *text;
    struct bed b;

    (void)state;
    bed_up(&b);
    *counters(&b, 0) = c;
    net_timeline_begin(b.n, b.w, 1, 0);
    net_timeline_step(b.n);
    frame(&b, H0_LEAF0, H0, H1, 325000);
    counters(&b, 0)->retransmits = 5;
    go_to(&b, PS_PER_US);
    timeline_begin_at(b.t, PS_PER_US);
    *counters(&b, 1) = c;
    net_timeline_step(b.n);
    counters(&b, 1)->retransmits = 3 * c.retransmits;
    counters(&b, 1)->timeouts = 3 * c.timeouts;
    counters(&b, 1)->rnr_naks_received = 3 * c.rnr_naks_received;
    counters(&b, 1)->seq_naks_received = 3 * c.seq_naks_received;
    counters(&b, 1)->duplicates = 3 * c.duplicates;
    counters(&b, 1)->icrc_errors = 3 * c.icrc_errors;
    counters(&b, 1)->rate_cuts = 3 * c.rate_cuts;
    frame(&b, H0_LEAF0, H0, H1, 1325000);
    net_timeline_end(b.n);
    assert_string_equal(events(&b, "link"),
                        "X 3.1 0.000000+0.025000 h0>h1 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h0>h1\":1250}}\n");
    about = timeline_about(b.t, &r, OUT_OF_PLACE);
    rank = json_array_get(json_object_get(about, "ranks"), 0);
    assert_int_equal(json_integer_value(json_object_get(rank, "retransmits")), 0);
    assert_int_equal(json_integer_value(json_object_get(rank, "rate_cuts")), 0);
    rank = json_array_get(json_object_get(about, "ranks"), 1);
    text = json_dumps(rank, JSON_COMPACT);
    assert_non_null(strstr(text,
                           "\"retransmits\":2,\"timeouts\":40,\"rnr_naks\":600,\"seq_naks\":8000,"
                           "\"duplicates\":100000,\"icrc_errors\":1200000,\"rate_cuts\":14000000"));
    free(text);
    json_decref(about);
    bed_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),
        cmocka_unit_test(every),
        cmocka_unit_test(drops),
        cmocka_unit_test(no_more_events_than_there_may_be),
        cmocka_unit_test(later_operations),
    };

    test_eal_init();
    pool = test_pool(8192);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
