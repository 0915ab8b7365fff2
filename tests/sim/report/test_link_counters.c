/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of links, as a table and as JSON, of frames that the test sends by itself: 976 bytes of
 * layer 2, so 1000 on a link of 400 Gb/s, in 20 ns. */
#include "sim/report/link_counters.h"
#include "roce/wire.h"
#include "tests/fabric/load.h"
#include "tests/support/eal.h"

#include <jansson.h>
#include <stdlib.h>

#define BYTES         976u
#define ON_THE_WAY_PS (250 * PS_PER_NS) /* frames have started, and none has come to be dropped */
#define ROOM          8192u

static struct rte_mempool *pool;

struct bed {
    struct fabric *f;
    struct net *n;
    struct counters *c;
    int64_t now;
};

/* The test is the other process where not all nodes are here. */
static void drop(void *ctx, uint16_t nd, uint16_t at, struct rte_mbuf **m, uint16_t n, int64_t due)
{
    (void)ctx, (void)nd, (void)at, (void)due;
    frame_free_burst(m, n);
}

static void bed_up(struct bed *b, struct fabric *f, const bool *named, const bool *mine)
{
    struct net_cfg cfg = {.fab = f, .mine = mine, .pool = pool, .seed = 1, .deliver = drop};

    *b = (struct bed){.f = f};
    assert_int_equal(net_create(&b->n, &cfg), 0);
    assert_int_equal(counters_create(&b->c, f, named), 0);
}

static void bed_down(struct bed *b)
{
    counters_destroy(b->c);
    net_destroy(b->n);
    fabric_free(b->f);
}

static struct egress *queue(struct bed *b, unsigned dirlink)
{
    const struct fab_link *l = &b->f->links[dirlink / 2];

    return dirlink & 1 ? net_egress(b->n, l->b, l->b_port) : net_egress(b->n, l->a, l->a_port);
}

/* Of the port that sends into the direction. */
static struct node_port_counters *port(struct bed *b, unsigned dirlink)
{
    const struct fab_link *l = &b->f->links[dirlink / 2];

    return dirlink & 1 ? &net_node(b->n, l->b)->cnt[l->b_port]
                       : &net_node(b->n, l->a)->cnt[l->a_port];
}

/* At one instant, frames that no port accounts for. Those that find no room are let go. */
static void push(struct bed *b, unsigned dirlink, unsigned n, enum frame_class cls)
{
    for (unsigned i = 0; i < n; i++) {
        struct rte_mbuf *m = frame_alloc(pool);

        memset(rte_pktmbuf_append(m, BYTES), 0, BYTES);
        frame_meta(m)->in_port = NODE_NO_PORT, frame_meta(m)->cls = (uint8_t)cls;
        if (egress_push(queue(b, dirlink), m, b->now))
            rte_pktmbuf_free(m);
    }
}

static void advance(struct bed *b, int64_t ps)
{
    b->now += ps;
    net_advance(b->n, b->now);
}

/* By the end of the call they have arrived. */
static void send(struct bed *b, unsigned dirlink, unsigned n)
{
    push(b, dirlink, n, FRAME_LOSSLESS);
    advance(b, PS_PER_US);
}

/* One is on the link, two wait, and the fourth is marked. */
static void send_marked(struct bed *b, unsigned dirlink)
{
    for (unsigned i = 0; i < 4; i++) {
        struct rte_mbuf *m = frame_alloc(pool);
        struct roce_pkt k = {.opcode = ROCE_OP_UD_SEND_ONLY, .tos = 2, .len = BYTES - 68};

        roce_build(m, &k);
        memset(rte_pktmbuf_mtod_offset(m, char *, m->data_len), 0, k.len); /* seal takes it in */
        roce_seal(m, &k);
        frame_meta(m)->in_port = NODE_NO_PORT;
        assert_int_equal(m->pkt_len, BYTES - 2);
        assert_int_equal(egress_push(queue(b, dirlink), m, b->now), 0);
    }
    advance(b, PS_PER_US);
}

