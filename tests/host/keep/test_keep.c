/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start of a fabric, its life and its end, with processes that are this program again: each does what the
 * environment says under its name.
 */
#include "tests/host/keep/scratch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define WAIT_MS 20000 /* nothing takes as long */

static char program[96], dir[96];

/* ---- a trib-switch ---- */

static const char *value_of(char **argv, const char *option)
{
    for (; *argv; argv++)
        if (!strcmp(*argv, option) && argv[1])
            return argv[1];
    return "";
}

static int be_switch(char **argv)
{
    const char *name = value_of(argv, "--proc"), *does = getenv(name);
    char path[256];
    FILE *f;

    if (does && !strcmp(does, "fails")) {
        fputs("it is broken\n", stderr);
        return 3;
    }
    if (does && !strcmp(does, "is killed"))
        kill(getpid(), SIGKILL);
    snprintf(path, sizeof(path), "%s/proc/%s.ready", value_of(argv, "--run"), name);
    f = fopen(path, "w");
    for (char **a = argv + 1; f && *a; a++)
        fprintf(f, "%s\n", *a);
    if (f)
        fclose(f);
    for (;;)
        pause();
}

/* ---- commands that start a fabric ---- */

static char *procs[] = {(char *)(uintptr_t) "p0", (char *)(uintptr_t) "p1"};
static char said[4096];

/* Exit code of the command; what it says is kept. hold: the process that the fabric lives with ends when
 * this one closes it; -1: the fabric stays. */
static int start_with(char **opts, unsigned n_opts, int hold)
{
    char path[256], ready;
    FILE *f;
    int status, p[2];
    pid_t pid;

    snprintf(path, sizeof(path), "%s", at("said"));
    put("said", "");
    assert_int_equal(pipe(p), 0);
    pid = fork();
    if (!pid) { /* the parent of the command; whatever becomes of this test, nothing is left */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct keep_cfg cfg = {.dir = dir,
                               .conf = "x.conf",
                               .program = program,
                               .lives_with = hold >= 0,
                               .with = getpid(),
                               .n_procs = 2,
                               .n_opts = n_opts,
                               .procs = procs,
                               .opts = opts};
        pid_t command = fork();

        if (!command) {
            if (!freopen(path, "w", stderr))
                _exit(1);
            setvbuf(stderr, NULL, _IONBF, 0);
            _exit(keep_start(&cfg));
        }
        waitpid(command, &status, 0);
        if (hold >= 0) {
            (void)!write(p[1], "x", 1);
            (void)!read(hold, &ready, 1);
        }
        _exit(WEXITSTATUS(status));
    }
    close(p[1]);
    if (hold >= 0) {
        assert_int_equal(read(p[0], &ready, 1), 1);
        status = 0;
    } else {
        waitpid(pid, &status, 0);
    }
    close(p[0]);
    f = fopen(path, "r");
    said[fread(said, 1, sizeof(said) - 1, f)] = '\0';
    fclose(f);
    return WEXITSTATUS(status);
}

static int start(void)
{
    return start_with(NULL, 0, -1);
}

static void begin(const char *name)
{
    snprintf(dir, sizeof(dir), "%s", at(name));
    unsetenv("p0"), unsetenv("p1");
}

static bool appears(const char *name, bool there)
{
    for (int ms = 0; ms < WAIT_MS && is_there(name) != there; ms += 5)
        usleep(5000);
    return is_there(name) == there;
}

static const char *text_of(const char *name)
{
    static char text[512];
    FILE *f = fopen(at(name), "r");

    text[f ? fread(text, 1, sizeof(text) - 1, f) : 0] = '\0';
    if (f)
        fclose(f);
    return text;
}

/* The same once it has some. */
static const char *text_to_come(const char *name)
{
    for (int ms = 0; ms < WAIT_MS && !*text_of(name); ms += 5)
        usleep(5000);
    return text_of(name);
}

static pid_t pid_of(const char *name)
{
    struct procs p;
    pid_t pid = 0;

    assert_int_equal(procs_find(&p, dir, true), 0);
    for (unsigned i = 0; i < p.n; i++)
        if (!strcmp(p.at[i].name, name))
            pid = p.at[i].pid;
    procs_free(&p);
    return pid;
}

/* The process that holds the directory's lock. It runs this program, too, so its name does not
 * tell. */
static pid_t keeper(void)
{
    char path[128];
    pid_t pid = 0;
    int fd;

    snprintf(path, sizeof(path), "%s/" KEEP_FILE, dir);
    fd = open(path, O_RDONLY);
    if (fd >= 0) {
        pid = process_lock_holder(fd);
        close(fd);
    }
    return pid;
}

/* ---- tests ---- */

