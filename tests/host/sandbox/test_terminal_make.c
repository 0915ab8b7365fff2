/* SPDX-License-Identifier: BSD-3-Clause */
/* The pseudo-terminal that init makes inside: where it is mounted, what it is like, whose it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/sandbox/terminal.h"
#include "tests/host/sandbox/world.h"

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

static int master, slave; /* the user's */

/* ---- mounts ---- */

static void say_ptmx(struct world *w)
{
    struct stat st;

    if (stat("/dev/ptmx", &st))
        fprintf(w->out, "no ptmx\n");
    else
        fprintf(w->out, "ptmx is %s\n",
                S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 2) ? "bound" : "as it was");
}

static void mount_all(struct world *w)
{
    world_text("/dev/ptmx", "");
    fprintf(w->out, "%d\n", terminal_mounts());
    say_ptmx(w);
    fprintf(w->out, "%s\n", access("/dev/pts/ptmx", R_OK | W_OK) ? strerror(errno) : "mounted");
}

static void mount_without_ptmx(struct world *w)
{
    fprintf(w->out, "%d\n", terminal_mounts());
    say_ptmx(w);
}

static void mount_without_pts(struct world *w)
{
    world_need(rmdir("/dev/pts"), "rmdir");
    world_text("/dev/ptmx", "");
    fprintf(w->out, "%d\n", terminal_mounts());
    say_ptmx(w);
    fprintf(w->out, "%d\n", terminal_make(7));
}

static void mount_on_a_file(struct world *w)
{
    world_need(rmdir("/dev/pts"), "rmdir");
    world_text("/dev/pts", "");
    fprintf(w->out, "%d\n", terminal_mounts());
}

static void bind_on_a_folder(struct world *w)
{
    world_dir("/dev/ptmx");
    fprintf(w->out, "%d\n", terminal_mounts());
}

static void terminals_are_mounted_where_there_are_any(void **state)
{
    (void)state;
    ASSERT_WORLD(mount_all, 0, "0\nptmx is bound\nmounted\n");
    ASSERT_WORLD(mount_without_ptmx, 0, "0\nno ptmx\n");
    ASSERT_WORLD(mount_without_pts, 0, "0\nptmx is as it was\n-2\n");
    ASSERT_WORLD(mount_on_a_file, 0, "-20\n");
    ASSERT_WORLD(bind_on_a_folder, 0, "-20\n");
}

/* ---- one ---- */

static unsigned n_open(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void say_settings(struct world *w, int fd)
{
    struct winsize size = {0};
    struct termios t = {0};

    tcgetattr(fd, &t);
    ioctl(fd, TIOCGWINSZ, &size);
    fprintf(w->out, "erase %o, %s, %d rows of %d\n", t.c_cc[VERASE],
            t.c_oflag & OPOST ? "processed" : "as it is", size.ws_row, size.ws_col);
}

static void say_streams(struct world *w)
{
    struct stat user, st;

    fstat(slave, &user);
    for (int fd = 0; fd < 3; fd++)
        fprintf(w->out, "%d%s\n", fd,
                !isatty(fd) ? ""
                : fstat(fd, &st) || (st.st_dev == user.st_dev && st.st_rdev == user.st_rdev)
                    ? " is the user's"
                    : " is its own");
}

/* A session without a terminal whose streams are the user's. */
static void begin(unsigned streams)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    world_need(terminal_mounts(), "devpts");
    world_need(setsid() < 0, "setsid");
    for (int fd = 0; fd < 3; fd++)
        dup2(streams & 1u << fd ? slave : null, fd);
    close(null);
}

static void make_of(struct world *w, unsigned streams)
{
    unsigned before;
    int made;

    begin(streams);
    before = n_open();
    made = terminal_make(streams);
    fprintf(w->out, "%s, %u more, %s, %s\n", made < 0 ? strerror(-made) : "made", n_open() - before,
            fcntl(made, F_GETFD) == FD_CLOEXEC ? "ends with exec" : "stays",
            tcgetsid(made) == getpid() ? "ours" : "nobody's");
    say_streams(w);
    for (int fd = 0; fd < 3; fd++)
        if (isatty(fd)) {
            say_settings(w, fd);
            break;
        }
}

