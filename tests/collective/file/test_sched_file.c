/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules from files: the ring is the ring, the examples give the plain result in any order that
 * their dependencies allow, and whatever the verifier accepts of damaged ones does, too.
 */
#include "collective/file/sched_file.h"
#include "tests/collective/sched_row.h"

static struct fab_errors errs;

static struct sched_file *load(const char *name)
{
    char path[80];
    struct sched_file *f;

    snprintf(path, sizeof(path), "conf/schedules/%s.sched", name);
    f = sched_file_load(path, &errs);
    if (!f)
        fab_errors_print(&errs, stderr);
    assert_non_null(f);
    return f;
}

static const struct shape shapes[] = {{.trees = 0},
                                      {.domain = 8, .planes = 4},
                                      {.domain = 4, .planes = 4},
                                      {.domain = 2, .planes = 1, .deal = true}};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

static struct row row_of(const struct sched_file *f, unsigned shape, uint64_t count, bool in_place)
{
    return (struct row){.kind = f->kind,
                        .algo = ALGO_SCHEDULE,
                        .n = f->nranks,
                        .root = f->root,
                        .count = count,
                        .type = DT_INT32,
                        .op = OP_SUM,
                        .in_place = in_place,
                        .mtu = 256,
                        .shape = shapes[shape],
                        .file = f};
}

static bool is_same(const struct sched *a, const struct sched *b)
{
    if (a->n_lanes != b->n_lanes || a->tmp_bytes != b->tmp_bytes)
        return false;
    for (unsigned l = 0; l < a->n_lanes; l++) {
        const struct lane *x = &a->lane[l], *y = &b->lane[l];

        if (x->kind != y->kind || x->peer != y->peer || x->chan != y->chan || x->n != y->n ||
            x->deps != y->deps)
            return false;
        for (uint32_t i = 0; i < x->n; i++) {
            const struct step *s = lane_step(x, i), *t = lane_step(y, i);

            if (s->op != t->op || s->last != t->last || s->len != t->len ||
                memcmp(&s->a, &t->a, sizeof(s->a)) != 0 ||
                memcmp(&s->b, &t->b, sizeof(s->b)) != 0 ||
                memcmp(&s->dst, &t->dst, sizeof(s->dst)) != 0 || s->n_deps != t->n_deps ||
                memcmp(s->dep, t->dep, s->n_deps * sizeof(*s->dep)) != 0)
                return false;
        }
    }
    return true;
}

/* Step by step, so bytes and times are those of --algo ring on any fabric whose steps cost nothing
 * (docs/schedules.md). */
static void the_ring_is_the_ring(void **state)
{
    static const uint64_t counts[] = {1, 7, 64, 1009, 20011, 1u << 20};
    struct sched_file *f = load("ring-8");

    (void)state;
    for (unsigned i = 0; i < SHAPES; i++)
        for (unsigned c = 0; c < sizeof(counts) / sizeof(*counts); c++)
            for (unsigned place = 0; place < 2; place++)
                for (unsigned rank = 0; rank < 8; rank++) {
                    struct row w = row_of(f, i, counts[c], place);
                    struct sched_topo t = topo_of(&w);
                    struct sched_in in = in_of(&w, &t, rank);
                    struct sched a, b;

                    t.steps = false;
                    assert_int_equal(sched_init(&a, &in), 0);
                    in.algo = ALGO_RING;
                    assert_int_equal(sched_init(&b, &in), 0);
                    assert_true(is_same(&a, &b));
                    sched_free(&a);
                    sched_free(&b);
                }
    sched_file_free(f);
}

/* 0, or what run_row() says. */
static int run_all(const struct sched_file *f, unsigned seeds)
{
    static const uint64_t counts[] = {0, 1, 3, 8, 64, 1009, 4096};
    int rc = 0;

    for (unsigned k = 0; k < seeds && !rc; k++)
        for (unsigned c = 0; c < sizeof(counts) / sizeof(*counts) && !rc; c++)
            for (unsigned place = 0; place < 2 && !rc; place++) {
                struct row w = row_of(f, (k + c) % SHAPES, counts[c], place);

                w.staged = k % 4 > 1; /* for GPU memory */
                w.reached = k % 2;
                if (f->place[place])
                    rc = run_row(&w, 100 * k + c, &box);
            }
    return rc;
}

