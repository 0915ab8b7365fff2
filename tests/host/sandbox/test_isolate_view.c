/* SPDX-License-Identifier: BSD-3-Clause */
/* What an isolated program sees where the machine's own mounts, files and folders are not the usual ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/sandbox/terminal.h"
#include "tests/host/sandbox/isolated.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>

/* ---- inside ---- */

static int tell_flags(const char *run)
{
    static const char *const files[] = {"fabric.conf", "proc/leaf0.page", "proc/leaf1.page",
                                        "port/h7"};
    char path[300];
    struct statvfs st;

    for (unsigned i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s/%s", run, files[i]);
        if (statvfs(path, &st))
            printf("%s: %s\n", files[i], strerror(errno));
        else
            printf("%s:%s%s%s%s%s%s%s\n", files[i], st.f_flag & ST_RDONLY ? " read-only" : "",
                   st.f_flag & ST_NOSUID ? " nosuid" : "", st.f_flag & ST_NODEV ? " nodev" : "",
                   st.f_flag & ST_NOEXEC ? " noexec" : "", st.f_flag & ST_NOATIME ? " noatime" : "",
                   st.f_flag & ST_NODIRATIME ? " nodiratime" : "",
                   st.f_flag & ST_RELATIME ? " relatime" : "");
    }
    return 0;
}

static int tell_place(void)
{
    char cwd[300] = "?";

    (void)!getcwd(cwd, sizeof(cwd));
    printf("in %s\n", cwd);
    printf("shm: %s\n", access("/dev/shm", F_OK) ? strerror(errno) : "there");
    return 0;
}

static int tell_names(const char *dir)
{
    listed_dir(stdout, dir, "", NULL);
    return 0;
}

static int tell_ids(void)
{
    printf("%u %u\n", (unsigned)geteuid(), (unsigned)getegid());
    return 0;
}

static int inside(const char *what, const char *with)
{
    int rc = 1;

    if (!strcmp(what, "flags"))
        rc = tell_flags(with);
    if (!strcmp(what, "place"))
        rc = tell_place();
    if (!strcmp(what, "names"))
        rc = tell_names(with);
    if (!strcmp(what, "ids"))
        rc = tell_ids();
    fflush(stdout);
    return rc;
}

/* ---- mounts keep their restrictions ---- */

static void bind_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    world_need(bind(fd, (struct sockaddr *)&a, sizeof(a)), path);
}

static void flags_of(struct world *w, unsigned long flags)
{
    make_run(w, true);
    bind_socket("/tmp/run/proc/leaf1.page");
    world_need(mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_BIND | flags, NULL), "remount");
    fprintf(w->out, "%d\n", isolate(w, "flags", w->rd.path));
}

static void flags_of_strict(struct world *w)
{
    flags_of(w, MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME);
}

static void flags_of_lax(struct world *w)
{
    flags_of(w, MS_RELATIME);
}

static void files_are_read_only_beside_what_they_were(void **state)
{
    (void)state;
    ASSERT_WORLD(
        flags_of_strict, 0,
        "fabric.conf: read-only nosuid nodev noexec noatime nodiratime\n"
        "proc/leaf0.page: read-only nosuid nodev noexec noatime nodiratime\n"
        "proc/leaf1.page: nosuid nodev noexec noatime nodiratime\n" /* a socket is written to */
        "port/h7: nosuid nodev noexec noatime nodiratime\n0\n");
    ASSERT_WORLD(flags_of_lax, 0,
                 "fabric.conf: read-only relatime\n"
                 "proc/leaf0.page: read-only relatime\n"
                 "proc/leaf1.page: relatime\n"
                 "port/h7: relatime\n0\n");
}

/* ---- where it is ---- */

static void begin_in_a_covered_folder(struct world *w)
{
    char path[RUN_PATH];

    make_run(w, false);
    snprintf(path, sizeof(path), RUNS "/other", (unsigned)geteuid());
    world_need(chdir(path), path);
    fprintf(w->out, "%d\n", isolate(w, "place", ""));
}

