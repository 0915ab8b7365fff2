/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths and times of links, by hand. */
#include "model/cost_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

/* Ethernet 14, IP 20, UDP 8, BTH 12, ICRC 4; preamble, FCS and gap 24; at least 60 without those. Data in fours. */
static void messages_are_frames_with_headers(void **state)
{
    static const struct {
        uint64_t len;
        uint32_t mtu;
        bool imm;
        struct model_msg m;
    } rows[] = {
        {0, 1024, false, {84, 84, 84}},
        {0, 1024, true, {86, 86, 86}},
        {1, 1024, false, {86, 86, 86}},
        {4, 1024, false, {86, 86, 86}},
        {5, 1024, false, {90, 90, 90}},
        {5, 1024, true, {94, 94, 94}},
        {1023, 1024, false, {1106, 1106, 1106}},
        {1024, 1024, false, {1106, 1106, 1106}},
        {1024, 1024, true, {1110, 1110, 1110}},
        {1025, 1024, true, {1106 + 90, 1106, 90}},
        {2048, 1024, true, {1106 + 1110, 1106, 1110}},
        {2049, 1024, false, {2 * 1106 + 86, 1106, 86}},
        {3 * 4096, 4096, true, {2 * 4178 + 4182, 4178, 4182}},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct model_msg m = model_message(rows[i].len, rows[i].mtu, rows[i].imm);

        assert_memory_equal(&m, &rows[i].m, sizeof(m));
    }
}

/* Hosts 0 and 1 at leaf 0, 2 and 3 at leaf 1; one spine. */
static const uint16_t ranks[] = {0, 1, 2, 3};
static const char conf[] =
    "name = \"n\"; mtu = 1024; leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 2; "
    "host_link "
    "= { rate = \"100Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = \"400Gb/s\"; latency = "
    "\"1us\"; }; };";

static struct model set_up(const char *text)
{
    struct model m = {.fab = fabric_load_string(text, "net.conf", NULL), .host_of_rank = ranks};

    assert_non_null(m.fab);
    m.n_dir = 2u * m.fab->n_links + m.fab->n_hosts;
    m.free_ps = calloc(m.n_dir, sizeof(*m.free_ps));
    m.fetch_ps = calloc(m.n_dir, sizeof(*m.fetch_ps));
    m.bytes = calloc(m.n_dir, sizeof(*m.bytes));
    return m;
}

static void drop(struct model *m)
{
    fabric_free((struct fabric *)(uintptr_t)m->fab);
    free(m->free_ps);
    free(m->fetch_ps);
    free(m->bytes);
}

static struct fab_node *node(const struct model *m, unsigned i)
{
    return &m->fab->nodes[i];
}

static struct model_path path_of(const struct model *m, unsigned from, unsigned to)
{
    struct model_path p;

    model_path(m, model_node(m, from), 0, model_node(m, to), 0, &p);
    return p;
}

static void bytes_take_their_time_on_a_link(void **state)
{
    struct model m = set_up(conf);
    struct model_path p = path_of(&m, 0, 2);
    const uint32_t host = p.link[0], spine = p.link[1], loop = 2u * m.fab->n_links + 3;

    (void)state;
    assert_int_equal(model_link_ps(&m, host, 0), 0);
    assert_int_equal(model_link_ps(&m, host, 1), 80);
    assert_int_equal(model_link_ps(&m, spine, 1), 20);
    assert_int_equal(model_link_ps(&m, host, (1 << 20) - 1), 80ll * ((1 << 20) - 1));
    assert_int_equal(model_link_ps(&m, host, 1 << 20), 80ll << 20);
    assert_int_equal(model_link_ps(&m, host, 1ull << 40), 80ll << 40);
    assert_int_equal(model_link_ps(&m, spine, 1ull << 40), 20ll << 40);
    assert_int_equal(model_link_ps(&m, loop, 3), 240); /* as fast as the host's first link */
    node(&m, m.fab->hosts[3])->ports[0].rate_bps = 200000000000;
    assert_int_equal(model_link_ps(&m, loop, 3), 120);
    assert_int_equal(model_link_ps(&m, loop - 1, 3), 240);
    node(&m, m.fab->hosts[3])->ports[0].rate_bps = 0;
    assert_int_equal(model_link_ps(&m, loop, 3), 0);
    assert_int_equal(model_latency(&m, host), 300000);
    assert_int_equal(model_latency(&m, spine), 1000000);
    assert_int_equal(model_latency(&m, loop), 0);
    assert_int_equal(model_latency(&m, 2u * m.fab->n_links), 0);
    drop(&m);
}