static void examples_give_the_plain_result(void **state)
{
    static const char *const names[] = {"ring-8", "allpairs-8", "bruck-8"};

    (void)state;
    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct sched_file *f = load(names[i]);

        assert_string_equal(f->name, names[i]);
        assert_int_equal(run_all(f, 8), 0);
        sched_file_free(f);
    }
}

/* Averages are divided once, by the step that completes the sum. */
static void averages_are_divided_once(void **state)
{
    static const char *const names[] = {"ring-8", "allpairs-8"};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct sched_file *f = load(names[i / 2]);
        struct row w = row_of(f, i, 1009, i % 2);

        w.op = OP_AVG;
        w.type = DT_FP64;
        assert_int_equal(run_row(&w, i, &box), 0);
        sched_file_free(f);
    }
}

/* ---- damaged files ---- */

static uint64_t rng;
static unsigned below(unsigned n)
{
    rng = rng * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)((rng >> 33) % n);
}

/* The beginning of some line of a step. */
static char *some_step(char *text)
{
    char *p;

    do {
        p = text + below((unsigned)strlen(text));
        while (p > text && p[-1] != '\n')
            p--;
    } while (*p < '0' || *p > '9');
    return p;
}

static void drop_after(char *text)
{
    char *p = some_step(text), *end = strchr(p, '\n'), *after = strstr(p, " after ");

    if (after && after < end)
        memset(after, ' ', (size_t)(end - after));
}

/* Another digit somewhere behind the operation's name: a chunk, a rank, a step. */
static void change_digit(char *text)
{
    char *p = strchr(some_step(text), ' ') + 1, *digit[16];
    unsigned n = 0;

    for (; *p != '\n' && n < 16; p++)
        if (*p >= '0' && *p <= '9')
            digit[n++] = p;
    if (n)
        *digit[below(n)] = (char)('0' + below(8));
}

/* Exchanges what two steps of a rank that follow each other do. */
static void swap_steps(char *text)
{
    char *a = strchr(some_step(text), ' ') + 1, *ae = strchr(a, '\n'), *b = ae + 1, *be, copy[200];

    if (*b < '0' || *b > '9')
        return;
    b = strchr(b, ' ') + 1;
    be = strchr(b, '\n');
    snprintf(copy, sizeof(copy), "%.*s%.*s%.*s", (int)(be - b), b, (int)(b - ae), ae, (int)(ae - a),
             a);
    memcpy(a, copy, (size_t)(be - a));
}

/* run_row() ends the test at a wrong element, a deadlock, or a message of another length. */
static void what_is_accepted_runs(void **state)
{
    static const char *const names[] = {"ring-8", "allpairs-8", "bruck-8"};
    unsigned accepted = 0, refused = 0;

    (void)state;
    for (unsigned k = 0; k < 900; k++) {
        struct sched_file *good = load(names[k % 3]), *f;
        char *text = strdup(good->text);

        rng = k;
        for (unsigned i = below(3) + 1; i; i--)
            switch (below(3)) {
            case 0:
                drop_after(text);
                break;
            case 1:
                change_digit(text);
                break;
            default:
                swap_steps(text);
            }
        f = sched_file_parse(text, "damaged", &errs);
        assert_true(f ? errs.n == 0 : errs.n > 0);
        if (f && strcmp(text, good->text) != 0) {
            accepted++;
            assert_int_equal(run_all(f, 2), 0);
        } else if (!f) {
            refused++;
        }
        sched_file_free(f);
        sched_file_free(good);
        free(text);
    }
    assert_true(accepted > 30 && refused > 300);
}

/* ---- steps that share no chunk ---- */

static const char pair[] = "schedule pair\ncollective all_gather\nranks 2\nchunks 1\n"
                           "rank 0\n0 copy in:0 out:0\n1 send 1 in:0%s\n2 recv 1 out:1\n"
                           "rank 1\n0 copy in:0 out:1\n1 send 0 in:0\n2 recv 0 out:0\n";

