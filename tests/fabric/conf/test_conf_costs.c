/* SPDX-License-Identifier: BSD-3-Clause */
/* The costs of a conf file: every key arrives, every mistake is named with its line; and what a
 * message pays by its path and length. */
#include "tests/fabric/load.h"

#define GPUS                                                                                       \
    "gpu_nodes = { nodes = 2; gpus = 2; planes = ( 4, 4 );\n"                                      \
    "nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };\n"                                      \
    "nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };\n"                                     \
    "rails = { leaves = 1; };\n"

static const struct {
    const char *costs;
    int line;
    const char *text;
} mistakes[] = {
    {"nvlink = 5;", 5, "nvlink: found 5, expected a group { launch; step; ll; ll128; }"},
    {"network = \"14us\";", 5, "network: found \"14us\", expected a group { launch; step;"},
    {"multimem = 0.85;", 5, "multimem: found 0.85, expected a group { launch; load; store; }"},
    {"nvlnk = { };", 5, "found unknown key \"nvlnk\", expected \"nvlink\"?"},
    {"nvlink = {\nstp = \"1us\"; };", 6, "found unknown key \"stp\", expected \"step\"?"},
    {"nvlink = {\nload = 0.5; };", 6, "found unknown key \"load\", expected one of: launch, step"},
    {"nvlink = {\nlaunch = 20; };", 6, "launch: found 20, expected a time"},
    {"network = {\nlaunch = \"2s\"; };", 6, "launch: found \"2s\", expected a time up to 1s"},
    {"nvlink = { step = \"3us\";\nll = \"1us\"; };", 6, "ll: found \"1us\", expected a group"},
    {"nvlink = { step = \"3us\";\nll = { step = \"1us\"; }; };", 6, "ll: found no rate, expected"},
    {"nvlink = { step = \"3us\";\nll128 = { rate = \"1GB/s\"; }; };", 6,
     "ll128: found no step, expected"},
    {"nvlink = { step = \"3us\";\nll = { step = \"1us\"; rate = \"1\"; }; };", 6,
     "rate: found \"1\", expected a rate from 1Mb/s to 100Tb/s"},
    {"network = {\nll = { step = \"1us\"; rate = \"1GB/s\"; }; };", 5,
     "network: found ll or ll128 without step"},
    {"multimem = {\nload = 0; };", 6, "load: found 0, expected a share of the link's rate"},
    {"multimem = {\nstore = 1.5; };", 6, "store: found 1.5, expected a share from 0.0 to 1.0"},
    {"multimem = {\nlaunch = true; };", 6, "launch: found true, expected a time"},
    {"aggregate = \"1us\";", 5, "aggregate: found \"1us\", expected a group { time; bytes; }"},
    {"aggregate = { time = \"1us\"; };", 5, "aggregate: found no bytes, expected a group"},
    {"aggregate = { bytes = 256; };", 5, "aggregate: found no time, expected a group"},
    {"aggregate = {\nbytes = 0; time = \"1us\"; };", 6, "bytes: found 0, expected"},
    {"aggregate = {\nuntil = \"4us\"; bytes = 1; time = \"1us\"; };", 6, "until: found"},
};

static void every_mistake_is_named_with_its_line(void **state)
{
    static struct fab_errors errs;

    (void)state;
    for (unsigned i = 0; i < LEN(mistakes); i++) {
        char text[1024];
        struct fabric *f;

        snprintf(text, sizeof(text), GPUS "costs = { %s };", mistakes[i].costs);
        f = fabric_load_string(text, "costs.conf", &errs);
        if (f || errs.total != 1 || errs.e[0].line != mistakes[i].line ||
            !strstr(errs.e[0].text, mistakes[i].text)) {
            fab_errors_print(&errs, stderr);
            fail_msg("row %u (%s): %u errors", i, mistakes[i].text, errs.total);
        }
    }
}