static const char *table(struct bed *b)
{
    static char text[ROOM];
    FILE *out = fmemopen(text, sizeof(text), "w");

    memset(text, 0, sizeof(text));
    counters_print(b->c, out);
    fclose(out);
    return text;
}

/* Each kind of a count in a direction of its own. */
static void happen(struct bed *b)
{
    static const struct egress_faults loss = {.loss = 1}, dup = {.dup = 1},
                                      corrupt = {.corrupt = 1}, reorder = {.reorder = 1}, none;

    egress_set_faults(queue(b, 2), &loss);
    egress_set_faults(queue(b, 4), &dup);
    egress_set_faults(queue(b, 6), &corrupt);
    egress_set_faults(queue(b, 7), &reorder);
    send(b, 0, 2);
    port(b, 1)->drops[DROP_QUEUE_FULL] += 9; /* at the ingress, not counted here */
    send(b, 2, 3);
    port(b, 3)->drops[DROP_RUNT] += 2;
    port(b, 3)->drops[DROP_RING_FULL]++;
    send(b, 4, 4);
    port(b, 5)->pauses_sent += 3;
    port(b, 5)->pauses_received += 4;
    send(b, 6, 1);
    send(b, 7, 5);
    egress_set_down(queue(b, 8), true, b->now);
    send(b, 8, 1);
    egress_set_down(queue(b, 8), false, b->now);
    egress_pause(queue(b, 9), FRAME_LOSSLESS, b->now + 250000, b->now);
    advance(b, PS_PER_US);
    push(b, 10, 7, FRAME_LOSSY);
    advance(b, PS_PER_US);
    send_marked(b, 11);
    egress_set_faults(queue(b, 7), &none);
}

/* Each direction's object as a line: what it is of, its numbers, its drops. */
static void print_json(const json_t *lines, FILE *out)
{
    const json_t *j;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)lines, i, j)
    {
        json_int_t frames, bytes, link, lost, peak, marks, sent, received, dup, reordered,
            corrupted;
        const char *name, *from, *to;
        double busy, use, paused;
        json_t *drops;
        char *text;

        assert_int_equal(
            json_unpack((json_t *)(uintptr_t)j,
                        "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:f, "
                        "s:{s:I, s:I, s:I !}, s:o !}",
                        "link", &name, "from", &from, "to", &to, "frames", &frames, "bytes", &bytes,
                        "link_bytes", &link, "lost_bytes", &lost, "busy_us", &busy, "utilisation",
                        &use, "queue_peak_bytes", &peak, "ecn_marks", &marks, "pauses_sent", &sent,
                        "pauses_received", &received, "paused_us", &paused, "faults", "duplicated",
                        &dup, "reordered", &reordered, "corrupted", &corrupted, "drops", &drops),
            0);
        text = json_dumps(drops, JSON_COMPACT);
        fprintf(out, "%s %s>%s %lld %lld %lld lost %lld busy %.5f %.5f peak %lld ecn %lld ", name,
                from, to, frames, bytes, link, lost, busy, use, peak, marks);
        fprintf(out, "pauses %lld %lld %.3f faults %lld %lld %lld %s\n", sent, received, paused,
                dup, reordered, corrupted, text);
        free(text);
    }
}

static void check_json(const json_t *lines, const char *want)
{
    static char text[ROOM];
    FILE *out = fmemopen(text, sizeof(text), "w");

    print_json(lines, out);
    fclose(out);
    assert_string_equal(text, want);
}

static struct fabric *small(void)
{
    struct fabric *f = load_leaf_spine(2, 1, 1, 2, "");

    f->links[5].buffer_bytes = 3 * BYTES;
    f->links[5].ecn_bytes = f->links[5].ecn_max_bytes = BYTES;
    return f;
}

