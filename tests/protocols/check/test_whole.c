/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole outputs of runs of drawn cases (tests/protocols/check/expected/): the case, how many packets there
 * were and of which kinds, what was found.
 */
#include "protocols/builtin.h"
#include "protocols/check/check_fabric.h"
#include "protocols/host/registry.h"
#include "tests/support/expected.h"

#include <inttypes.h>
#include <stdlib.h>

#define SEEDS 3u

static void print_case(const struct check_case *c, FILE *out)
{
    fprintf(out,
            "%s %" PRIu64 ": %u leaves, payload %u, window %u, buffers %u, %" PRIu64
            " b/s, %" PRId64 " ps, memory %zu;",
            property_name(c->property), c->seed, c->n_leafs, c->payload, c->window, c->buffers,
            c->rate_bps, c->latency_ps, c->memory);
    fprintf(out, " %u %u %u %u %u ppm, %" PRId64 " %" PRId64 " ps, rank %d dies at %" PRId64 "\n",
            c->loss, c->duplication, c->reordering, c->marks, c->hostile, c->jitter_ps, c->late_ps,
            c->dies, c->dies_ps);
    for (unsigned j = 0; j < c->n_jobs; j++) {
        fprintf(out, "  job at %" PRId64 ", leaves", c->job[j].start_ps);
        for (unsigned r = 0; r < c->job[j].nranks; r++)
            fprintf(out, " %u", c->job[j].leaf[r]);
        for (unsigned o = 0; o < c->job[j].n_ops; o++)
            fprintf(out, ", %" PRIu64 " of type %u by %u%s", c->job[j].op[o].count,
                    c->job[j].op[o].type, c->job[j].op[o].op,
                    c->job[j].op[o].in_place ? " in place" : "");
        fputc('\n', out);
    }
}

/* Of all packets, in their order. */
static uint64_t hash_of(const struct fabric_result *r)
{
    uint64_t h = 14695981039346656037u;

    for (uint64_t i = 0; i < r->packets; i++)
        h = (h ^ r->hash[i]) * 1099511628211u;
    return h;
}

static void print_run(const struct trib_protocol *p, enum property property, uint64_t seed,
                      FILE *out)
{
    volatile uint64_t progress = 0;
    int64_t key[TRIB_KEYS];
    struct fabric_result r;
    struct check_case c;

    proto_usual(p, key);
    assert_int_equal(case_draw(&c, p, key, property, seed), 0);
    print_case(&c, out);
    fabric_run(&c, p, NULL, &progress, &r);
    fprintf(out,
            "  %" PRIu64 " packets, %016" PRIx64 ", memory %" PRIu64 ", %u jobs, %u refused, %u "
            "leaked: %s\n",
            r.packets, hash_of(&r), r.memory_peak, r.jobs, r.refused, r.leaked,
            r.failed ? r.why : "right");
    assert_int_equal(progress, r.packets);
    free(r.hash);
}

static void runs_are_as_they_were(void **state)
{
    static const struct trib_protocol *const protocols[] = {&trib_switchml, &trib_ps};

    (void)state;
    for (unsigned n = 0; n < sizeof(protocols) / sizeof(protocols[0]); n++) {
        struct expected e;
        char path[96];

        expected_begin(&e);
        for (unsigned p = 0; p < PROPERTIES; p++)
            for (unsigned seed = 1; seed <= SEEDS && p != P_VERSIONS; seed++)
                print_run(protocols[n], p, seed, e.out);
        snprintf(path, sizeof(path), "tests/protocols/check/expected/%s", protocols[n]->name);
        expected_same(&e, path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_as_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
