/* SPDX-License-Identifier: BSD-3-Clause */
/* The claim on a run directory: one keeper at a time, the second of which is told who the first is. */
#include "host/session/store_secret.h"
#include "tests/host/keep/scratch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static char dir[96];

static struct claim new_claim(const char *name)
{
    snprintf(dir, sizeof(dir), "%s", at(name));
    return (struct claim){dir, -1, -1};
}

/* A child that claims the directory first; up: and marks it so. */
static pid_t claim_elsewhere(const char *name, bool up)
{
    struct claim c = new_claim(name);
    char ready;
    pid_t pid;
    int p[2];

    assert_int_equal(pipe(p), 0);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (claim_take(&c))
            _exit(1);
        if (up)
            claim_mark_up(&c);
        (void)!write(p[1], "x", 1);
        for (;;)
            pause();
    }
    close(p[1]);
    assert_int_equal(read(p[0], &ready, 1), 1);
    close(p[0]);
    return pid;
}

static void finish(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* This program again, as a process of the fabric in this directory. */
static pid_t start_switch(const char *run)
{
    char ready;
    pid_t pid;
    int p[2];

    assert_int_equal(pipe(p), 0);
    pid = fork();
    if (!pid) {
        dup2(p[1], 3);
        execl("/proc/self/exe", "trib-switch", "--run", run, (char *)NULL);
        _exit(1);
    }
    close(p[1]);
    assert_int_equal(read(p[0], &ready, 1), 1);
    close(p[0]);
    return pid;
}

static void be_switch(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)!write(3, "x", 1);
    for (;;)
        pause();
}

/* What a claim that is refused says. */
static void expect_refused(struct claim *c, const char *says)
{
    struct heard h = listen_to(stderr);
    int rc = claim_take(c);

    assert_string_equal(what_was_said(&h), says);
    assert_int_equal(rc, 1);
    claim_release(c);
}

static void a_claim_makes_the_directory_and_holds_it(void **state)
{
    struct claim c = new_claim("one/run");
    char text[8] = "";
    struct stat st;

    (void)state;
    assert_int_equal(claim_take(&c), 0);
    assert_true(c.dir >= 0 && c.lock >= 0);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_true(is_there("one/run/" KEEP_FILE));
    assert_int_equal(pread(c.lock, text, sizeof(text), 0), 0);
    claim_mark_up(&c);
    assert_int_equal(pread(c.lock, text, sizeof(text), 0), 3);
    assert_string_equal(text, "up\n");
    claim_release(&c);
    assert_int_equal(c.dir, -1);
    assert_int_equal(c.lock, -1);
    claim_release(&c);
    assert_true(is_there("one/run"));
}

static void a_second_claim_is_told_of_the_first(void **state)
{
    struct claim c;
    char says[512];
    pid_t pid = claim_elsewhere("two", false), runs;

    (void)state;
    c = new_claim("two");
    snprintf(says, sizeof(says),
             "trib: the fabric two is being started by another command (process %d, run directory "
             "%s)\n",
             (int)pid, dir);
    expect_refused(&c, says);
    finish(pid);
    assert_int_equal(claim_take(&c), 0); /* the lock has gone with its process */
    claim_release(&c);
    pid = claim_elsewhere("two", true);
    runs = start_switch(dir);
    snprintf(
        says, sizeof(says),
        "trib: the fabric two is up already (process %d keeps it, run directory %s); trib down "
        "stops it\n",
        (int)pid, dir);
    expect_refused(&c, says);
    finish(pid); /* a fabric runs on without its keeper */
    snprintf(says, sizeof(says),
             "trib: the fabric two is up already (process %d, run directory %s); trib down stops "
             "it\n",
             (int)runs, dir);
    expect_refused(&c, says);
    finish(runs);
    assert_int_equal(claim_take(&c), 0);
    claim_release(&c);
}