static void a_path_has_the_links_and_processes_between_its_nodes(void **state)
{
    struct model m = set_up(conf);
    struct model_path p = path_of(&m, 0, 2);
    uint16_t leaf[2];

    (void)state;
    assert_int_equal(p.n, 4);
    assert_int_equal(p.crossings, 0);
    leaf[0] = node(&m, m.fab->hosts[0])->ports[0].peer_node;
    leaf[1] = node(&m, m.fab->hosts[2])->ports[0].peer_node;
    node(&m, leaf[0])->proc = 1; /* h0 0, leaf0 1, spine 1, leaf1 2, h2 0 */
    node(&m, leaf[1])->proc = 2;
    for (unsigned i = 0; i < m.fab->n_switches; i++)
        if (m.fab->switches[i] != leaf[0] && m.fab->switches[i] != leaf[1])
            node(&m, m.fab->switches[i])->proc = 1;
    assert_int_equal(path_of(&m, 0, 2).crossings, 3);
    assert_int_equal(path_of(&m, 2, 0).crossings, 3);
    assert_int_equal(path_of(&m, 0, 1).crossings, 2);
    assert_int_equal(path_of(&m, 0, 1).n, 2);
    p = path_of(&m, 1, 1);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.crossings, 0);
    assert_int_equal(p.link[0], 2 * m.fab->n_links + 1);
    model_path(&m, leaf[0], 0, leaf[0], 0, &p); /* a switch has no loop */
    assert_int_equal(p.n, 0);
    drop(&m);
}

/* The port fetches a request after the other; the cost of one that was ready while the port sent is hidden. */
static void a_port_fetches_one_request_after_the_other(void **state)
{
    struct model m = set_up(conf);
    struct model_lane l = {0};

    (void)state;
    assert_int_equal(model_post(&m, &l, 0, 50), 50);
    ((struct fabric *)(uintptr_t)m.fab)->costs.hca_ps = 100;
    assert_int_equal(model_post(&m, &l, 0, 1000), 1100);
    assert_int_equal(model_post(&m, &l, 0, 1000), 1200);
    assert_int_equal(model_post(&m, &l, 1, 1000), 1100); /* another port */
    assert_int_equal(model_post(&m, &l, 0, 1200), 1300);
    assert_int_equal(model_post(&m, &l, 0, 2000), 2100);
    l.back_to_back = true;
    assert_int_equal(model_post(&m, &l, 0, 3000), 3000);
    assert_int_equal(model_post(&m, &l, 0, 3000), 3100);
    drop(&m);
}

static void messages_are_noticed_in_order(void **state)
{
    int64_t free_ps = 0;
    struct model_lane l = {.notice = {.gpu_ps = 10, .step_ps = 5}, .free_ps = &free_ps};

    (void)state;
    assert_int_equal(model_noticed(&l, 100, 1000), 1015);
    assert_int_equal(model_noticed(&l, 100, 1001), 1016);
    l.notice.step_ps = 2;
    assert_int_equal(model_noticed(&l, 100, 1002), 1016); /* not before the one before */
    assert_int_equal(model_noticed(&l, 100, 1005), 1017);
    assert_int_equal(l.noticed_ps, 1017);
}

static void a_switch_cuts_through_behind_a_header(void **state)
{
    struct model m = set_up(conf);
    struct model_path p = path_of(&m, 0, 2);
    uint16_t leaf = node(&m, m.fab->hosts[0])->ports[0].peer_node;

    (void)state;
    assert_false(model_cuts(&m, p.link[0]));
    node(&m, leaf)->cut_through = true;
    assert_true(model_cuts(&m, p.link[0]));
    assert_false(model_cuts(&m, p.link[0] ^ 1)); /* its far end is the host */
    assert_false(model_cuts(&m, p.link[1]));
    assert_true(model_cuts(&m, p.link[1] ^ 1));
    for (unsigned h = 0; h < m.fab->n_hosts; h++)
        assert_false(model_cuts(&m, 2u * m.fab->n_links + h));
    assert_int_equal(model_behind_header(&m, p.link[0], FAB_CUT_BYTES + 7), 560);
    assert_int_equal(model_behind_header(&m, p.link[1], FAB_CUT_BYTES + 7), 140);
    drop(&m);
}