static void begin_in_the_run_directory(struct world *w)
{
    make_run(w, true);
    world_need(chdir("/tmp/run/port"), "chdir");
    fprintf(w->out, "%d\n", isolate(w, "place", ""));
}

static void begin_without_shm(struct world *w)
{
    make_run(w, true);
    world_need(unlink("/dev/shm/mine") || rmdir("/dev/shm"), "rmdir");
    fprintf(w->out, "%d\n", isolate(w, "place", ""));
}

static void a_folder_that_is_hidden_is_left(void **state)
{
    (void)state;
    ASSERT_WORLD(begin_in_a_covered_folder, 0, "in /\nshm: there\n0\n");
    ASSERT_WORLD(begin_in_the_run_directory, 0, "in /tmp/run/port\nshm: there\n0\n");
    ASSERT_WORLD(begin_without_shm, 0, "in /tmp\nshm: No such file or directory\n0\n");
}

/* ---- folders of fabrics ---- */

/* A link in the place of the folder of all fabrics covers nothing of what it leads to. */
static void find_a_link_for_all(struct world *w)
{
    char path[RUN_PATH];

    make_run(w, true);
    snprintf(path, sizeof(path), RUNS, (unsigned)geteuid());
    listed_remove(path);
    world_dir("/tmp/others");
    world_text("/tmp/others/file", "x\n");
    world_link("/tmp/others", path);
    fprintf(w->out, "%d\n", isolate(w, "names", "/tmp/others"));
}

/* Where a user has no directory of run time, or the common one. */
static void have_no_run_time(struct world *w)
{
    char path[RUN_PATH];

    make_run(w, true);
    snprintf(path, sizeof(path), RUNS, (unsigned)geteuid());
    unsetenv("XDG_RUNTIME_DIR");
    fprintf(w->out, "%d\n", isolate(w, "names", path));
    setenv("XDG_RUNTIME_DIR", "", 1);
    fprintf(w->out, "%d\n", isolate(w, "names", path));
    setenv("XDG_RUNTIME_DIR", "/tmp", 1);
    fprintf(w->out, "%d\n", isolate(w, "names", path));
}

static void only_folders_of_fabrics_are_covered(void **state)
{
    (void)state;
    ASSERT_WORLD(find_a_link_for_all, 0, "file 644: x\n0\n");
    ASSERT_WORLD(have_no_run_time, 0, "0\n0\n0\n");
}

/* ---- sockets of pages ---- */

static void have_odd_names(struct world *w)
{
    make_run(w, true);
    world_text("/tmp/run/proc/page", "x\n"); /* without a dot */
    world_text("/tmp/run/proc/.page", "x\n");
    fprintf(w->out, "%d\n", isolate(w, "names", "/tmp/run/proc"));
}

static void have_a_link_to_sockets(struct world *w)
{
    make_run(w, true);
    listed_remove("/tmp/run/proc");
    world_dir("/tmp/elsewhere");
    world_text("/tmp/elsewhere/a.page", "x\n");
    world_link("/tmp/elsewhere", "/tmp/run/proc");
    fprintf(w->out, "%d\n", isolate(w, "names", "/tmp/run/proc"));
}

static void have_a_long_name(struct world *w, size_t length)
{
    char path[RUN_PATH + 64], name[RUN_PATH + 8];

    make_run(w, true);
    listed_remove("/tmp/run/proc");
    world_dir("/tmp/run/proc");
    memset(name, 'a', sizeof(name));
    strcpy(name + length - 5, ".page");
    snprintf(path, sizeof(path), "/tmp/run/proc/%s", name);
    world_text(path, "x\n");
    fprintf(w->out, "%d\n", isolate(w, "ids", ""));
}

static void have_the_longest_name(struct world *w)
{
    have_a_long_name(w, RUN_PATH - 9);
}

static void have_a_longer_name(struct world *w)
{
    have_a_long_name(w, RUN_PATH - 8);
}

