/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole plans, sums and pictures of fabrics that have, between them, every property that a report names: each line, number and place of
 * expected/NAME.plan, .sums, .svg and .dot.
 */
#include "fabric/report/plan.h"
#include "tests/fabric/load.h"
#include "tests/support/expected.h"

#define MINE "tests/fabric/report/conf/"
#define WANT "tests/fabric/report/expected/"

static void same(struct expected *e, const char *name, const char *kind)
{
    char path[128];

    snprintf(path, sizeof(path), WANT "%s.%s", name, kind);
    expected_same(e, path);
}

/* Every line for itself, and what is alike in one line, however few there are. */
static void plans(void **state)
{
    static const char *const confs[] = {MINE "outside.conf", MINE "gpus.conf", MINE "mesh.conf",
                                        MINE "rates.conf", THREE_TIER};
    struct expected e;

    (void)state;
    for (unsigned i = 0; i < LEN(confs); i++) {
        struct fabric *f = load_file(confs[i]);

        expected_begin(&e);
        fabric_plan(f, true, e.out);
        same(&e, f->name, "plan");
        expected_begin(&e);
        plan_node_sums(f, e.out);
        plan_link_sums(f, e.out);
        plan_tree_sums(f, e.out);
        same(&e, f->name, "sums");
        fabric_free(f);
    }
}

/* 64 addresses are listed, one more is not. */
static void many_addresses_are_summed_up(void **state)
{
    static const char text[] = LINKS "single_switch = { hosts = %u; };";
    struct expected e;
    struct fabric *f;
    char conf[128];

    (void)state;
    for (unsigned hosts = 63; hosts <= 64; hosts++) {
        snprintf(conf, sizeof(conf), text, hosts);
        f = load_text(conf);
        expected_begin(&e);
        fabric_plan(f, false, e.out);
        fflush(e.out);
        assert_int_equal(strstr(e.text, "trib plan -v lists them all") != NULL, hosts == 64);
        assert_int_equal(strstr(e.text, "\n  h62 ") != NULL, hosts == 63);
        fclose(e.out);
        free(e.text);
        fabric_free(f);
    }
}

static void pictures(void **state)
{
    static const char *const confs[] = {
        MINE "outside.conf", MINE "gpus.conf",          MINE "mesh.conf",   MINE "rates.conf",
        THREE_TIER,          "conf/leaf-spine-64.conf", "conf/h100-su.conf"};
    struct expected e;

    (void)state;
    for (unsigned i = 0; i < LEN(confs); i++) {
        struct fabric *f = load_file(confs[i]);

        expected_begin(&e);
        assert_int_equal(plan_svg(f, true, e.out), 0);
        same(&e, f->name, "svg");
        expected_begin(&e);
        assert_int_equal(plan_dot(f, e.out), 0);
        same(&e, f->name, "dot");
        fabric_free(f);
    }
}

/* More lines than 200 are a crowd; of trees with many edges fewer than eight are drawn. */
static void crowds(void **state)
{
    static const struct {
        unsigned leaves, spines, hosts;
        const char *name;
    } row[] = {{10, 10, 10, "crowd-200"},
               {10, 11, 10, "crowd-220"},
               {15, 8, 4, "edges-240"},
               {16, 8, 4, "edges-256"}};
    struct expected e;

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        struct fabric *f = load_leaf_spine(row[i].leaves, row[i].spines, row[i].hosts, 1, "");

        expected_begin(&e);
        assert_int_equal(plan_svg(f, true, e.out), 0);
        same(&e, row[i].name, "svg");
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans),
        cmocka_unit_test(many_addresses_are_summed_up),
        cmocka_unit_test(pictures),
        cmocka_unit_test(crowds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
