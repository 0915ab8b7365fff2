/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVLS by hand: 8 GPUs of a node with NVSwitch planes of 5, 4, 4 and 5 links reduce a vector in
 * place by loads of their shares and multicast stores of the results, over verbs, in virtual time.
 */
#include "tests/host/coll/nvls_fixture.h"

/* ---- the collective ---- */

static struct mmc_step chunk(const struct end *e, uint64_t i, bool store)
{
    struct fixture *g = e->g;
    uint64_t off = e->off + i * CHUNK;

    return (struct mmc_step){
        .store = store,
        .what = {.off = off, .others = g->others, .op = (uint8_t)g->op, .dtype = (uint8_t)g->type},
        .local = g->buf[e->gpu] + off,
        .lkey = e->mr->lkey,
        .len = (uint32_t)RTE_MIN(CHUNK, e->off + e->len - off)};
}

/* F26 leaves the member's own data out of the load, and in memory: they are kept aside. */
static uint8_t *own[GPUS];

static void take_load(struct end *e, uint64_t i)
{
    struct mmc_step s = chunk(e, i, false);
    const void *in[2] = {s.local, own[e->gpu] ? own[e->gpu] + s.what.off : NULL};

    if (e->g->others && own[e->gpu])
        arith_kernel(e->g->op, e->g->type)(s.local, in, 2, s.len / dtype_size(e->g->type));
}

static void work(struct end *e)
{
    uint64_t done = mmc_done(e->m);

    for (; e->steps_seen < done; e->steps_seen++)
        if (e->order[e->steps_seen % sizeof(e->order)])
            e->stored++;
        else
            take_load(e, e->loaded++);
    for (;;) {
        uint64_t n = mmc_posted(e->m), stores = n - e->load_posted;
        bool load = e->load_posted < e->chunks && e->load_posted < stores + AHEAD;
        struct mmc_step s;

        if (!load && stores >= e->loaded)
            break;
        s = load ? chunk(e, e->load_posted, false) : chunk(e, stores, true);
        if (mmc_post(e->m, &s))
            break;
        e->order[n % sizeof(e->order)] = !load;
        e->load_posted += load;
    }
}

static bool has_stored(struct end *e)
{
    return e->stored == e->chunks;
}

static int64_t all_reduce(struct fixture *g)
{
    uint64_t share = g->bytes / GPUS;
    int64_t t0 = g->now;

    for (unsigned i = 0; i < GPUS; i++) {
        uint64_t off = i * share;

        for (unsigned p = 0, w = 0; p < PLANES; p++) {
            struct end *e = &g->e[i][p];
            uint64_t to;

            w += weight[p];
            to = i * share + share / 8 * w / LINKS * 8;
            if (p == PLANES - 1)
                to = (i + 1) * share;
            e->off = off, e->len = to - off, off = to;
            e->chunks = (e->len + CHUNK - 1) / CHUNK;
            e->loaded = e->stored = e->load_posted = 0;
            e->steps_seen = mmc_done(e->m);
            assert_int_equal(e->steps_seen, 0);
            e->awake = true;
        }
    }
    if (!run(g, has_stored, work, 10 * S))
        fail_msg("the all-reduce does not end");
    return g->now - t0;
}

static void exact(enum dtype t, enum redop op, bool others, const char *faults)
{
    size_t count = 300000, bytes = (count * dtype_size(t) + 63) / 64 * 64;
    const void *in[GPUS];
    uint64_t rng = 5;
    uint8_t *want = calloc(1, bytes);
    struct fixture g;

    fixture_open(&g, bytes, false, faults);
    g.type = t, g.op = op, g.others = others;
    for (unsigned i = 0; i < GPUS; i++) {
        ref_fill(t, g.buf[i], bytes / dtype_size(t), &rng);
        in[i] = own[i] = malloc(bytes);
        memcpy(own[i], g.buf[i], bytes);
    }
    ref_reduce(op, t, in, GPUS, bytes / dtype_size(t), want);
    all_reduce(&g);
    for (unsigned i = 0; i < GPUS; i++)
        if (memcmp(g.buf[i], want, bytes))
            fail_msg("GPU %u differs", i);
    fixture_close(&g);
    for (unsigned i = 0; i < GPUS; i++) {
        free(own[i]);
        own[i] = NULL;
    }
    free(want);
}

static void an_all_reduce_in_place_is_exact_in_both_windows(void **state)
{
    (void)state;
    exact(DT_FP32, OP_SUM, false, "");
    exact(DT_BF16, OP_SUM, false, "");
    exact(DT_INT32, OP_SUM, true, "");
}

static void an_all_reduce_over_bad_links_is_exact(void **state)
{
    (void)state;
    exact(DT_FP16, OP_MAX, false, "loss = 0.002; dup = 0.002;");
    exact(DT_INT32, OP_SUM, true, "loss = 0.002;");
}

static void the_planes_are_full_and_carry_what_f26_and_f27_say(void **state)
{
    uint64_t bytes = 72ull << 20;

    (void)state;
    for (unsigned others = 0; others < 2; others++) {
        uint64_t share = bytes / GPUS;
        double t, ideal;
        struct fixture g;

        fixture_open(&g, bytes, true, "");
        g.type = DT_BF16, g.others = others;
        t = (double)all_reduce(&g) * 1e-12;
        for (unsigned i = 0; i < GPUS; i++) {
            uint64_t up = 0, down = 0;

            for (unsigned p = 0; p < PLANES; p++) {
                unsigned l = g.f->nodes[g.f->hosts[i]].ports[p].link;
                bool a = g.f->links[l].a == g.f->hosts[i];

                up += g.wire[2 * l + !a];
                down += g.wire[2 * l + a];
            }
            /* F26: B (N - 1) / N + B / N; F27: (1 + 1 / N) B; both ways */
            assert_int_equal(up, others ? bytes : bytes + share);
            assert_int_equal(down, others ? bytes : bytes + share);
        }
        ideal = (double)(others ? bytes : bytes + share) / 450e9;
        print_message("%s: %.1f us, %.4f of what 450 GB/s of payload allow; algbw %.1f GB/s\n",
                      others ? "F26" : "F27", t * 1e6, ideal / t, (double)bytes / t / 1e9);
        assert_true(ideal / t > 0.94);
        for (uint16_t i = 0; i < g.f->n_nodes; i++)
            if (g.f->nodes[i].kind == FAB_SWITCH) {
                const struct roce_counters *c = an_roce_counters(net_an(g.net, i));

                assert_int_equal(c->retransmits + c->rnr_naks_sent + c->timeouts, 0);
            }
        fixture_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_all_reduce_in_place_is_exact_in_both_windows),
        cmocka_unit_test(an_all_reduce_over_bad_links_is_exact),
        cmocka_unit_test(the_planes_are_full_and_carry_what_f26_and_f27_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