static void only_sockets_of_pages_are_shown(void **state)
{
    char ids[32];

    (void)state;
    snprintf(ids, sizeof(ids), "%u %u\n0\n", (unsigned)geteuid(), (unsigned)getegid());
    ASSERT_WORLD(have_odd_names, 0, ".page 644: x\nleaf0.page 644: text\n0\n");
    ASSERT_WORLD(have_a_link_to_sockets, 0, "0\n");
    ASSERT_WORLD(have_the_longest_name, 0, ids);
    ASSERT_WORLD(have_a_longer_name, 0,
                 "trib: cannot isolate h7: the machine refuses /tmp/run: File name too long\n1\n");
}

/* ---- refused ---- */

static void have_no_ports(struct world *w)
{
    make_run(w, true);
    listed_remove("/tmp/run/port");
    world_text("/tmp/run/port", "");
    fprintf(w->out, "%d\n", isolate(w, "ids", ""));
}

/* So many descriptors more than are open may be opened. */
static void have_descriptors(struct world *w, unsigned more)
{
    int fd;

    make_run(w, true);
    fflush(w->out);
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fileno(w->out), 2);
        fd = open("/dev/null", O_RDWR);
        close(fd);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)fd + more, (rlim_t)fd + more});
        end_with(isolate_run(&w->rd, &w->host, w->lib, (char *[]){NULL}));
    }
    world_need(wait(NULL) < 0, "wait");
    fseek(w->out, 0, SEEK_END);
}

static void have_no_descriptor(struct world *w)
{
    have_descriptors(w, 0);
}

static void have_one_descriptor(struct world *w)
{
    have_descriptors(w, 1);
}

static void have_a_file_for(struct world *w, const char *dir)
{
    make_run(w, true);
    listed_remove(dir);
    world_text(dir, "");
    fprintf(w->out, "%d\n", isolate(w, "ids", ""));
}

static void have_a_file_for_shm(struct world *w)
{
    have_a_file_for(w, "/dev/shm");
}

static void have_a_file_for_pts(struct world *w)
{
    have_a_file_for(w, "/dev/pts");
}

/* A process has so many instructions of filters at most, its children's included. */
static void have_no_room_for_filters(struct world *w)
{
    int rc = 0;

    make_run(w, true);
    for (unsigned i = 0; i < 5000 && !rc; i++)
        rc = terminal_refuse_typing();
    fprintf(w->out, "%d\n", isolate(w, "ids", ""));
}

static void what_is_not_there_is_named(void **state)
{
    static const char no_more[] =
        "trib: cannot isolate h7: the machine refuses descriptors: Too many open files\n";

    (void)state;
    ASSERT_WORLD(have_no_ports, 0,
                 "trib: cannot isolate h7: the machine refuses /tmp/run: Not a directory\n1\n");
    ASSERT_WORLD(have_a_file_for_shm, 0,
                 "trib: cannot isolate h7: the machine refuses a /dev/shm of its own: Not a "
                 "directory\n1\n");
    ASSERT_WORLD(have_a_file_for_pts, 0,
                 "trib: cannot isolate h7: the machine refuses a /dev/pts of its own: Not a "
                 "directory\n1\n");
    ASSERT_WORLD(have_no_room_for_filters, 0,
                 "trib: cannot isolate h7: the machine refuses a filter of system calls: Cannot "
                 "allocate memory\n1\n");
    ASSERT_WORLD(have_no_descriptor, 0, no_more);
    ASSERT_WORLD(have_one_descriptor, 0, no_more);
}

#define TEST(t) cmocka_unit_test(t)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_read_only_beside_what_they_were),
        TEST(a_folder_that_is_hidden_is_left),
        TEST(only_folders_of_fabrics_are_covered),
        TEST(only_sockets_of_pages_are_shown),
        TEST(what_is_not_there_is_named),
    };

    if (argc > 3 && !strcmp(argv[1], "inside"))
        return inside(argv[2], argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