/* A step that is named is waited for, as a whole where there is no chunk in common. */
static void a_named_step_is_waited_for(void **state)
{
    (void)state;
    for (unsigned named = 0; named < 2; named++) {
        char text[400];
        struct sched_file *f;
        struct sched s;
        unsigned send;

        snprintf(text, sizeof(text), pair, named ? " after 0" : "");
        f = sched_file_parse(text, "pair", &errs);
        assert_non_null(f);
        struct row w = row_of(f, 0, 4096, false);
        struct sched_in in = in_of(&w, NULL, 0);

        assert_int_equal(sched_init(&s, &in), 0);
        assert_true(sched_has_lane(&s, LANE_SEND, 1, 0, &send));
        assert_int_equal(lane_step(&s.lane[send], 0)->n_deps, named);
        if (named)
            assert_int_equal(lane_step(&s.lane[send], 0)->dep[0].count, 8);
        sched_free(&s);
        assert_int_equal(run_all(f, 4), 0);
        sched_file_free(f);
    }
}

/* Rank 1's message to rank 0 comes at any time: it must not overwrite what is being sent. */
static const char twice[] = "schedule twice\ncollective all_gather\nranks 2\nchunks 1\nscratch 1\n"
                            "rank 0\n0 copy in:0 out:0\n1 copy in:0 scratch:0\n"
                            "2 send 1 scratch:0 after 1\n3 recv 1 scratch:0 after 2\n"
                            "4 copy scratch:0 out:1 after 3\n"
                            "rank 1\n0 copy in:0 out:1\n1 send 0 in:0\n2 recv 0 out:0\n";

/* The dependencies of rank 0's last receive from a rank. */
static unsigned waits_of_last(const struct sched_file *f, unsigned from)
{
    struct row w = row_of(f, 0, 4096, true);
    struct sched_in in = in_of(&w, NULL, 0);
    struct sched s;
    unsigned lane, n;

    assert_int_equal(sched_init(&s, &in), 0);
    assert_true(sched_has_lane(&s, LANE_RECV, from, 0, &lane));
    n = lane_step(&s.lane[lane], s.lane[lane].n - 1)->n_deps;
    sched_free(&s);
    return n;
}

/* Where the message's sender has waited for all that used the memory, the receive is posted at
 * once; else it waits for what it names. */
static void a_receive_waits_for_what_it_names(void **state)
{
    struct sched_file *f = sched_file_parse(twice, "twice", &errs);

    (void)state;
    assert_non_null(f);
    assert_true(waits_of_last(f, 1) > 0);
    assert_int_equal(run_all(f, 8), 0);
    sched_file_free(f);
    f = load("ring-8");
    assert_int_equal(waits_of_last(f, 7), 0);
    sched_file_free(f);
}

/* Everything that is not the file's own operation is refused, never run as something else. */
static void only_its_own_operation(void **state)
{
    struct sched_file *f = load("ring-8");
    struct row w = row_of(f, 0, 64, false);
    struct sched_in in = in_of(&w, NULL, 0);
    struct sched s;

    (void)state;
    in.nranks = 7;
    assert_int_equal(sched_init(&s, &in), -ENOTSUP);
    in.nranks = 8, in.kind = COLL_REDUCE;
    assert_int_equal(sched_init(&s, &in), -ENOTSUP);
    in.kind = COLL_ALLREDUCE, in.file = NULL;
    assert_int_equal(sched_init(&s, &in), -ENOTSUP);
    assert_false(sched_has(COLL_ALLREDUCE, ALGO_SCHEDULE));
    sched_file_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_is_the_ring),
        cmocka_unit_test(examples_give_the_plain_result),
        cmocka_unit_test(averages_are_divided_once),
        cmocka_unit_test(what_is_accepted_runs),
        cmocka_unit_test(a_named_step_is_waited_for),
        cmocka_unit_test(a_receive_waits_for_what_it_names),
        cmocka_unit_test(only_its_own_operation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