/* Links of 80, 20, 20 and 80 ps a byte, 2.6 us of latency in all. */
static void a_small_frame_overtakes_what_waits(void **state)
{
    const int64_t latency = 2600000, header = FAB_CUT_BYTES;
    struct model m = set_up(conf);
    struct model_path p = path_of(&m, 0, 2);

    (void)state;
    assert_int_equal(model_send_small(&m, &p, 7, 100), 7 + 200 * 100 + latency);
    for (unsigned h = 0; h < p.n; h++) {
        assert_int_equal(m.bytes[p.link[h]], 100);
        assert_int_equal(m.free_ps[p.link[h]], 0);
    }
    /* it delays what is on a busy link, and is not delayed */
    m.free_ps[p.link[0]] = 1;
    m.free_ps[p.link[1]] = 308001 + 1;
    m.free_ps[p.link[3]] = 1ll << 40;
    assert_int_equal(model_send_small(&m, &p, 1, 100), 1 + 200 * 100 + latency);
    assert_int_equal(m.free_ps[p.link[0]], 1); /* just free */
    assert_int_equal(m.free_ps[p.link[1]], 308002 + 2000);
    assert_int_equal(m.free_ps[p.link[3]], (1ll << 40) + 8000);
    assert_int_equal(m.bytes[p.link[3]], 200);
    /* Cut through: to a faster link it may start when the rest comes in time, else behind the header. */
    for (unsigned i = 0; i < m.fab->n_switches; i++)
        node(&m, m.fab->switches[i])->cut_through = true;
    memset(m.free_ps, 0, m.n_dir * sizeof(*m.free_ps));
    assert_int_equal(model_send_small(&m, &p, 0, 1000),
                     (80 - 20) * 1000 + 20 * header + 20 * header + 80 * 1000 + latency);
    p = path_of(&m, 0, 1);
    assert_int_equal(model_send_small(&m, &p, 0, 1000), 80 * header + 80 * 1000 + 600000);
    assert_int_equal(model_send_small(&m, &p, 0, 10), 80 * header + 80 * 10 + 600000);
    p = path_of(&m, 0, 0);
    assert_int_equal(model_send_small(&m, &p, 0, 10), 800);
    drop(&m);
}

static void ways_are_hashed_where_ranks_have_a_choice(void **state)
{
    static const uint16_t near[] = {0, 1}, far[] = {1, 3}, back[] = {3, 1};
    static const struct {
        const char *ecmp, *spines;
        const uint16_t *host;
        bool hashed;
    } rows[] = {
        {"hash", "2", far, true},      {"hash", "2", back, true}, {"hash", "2", near, false},
        {"balanced", "2", far, false}, {"hash", "1", far, false},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        char text[400];
        struct fabric *f;

        snprintf(text, sizeof(text),
                 "name = \"n\"; ecmp = \"%s\"; leaf_spine = { leaves = 2; spines = %s; "
                 "hosts_per_leaf = 2; host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; "
                 "spine_link = { rate = \"400Gb/s\"; latency = \"1us\"; }; };",
                 rows[i].ecmp, rows[i].spines);
        f = fabric_load_string(text, "hash.conf", NULL);
        assert_non_null(f);
        assert_int_equal(model_is_hashed(f, 2, rows[i].host), rows[i].hashed);
        assert_false(model_is_hashed(f, 1, rows[i].host)); /* none but itself */
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_frames_with_headers),
        cmocka_unit_test(bytes_take_their_time_on_a_link),
        cmocka_unit_test(a_path_has_the_links_and_processes_between_its_nodes),
        cmocka_unit_test(a_port_fetches_one_request_after_the_other),
        cmocka_unit_test(messages_are_noticed_in_order),
        cmocka_unit_test(a_switch_cuts_through_behind_a_header),
        cmocka_unit_test(a_small_frame_overtakes_what_waits),
        cmocka_unit_test(ways_are_hashed_where_ranks_have_a_choice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