static const char row_table[] =
    "#\n"
    "# Links during ring, 4096 B, float sum, out-of-place: 2 operations, 1.00 us\n"
    "#     from       to   frames      link  util     peak     ecn pauses   paused  drops\n"
    "#                                 (MB)   (%)    (KiB)                    (us)\n"
    "  spine0:1  leaf0:2        5     0.005  10.0      3.8       0      0     0.00  5 "
    "reordered, "
    "5 unknown_dest\n"
    "   leaf0:1 spine0:0        4     0.004   8.0      2.9       0      0     0.00  4 "
    "duplicated, "
    "8 unknown_dest\n"
    "   leaf1:2 spine0:3        4     0.004   8.0      2.9       0      0     0.00  4 "
    "unknown_dest, "
    "3 queue_full\n"
    "  spine0:3  leaf1:2        4     0.004   8.0      2.9       1      0     0.00  4 "
    "unknown_dest\n"
    "      h1:0  leaf1:0        3     0.003   6.0      1.9       0      0     0.00  3 lost, 2 "
    "runt, 1 ring_full\n"
    "      h0:0  leaf0:0        2     0.002   4.0      1.0       0      0     0.00  2 "
    "unknown_dest\n"
    "   leaf0:2 spine0:1        1     0.001   2.0      0.0       0      0     0.00  1 "
    "corrupted, 1 "
    "unknown_dest\n"
    "  spine0:0  leaf0:1        0     0.000   0.0      0.0       0      4     0.00  0\n"
    "   leaf1:1 spine0:2        0     0.000   0.0      0.0       0      0     0.00  1 "
    "link_down\n"
    "  spine0:2  leaf1:1        0     0.000   0.0      0.0       0      0     0.25  0\n";
static const char row_json[] =
    "h0:0-leaf0:0 h0:0>leaf0:0 2 1952 2000 lost 0 busy 0.04000 0.04000 peak 976 ecn 0 "
    "pauses 0 0 0.000 faults 0 0 0 {\"unknown_dest\":2}\n"
    "h1:0-leaf1:0 h1:0>leaf1:0 3 2928 3000 lost 2928 busy 0.06000 0.06000 peak 1952 ecn "
    "0 pauses 0 0 0.000 faults 0 0 0 {\"lost\":3,\"runt\":2,\"ring_full\":1}\n"
    "leaf0:1-spine0:0 leaf0:1>spine0:0 4 3904 4000 lost 0 busy 0.08000 0.08000 peak "
    "2928 ecn 0 pauses 0 0 0.000 faults 4 0 0 {\"unknown_dest\":8}\n"
    "leaf0:1-spine0:0 spine0:0>leaf0:1 0 0 0 lost 0 busy 0.00000 0.00000 peak 0 ecn 0 "
    "pauses 3 4 0.000 faults 0 0 0 {}\n"
    "leaf0:2-spine0:1 leaf0:2>spine0:1 1 976 1000 lost 0 busy 0.02000 0.02000 peak 0 "
    "ecn 0 pauses 0 0 0.000 faults 0 0 1 {\"unknown_dest\":1}\n"
    "leaf0:2-spine0:1 spine0:1>leaf0:2 5 4880 5000 lost 0 busy 0.10000 0.10000 peak "
    "3904 ecn 0 pauses 0 0 0.000 faults 0 5 0 {\"unknown_dest\":5}\n"
    "leaf1:1-spine0:2 leaf1:1>spine0:2 0 0 0 lost 0 busy 0.00000 0.00000 peak 0 ecn 0 "
    "pauses 0 0 0.000 faults 0 0 0 {\"link_down\":1}\n"
    "leaf1:1-spine0:2 spine0:2>leaf1:1 0 0 0 lost 0 busy 0.00000 0.00000 peak 0 ecn 0 "
    "pauses 0 0 0.250 faults 0 0 0 {}\n"
    "leaf1:2-spine0:3 leaf1:2>spine0:3 4 3904 4000 lost 0 busy 0.08000 0.08000 peak "
    "2928 ecn 0 pauses 0 0 0.000 faults 0 0 0 {\"unknown_dest\":4,\"queue_full\":3}\n"
    "leaf1:2-spine0:3 spine0:3>leaf1:2 4 3896 3992 lost 0 busy 0.07984 0.07984 peak "
    "2922 ecn 1 pauses 0 0 0.000 faults 0 0 0 {\"unknown_dest\":4}\n";
