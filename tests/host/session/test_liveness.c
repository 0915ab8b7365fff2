/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a process is there, by its number and its start; and exchanges in pieces. */
#include "host/session/liveness.h"
#include "host/session/oob.h"
#include "host/session/store.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void a_process_sees_itself(void **state)
{
    struct process_id me = liveness_self(), other;
    struct stat st;

    (void)state;
    assert_int_equal(me.pid, getpid());
    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    assert_true(me.space == st.st_ino);
    assert_true(me.start > 0);
    assert_true(liveness_sees(&me));
    assert_false(liveness_ended(&me));
    other = me, other.space++; /* of another namespace */
    assert_false(liveness_sees(&other));
    other = me, other.space = 0;
    assert_false(liveness_sees(&other));
    other = me, other.start = 0;
    assert_false(liveness_sees(&other));
    other = me, other.start++; /* an earlier one of that number */
    assert_false(liveness_sees(&other));
    assert_true(liveness_ended(&other));
}

/* One that is left as a zombie has ended, too. */
static void a_process_that_has_ended_is_gone(void **state)
{
    struct process_id child;
    int p[2], q[2];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(p), 0);
    assert_int_equal(pipe(q), 0);
    pid = fork();
    if (!pid) {
        char c;

        child = liveness_self();
        (void)!write(p[1], &child, sizeof(child));
        close(q[1]);
        (void)!read(q[0], &c, 1);
        _exit(0);
    }
    assert_int_equal(read(p[0], &child, sizeof(child)), sizeof(child));
    assert_int_equal(child.pid, pid);
    assert_true(liveness_sees(&child));
    assert_false(liveness_ended(&child));
    close(q[1]);
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){.si_pid = 0}, WEXITED | WNOWAIT), 0);
    assert_true(liveness_ended(&child));
    assert_false(liveness_sees(&child));
    waitpid(pid, NULL, 0);
    assert_true(liveness_ended(&child));
    close(p[0]), close(p[1]), close(q[0]);
}

/* ---- exchanges ---- */

struct calls {
    uint8_t sent[4096];
    size_t bytes[16], n;
    unsigned fails_at; /* the call, from 1 */
    unsigned gathers;
};

static int bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    struct calls *c = ctx;
    size_t at = 0;

    assert_int_equal(root, 0);
    for (size_t i = 0; i < c->n; i++)
        at += c->bytes[i];
    memcpy(c->sent + at, buf, bytes);
    c->bytes[c->n++] = bytes;
    return c->fails_at == c->n ? -EPROTO : 0;
}

static int gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    struct calls *c = ctx;

    assert_int_equal(root, 0);
    c->gathers++;
    for (unsigned r = 0; r < 3; r++)
        memcpy((char *)all + r * bytes, mine, bytes);
    return c->fails_at == 100 ? -EPROTO : 0;
}

static void exchanges_are_in_pieces(void **state)
{
    static const struct {
        size_t bytes; /* of each of three ranks */
        unsigned calls, fails_at;
        int rc;
        size_t last;
    } rows[] = {
        {1, 1, 0, 0, 3},        {170, 1, 0, 0, 510}, {171, 2, 0, 0, 1}, /* 513 */
        {512, 3, 0, 0, 512},    {600, 4, 0, 0, 264}, {600, 2, 2, -EIO, 512},
        {600, 0, 100, -EIO, 0}, {0, 0, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct calls c = {.fails_at = rows[i].fails_at};
        const struct trib_oob oob = {.ctx = &c, .size = 3, .bcast = bcast, .gather = gather};
        uint8_t mine[600], all[1800];

        for (unsigned k = 0; k < sizeof(mine); k++)
            mine[k] = (uint8_t)(k * 7);
        assert_int_equal(oob_all_gather(&oob, mine, all, rows[i].bytes), rows[i].rc);
        assert_int_equal(c.gathers, 1);
        assert_int_equal(c.n, rows[i].calls);
        if (c.n)
            assert_int_equal(c.bytes[c.n - 1], rows[i].last);
        if (!rows[i].rc)
            assert_memory_equal(c.sent, all, 3 * rows[i].bytes);
    }
}

/* ---- stores ---- */

static unsigned closed;

static void close_store(struct trib_store *s)
{
    assert_true(s->magic == 0); /* nobody closes it twice */
    closed++;
}

static void only_open_stores_are_used(void **state)
{
    struct trib_store s = {.magic = STORE_MAGIC, .oob = {.ctx = &closed}, .close = close_store};
    struct trib_oob oob = {.ctx = &s};

    (void)state;
    trib_store_oob(&s, &oob);
    assert_ptr_equal(oob.ctx, &closed);
    trib_store_oob(&s, NULL);
    trib_store_close(&s);
    assert_int_equal(closed, 1);
    trib_store_close(&s);
    trib_store_close(NULL);
    assert_int_equal(closed, 1);
    trib_store_oob(&s, &oob);
    assert_null(oob.ctx);
    oob.ctx = &s;
    trib_store_oob(NULL, &oob);
    assert_null(oob.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_sees_itself),
        cmocka_unit_test(a_process_that_has_ended_is_gone),
        cmocka_unit_test(exchanges_are_in_pieces),
        cmocka_unit_test(only_open_stores_are_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