static void foreign_directories_are_refused(void **state)
{
    struct claim c = new_claim("foreign");
    char says[512];

    (void)state;
    put("foreign/letter", "");
    snprintf(says, sizeof(says),
             "trib: found files in %s that are no fabric's, expected TRIB_RUN to name an empty or "
             "new directory\n",
             dir);
    expect_refused(&c, says);
    c = new_claim("open");
    put("open", NULL);
    chmod(dir, 0777);
    struct heard h = listen_to(stderr);
    assert_int_equal(claim_take(&c), 1);
    snprintf(says, sizeof(says), "trib: cannot use the run directory %s: ", dir);
    const char *said = what_was_said(&h);
    assert_memory_equal(said, says, strlen(says));
    assert_non_null(strstr(said, "; XDG_RUNTIME_DIR or TRIB_RUN names another place\n"));
    claim_release(&c);
    put("plain", "");
    c = new_claim("plain/run");
    h = listen_to(stderr);
    assert_int_equal(claim_take(&c), 1);
    snprintf(says, sizeof(says), "trib: cannot make the run directory %s: ", dir);
    assert_memory_equal(what_was_said(&h), says, strlen(says));
    claim_release(&c);
    put("link", NULL);
    c = new_claim("link");
    assert_int_equal(symlink("/dev/null", at("link/" KEEP_FILE)), 0);
    h = listen_to(stderr);
    assert_int_equal(claim_take(&c), 1);
    snprintf(says, sizeof(says), "trib: cannot use %s/", dir);
    assert_memory_equal(what_was_said(&h), says, strlen(says));
    claim_release(&c);
}

/* ---- without a fabric ---- */

static void an_abandoned_claim_leaves_nothing_that_it_made(void **state)
{
    struct claim c = new_claim("tributary-1/empty");

    (void)state;
    assert_int_equal(claim_take(&c), 0);
    assert_int_equal(unlink(at("tributary-1/empty/" KEEP_FILE)), 0);
    claim_abandon(&c);
    assert_false(is_there("tributary-1"));
    assert_int_equal(c.lock, -1);
    c = new_claim("full");
    assert_int_equal(claim_take(&c), 0);
    put("full/letter", "");
    claim_abandon(&c);
    assert_true(is_there("full/letter"));
    claim_abandon(&c);
}

static void a_directory_that_nobody_holds_is_removed(void **state)
{
    pid_t pid;

    (void)state;
    put("left/proc/a.log", "");
    put("left/" KEEP_FILE, "up\n");
    assert_int_equal(claim_remove(at("left")), 0);
    assert_false(is_there("left"));
    assert_int_equal(claim_remove(at("left")), 0);
    pid = claim_elsewhere("held", false);
    assert_int_equal(claim_remove(at("held")), 0);
    assert_true(is_there("held"));
    assert_int_equal(claim_undo(at("held"), true), 0);
    assert_true(is_there("held"));
    finish(pid);
    put("open/" KEEP_FILE, "");
    chmod(at("open"), 0777);
    assert_int_equal(claim_remove(at("open")), -EPERM);
    assert_true(is_there("open"));
    put("odd", NULL);
    assert_int_equal(symlink("/dev/null", at("odd/" KEEP_FILE)), 0); /* which is no lock */
    assert_int_equal(claim_remove(at("odd")), 0);
    assert_false(is_there("odd"));
}

static void a_start_that_was_killed_is_undone(void **state)
{
    static const struct {
        bool claimed;
        const char *has;
        bool stays;
    } rows[] = {{true, "shared", false}, {false, "shared", true}, {false, NULL, false}};

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        char name[32];

        put("undo", NULL);
        if (rows[i].has) {
            snprintf(name, sizeof(name), "undo/%s", rows[i].has);
            put("undo/proc", NULL);
            put(name, "");
        }
        assert_int_equal(claim_undo(at("undo"), rows[i].claimed), 0);
        assert_int_equal(is_there("undo"), rows[i].stays);
        if (rows[i].stays)
            assert_int_equal(claim_remove(at("undo")), 0);
    }
}

/* ---- names ---- */

static void fabrics_have_the_name_of_their_directory(void **state)
{
    (void)state;
    assert_string_equal(fabric_name("/run/tributary-0/leaf"), "leaf");
    assert_string_equal(fabric_name("leaf"), "leaf");
    assert_string_equal(fabric_name("/a/"), "/a/");
    assert_string_equal(fabric_name("a/b"), "b");
}

static void users_have_names_or_numbers(void **state)
{
    (void)state;
    assert_string_equal(owner_name(0), "root");
    assert_string_equal(owner_name(3999999999u), "3999999999");
}

