/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher with ranks that are plain functions: no fabric is needed to show that answers are
 * gathered, that a process that dies is named to all others, and that nothing hangs or is left
 * over.
 */
#include "system/process.h"
#include "host/launch/job_processes.h"
#include "machine/suspect.h"
#include "machine/shared.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define N 4

/* What children write for the test to see. */
static struct {
    char heard[N][MSG_TEXT];
    pid_t pid[N];
} * seen;

static struct fab_node nodes[N] = {{.name = "h0"}, {.name = "h1"}, {.name = "h2"}, {.name = "h3"}};
static uint16_t hosts[N] = {0, 1, 2, 3};
static struct fabric fab = {.n_nodes = N, .n_hosts = N, .nodes = nodes, .hosts = hosts};

static int64_t ms(void)
{
    return clock_mono_ns() / 1000000;
}

static int wait_msg(struct inbox *in, int fd, struct msg *m)
{
    for (;;) {
        int rc = msg_next(in, m);
        if (rc)
            return rc;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        poll(&p, 1, 1000);
        if ((rc = msg_fill(in, fd)) < 0)
            return rc;
    }
}

/* Answers every RUN with its rank; ends on QUIT, on ABORT with the text that it received. */
static int good_rank(int fd, unsigned rank)
{
    struct inbox in = {0};
    struct msg m;

    seen->pid[rank] = getpid();
    while (wait_msg(&in, fd, &m) > 0) {
        struct msg_done d = {.late_ns = rank, .wrong = 1};
        if (m.type == MSG_QUIT)
            return 0;
        if (m.type == MSG_ABORT) {
            snprintf(seen->heard[rank], MSG_TEXT, "%.*s", (int)m.len, (const char *)m.body);
            return 1;
        }
        msg_send(fd, MSG_DONE, &d, sizeof(d));
    }
    return 1;
}

static int rank_2_is_killed(int fd, unsigned rank)
{
    if (rank == 2) {
        usleep(50000);
        kill(getpid(), SIGKILL);
    }
    return good_rank(fd, rank);
}

static int rank_1_exits(int fd, unsigned rank)
{
    return rank == 1 ? 7 : good_rank(fd, rank);
}

/* The neighbour notices first and reports its broken connection. */
static int rank_2_is_killed_and_rank_1_notices(int fd, unsigned rank)
{
    static const char text[] = "connection lost";

    if (rank == 2) {
        usleep(150000);
        kill(getpid(), SIGKILL);
    }
    if (rank == 1)
        msg_send(fd, MSG_FAIL, text, sizeof(text));
    return good_rank(fd, rank);
}

/* Rank 1 waits for rank 0, which waits for rank 2. */
static int rank_2_is_stopped_and_rank_1_blames_rank_0(int fd, unsigned rank)
{
    static const char text[] = "rank 0 (h0): transport retry counter exceeded";

    if (rank == 2)
        kill(getpid(), SIGSTOP);
    if (rank == 1) {
        usleep(150000);
        msg_send(fd, MSG_FAIL, text, sizeof(text));
    }
    return good_rank(fd, rank);
}

static int rank_0_fails(int fd, unsigned rank)
{
    static const char text[] = "JOIN refused by leaf0: wrong key";

    if (rank == 0)
        msg_send(fd, MSG_FAIL, text, sizeof(text));
    return good_rank(fd, rank);
}

static int rank_3_is_deaf(int fd, unsigned rank)
{
    if (rank != 3)
        return good_rank(fd, rank);
    seen->pid[rank] = getpid();
    for (;;)
        pause();
}

static int talks_nonsense(int fd, unsigned rank)
{
    if (rank == 1)
        msg_send(fd, MSG_HELLO, "x", 1);
    return good_rank(fd, rank);
}

static struct job_processes *start(int (*fn)(int, unsigned))
{
    struct job_processes_cfg cfg = {&fab, NULL, N, hosts, NULL, NULL, fn};
    struct job_processes *j = NULL;

