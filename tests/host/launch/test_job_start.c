/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks are started with: here, on hosts outside and on other machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/launch/job_processes_priv.h"
#include "machine/rundir.h"
#include "machine/token.h"
#include "tests/host/launch/started.h"
#include "tests/support/captured.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define N 3

static struct fab_node nodes[N] = {{.name = "h0"}, {.name = "h1"}, {.name = "h2"}};
static struct fab_proc procs[1] = {{.name = "sw"}};
static struct fab_machine machines[2] = {{.name = "north", .ip = 0x0a010203},
                                         {.name = "south", .ip = 0xc0a8fe01}};
static uint16_t hosts[N] = {0, 1, 2};
static struct fabric fab = {.name = "rim",
                            .n_nodes = N,
                            .n_hosts = N,
                            .nodes = nodes,
                            .hosts = hosts,
                            .procs = procs,
                            .n_procs = 1,
                            .machines = machines};

/* Once the rank has said a line; waits for it. */
static const char *line_of(struct job_processes *j, unsigned r)
{
    static char text[1024];
    size_t n = 0;
    struct pollfd p = {.fd = j->rank[r].fd, .events = POLLIN};

    while (n < sizeof(text) - 1 && poll(&p, 1, 20000) == 1 && read(p.fd, text + n, 1) == 1 &&
           text[n] != '\n')
        n++;
    text[n] = 0;
    return text;
}