static void every_key_arrives(void **state)
{
    struct fabric *f = load_text(
        GPUS "costs = { gpu = \"1us\";\n"
             "nvlink = { launch = \"20us\"; step = \"3.4us\";\n"
             "  ll = { step = \"0.6us\"; rate = \"140GB/s\"; };\n"
             "  ll128 = { step = \"1.9us\"; rate = \"330GB/s\"; }; };\n"
             "multimem = { launch = \"70us\"; load = 0.5; store = 0.25; };\n"
             "aggregate = { time = \"0.7us\"; bytes = 256; until = \"4KiB\"; };\n"
             "network = { launch = \"30us\"; step = \"14us\"; ll = { step = \"2.7us\"; rate =\n"
             "  \"10GB/s\"; }; ll128 = { step = \"4us\"; rate = \"40GB/s\"; }; }; };");
    const struct fab_costs *c = &f->costs;

    (void)state;
    assert_int_equal(c->nvlink.launch_ps, 20000000);
    assert_int_equal(c->nvlink.step_ps, 3400000);
    assert_int_equal(c->nvlink.ll.step_ps, 600000);
    assert_int_equal(c->nvlink.ll.rate_bps, 1120000000000);
    assert_int_equal(c->nvlink.ll128.step_ps, 1900000);
    assert_int_equal(c->nvlink.ll128.rate_bps, 2640000000000);
    assert_int_equal(c->network.launch_ps, 30000000);
    assert_int_equal(c->network.step_ps, 14000000);
    assert_int_equal(c->network.ll.step_ps, 2700000);
    assert_int_equal(c->network.ll128.rate_bps, 320000000000);
    assert_int_equal(c->mm_launch_ps, 70000000);
    assert_int_equal(fab_stretch(1000, c->mm_load), 2000);
    assert_int_equal(fab_stretch(1000, c->mm_store), 4000);
    assert_int_equal(c->agg_until_bytes, 4096);
    assert_int_equal(fab_aggregate_ps(c, 0), 700000);
    assert_int_equal(fab_aggregate_ps(c, 256), 700000);
    assert_int_equal(fab_aggregate_ps(c, 257), 1400000);
    assert_int_equal(fabric_longest_notice_ps(f), 15000000);
    fabric_free(f);
}

static void without_costs_nothing_is_paid(void **state)
{
    static const char *const none[] = {"", "costs = { };",
                                       "costs = { nvlink = { }; multimem = { }; network = { }; };",
                                       "costs = { multimem = { load = 1; store = 1.0; }; };"};

    (void)state;
    for (unsigned i = 0; i < LEN(none); i++) {
        char text[1024];
        struct fabric *f;
        struct fab_costs zero = {0};

        snprintf(text, sizeof(text), GPUS "%s", none[i]);
        f = load_text(text);
        assert_memory_equal(&f->costs, &zero, sizeof(zero));
        fabric_free(f);
    }
}

/* How late a message is noticed that comes alone. */
static int64_t alone(const struct fab_notice *n, uint64_t len)
{
    int64_t free_ps = 0, now = 1000000000;

    return fab_noticed_ps(n, len, false, now, &free_ps) - now;
}

static void a_message_pays_by_its_port_and_length(void **state)
{
    struct fabric *f = load_text(
        GPUS "costs = { gpu = \"1us\";\n"
             "nvlink = { step = \"9us\"; ll = { step = \"2us\"; rate = \"2GB/s\"; };\n"
             "  ll128 = { step = \"4us\"; rate = \"20GB/s\"; }; };\n"
             "network = { step = \"14us\"; ll = { step = \"7us\"; rate = \"500GB/s\"; }; }; };");
    const struct fab_node *h = &f->nodes[f->hosts[2]];
    struct fab_notice n = fabric_notice(f, h, 0), nic = fabric_notice(f, h, 2);
    int64_t free_ps = 0;

    (void)state;
    assert_int_equal(h->n_ports, 3);
    assert_true(fabric_port_is_nvlink(f, h, 0) && fabric_port_is_nvlink(f, h, 1));
    assert_false(fabric_port_is_nvlink(f, h, 2));
    /* Half of LL's rate is on each of the two planes, of 100 GB/s. */
    assert_int_equal(alone(&n, 0), 1000000 + 2000000);
    assert_int_equal(alone(&n, 1000), 1000000 + 2000000 + 1000000 - 10000);
    assert_int_equal(alone(&n, 10000), 1000000 + 4000000 + 1000000 - 100000);
    assert_int_equal(alone(&n, 1 << 20), 1000000 + 9000000);
    /* LL cannot be faster than the port. */
    assert_int_equal(alone(&nic, 8), 1000000 + 7000000);
    assert_int_equal(alone(&nic, 4 << 20), 1000000 + 7000000);
    /* Later messages wait for LL's rate, but not those that its sender sends without it. */
    assert_int_equal(fab_noticed_ps(&n, 1000, false, 50000000, &free_ps), 53990000);
    assert_int_equal(fab_noticed_ps(&n, 1000, false, 50010000, &free_ps), 54990000);
    assert_int_equal(fab_noticed_ps(&n, 1000, true, 50020000, &free_ps), 60020000);
    /* LL128 takes 9 us for 5/(1/10 - 1/100) KB on each of two planes. */
    assert_false(fab_notice_is_long(&n, 0));
    assert_false(fab_notice_is_long(&n, 111110));
    assert_true(fab_notice_is_long(&n, 111130));
    assert_false(fab_notice_is_long(&nic, 1ull << 30));
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_is_named_with_its_line),
        cmocka_unit_test(every_key_arrives),
        cmocka_unit_test(without_costs_nothing_is_paid),
        cmocka_unit_test(a_message_pays_by_its_port_and_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