static const char total_json[] =
    "h0:0-leaf0:0 h0:0>leaf0:0 4 3904 4000 lost 0 busy 0.08000 0.00444 peak 976 ecn 0 "
    "pauses 0 0 0.000 faults 0 0 0 {\"unknown_dest\":4}\n"
    "h1:0-leaf1:0 h1:0>leaf1:0 6 5856 6000 lost 5856 busy 0.12000 0.00667 peak 1952 ecn "
    "0 pauses 0 0 0.000 faults 0 0 0 {\"lost\":6,\"runt\":4,\"ring_full\":2}\n"
    "leaf0:1-spine0:0 leaf0:1>spine0:0 8 7808 8000 lost 0 busy 0.16000 0.00889 peak "
    "2928 ecn 0 pauses 0 0 0.000 faults 8 0 0 {\"unknown_dest\":16}\n"
    "leaf0:1-spine0:0 spine0:0>leaf0:1 0 0 0 lost 0 busy 0.00000 0.00000 peak 0 ecn 0 "
    "pauses 6 8 0.000 faults 0 0 0 {}\n"
    "leaf0:2-spine0:1 leaf0:2>spine0:1 2 1952 2000 lost 0 busy 0.04000 0.00222 peak 0 "
    "ecn 0 pauses 0 0 0.000 faults 0 0 2 {\"unknown_dest\":2}\n"
    "leaf0:2-spine0:1 spine0:1>leaf0:2 10 9760 10000 lost 0 busy 0.20000 0.01111 peak "
    "3904 ecn 0 pauses 0 0 0.000 faults 0 10 0 {\"unknown_dest\":10}\n"
    "leaf1:1-spine0:2 leaf1:1>spine0:2 0 0 0 lost 0 busy 0.00000 0.00000 peak 0 ecn 0 "
    "pauses 0 0 0.000 faults 0 0 0 {\"link_down\":2}\n"
    "leaf1:1-spine0:2 spine0:2>leaf1:1 0 0 0 lost 0 busy 0.00000 0.00000 peak 0 ecn 0 "
    "pauses 0 0 0.500 faults 0 0 0 {}\n"
    "leaf1:2-spine0:3 leaf1:2>spine0:3 8 7808 8000 lost 0 busy 0.16000 0.00889 peak "
    "2928 ecn 0 pauses 0 0 0.000 faults 0 0 0 {\"unknown_dest\":8,\"queue_full\":6}\n"
    "leaf1:2-spine0:3 spine0:3>leaf1:2 8 7792 7984 lost 0 busy 0.15968 0.00887 peak "
    "2922 ecn 2 pauses 0 0 0.000 faults 0 0 0 {\"unknown_dest\":8}\n";

/* A row does not count frames before it. Two operations of 0.5 us are 1 us, in which the 20 ns of a
 * frame are 2 %. */
static void a_row(void **state)
{
    struct row r = {.coll = COLL_ALLREDUCE,
                    .algo = ALGO_RING,
                    .type = DT_FP32,
                    .op = OP_SUM,
                    .bytes = 4096,
                    .run = {{.valid = true, .time_us = 0.5, .iters = 2}}};
    json_t *total;
    struct bed b;

    (void)state;
    bed_up(&b, small(), NULL, NULL);
    happen(&b);
    counters_begin(b.c, b.n);
    happen(&b);
    assert_int_equal(counters_end(b.c, b.n, &r, OUT_OF_PLACE), 0);
    assert_string_equal(table(&b), row_table);
    check_json(r.run[0].links, row_json);
    total = counters_total(b.c, b.n); /* of 18 us */
    check_json(total, total_json);
    json_decref(total);
    bed_down(&b);
}

/* Columns are as wide as their heads where there are no names. */
#define EMPTY                                                                                      \
    "# from to   frames      link  util     peak     ecn pauses   paused  drops\n"                 \
    "#                       (MB)   (%)    (KiB)                    (us)\n"