static int exit_of(struct job_processes *j, unsigned r)
{
    int status;

    if (waitpid(j->rank[r].pid, &status, 0) != j->rank[r].pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void end(struct job_processes *j, unsigned r, const char *how)
{
    assert_int_equal(write(j->rank[r].fd, how, strlen(how)), strlen(how));
}

/* All have ended. */
static void drop(struct job_processes *j)
{
    for (unsigned r = 0; r < j->nranks; r++)
        j->rank[r].pid = 0;
    sigprocmask(SIG_SETMASK, &j->old_mask, NULL);
    job_free(j);
}

static struct job_processes *launch(struct job_processes_cfg cfg)
{
    struct job_processes *j = NULL;

    cfg.fab = &fab;
    cfg.host_of_rank = hosts;
    assert_int_equal(job_launch(&j, &cfg), 0);
    assert_string_equal(job_cause(j), "");
    return j;
}

/* ---- here ---- */

static void ranks_are_this_program_as_their_hosts(void **state)
{
    char expected[256];
    struct job_processes *j;

    (void)state;
    unsetenv("TRIB_RUN");
    unsetenv("LD_PRELOAD");
    j = launch((struct job_processes_cfg){.nranks = N});
    assert_true(fcntl(j->sigfd, F_GETFD) & FD_CLOEXEC && fcntl(j->sigfd, F_GETFL) & O_NONBLOCK);
    for (unsigned r = 0; r < N; r++) {
        assert_true(fcntl(j->rank[r].fd, F_GETFD) & FD_CLOEXEC);
        snprintf(expected, sizeof(expected),
                 "trib-perf 3 of h%u in none told 1 preload none token 0 death 9 ign ign dfl free, "
                 "0 open",
                 r);
        assert_string_equal(line_of(j, r), expected);
    }
    for (unsigned r = 0; r < N; r++) {
        end(j, r, "exit 4");
        assert_int_equal(exit_of(j, r), 4);
    }
    drop(j);
}

static void a_rank_of_a_host_by_number(void **state)
{
    static uint16_t turned[N] = {2, 0, 1};
    struct job_processes_cfg cfg = {.fab = &fab, .host_of_rank = turned, .nranks = 1};
    struct job_processes *j = NULL;

    (void)state;
    assert_int_equal(job_launch(&j, &cfg), 0);
    assert_non_null(strstr(line_of(j, 0), "3 of h2 in "));
    end(j, 0, "exit 0");
    assert_int_equal(exit_of(j, 0), 0);
    drop(j);
}

static void a_library_is_preloaded_or_refused(void **state)
{
    struct captured c;
    struct job_processes *j;

    (void)state;
    unsetenv("LD_PRELOAD");
    captured_begin(&c, stderr); /* the loader says that it is not there */
    j = launch((struct job_processes_cfg){.nranks = 1, .preload = "/nowhere/libx.so"});
    assert_non_null(strstr(line_of(j, 0), " preload /nowhere/libx.so token "));
    end(j, 0, "exit 0");
    exit_of(j, 0);
    drop(j);
    captured_end(&c);
    captured_begin(&c, stderr);
    j = launch((struct job_processes_cfg){.nranks = 1, .preload = "/no:where"});
    assert_string_equal(line_of(j, 0), "");
    assert_int_equal(exit_of(j, 0), 1);
    drop(j);
    assert_string_equal(captured_end(&c), "trib-perf: cannot preload /no:where, expected a path "
                                          "without colons\n");
}

/* ---- elsewhere ---- */

static const char say[] = "sh -c 'printf \"%s.\" \"$0\" \"$@\"; echo; exit 6'";

static void a_host_outside_is_reached_by_the_users_command(void **state)
{
    struct captured c;
    struct job_processes *j;

    (void)state;
    nodes[0].outside = true;
    j = launch((struct job_processes_cfg){.nranks = 2, .rsh = say});
    assert_string_equal(line_of(j, 0), "h0.trib-perf.--remote-rank.");
    assert_int_equal(exit_of(j, 0), 6);
    assert_non_null(strstr(line_of(j, 1), "of h1 in"));
    end(j, 1, "exit 0");
    exit_of(j, 1);
    drop(j);
    j = launch((struct job_processes_cfg){.nranks = 1,
                                          .rsh = "cat; : $TRIB_MACHINE"}); /* its own socket */
    end(j, 0, "hello\n");
    assert_string_equal(line_of(j, 0), "hello");
    shutdown(j->rank[0].fd, SHUT_WR);
    exit_of(j, 0);
    drop(j);
    captured_begin(&c, stderr);
    snprintf(nodes[0].name, sizeof(nodes[0].name), "h;0");
    j = launch((struct job_processes_cfg){.nranks = 1, .rsh = say});
    assert_string_equal(line_of(j, 0), "");
    assert_int_equal(exit_of(j, 0), 1);
    drop(j);
    assert_string_equal(captured_end(&c),
                        "trib-perf: found \"h;0\", expected letters, digits and / . _ + , : = - "
                        "alone in what another machine is told\n");
    nodes[0].outside = false;
    snprintf(nodes[0].name, sizeof(nodes[0].name), "h0");
}

static void names_are_plain_or_refused(void **state)
{
    static const struct {
        const char *name;
        bool plain;
    } rows[] = {{"a", true}, {"Az09/._+,:=-", true}, {"=a", false}, {"a=", true},
                {"", false}, {"a b", false},         {"a$", false}, {"*", false}};
    struct captured c;

    (void)state;
    nodes[0].outside = true;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job_processes *j;

        snprintf(nodes[0].name, sizeof(nodes[0].name), "%s", rows[i].name);
        captured_begin(&c, stderr);
        j = launch((struct job_processes_cfg){.nranks = 1, .rsh = say});
        if (exit_of(j, 0) != (rows[i].plain ? 6 : 1))
            fail_msg("%s", rows[i].name);
        drop(j);
        captured_end(&c);
    }
    nodes[0].outside = false;
    snprintf(nodes[0].name, sizeof(nodes[0].name), "h0");
}

/* ---- on other machines ---- */

/* A process of the fabric runs here, as far as its lock says. */
static pid_t hold_proc(const struct rundir *rd, int *hold)
{
    int told[2], held[2], fd;
    char c;
    pid_t pid;

    if (pipe(told) || pipe(held))
        abort();
    pid = fork();
    if (!pid) {
        close(held[1]);
        if (rundir_claim_proc(rd, "sw", &fd))
            _exit(1);
        (void)!write(told[1], "x", 1);
        (void)!read(held[0], &c, 1);
        _exit(0);
    }
    close(told[1]);
    close(held[0]);
    assert_int_equal(read(told[0], &c, 1), 1);
    close(told[0]);
    fcntl(held[1], F_SETFD, FD_CLOEXEC);
    *hold = held[1];
    return pid;
}

static void set_path(const char *first, const char *second)
{
    char path[8 * PATH_MAX];

    snprintf(path, sizeof(path), "%s%s%s:/usr/bin:/bin", first, *second ? ":" : "", second);
    setenv("PATH", path, 1);
}

static void of_machines(struct rundir *rd)
{
    char self[PATH_MAX] = "", link[2 * PATH_MAX], other[2 * PATH_MAX], expected[2 * PATH_MAX];
    struct job_processes_cfg cfg = {.nranks = 2, .rd = rd, .rsh = say};
    char was[4096];
    struct job_processes *j;

    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    snprintf(was, sizeof(was), "%s", getenv("PATH"));
    j = launch(cfg);
    snprintf(expected, sizeof(expected), "192.168.254.1.%s.--away-rank.rim.h1.", self);
    assert_string_equal(line_of(j, 1), expected);
    assert_int_equal(exit_of(j, 1), 6);
    assert_non_null(strstr(line_of(j, 0), rd->path)); /* its own: here, with its token */
    end(j, 0, "exit 0");
    exit_of(j, 0);
    assert_false(job_is_away(j, 0));
    assert_true(job_is_away(j, 1));
    drop(j);
    /* By its name where that is this program. */
    snprintf(link, sizeof(link), "%s/bin", rd->path);
    assert_int_equal(mkdir(link, 0755), 0);
    snprintf(other, sizeof(other), "%s/bin/trib-perf", rd->path);
    assert_int_equal(symlink(self, other), 0);
    set_path("/nowhere", link);
    cfg.rsh = "sh -c 'printf \"%s.\" \"$TRIB_MACHINE\" \"$0\" \"$@\"; echo; exit 6'";
    j = launch(cfg);
    assert_string_equal(line_of(j, 1), "south.trib-perf.--away-rank.rim.h1.");
    assert_int_equal(exit_of(j, 1), 6);
    end(j, 0, "exit 0");
    exit_of(j, 0);
    drop(j);
    /* Another one of that name is found first. */
    snprintf(other, sizeof(other), "%s/first", rd->path);
    assert_int_equal(mkdir(other, 0755), 0);
    set_path(other, link);
    snprintf(other, sizeof(other), "%s/first/trib-perf", rd->path);
    assert_int_equal(symlink("/bin/true", other), 0);
    cfg.rsh = say;
    j = launch(cfg);
    assert_string_equal(line_of(j, 1), expected);
    exit_of(j, 1);
    end(j, 0, "exit 0");
    exit_of(j, 0);
    drop(j);
    setenv("PATH", was, 1);
}

static void another_machine_is_told_what_to_run(void **state)
{
    struct rundir rd;
    char base[] = "/tmp/tribjob.XXXXXX", dir[64], cmd[128], token[TOKEN_BYTES];
    struct job_processes_cfg cfg = {.fab = &fab, .host_of_rank = hosts, .nranks = 2, .rd = &rd};
    struct captured c;
    struct job_processes *j = NULL;
    int hold;
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(base));
    snprintf(dir, sizeof(dir), "%s/run", base);
    captured_begin(&c, stderr);
    assert_int_equal(rundir_open(&rd, dir, NULL, true), 0);
    assert_int_equal(token_make(&rd, "h0", token), 0);
    /* No process runs here. */
    assert_int_equal(job_launch(&j, &cfg), -ECANCELED);
    snprintf(cmd, sizeof(cmd), "no trib-switch runs in %s", dir);
    assert_string_equal(job_cause(j), cmd);
    job_free(j);
    fab.n_machines = 2;
    nodes[1].machine = 1;
    assert_int_equal(rundir_set_machine(&rd, "north"), 0);
    assert_int_equal(job_launch(&j, &cfg), -ECANCELED);
    assert_string_equal(job_cause(j), "rank 1 is for host h1 of machine south, which is not there: "
                                      "expected trib up of the same conf on it");
    job_free(j);
    rundir_note_machine(&rd, "south", true);
    pid = hold_proc(&rd, &hold);
    of_machines(&rd);
    close(hold);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    captured_end(&c);
    fab.n_machines = 0;
    nodes[1].machine = 0;
    rundir_close(&rd);
    snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
    assert_int_equal(system(cmd), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_this_program_as_their_hosts),
        cmocka_unit_test(a_rank_of_a_host_by_number),
        cmocka_unit_test(a_library_is_preloaded_or_refused),
        cmocka_unit_test(a_host_outside_is_reached_by_the_users_command),
        cmocka_unit_test(names_are_plain_or_refused),
        cmocka_unit_test(another_machine_is_told_what_to_run),
    };

    if (started_is(argc, argv))
        return started_main(argc, argv);
    /* A library may come before a sanitizer's. */
    setenv("TRIB_HOST", "another", 1); /* what is inherited does not count */
    setenv("TRIB_DEATHS_TOLD", "0", 1);
    setenv("TRIB_MACHINE", "another", 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
    for (int fd = 3; fd < 256; fd++)
        close(fd); /* of whoever started this one */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
