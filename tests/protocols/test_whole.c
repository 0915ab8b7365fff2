/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole outputs of the protocols that come with the program (tests/protocols/expected/): counters and
 * times of small runs, with and without faults; predictions, bounds, and what is supported.
 */
#include "protocols/builtin.h"
#include "tests/protocols/star_sum.h"
#include "tests/support/expected.h"

#include <inttypes.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct trib_protocol *const protocols[] = {&trib_switchml, &trib_ps, &trib_atp};

static void same(struct expected *e, const struct trib_protocol *p, const char *what)
{
    char path[96];

    snprintf(path, sizeof(path), "tests/protocols/expected/%s.%s", p->name, what);
    expected_same(e, path);
}

/* ---- runs ---- */

#define AT(l, r, n) .leaves = l, .ranks = r, .count = n

static const struct run {
    unsigned leaves, ranks;
    uint64_t count;
    uint32_t loss_ppm, repeat_ppm, delay_ppm, mark_ppm, garbage_ppm, buffers, window;
    struct {
        const char *key; /* of some protocols */
        int64_t value;
    } set[3];
} runs[] = {
    {AT(1, 1, 1000), .buffers = 64},
    {AT(1, 2, 1)},
    {AT(1, 4, 3000)},
    {AT(1, 8, 20000)},
    {AT(2, 3, 5000)},
    {AT(2, 8, 30000), .set = {{"servers", 1}}},
    {AT(2, 8, 30000), .set = {{"servers", 3}}},
    {AT(4, 8, 30000), .buffers = 256},
    {AT(4, 4, 30000), .window = 64},
    {AT(2, 6, 30000), .window = 16},
    {AT(2, 6, 30000), .window = 300},
    {AT(2, 6, 9000), .set = {{"packet", 100}}},
    {AT(2, 6, 9000), .set = {{"packet", 16384}}},
    {AT(2, 6, 9000), .set = {{"window", 1}}},
    {AT(2, 6, 9000), .set = {{"window", 5}, {"servers", 2}}},
    {AT(2, 6, 9000), .set = {{"slots", 2}}},
    {AT(1, 6, 30000), .set = {{"aggregators", 1}}},
    {AT(2, 6, 30000), .set = {{"aggregators", 16}, {"servers", 1}}},
    {AT(2, 6, 9000), .loss_ppm = 20000, .buffers = 8},
    {AT(2, 6, 9000), .loss_ppm = 200000},
    {AT(2, 6, 9000), .loss_ppm = 20000, .set = {{"timeout_us", 50}}},
    {AT(2, 6, 9000), .repeat_ppm = 100000},
    {AT(2, 6, 9000), .delay_ppm = 100000},
    {AT(2, 6, 60000), .mark_ppm = 20000},
    {AT(2, 6, 60000), .mark_ppm = 20000, .window = 64, .set = {{"servers", 2}}},
    {AT(2, 5, 9000), .garbage_ppm = 500000},
    {AT(3, 7, 20000), .loss_ppm = 20000, .repeat_ppm = 50000, .delay_ppm = 100000,
     .mark_ppm = 20000, .garbage_ppm = 100000, .buffers = 2, .set = {{"aggregators", 8}}},
};

static struct star_conf conf_of(const struct trib_protocol *p, const struct run *r)
{
    struct star_conf c = {.protocol = p,
                          .leaves = r->leaves,
                          .seed = 7,
                          .loss_ppm = r->loss_ppm,
                          .repeat_ppm = r->repeat_ppm,
                          .delay_ppm = r->delay_ppm,
                          .mark_ppm = r->mark_ppm,
                          .garbage_ppm = r->garbage_ppm,
                          .window = r->window,
                          .buffers = r->buffers};

    for (unsigned i = 0; i < LEN(r->set); i++) {
        c.key[i] = r->set[i].key;
        c.value[i] = r->set[i].value;
    }
    return c;
}

static void print_counters(const struct star *s, const char *const *names, FILE *out)
{
    for (; names && *names; names++)
        fprintf(out, " %s %" PRIu64, *names, star_counter(s, *names));
}