static void a_fabric_is_up_when_all_its_processes_are(void **state)
{
    static char *opts[] = {(char *)(uintptr_t) "--dilation", (char *)(uintptr_t) "7"};
    char expected[256];

    (void)state;
    begin("up");
    assert_int_equal(start_with(opts, 2, -1), 0);
    assert_string_equal(said, "");
    assert_string_equal(text_of("up/" KEEP_FILE), "up\n");
    snprintf(expected, sizeof(expected), "x.conf\n--proc\np1\n--run\n%s\n--dilation\n7\n", dir);
    assert_string_equal(text_of("up/proc/p1.ready"), expected);
    assert_true(is_there("up/dilation.fixed"));
    assert_true(is_there("up/proc/p0.log"));
    assert_true(pid_of("p0") > 0 && pid_of("p1") > 0 && keeper() > 0);
    assert_int_equal(start(), 1); /* once */
    assert_non_null(strstr(said, "trib: the fabric up is up already (process "));
    kill(keeper(), SIGTERM);
    assert_true(appears("up", false));
    assert_int_equal(pid_of("p0") + pid_of("p1"), 0);
}

/* The keeper says how, and goes with the last of them. */
static void a_process_that_ends_is_recorded(void **state)
{
    (void)state;
    begin("ended");
    assert_int_equal(start(), 0);
    assert_false(is_there("ended/dilation.fixed"));
    kill(pid_of("p1"), SIGKILL);
    assert_string_equal(text_to_come("ended/proc/p1.ended"), "killed by signal 9 (Killed)\n");
    assert_true(pid_of("p0") > 0 && keeper() > 0);
    kill(pid_of("p0"), SIGTERM);
    assert_true(appears("ended/" KEEP_FILE, false));
    assert_string_equal(text_to_come("ended/proc/p0.ended"), "killed by signal 15 (Terminated)\n");
    assert_true(is_there("ended/proc/p0.log")); /* for who wants to know */
}

static void a_start_that_fails_is_undone_and_says_why(void **state)
{
    static const struct {
        const char *does, *says;
    } rows[] = {
        {"fails",
         "trib: trib-switch p1 did not come up: it ended with exit code 3; it said:\nit is "
         "broken\n"},
        {"is killed",
         "trib: trib-switch p1 did not come up: it was killed by signal 9 (Killed); it "
         "said:\n(nothing)\n"},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        begin("failed");
        setenv("p1", rows[i].does, 1);
        assert_int_equal(start(), 1);
        assert_string_equal(said, rows[i].says);
        assert_true(appears("failed", false));
    }
    begin("failed");
    char was[sizeof(program)];
    strcpy(was, program);
    strcpy(program, "/nonexistent/trib-switch");
    assert_int_equal(start(), 1);
    strcpy(program, was);
    assert_non_null(strstr(said, " did not come up: it ended with exit code 127; it said:\ncannot "
                                 "run /nonexistent/trib-switch: No such file or directory\n"));
    assert_true(appears("failed", false));
}

static void a_fabric_ends_with_the_process_that_it_lives_with(void **state)
{
    int hold[2];

    (void)state;
    begin("lives");
    assert_int_equal(pipe(hold), 0);
    fcntl(hold[1], F_SETFD, FD_CLOEXEC);
    pid_t reader = fork(); /* so that no other process keeps the pipe open */

    if (!reader) {
        close(hold[1]);
        _exit(start_with(NULL, 0, hold[0]) || strcmp(said, "") ||
                      !is_there("lives/proc/p1.ready") || pid_of("p0") <= 0
                  ? 1
                  : 0); /* and with it the process that the fabric lives with */
    }
    int status;
    waitpid(reader, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 0);
    close(hold[0]), close(hold[1]);
    assert_true(appears("lives", false));
    assert_int_equal(pid_of("p0"), 0);
}

static void only_a_child_of_the_right_process_starts_a_fabric(void **state)
{
    const struct keep_cfg cfg = {.dir = dir, .with = getpid(), .n_procs = 2, .procs = procs};
    int status;
    pid_t pid;

    (void)state;
    begin("wrong");
    pid = fork();
    if (!pid) {
        pid_t command = fork();

        if (!command)
            _exit(keep_start(&cfg)); /* its parent is another */
        waitpid(command, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    waitpid(pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_false(is_there("wrong"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fabric_is_up_when_all_its_processes_are),
        cmocka_unit_test(a_process_that_ends_is_recorded),
        cmocka_unit_test(a_start_that_fails_is_undone_and_says_why),
        cmocka_unit_test(a_fabric_ends_with_the_process_that_it_lives_with),
        cmocka_unit_test(only_a_child_of_the_right_process_starts_a_fabric),
    };
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (argc > 2 && strstr(argv[0], "/trib-switch"))
        return be_switch(argv);
    if (n <= 0 || scratch_make(NULL))
        return 1;
    self[n] = '\0';
    snprintf(program, sizeof(program), "%s", at("trib-switch"));
    if (symlink(self, program))
        return 1;
    alarm(5 * WAIT_MS / 1000); /* a start that says nothing */
    n = cmocka_run_group_tests(tests, NULL, NULL);
    return scratch_drop(NULL) || n;
}
