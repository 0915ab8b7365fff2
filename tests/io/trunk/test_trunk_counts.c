/* SPDX-License-Identifier: BSD-3-Clause */
/* What links carry that other machines send into: who is asked, and how often; what is taken of the answers; and
 * what this machine answers, of its own processes. */
#include "tests/io/trunk/machines.h"

#include "machine/link_reader.h"
#include "tests/support/far_telemetry.h"

#include <sched.h>

#define LOOK_NS (1 * MS) /* between two looks at what has come */

static struct trunk *t;
static unsigned looks;
static void (*on_look)(void);

/* A pause of the trunk's lets time pass. */
int usleep(useconds_t us)
{
    still_ns += 1000ll * us;
    looks++;
    if (on_look)
        on_look();
    return 0;
}

static int begin(void **state)
{
    setup(state);
    t = w.t[0];
    for (unsigned i = 1; i < MACHINES; i++)
        t->peer[i].far = false;
    w.n_kept = 0;
    w.cut = true;
    looks = 0;
    on_look = NULL;
    still_ns = clock_mono_ns();
    return 0;
}

/* ---- answers of others ---- */

struct answer {
    struct trunk_counts c;
    struct trunk_count n[8];
} __attribute__((packed));

/* Of each direction of a list, which ends with 99, its number plus 1000. */
static void told(unsigned from, uint32_t number, const unsigned *directions, size_t cut_bytes)
{
    struct answer a = {.c = {htobe32(number)}};
    size_t n = 0;

    for (; directions[n] != 99; n++)
        a.n[n] = (struct trunk_count){htobe32(directions[n]), htobe64(1000 + directions[n])};
    counts_told(t, from, (const uint8_t *)&a, sizeof(a.c) + n * sizeof(a.n[0]) - cut_bytes);
}

/* Directions 2, 3, 7 and 8 are m1's to say, 4, 5, 9 and 10 m2's, the others ours. */
static void a_machine_speaks_for_what_its_nodes_send(void **state)
{
    static const unsigned own[] = {2, 3, 7, 8, 99}, more[] = {8, 12, 500, 0, 9, 99};
    uint64_t bytes;
    (void)state;

    t->counts.number = 5;
    told(1, 5, own, 0);
    for (unsigned d = 0; d < 12; d++) {
        bool m1 = d == 2 || d == 3 || d == 7 || d == 8;

        assert_int_equal(counts_of(t, d, &bytes), m1);
        assert_int_equal(bytes, m1 ? 1000 + d : 0);
        assert_int_equal(t->counts.as_of[d], m1 ? 5 : 0);
    }
    t->counts.bytes[8] = 0;
    told(1, 6, more, 0);
    assert_int_equal(t->counts.as_of[8], 6);
    assert_int_equal(t->counts.bytes[8], 1008);
    assert_int_equal(t->counts.as_of[9], 0); /* m2's */
    assert_int_equal(t->counts.as_of[0], 0);
    assert_false(counts_of(t, 8, &bytes)); /* it answers another question */
    assert_int_equal(bytes, 1008);
    told(2, 5, (const unsigned[]){4, 5, 99}, 1); /* half a pair says nothing */
    assert_int_equal(t->counts.as_of[4], 5);
    assert_int_equal(t->counts.as_of[5], 0);
}

/* Nothing crosses to a machine that is not there, which is known at once. */
static void who_is_gone_has_sent_nothing(void **state)
{
    uint64_t bytes;
    (void)state;

    t->counts.number = 5;
    told(1, 5, (const unsigned[]){2, 99}, 0);
    t->peer[1].far = true;
    assert_true(counts_of(t, 2, &bytes));
    assert_int_equal(bytes, 0);
    assert_true(counts_of(t, 3, &bytes));
    assert_false(counts_of(t, 0, &bytes));
}

/* ---- questions to others ---- */

static unsigned asked(unsigned machine)
{
    unsigned n = 0;

    deliver();
    for (unsigned i = 0; i < w.n_kept; i++) {
        struct trunk_counts c;

        if (w.kept[i].type != TRUNK_COUNT || w.kept[i].to != machine)
            continue;
        memcpy(&c, w.kept[i].m + sizeof(struct trunk_header), sizeof(c));
        assert_int_equal(be32toh(c.number), t->counts.number);
        n++;
    }
    return n;
}

/* Again each fifth of a second, for a second. */
static void who_does_not_answer_is_asked_again(void **state)
{
    const int64_t from = still_ns;
    (void)state;

    pthread_mutex_lock(&t->lock);
    counts_refresh(t);
    pthread_mutex_unlock(&t->lock);
    assert_int_equal(still_ns - from, S);
    assert_int_equal(looks, S / LOOK_NS);
    assert_int_equal(t->counts.number, 1);
    assert_int_equal(asked(1), 5);
    assert_int_equal(asked(2), 5);
    assert_int_equal(asked(0), 0);
}

static void all_have_answered(void)
{
    if (looks == 1)
        told(1, t->counts.number, (const unsigned[]){2, 3, 7, 8, 99}, 0);
    if (looks == 2)
        told(2, t->counts.number, (const unsigned[]){4, 5, 9, 99}, 0);
    if (looks == 4)
        told(2, t->counts.number, (const unsigned[]){10, 99}, 0);
}

static void the_last_answer_ends_the_wait(void **state)
{
    (void)state;
    on_look = all_have_answered;
    pthread_mutex_lock(&t->lock);
    counts_refresh(t);
    pthread_mutex_unlock(&t->lock);
    assert_int_equal(looks, 4);
    assert_int_equal(asked(1), 1);
}