/* Two operations: of integers, and in place, of floats where they are bounded. */
static void print_run(const struct trib_protocol *p, const struct run *r, FILE *out)
{
    struct star_conf c = conf_of(p, r);
    struct star *s = star_new(&c);
    int job = star_job(s, r->ranks);

    fprintf(out, "%u leaves, %u ranks, %" PRIu64 " elements:", r->leaves, r->ranks, r->count);
    assert_true(job >= 0);
    star_sum(s, &c, job, r->ranks, r->count, TRIB_INT32, false);
    fprintf(out, " %" PRId64 " ps", star_took_ps(s, job));
    star_sum(s, &c, job, r->ranks, r->count, p->bound ? TRIB_FLOAT32 : TRIB_UINT32, true);
    fprintf(out, " %" PRId64 " ps, predicted %" PRId64 ", most to a rank %u,", star_took_ps(s, job),
            star_model_ps(s, job, r->count, TRIB_INT32), star_most_to_a_rank(s));
    if (p->sw)
        print_counters(s, p->sw->counters, out);
    fprintf(out, ";");
    print_counters(s, p->rank->counters, out);
    fprintf(out, "\n");
    star_job_end(s, job);
    assert_int_equal(star_slots_in_use(s), 0);
    assert_int_equal(star_free(s), 0);
}

static void runs_take_and_count_as_they_did(void **state)
{
    (void)state;
    for (unsigned p = 0; p < LEN(protocols); p++) {
        struct expected e;

        expected_begin(&e);
        for (unsigned i = 0; i < LEN(runs); i++) {
            star_random = 1;
            print_run(protocols[p], &runs[i], e.out);
        }
        same(&e, protocols[p], "runs");
    }
}

/* ---- predictions, of a fabric by rule ---- */

static int64_t up(const struct trib_model *m, uint32_t bytes)
{
    return m->levels * (1000000 + 80ll * bytes);
}

static int64_t down(const struct trib_model *m, uint32_t bytes)
{
    return m->levels * (1100000 + 80ll * bytes);
}

static int64_t across(const struct trib_model *m, uint32_t bytes)
{
    return (m->leaves > 1 ? 4 : 2) * (1050000 + 80ll * bytes);
}

static double busiest(const struct trib_model *m, unsigned servers, bool back, double *one)
{
    if (one)
        *one = servers % 2 ? 1 : 1.5;
    return (m->nranks - 1.0) * m->ranks_a_link + (back ? servers - 1.0 : 0);
}

static double between(const struct trib_model *m, unsigned servers, double packets)
{
    return (servers + 1) / 2 * (packets * m->leaves + 2);
}

static FILE *walks;

static int64_t walk(const struct trib_model *m, const struct trib_exchange *x)
{
    fprintf(walks, " [%" PRIu64 " blocks, %u servers, window %u, %u and %u bytes, %u aggregators]",
            (uint64_t)x->blocks, x->servers, x->window, x->bytes, x->last_bytes, x->aggregators);
    return m->count % 2 ? 123456789 : 0;
}

static int64_t every(const struct trib_model *m, uint32_t bytes)
{
    return bytes * 100ll + m->nranks;
}

struct place {
    uint32_t nranks, window, leaves, levels, ranks_a_link;
    const char *key;
    int64_t value;
    bool between, walk, notice;
};

static void print_model(const struct trib_protocol *p, const struct place *w, uint64_t count,
                        FILE *out)
{
    int64_t key[TRIB_KEYS] = {0};
    struct trib_model m = {.key = key,
                           .nranks = w->nranks,
                           .count = count,
                           .type = TRIB_INT32,
                           .payload = 2048,
                           .overhead = 106,
                           .rate_bps = 100000000000,
                           .ranks_a_link = w->ranks_a_link,
                           .levels = w->levels,
                           .leaves = w->leaves,
                           .window = w->window,
                           .up_ps = up,
                           .down_ps = down,
                           .across_ps = across,
                           .busiest = busiest,
                           .tree_bps = w->leaves > 1 ? 60000000000 : 0,
                           .between = w->between ? between : NULL,
                           .message_ps = 40000,
                           .exchange = w->walk ? walk : NULL,
                           .notice_ps = w->notice ? 700000 : 0,
                           .notice_every_ps = every};

    for (unsigned i = 0; p->keys[i].name; i++)
        key[i] = w->key && !strcmp(w->key, p->keys[i].name) ? w->value : p->keys[i].usual;
    walks = out;
    fprintf(out, " %" PRId64, p->model(&m));
    fprintf(out, " ±%u%%", p->within ? p->within(&m) : 0);
}