    memset(seen, 0, sizeof(*seen));
    assert_int_equal(job_launch(&j, &cfg), 0);
    return j;
}

static int add(void *ctx, unsigned rank, const struct msg *m)
{
    struct msg_done d;

    (void)rank;
    memcpy(&d, m->body, sizeof(d));
    *(int64_t *)ctx += d.late_ns;
    return 0;
}

static void no_child_is_left(void)
{
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* Runs until it fails; returns how long that took. */
static int64_t run_to_failure(struct job_processes *j, double limit)
{
    int64_t t0 = ms(), sum = 0;

    for (int i = 0; i < 1000; i++) {
        if (job_bcast(j, MSG_RUN, NULL, 0) || job_gather(j, MSG_DONE, limit, add, NULL, &sum))
            break;
        usleep(1000);
    }
    assert_int_not_equal(job_end(j), 0);
    no_child_is_left();
    return ms() - t0;
}

static void answers_of_all_ranks_are_gathered(void **state)
{
    struct job_processes *j = start(good_rank);

    (void)state;
    for (int i = 0; i < 100; i++) {
        int64_t sum = 0;
        assert_int_equal(job_bcast(j, MSG_RUN, NULL, 0), 0);
        assert_int_equal(job_gather(j, MSG_DONE, 10, add, NULL, &sum), 0);
        assert_int_equal(sum, 0 + 1 + 2 + 3);
    }
    assert_int_equal(job_end(j), 0);
    assert_string_equal(job_cause(j), "");
    no_child_is_left();
    job_free(j);
}

static void a_killed_rank_is_named_to_all_others(void **state)
{
    struct job_processes *j = start(rank_2_is_killed);
    char want[80];

    (void)state;
    pid_t pid = job_pid(j, 2);
    assert_true(run_to_failure(j, 10) < 3000);
    snprintf(want, sizeof(want), "rank 2 (h2, pid %d) was killed by signal 9", (int)pid);
    assert_ptr_equal(strstr(job_cause(j), want), job_cause(j));
    for (unsigned r = 0; r < N; r++)
        if (r != 2)
            assert_string_equal(seen->heard[r], job_cause(j));
    job_free(j);
}

static void a_death_outranks_the_complaint_of_a_neighbour(void **state)
{
    struct job_processes *j = start(rank_2_is_killed_and_rank_1_notices);

    (void)state;
    run_to_failure(j, 10);
    assert_non_null(strstr(job_cause(j), "rank 2 (h2"));
    assert_non_null(strstr(job_cause(j), "killed by signal 9"));
    job_free(j);
}

static void a_rank_that_is_stopped_is_named_beside_whoever_was_missed(void **state)
{
    struct job_processes *j = start(rank_2_is_stopped_and_rank_1_blames_rank_0);
    char want[80];

    (void)state;
    snprintf(want, sizeof(want), "rank 2 (h2, pid %d) is stopped", (int)job_pid(j, 2));
    assert_true(run_to_failure(j, 10) < 3000);
    assert_ptr_equal(strstr(job_cause(j), want), job_cause(j));
    assert_non_null(strstr(job_cause(j), "noticed first: rank 1 (h1"));
    for (unsigned r = 0; r < N; r++)
        if (r != 2)
            assert_string_equal(seen->heard[r], job_cause(j));
    job_free(j);
}

static void who_was_stopped_is_remembered_for_a_while(void **state)
{
    static const struct {
        int64_t stop, go, now;
        bool says, stuck;
    } rows[] = {
        {1000, 0, 1200, true, false},      {1000, 0, 17000, true, true},
        {1000, 1600, 3000, true, false},   {1000, 1020, 3000, false, false},
        {1000, 1600, 12000, false, false}, {0, 0, 12000, false, false},
    };
    char text[64];

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct suspect s = {0};

        suspect_note(&s, false, 500);
        if (rows[i].stop)
            suspect_note(&s, true, rows[i].stop);
        if (rows[i].stop)
            suspect_note(&s, true, rows[i].stop + 10); /* seen again */
        if (rows[i].go)
            suspect_note(&s, false, rows[i].go);
        assert_int_equal(suspect_says(&s, rows[i].now, text, sizeof(text)), rows[i].says);
        assert_int_equal(suspect_is_stuck(&s, rows[i].now), rows[i].stuck);
    }
    assert_false(process_is_stopped(getpid()));
}

