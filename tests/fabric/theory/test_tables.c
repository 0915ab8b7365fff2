/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What trib model prints, as tables and as JSON, of fabrics of each shape: every algorithm's time by levels and by links, bytes at switches,
 * rooflines and bills of material, each number and line of expected/NAME. test_figures_*.c and test_model.c say where the numbers come from.
 */
#include "fabric/theory/cost_links.h"
#include "fabric/theory/theory.h"
#include "tests/fabric/theory/figures.h"
#include "tests/support/expected.h"

#include <jansson.h>

#define WANT   "tests/fabric/theory/expected/"
#define REPORT "tests/fabric/report/conf/"

/* The JSON after the tables, and both against the file. */
static void same(struct expected *e, json_t *json, const char *name)
{
    char path[128];

    fputc('\n', e->out);
    json_dumpf(json, e->out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    fputc('\n', e->out);
    json_decref(json);
    snprintf(path, sizeof(path), WANT "%s", name);
    expected_same(e, path);
}

/* Levels with the number of each field, which tables round. */
static void levels(const struct cost_levels *l, FILE *out)
{
    for (unsigned i = 0; i < l->n; i++) {
        const struct cost_level *v = &l->lv[i];

        fprintf(out,
                "%s tier %u: %u of %u, %u switches, %.9g B/s; island %u, %u local by %u, %.9g "
                "B/s%s%s\n",
                fab_role_name(v->role), v->tier, v->below, v->hosts, v->switches, v->child_Bps,
                v->island, v->island_local, v->island_stride, v->island_Bps,
                v->reduces ? " reduces" : "", v->multimem ? " multimem" : "");
    }
}

static void collectives(const struct fabric *f, const struct cost_levels *l, struct cost_axis a,
                        FILE *out, json_t *json)
{
    static const uint64_t bytes[] = {3000, 1 << 20, 100000000};
    struct model_row rows[4 * LEN(bytes) * MODEL_MAX_ROWS];
    struct cost_links k;
    struct model_ask ask = {a, 3, &k};
    unsigned n = 0;

    fprintf(out, "\nGroups of %lu, %lu apart; uneven: %d\n", a.degree, a.inner, model_uneven(l, a));
    assert_int_equal(cost_links(f, l, a, &k), 0);
    for (unsigned i = 0; model_collective(i); i++)
        for (unsigned b = 0; b < LEN(bytes); b++)
            n += model_rows(l, model_collective(i), &ask, bytes[b], rows + n);
    model_print_rows(l, rows, n, out, json);
    model_print_bytes(l, a, 1 << 20, out, json);
}

static void fabrics(void **state)
{
    static const struct {
        const char *conf, *name;
        struct cost_axis axis[5];
    } row[] = {
        {REPORT "gpus.conf", "gpus", {{1, 8}, {1, 4}, {2, 4}, {4, 2}}},
        {REPORT "rates.conf", "rates", {{1, 5}, {1, 2}, {2, 2}}},
        {REPORT "outside.conf", "outside", {{1, 4}}},
        {REPORT "odd-nodes.conf", "odd-nodes", {{1, 36}, {1, 15}, {1, 27}, {3, 12}, {6, 5}}},
        {THREE_TIER, "three-tier", {{1, 8}, {2, 4}, {1, 4}, {1, 2}}},
        {"conf/npu-mesh-8.conf", "npu-mesh-8", {{1, 8}, {2, 4}}},
        {"conf/single-switch-4.conf", "single-switch-4", {{1, 4}, {1, 3}, {1, 1}}},
        {"conf/rail-4x8.conf", "rail-4x8", {{1, 32}, {1, 24}, {8, 4}, {1, 16}, {4, 8}}},
        {"conf/h100-superpod-1024.conf", "h100-superpod-1024", {{8, 128}, {1, 8}, {256, 4}}},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        struct fabric *f = load_file(row[i].conf);
        json_t *all = json_object();
        struct cost_levels l;
        struct expected e;

        cost_levels(f, &l);
        levels(&l, expected_begin(&e));
        model_print_levels(f, &l, e.out, all);
        model_print_levels(f, &l, e.out, NULL);
        for (unsigned k = 0; k < LEN(row[i].axis) && row[i].axis[k].degree; k++) {
            json_t *json = json_object();
            char key[32];

            snprintf(key, sizeof(key), "axis %u", k);
            collectives(f, &l, row[i].axis[k], e.out, json);
            json_object_set_new(all, key, json);
        }
        fabric_free(f);
        same(&e, all, row[i].name);
    }
}

/* One of each kind of parallelism, in nodes and beyond, and none. */
static void workloads(void **state)
{
    static const char text[] =
        "device = \"%s\";\n"
        "model = { layers = 8; d_model = 1024; d_ff = 4096; heads = 16; vocabulary = 32000; gated "
        "= %s; %s };\n"
        "training = { sequence = 2048; batch_tokens = 1048576; %s utilisation = 0.4; };\n"
        "parallel = { tp = %u; dp = %u; pp = %u; ep = %u; zero = %u; microbatches = 4; %s };\n";
    static const struct {
        const char *device, *gated, *model, *training;
        unsigned tp, dp, pp, ep, zero;
        const char *parallel;
    } row[] = {
        {"h100", "true",
         "experts = 8; experts_per_token = 2; shared_experts = 1; dense_layers = 2;",
         "tokens = 1e12;", 2, 2, 2, 4, 3, ""},
        {"h100", "false",
         "experts = 16; experts_per_token = 4; nodes_per_token = 1; expert_d_ff = 512;",
         "type = \"fp8\"; wire = \"bf16\";", 1, 8, 1, 8, 1, ""},
        {"a100", "true", "kv_heads = 4; tied = true;", "wire = \"fp32\";", 8, 1, 1, 1, 0, ""},
        {"b200", "false", "", "type = \"fp4\";", 1, 2, 4, 1, 2, ""},
        {"h200", "false", "", "", 1, 1, 1, 1, 0, ""},
        {"h100", "false", "", "", 2, 2, 2, 1, 0, "order = [ \"pp\", \"tp\", \"dp\" ];"},
    };
    struct fabric *f = load_file(REPORT "gpus.conf");
    struct cost_levels l;
    char name[32], conf[1024];

    (void)state;
    cost_levels(f, &l);
    for (unsigned i = 0; i < LEN(row); i++) {
        struct fab_errors errs;
        json_t *json = json_object();
        struct workload w;
        struct expected e;

        snprintf(conf, sizeof(conf), text, row[i].device, row[i].gated, row[i].model,
                 row[i].training, row[i].tp, row[i].dp, row[i].pp, row[i].ep, row[i].zero,
                 row[i].parallel);
        if (workload_load_string(&w, conf, "small.conf", &errs))
            fab_errors_print(&errs, stderr);
        assert_int_equal(errs.total, 0);
        model_print_workload(&w, &l, expected_begin(&e), json);
        model_print_workload(&w, &l, e.out, NULL);
        snprintf(name, sizeof(name), "workload-%u", i);
        same(&e, json, name);
    }
    fabric_free(f);
}

static void presets(void **state)
{
    static const char *const row[][2] = {{"llama3-70b", "h100-superpod-4096"},
                                         {"deepseek-v3", "h100-superpod-2048"},
                                         {"megatron-16b", "h100-superpod-1024"}};

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        struct cost_levels l = levels_of(row[i][1]);
        struct workload w = workload_of(row[i][0]);
        json_t *json = json_object();
        struct expected e;

        model_print_workload(&w, &l, expected_begin(&e), json);
        same(&e, json, row[i][0]);
    }
}

static void bills(void **state)
{
    static const struct {
        const char *device;
        uint64_t gpus;
    } row[] = {{"h100", 1}, {"h100", 9}, {"h100", 4096}, {"gb200", 73}, {"tpu-v5p", 100000000}};
    json_t *all = json_object();
    struct expected e;

    (void)state;
    expected_begin(&e);
    for (unsigned i = 0; i < LEN(row); i++) {
        struct bom b = bom_of(row[i].gpus, device(row[i].device));
        json_t *json = json_object();
        char key[32];

        model_print_bom(&b, device(row[i].device), e.out, json);
        model_print_bom(&b, device(row[i].device), e.out, NULL);
        snprintf(key, sizeof(key), "bill %u", i);
        json_object_set_new(all, key, json);
    }
    same(&e, all, "bills");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fabrics),
        cmocka_unit_test(workloads),
        cmocka_unit_test(presets),
        cmocka_unit_test(bills),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
