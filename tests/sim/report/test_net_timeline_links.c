/* SPDX-License-Identifier: BSD-3-Clause */
/* What links and switches have done, for a time line. */
#include "tests/sim/report/line_bed.h"

/* ---- what is said of links, switches and ranks ---- */

static void print_link(const json_t *j, FILE *out)
{
    const char *link, *from, *to;
    json_int_t buffer, frames, bytes, peak, marks, paused_n, lost, corrupted, full, down;
    int pid, tid, tier[2], inside;
    double rate, latency, busy, paused;
    json_t *all;
    char *text;

    assert_int_equal(
        json_unpack((json_t *)(uintptr_t)j,
                    "{s:s, s:s, s:s, s:i, s:i, s:[i, i !], s:b, s:f, s:f, s:I, s:I, s:I, s:f, s:I, "
                    "s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:o !}",
                    "link", &link, "from", &from, "to", &to, "pid", &pid, "tid", &tid, "tiers",
                    &tier[0], &tier[1], "in_node", &inside, "rate_Gbps", &rate, "latency_us",
                    &latency, "buffer_bytes", &buffer, "frames", &frames, "bytes", &bytes,
                    "busy_us", &busy, "queue_peak_bytes", &peak, "ecn_marks", &marks, "pauses",
                    &paused_n, "paused_us", &paused, "lost", &lost, "corrupted", &corrupted,
                    "queue_full", &full, "link_down", &down, "flows", &all),
        0);
    text = json_dumps(all, JSON_COMPACT);
    fprintf(out, "%s %s>%s %d.%d %d-%d%s %g Gb/s %g us %lld B\n", link, from, to, pid, tid, tier[0],
            tier[1], inside ? " in node" : "", rate, latency, buffer);
    fprintf(
        out,
        "%lld %lld %.5f us peak %lld marks %lld paused %lld %.3f us lost %lld %lld %lld %lld %s\n",
        frames, bytes, busy, peak, marks, paused_n, paused, lost, corrupted, full, down, text);
    free(text);
}

static const char *link_text(struct bed *b, unsigned dirlink)
{
    static char text[ROOM];
    json_t *a = net_timeline_links(b->n);
    FILE *out = fmemopen(text, sizeof(text), "w");

    assert_int_equal(json_array_size(a), 2u * b->f->n_links);
    memset(text, 0, sizeof(text));
    print_link(json_array_get(a, dirlink), out);
    fclose(out);
    json_decref(a);
    return text;
}

/* Everything happens before the operation, and again within it. */
static void happen(struct bed *b)
{
    static const struct egress_faults loss = {.loss = 1}, corrupt = {.corrupt = 1}, none;
    struct egress *q = queue(b, LEAF0, 1);
    int64_t t = world_now(b->w);

    egress_set_faults(q, &loss);
    push(b, LEAF0, 1, FRAME_LOSSLESS, 2);
    go_to(b, t += 20000);
    egress_set_faults(q, &corrupt);
    push(b, LEAF0, 1, FRAME_LOSSLESS, 1);
    go_to(b, t += 20000);
    egress_set_faults(q, &none);
    egress_pause(q, FRAME_LOSSLESS, t + 5000, t);
    push(b, LEAF0, 1, FRAME_LOSSLESS, 3);
    assert_int_equal(egress_push(q, marked(b), t), 0);
    go_to(b, t += 1000);
    net_timeline_step(b->n);
    go_to(b, t += 20000);
    egress_discard(q, true, t);
    refused(b, LEAF0, 1, FRAME_LOSSLESS);
    egress_discard(q, false, t);
    egress_set_down(q, true, t);
    push(b, LEAF0, 1, FRAME_LOSSLESS, 2);
    go_to(b, t += 40000);
    egress_set_down(q, false, t);
    net_node(world_net(b->w), LEAF0)->cnt[1].pauses_received += 6;
}

static void what_an_operation_did(void **state)
{
    json_t *switches, *sw;
    struct bed b;

    (void)state;
    bed_up(&b);
    b.f->links[2].buffer_bytes = 12345;
    b.f->nodes[SPINE0].reduce.on = false;
    net_timeline_begin(b.n, b.w, 0, 0);
    happen(&b);
    slots(&b, LEAF0)->slots_used = 77;
    frame(&b, LEAF0_SPINE0, H1, H0, 325000);
    go_to(&b, PS_PER_US);
    net_timeline_step(b.n);
    slots(&b, LEAF0)->slots_used = 0;
    net_timeline_end(b.n);

    net_timeline_begin(b.n, b.w, 0, 0);
    happen(&b);
    slots(&b, LEAF1)->slots_used = 5;
    frame(&b, LEAF0_SPINE0, H0, H1, 1325000);
    arrive(&b, LEAF0_SPINE0, packet(ip_of(&b, H0), ip_of(&b, H1), 2u << 16), 1350000);
    frame(&b, LEAF0_SPINE0, H0, H1, 1375000);
    go_to(&b, 1500000);
    net_timeline_step(b.n);
    slots(&b, LEAF1)->slots_used = 3;
    net_timeline_end(b.n);
    assert_string_equal(link_text(&b, LEAF0_SPINE0),
                        "leaf0:1-spine0:0 leaf0>spine0 5.2 1-2 400 Gb/s 0.3 us 12345 B\n"
                        "7 1754 0.03508 us peak 1406 marks 1 paused 6 0.005 us lost 2 1 0 3 "
                        "[{\"from\":\"h0\",\"to\":\"h1\",\"background\":false,\"bytes\":2500},"
                        "{\"from\":\"h0\",\"to\":\"h1\",\"background\":true,\"bytes\":1250}]\n");
    switches = net_timeline_switches(b.n);
    assert_int_equal(json_array_size(switches), 3);
    for (unsigned i = 0; i < 3; i++) {
        static const int peak[] = {0, 5, 0};
        static const char *const name[] = {"leaf0", "leaf1", "spine0"};
        const char *of;
        int reduces, pid;
        json_int_t slots_peak;

        sw = json_array_get(switches, i);
        assert_int_equal(json_unpack(sw, "{s:s, s:i, s:b, s:I !}", "name", &of, "pid", &pid,
                                     "reduces", &reduces, "slots_peak", &slots_peak),
                         0);
        assert_string_equal(of, name[i]);
        assert_int_equal(pid, 5 + i);
        assert_int_equal(reduces, i < 2);
        assert_int_equal(slots_peak, peak[i]);
    }
    json_decref(switches);
    slots(&b, LEAF1)->slots_used = 0;
    bed_down(&b);
}

/* Links within a node of GPUs say so. */
static void links_within_a_node(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    b.f->nodes[H0].domain = b.f->nodes[LEAF0].domain = 0;
    b.f->nodes[H1].domain = 1;
    net_timeline_begin(b.n, b.w, 0, 0);
    assert_non_null(strstr(link_text(&b, H0_LEAF0), " in node"));
    assert_null(strstr(link_text(&b, H1_LEAF1), " in node"));
    assert_null(strstr(link_text(&b, LEAF0_SPINE0), " in node"));
    b.f->nodes[LEAF1].domain = 0;
    assert_null(strstr(link_text(&b, H1_LEAF1), " in node"));
    bed_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_operation_did),
        cmocka_unit_test(links_within_a_node),
    };

    test_eal_init();
    pool = test_pool(8192);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