static void a_complaint_alone_is_the_cause(void **state)
{
    struct job_processes *j = start(rank_0_fails);

    (void)state;
    assert_true(run_to_failure(j, 10) < 3000);
    assert_non_null(strstr(job_cause(j), "rank 0 (h0"));
    assert_non_null(strstr(job_cause(j), "JOIN refused by leaf0: wrong key"));
    assert_string_equal(seen->heard[3], job_cause(j));
    job_free(j);
}

static void an_early_exit_is_named_with_its_code(void **state)
{
    struct job_processes *j = start(rank_1_exits);

    (void)state;
    assert_true(run_to_failure(j, 10) < 3000);
    assert_non_null(strstr(job_cause(j), "rank 1 (h1"));
    assert_non_null(strstr(job_cause(j), "exit code 7"));
    job_free(j);
}

static void count(void *ctx)
{
    *(int64_t *)ctx += 1000;
}

static void a_bound_is_told_once_and_then_named(void **state)
{
    struct job_processes *j = start(rank_3_is_deaf);
    struct job_limits l = {
        .seconds = 0.5, .soft_s = 0.1, .soft = count, .bound = "row 7: too long"};
    int64_t t0 = ms(), sum = 0;

    (void)state;
    assert_int_equal(job_bcast(j, MSG_RUN, NULL, 0), 0);
    assert_int_equal(job_gather_within(j, MSG_DONE, &l, add, NULL, &sum), -ETIMEDOUT);
    assert_int_equal(sum / 1000, 1);
    assert_true(ms() - t0 >= 450 && ms() - t0 < 4000);
    assert_non_null(strstr(job_cause(j), "row 7: too long: no answer from rank 3"));
    assert_int_not_equal(job_end(j), 0);
    job_free(j);
    no_child_is_left();
}

static void a_stuck_rank_is_named_and_killed(void **state)
{
    struct job_processes *j = start(rank_3_is_deaf);

    (void)state;
    assert_true(run_to_failure(j, 0.5) < 9000);
    assert_non_null(strstr(job_cause(j), "no answer within"));
    assert_non_null(strstr(job_cause(j), "rank 3 (h3)"));
    assert_null(strstr(job_cause(j), "2 (h2)"));
    job_free(j);
}

static void a_message_out_of_turn_fails_the_job(void **state)
{
    struct job_processes *j = start(talks_nonsense);

    (void)state;
    assert_true(run_to_failure(j, 5) < 4000);
    assert_non_null(strstr(job_cause(j), "rank 1"));
    assert_non_null(strstr(job_cause(j), "unexpected message"));
    job_free(j);
}

static void an_interrupt_ends_all_ranks(void **state)
{
    struct job_processes *j = start(good_rank);

    (void)state;
    kill(getpid(), SIGINT);
    run_to_failure(j, 5);
    assert_true(job_interrupted(j));
    assert_non_null(strstr(seen->heard[0], "interrupted"));
    job_free(j);
}

/* Its exit code reports whether the command's arguments were right. */
static void a_rank_on_a_host_outside_is_started_by_the_command_that_reaches_it(void **state)
{
    struct job_processes_cfg cfg = {.fab = &fab, .nranks = N, .host_of_rank = hosts};
    struct job_processes *j = NULL;

    (void)state;
    cfg.rsh = "sh -c '[ \"$0 $1 $2\" = \"h2 trib-perf --remote-rank\" ] && exit 3; exit 4'";
    for (unsigned i = 0; i < N; i++)
        nodes[i].outside = i == 2;
    cfg.rank_main = good_rank;
    memset(seen, 0, sizeof(*seen));
    assert_int_equal(job_launch(&j, &cfg), 0);
    assert_int_equal(job_gather(j, MSG_DONE, 10, NULL, NULL, NULL), -ECANCELED);
    assert_non_null(strstr(job_cause(j), "rank 2 (h2, pid "));
    assert_non_null(strstr(job_cause(j), "ended with exit code 3"));
    assert_int_not_equal(job_end(j), 0);
    no_child_is_left();
    job_free(j);
    nodes[2].outside = false;
}