static void nobody_waits_for_who_is_gone(void **state)
{
    (void)state;
    t->peer[1].far = t->peer[2].far = true;
    pthread_mutex_lock(&t->lock);
    counts_refresh(t);
    pthread_mutex_unlock(&t->lock);
    assert_int_equal(looks, 0);
    assert_int_equal(asked(1) + asked(2), 0);
}

/* ---- questions of others ---- */

#define LINKS 200u

static struct far_telemetry process, stranger;
static unsigned answers; /* directions that the process answers, from 3 on */
static _Atomic unsigned stranger_asked;
static struct fabric big;

static void answer(void *ctx, const char *command, const char *what, char *text, size_t size)
{
    unsigned first = (unsigned)atoi(what), n = 0;
    size_t at = (size_t)snprintf(text, size, "[");

    (void)ctx, (void)command;
    for (unsigned d = 3; d < 3 + answers; d++)
        if (d >= first && n++ < LINK_READER_PAGE)
            at += (size_t)snprintf(text + at, size - at, "%s%u,%u", at > 1 ? "," : "", d, d * 7);
    snprintf(text + at, size - at, "]");
}

static void strangers_answer(void *ctx, const char *command, const char *what, char *text,
                             size_t size)
{
    (void)ctx, (void)command, (void)what;
    stranger_asked++;
    snprintf(text, size, "[0,1]");
}

/* A fabric with so many links, whose processes are those of m0 and m1. */
static int begin_big(void **state)
{
    begin(state);
    still_ns = 0;
    counts_destroy(t);
    big = *w.fab;
    big.n_links = LINKS;
    big.links = calloc(LINKS, sizeof(*big.links));
    t->fab = &big;
    assert_int_equal(counts_create(t), 0);
    assert_true(big.n_procs >= 2 && big.procs[0].machine == 0 && big.procs[1].machine == 1);
    process.answer = answer;
    stranger.answer = strangers_answer;
    strcpy(process.dir, w.rd.path);
    strcpy(stranger.dir, w.rd.path);
    far_telemetry_begin(&process, big.procs[0].name);
    far_telemetry_begin(&stranger, big.procs[1].name);
    stranger_asked = 0;
    return 0;
}

static int end_big(void **state)
{
    char rm[2 * RUN_PATH + 64];

    far_telemetry_end(&process);
    far_telemetry_end(&stranger);
    snprintf(rm, sizeof(rm), "rm -rf %s/dpdk %s/proc/*.ready", w.rd.path, w.rd.path);
    assert_int_equal(system(rm), 0);
    teardown(state);
    free(big.links);
    return 0;
}

/* m1 asks by this number; how many messages answer it, which say of `answers` directions in all. */
static unsigned answered(uint32_t number)
{
    struct trunk_counts c = {htobe32(number)};
    uint8_t m[TRUNK_MAX];
    unsigned messages = 0, next = 3;
    bool counts = true;
    ssize_t n;

    pthread_mutex_lock(&t->lock); /* as who hears it: the thread does not end before it is known */
    counts_asked(t, 1, (const uint8_t *)&c);
    pthread_mutex_unlock(&t->lock);
    while (counts) {
        pthread_mutex_lock(&t->lock);
        counts = t->counts.counts;
        pthread_mutex_unlock(&t->lock);
        sched_yield();
    }
    for (; (n = recv(w.wire[1], m, sizeof(m), MSG_DONTWAIT)) > 0; messages++) {
        struct trunk_header *h = (struct trunk_header *)m;
        struct trunk_count p;

        assert_int_equal(h->type, TRUNK_COUNTS);
        memcpy(&c, trunk_body(m), sizeof(c));
        assert_int_equal(be32toh(c.number), number);
        for (size_t at = sizeof(*h) + sizeof(c); at < (size_t)n; at += sizeof(p)) {
            memcpy(&p, m + at, sizeof(p));
            assert_int_equal(be32toh(p.direction), next);
            assert_int_equal(be64toh(p.bytes), 7 * next++);
        }
    }
    assert_int_equal(next, 3 + answers);
    return messages;
}

/* In as many messages as it takes, of 256 directions each; what no process says is left out. */
static void a_machine_asks_its_own_processes(void **state)
{
    static const struct {
        unsigned answers, messages;
    } rows[] = {{0, 0}, {1, 1}, {255, 1}, {256, 1}, {257, 2}, {397, 2}};
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        answers = rows[i].answers;
        assert_int_equal(answered(40 + i), rows[i].messages);
        assert_int_equal(t->counts.asker, 1);
    }
    assert_int_equal(stranger_asked, 0);
}

/* While it counts it takes no other question, nor while clocks are not agreed on. */
static void it_counts_for_one_at_a_time(void **state)
{
    struct trunk_counts c = {htobe32(9)};
    struct shared *sh = t->sh;
    (void)state;

    t->counts.counts = true;
    counts_asked(t, 2, (const uint8_t *)&c);
    assert_int_equal(t->counts.asked, 0);
    t->counts.counts = false;
    t->sh = NULL;
    counts_asked(t, 2, (const uint8_t *)&c);
    assert_int_equal(t->counts.asked, 0);
    assert_false(t->counts.begun);
    t->sh = sh;
    answers = 5;
    assert_int_equal(answered(9), 1);
    assert_true(t->counts.begun);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, teardown)
#define BIG(f)  cmocka_unit_test_setup_teardown(f, begin_big, end_big)
    const struct CMUnitTest tests[] = {
        CASE(a_machine_speaks_for_what_its_nodes_send),
        CASE(who_is_gone_has_sent_nothing),
        CASE(who_does_not_answer_is_asked_again),
        CASE(the_last_answer_ends_the_wait),
        CASE(nobody_waits_for_who_is_gone),
        BIG(a_machine_asks_its_own_processes),
        BIG(it_counts_for_one_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