/* Of rows that ran in both places the one out of place is shown. */
static void places(void **state)
{
    struct row both = {.coll = COLL_ALLGATHER,
                       .algo = ALGO_DIRECT,
                       .type = DT_FP16,
                       .bytes = 8,
                       .run = {{.valid = true, .time_us = 2, .iters = 1},
                               {.time_us = 3.125, .iters = 3}}},
               in_place = {.coll = COLL_BARRIER,
                           .algo = ALGO_TREE,
                           .run = {{.valid = false}, {.time_us = 1.5, .iters = 4}}};
    struct bed b;

    (void)state;
    bed_up(&b, small(), NULL, NULL);
    assert_int_equal(counters_end(b.c, b.n, &both, OUT_OF_PLACE), 0);
    assert_int_equal(counters_end(b.c, b.n, &both, IN_PLACE), 0);
    assert_int_equal(counters_end(b.c, b.n, &in_place, IN_PLACE), 0);
    assert_int_equal(counters_end_run(b.c, b.n, "all of it", 0), 0);
    assert_string_equal(
        table(&b),
        "#\n# Links during direct, 8 B, half none, out-of-place: 1 operation, 2.00 us\n" EMPTY
        "#\n# Links during tree, 0 B, none none, in-place: 4 operations, 6.00 us\n" EMPTY
        "#\n# Links during all of it, 0.00 us\n" EMPTY);
    assert_non_null(both.run[0].links);
    assert_int_equal(json_array_size(both.run[0].links), 0);
    assert_non_null(both.run[1].links);
    assert_non_null(in_place.run[1].links);
    bed_down(&b);
}

/* Links that were named are all there, even if nothing has moved, or their ends are elsewhere. Without a
 * time nothing is in use. */
static void named_links(void **state)
{
    static const bool named[] = {true, false, false, true, false, false},
                      mine[] = {false, true, true, true, true};
    struct fabric *f = small();
    struct bed b;

    (void)state;
    assert_int_equal(f->n_nodes, LEN(mine));
    assert_string_equal(f->nodes[0].name, "h0");
    bed_up(&b, f, named, mine);
    counters_begin(b.c, b.n);
    send(&b, 1, 2);
    send(&b, 4, 1);
    send(&b, 6, 1);
    assert_int_equal(counters_end_run(b.c, b.n, "x", 0), 0);
    assert_string_equal(
        table(&b),
        "#\n# Links during x, 0.00 us\n"
        "#     from       to   frames      link  util     peak     ecn pauses   paused  drops\n"
        "#                                 (MB)   (%)    (KiB)                    (us)\n"
        "   leaf0:2 spine0:1        1     0.001   0.0      0.0       0      0     0.00  1 "
        "unknown_dest\n"
        "      h0:0  leaf0:0        0     0.000   0.0      0.0       0      0     0.00  0\n"
        "   leaf0:0     h0:0        0     0.000   0.0      0.0       0      0     0.00  0\n"
        "  spine0:1  leaf0:2        0     0.000   0.0      0.0       0      0     0.00  0\n");
    bed_down(&b);
}

static json_int_t peak_of(json_t *lines)
{
    return json_integer_value(json_object_get(json_array_get(lines, 0), "queue_peak_bytes"));
}

/* A row's peak is its own, the whole run's is the greatest; what has shrunk is 0. */
static void peaks_and_less(void **state)
{
    static const struct {
        unsigned before, first, second;
        json_int_t total;
    } row[] = {{5, 3, 2, 4 * BYTES}, {2, 5, 3, 4 * BYTES}, {2, 3, 5, 4 * BYTES}, {1, 1, 1, 0}};

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        struct row r = {.run = {{.valid = true, .time_us = 1, .iters = 1}, {.iters = 1}}};
        json_t *total;
        struct bed b;

        bed_up(&b, small(), NULL, NULL);
        send(&b, 0, row[i].before);
        port(&b, 0)->pauses_sent = 7;
        counters_begin(b.c, b.n);
        send(&b, 0, row[i].first);
        port(&b, 0)->pauses_sent = 5;
        assert_int_equal(counters_end(b.c, b.n, &r, 0), 0);
        assert_int_equal(peak_of(r.run[0].links), (row[i].first - 1) * BYTES);
        assert_int_equal(
            json_integer_value(json_object_get(json_array_get(r.run[0].links, 0), "pauses_sent")),
            0);
        counters_begin(b.c, b.n);
        send(&b, 0, row[i].second);
        assert_int_equal(counters_end(b.c, b.n, &r, 1), 0);
        assert_int_equal(peak_of(r.run[1].links), (row[i].second - 1) * BYTES);
        total = counters_total(b.c, b.n);
        assert_int_equal(peak_of(total), row[i].total);
        json_decref(total);
        bed_down(&b);
    }
}