/* A launcher that is killed takes its ranks with it. */
static void ranks_die_with_their_launcher(void **state)
{
    (void)state;
    memset(seen, 0, sizeof(*seen));
    pid_t launcher = fork();
    if (!launcher) {
        struct job_processes_cfg cfg = {&fab, NULL, N, hosts, NULL, NULL, rank_3_is_deaf};
        struct job_processes *j;
        job_launch(&j, &cfg);
        job_gather(j, MSG_DONE, 30, NULL, NULL, NULL);
        _exit(0);
    }
    int64_t until = ms() + 5000;
    while (!(seen->pid[0] && seen->pid[1] && seen->pid[2] && seen->pid[3]) && ms() < until)
        usleep(1000);
    assert_int_not_equal(seen->pid[3], 0);
    kill(launcher, SIGKILL);
    waitpid(launcher, NULL, 0);
    for (unsigned r = 0; r < N; r++) {
        int rc;
        /* a zombie that init has not reaped yet still exists: read its state */
        char path[64], line[256] = "";
        do {
            snprintf(path, sizeof(path), "/proc/%d/stat", (int)seen->pid[r]);
            FILE *f = fopen(path, "r");
            rc = f != NULL && fgets(line, sizeof(line), f) && !strstr(line, ") Z");
            if (f)
                fclose(f);
            usleep(1000);
        } while (rc && ms() < until);
        assert_int_equal(rc, 0);
    }
}

static void long_messages_arrive_whole(void **state)
{
    struct inbox in = {0};
    struct msg m;
    int sv[2];
    size_t len = 200000;
    uint8_t *body = malloc(len);

    (void)state;
    for (size_t i = 0; i < len; i++)
        body[i] = (uint8_t)(i * 7);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    pid_t pid = fork();
    if (!pid)
        _exit(msg_send(sv[1], MSG_CONNECT, body, len) || msg_send(sv[1], MSG_QUIT, NULL, 0));
    close(sv[1]);
    assert_int_equal(wait_msg(&in, sv[0], &m), 1);
    assert_int_equal(m.len, len);
    assert_memory_equal(m.body, body, len);
    assert_int_equal(wait_msg(&in, sv[0], &m), 1);
    assert_int_equal(m.type, MSG_QUIT);
    assert_int_equal(wait_msg(&in, sv[0], &m), -EPIPE);
    waitpid(pid, NULL, 0);
    close(sv[0]);
    msg_free(&in);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_of_all_ranks_are_gathered),
        cmocka_unit_test(a_bound_is_told_once_and_then_named),
        cmocka_unit_test(a_killed_rank_is_named_to_all_others),
        cmocka_unit_test(a_death_outranks_the_complaint_of_a_neighbour),
        cmocka_unit_test(a_rank_that_is_stopped_is_named_beside_whoever_was_missed),
        cmocka_unit_test(who_was_stopped_is_remembered_for_a_while),
        cmocka_unit_test(a_complaint_alone_is_the_cause),
        cmocka_unit_test(an_early_exit_is_named_with_its_code),
        cmocka_unit_test(a_stuck_rank_is_named_and_killed),
        cmocka_unit_test(a_message_out_of_turn_fails_the_job),
        cmocka_unit_test(an_interrupt_ends_all_ranks),
        cmocka_unit_test(a_rank_on_a_host_outside_is_started_by_the_command_that_reaches_it),
        cmocka_unit_test(ranks_die_with_their_launcher),
        cmocka_unit_test(long_messages_arrive_whole),
    };
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