#define MAKE_OF(streams)                                                                           \
    static void make_of_##streams(struct world *w)                                                 \
    {                                                                                              \
        make_of(w, streams);                                                                       \
    }
MAKE_OF(1)
MAKE_OF(2)
MAKE_OF(3)
MAKE_OF(4)
MAKE_OF(7)

/* Without the keys output is processed once, by the user's. */
static void streams_at_the_users_are_at_its_own(void **state)
{
    (void)state;
    ASSERT_WORLD(make_of_7, 0,
                 "made, 1 more, ends with exec, ours\n"
                 "0 is its own\n1 is its own\n2 is its own\n"
                 "erase 7, processed, 33 rows of 91\n");
    ASSERT_WORLD(make_of_3, 0,
                 "made, 1 more, ends with exec, ours\n"
                 "0 is its own\n1 is its own\n2\n"
                 "erase 7, processed, 33 rows of 91\n");
    ASSERT_WORLD(make_of_1, 0,
                 "made, 1 more, ends with exec, ours\n"
                 "0 is its own\n1\n2\n"
                 "erase 7, as it is, 33 rows of 91\n");
    ASSERT_WORLD(make_of_2, 0,
                 "made, 1 more, ends with exec, ours\n"
                 "0\n1 is its own\n2\n"
                 "erase 7, as it is, 33 rows of 91\n");
    ASSERT_WORLD(make_of_4, 0,
                 "made, 1 more, ends with exec, ours\n"
                 "0\n1\n2 is its own\n"
                 "erase 7, as it is, 33 rows of 91\n");
}

/* A session has one. */
static void make_a_second(struct world *w)
{
    unsigned before;

    begin(3);
    fprintf(w->out, "%s\n", terminal_make(3) < 0 ? "refused" : "made");
    before = n_open();
    fprintf(w->out, "%d, ", terminal_make(3));
    fprintf(w->out, "%u more\n", n_open() - before);
}

static void what_is_refused_leaves_nothing_open(void **state)
{
    (void)state;
    ASSERT_WORLD(make_a_second, 0, "made\n-1, 0 more\n");
}

/* ---- descriptors ---- */

static void close_others(struct world *w)
{
    unsigned before = n_open();

    terminal_close_others(); /* of the user's pair */
    fprintf(w->out, "%u fewer, %s %s\n", before - n_open(),
            fcntl(master, F_GETFD) < 0 ? "closed" : "open",
            fcntl(slave, F_GETFD) < 0 ? "closed" : "open");
}

static void close_without_proc(struct world *w)
{
    unsigned before = n_open();

    world_tmpfs("/proc");
    terminal_close_others();
    fprintf(w->out, "%u fewer\n", before - n_open());
}

static void other_descriptors_are_closed_as_far_as_they_are_known(void **state)
{
    (void)state;
    ASSERT_WORLD(close_others, 0, "2 fewer, closed closed\n");
    ASSERT_WORLD(close_without_proc, 0, "0 fewer\n");
}

static int open_terminal(void **state)
{
    struct winsize size = {33, 91, 0, 0};
    struct termios t;

    (void)state;
    if (openpty(&master, &slave, NULL, NULL, &size) || tcgetattr(slave, &t))
        return -1;
    t.c_cc[VERASE] = 7;
    return tcsetattr(slave, TCSANOW, &t);
}

static int close_terminal(void **state)
{
    (void)state;
    close(master);
    close(slave);
    return 0;
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_terminal, close_terminal)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(terminals_are_mounted_where_there_are_any),
        TEST(streams_at_the_users_are_at_its_own),
        TEST(what_is_refused_leaves_nothing_open),
        TEST(other_descriptors_are_closed_as_far_as_they_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