static unsigned lines_of(const char *text)
{
    unsigned n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* Sixteen lines of a table are shown. */
static void long_tables(void **state)
{
    (void)state;
    for (unsigned lines = 15; lines < 19; lines++) {
        struct bed b;
        const char *text;

        bed_up(&b, load_leaf_spine(2, 2, 4, 1, ""), NULL, NULL);
        counters_begin(b.c, b.n);
        for (unsigned d = 0; d < lines; d++)
            push(&b, d, 2, FRAME_LOSSLESS);
        advance(&b, ON_THE_WAY_PS);
        assert_int_equal(counters_end_run(b.c, b.n, "x", 1), 0);
        text = table(&b);
        assert_int_equal(lines_of(text), 4 + RTE_MIN(lines, 16u) + (lines > 16));
        if (lines > 16) {
            char last[128];

            snprintf(last, sizeof(last),
                     "# and %u that were no busier, without drops, pauses or marks (--links names "
                     "links, -J has all)\n",
                     lines - 16);
            assert_string_equal(strstr(text, "# and"), last);
        } else {
            assert_null(strstr(text, "# and"));
        }
        bed_down(&b);
    }
}

/* And of those behind them the ones with trouble. */
static void trouble(void **state)
{
    static const struct egress_faults fault[] = {
        {.loss = 1}, {.dup = 1}, {.corrupt = 1}, {.reorder = 1}};

    (void)state;
    for (unsigned kind = 0; kind < 10; kind++) {
        struct bed b;
        const char *text;

        bed_up(&b, load_leaf_spine(2, 2, 4, 1, ""), NULL, NULL);
        uint64_t *const cell[] = {&port(&b, 20)->pauses_sent, &port(&b, 20)->pauses_received,
                                  &port(&b, 21)->drops[DROP_RING_FULL],
                                  &port(&b, 21)->drops[DROP_RUNT]};
        counters_begin(b.c, b.n);
        for (unsigned d = 0; d < 18; d++)
            push(&b, d, 2, FRAME_LOSSLESS);
        if (kind < LEN(fault)) {
            egress_set_faults(queue(&b, 20), &fault[kind]);
            push(&b, 20, 1, FRAME_LOSSLESS);
        }
        if (kind >= 4 && kind < 8)
            *cell[kind - 4] = 1;
        if (kind == 8)
            egress_pause(queue(&b, 20), FRAME_LOSSLESS, b.now + 1000, b.now);
        if (kind == 9) {
            egress_set_down(queue(&b, 20), true, b.now);
            push(&b, 20, 1, FRAME_LOSSLESS);
        }
        advance(&b, ON_THE_WAY_PS);
        assert_int_equal(counters_end_run(b.c, b.n, "x", 1), 0);
        text = table(&b);
        if (lines_of(text) != 4 + 16 + 2 || !strstr(text, "leaf1:4 spine0:1 ") ||
            !strstr(text, "# and 2 that"))
            fail_msg("trouble %u: %s", kind, text);
        bed_down(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row),       cmocka_unit_test(places),
        cmocka_unit_test(named_links), cmocka_unit_test(peaks_and_less),
        cmocka_unit_test(long_tables), cmocka_unit_test(trouble),
    };

    test_eal_init();
    pool = test_pool(1024);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