static void what_is_said_is_one_line(void **state)
{
    struct heard h = listen_to(stderr);
    int rc = say("%s %d", "number", 7);

    (void)state;
    assert_string_equal(what_was_said(&h), "trib: number 7\n");
    assert_int_equal(rc, 1);
}

/* ---- whose it is ---- */

static void directories_that_others_could_write_to_are_not_looked_into(void **state)
{
    struct heard h;
    char says[512];

    (void)state;
    put("whose", NULL);
    assert_int_equal(owner_check(at("whose")), 0);
    assert_int_equal(owner_check(at("absent")), 0);
    assert_int_equal(owner_become(at("whose")), 0);
    assert_false(owner_is_other(at("whose"), true, true));
    assert_false(owner_is_other(at("absent"), true, true));
    chmod(at("whose"), 0777);
    h = listen_to(stderr);
    assert_int_equal(owner_check(at("whose")), 1);
    snprintf(says, sizeof(says), "trib: cannot use the run directory %s: ", at("whose"));
    assert_memory_equal(what_was_said(&h), says, strlen(says));
}

/* As root alone, who may give a directory away. */
static void another_users_directory_is_named(void **state)
{
    struct heard h;
    char says[512];

    (void)state;
    put("theirs", NULL);
    if (chown(at("theirs"), 54321, 54321))
        skip();
    h = listen_to(stderr);
    assert_int_equal(owner_check(at("theirs")), 4);
    assert_false(owner_is_other(at("theirs"), false, true));
    assert_string_equal(what_was_said(&h), "");
    h = listen_to(stderr);
    assert_true(owner_is_other(at("theirs"), true, true));
    snprintf(says, sizeof(says),
             "trib: the fabric of run directory %s is user 54321's, and user root cannot use it\n",
             at("theirs"));
    assert_string_equal(what_was_said(&h), says);
}

/* ---- ports ---- */

static void hosts_of_a_process_that_has_ended_are_down(void **state)
{
    int fd;

    (void)state;
    put("ports/proc/leaf.ready", "pid 7\nnodes h0 h1 s0\n");
    put("ports/port/h0/0.0.sock", "");
    put("ports/port/h0/1.0.sock", "");
    put("ports/port/h0/2.1.sock", ""); /* a second process */
    put("ports/port/h0/.0.sock", "");
    put("ports/port/h0/3.0.sockets", "");
    put("ports/port/h2/0.0.sock", ""); /* of another process */
    fd = open(at("ports"), O_RDONLY | O_DIRECTORY);
    keep_lose_ports(fd, "leaf");
    assert_true(is_there("ports/port/h0/0.state/carrier"));
    assert_true(is_there("ports/port/h0/1.state/carrier"));
    assert_false(is_there("ports/port/h0/2.state"));
    assert_false(is_there("ports/port/h0/3.state"));
    assert_false(is_there("ports/port/h0/.state"));
    assert_false(is_there("ports/port/h2/0.state"));
    keep_lose_ports(fd, "nobody");
    assert_false(is_there("ports/port/h2/0.state"));
    close(fd);
    put("none", NULL);
    fd = open(at("none"), O_RDONLY | O_DIRECTORY);
    keep_lose_ports(fd, "leaf");
    close(fd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_makes_the_directory_and_holds_it),
        cmocka_unit_test(a_second_claim_is_told_of_the_first),
        cmocka_unit_test(foreign_directories_are_refused),
        cmocka_unit_test(an_abandoned_claim_leaves_nothing_that_it_made),
        cmocka_unit_test(a_directory_that_nobody_holds_is_removed),
        cmocka_unit_test(a_start_that_was_killed_is_undone),
        cmocka_unit_test(fabrics_have_the_name_of_their_directory),
        cmocka_unit_test(users_have_names_or_numbers),
        cmocka_unit_test(what_is_said_is_one_line),
        cmocka_unit_test(directories_that_others_could_write_to_are_not_looked_into),
        cmocka_unit_test(another_users_directory_is_named),
        cmocka_unit_test(hosts_of_a_process_that_has_ended_are_down),
    };

    if (argc > 1 && !strcmp(argv[0], "trib-switch"))
        be_switch();
    return cmocka_run_group_tests(tests, scratch_make, scratch_drop);
}