static void predictions_are_as_they_were(void **state)
{
    static const struct place places[] = {
        {1, 4096, 1, 1, 1, NULL, 0, false, false, false},
        {2, 4096, 1, 1, 1, NULL, 0, false, false, false},
        {2, 4096, 2, 2, 1, NULL, 0, true, true, false},
        {8, 4096, 1, 1, 1, NULL, 0, false, false, true},
        {8, 4096, 2, 2, 1, NULL, 0, false, false, false},
        {8, 4096, 2, 2, 1, NULL, 0, true, false, true},
        {8, 256, 2, 2, 2, NULL, 0, true, true, false},
        {8, 64, 4, 3, 1, "servers", 1, true, false, false},
        {8, 4096, 4, 3, 1, "servers", 3, false, false, true},
        {8, 4096, 8, 2, 1, "servers", 1, false, false, false},
        {16, 4096, 16, 2, 1, NULL, 0, true, false, false},
        {17, 4096, 4, 2, 1, NULL, 0, false, false, false},
        {64, 4096, 4, 2, 4, "servers", 5, false, false, true},
        {6, 4096, 2, 2, 1, "window", 9, false, false, false},
        {6, 4096, 2, 2, 1, "packet", 7, false, true, false},
        {6, 4096, 2, 2, 1, "aggregators", 3, false, true, false},
        {6, 4096, 2, 2, 1, "slots", 4, true, false, false},
    };
    static const uint64_t counts[] = {1, 2, 256, 257, 4000, 30001, 1000000};

    (void)state;
    for (unsigned p = 0; p < LEN(protocols); p++) {
        struct expected e;

        expected_begin(&e);
        for (unsigned i = 0; i < LEN(places); i++) {
            fprintf(e.out, "%u ranks, %u leaves:", places[i].nranks, places[i].leaves);
            for (unsigned c = 0; c < LEN(counts); c++)
                print_model(protocols[p], &places[i], counts[c], e.out);
            fprintf(e.out, "\n");
        }
        same(&e, protocols[p], "models");
    }
}

/* ---- types, and how far results may be off ---- */

static void types_and_bounds_are_as_they_were(void **state)
{
    (void)state;
    for (unsigned n = 0; n < LEN(protocols); n++) {
        const struct trib_protocol *p = protocols[n];
        int64_t key[TRIB_KEYS] = {0};
        struct expected e;

        expected_begin(&e);
        for (unsigned i = 0; p->keys[i].name; i++) {
            key[i] = p->keys[i].usual;
            fprintf(e.out, "%s: %s; %" PRId64 ", %" PRId64 " to %" PRId64 "\n", p->keys[i].name,
                    p->keys[i].about, p->keys[i].usual, p->keys[i].least, p->keys[i].most);
        }
        for (unsigned t = 0; t < TRIB_TYPES; t++)
            for (unsigned o = 0; o < TRIB_REDUCTIONS; o++)
                if (p->supports(t, o))
                    fprintf(e.out, "type %u, reduction %u:%s %a %a %a\n", t, o,
                            p->bound ? "" : " exact", p->bound ? p->bound(key, t, o, 4, 1) : 0,
                            p->bound ? p->bound(key, t, o, 5, 1000) : 0,
                            p->bound ? p->bound(key, t, o, 4, 0) : 0);
        same(&e, p, "types");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_take_and_count_as_they_did),
        cmocka_unit_test(predictions_are_as_they_were),
        cmocka_unit_test(types_and_bounds_are_as_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
