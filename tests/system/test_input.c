/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that users name: no FIFO, device or endless file is waited for; pipes with a writer are read. */
#include "system/input.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/input.XXXXXX";
static char path[64], why[INPUT_WHY];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "%s/x", mkdtemp(folder));
    return alarm(20) ? -1 : 0; /* what waits for ever ends the program */
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void put(const char *text, size_t n)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

    assert_int_equal(write(fd, text, n), n);
    close(fd);
}

static void a_file_is_read_whole(void **state)
{
    size_t n = 0, many = 300000;
    char *big = malloc(many), *text;

    (void)state;
    memset(big, 'x', many);
    put(big, many);
    text = input_text(path, many, &n, why);
    assert_int_equal(n, many);
    assert_memory_equal(text, big, many);
    assert_int_equal(text[n], 0);
    free(text);
    assert_null(input_text(path, many - 1, &n, why));
    assert_int_equal(errno, EFBIG);
    assert_string_equal(why, "more than 299999 bytes");
    put("a\0b", 3);
    text = input_file(path, 3, &n, why);
    assert_int_equal(n, 3);
    free(text);
    put("", 0);
    text = input_file(path, 3, &n, why);
    assert_int_equal(n, 0);
    free(text);
    free(big);
    unlink(path);
    assert_null(input_text(path, 9, &n, why));
    assert_int_equal(errno, ENOENT);
}

static void a_fifo_without_a_writer_is_refused(void **state)
{
    size_t n;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(input_text(path, 9, &n, why));
    assert_string_equal(why, "a FIFO to which nobody writes");
    assert_null(input_file(path, 9, &n, why));
    assert_int_equal(input_open(path), -EINVAL);
    assert_null(input_stream(path));
    unlink(path);
}

static void *writes_late(void *fds)
{
    int *fd = fds;

    usleep(100000);
    assert_int_equal(write(fd[1], "late", 4), 4);
    usleep(100000);
    assert_int_equal(write(fd[1], "r", 1), 1);
    close(fd[1]);
    return NULL;
}

static void a_pipe_is_read_until_its_writer_ends(void **state)
{
    char name[32], *text;
    pthread_t thread;
    size_t n;
    int fd[2];

    (void)state;
    assert_int_equal(pipe(fd), 0);
    snprintf(name, sizeof(name), "/dev/fd/%d", fd[0]);
    pthread_create(&thread, NULL, writes_late, fd);
    text = input_text(name, 9, &n, why);
    assert_non_null(text);
    assert_string_equal(text, "later");
    free(text);
    pthread_join(thread, NULL);
    close(fd[0]);
}

static void folders_and_endless_devices_are_refused(void **state)
{
    size_t n;

    (void)state;
    assert_null(input_text("/", 9, &n, why));
    assert_int_equal(errno, EISDIR);
    assert_int_equal(input_open("/"), -EISDIR);
    assert_null(input_text("/dev/zero", 1000, &n, why));
    assert_int_equal(errno, EFBIG);
    assert_null(input_file("/dev/null", 1000, &n, why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole),
        cmocka_unit_test(a_fifo_without_a_writer_is_refused),
        cmocka_unit_test(a_pipe_is_read_until_its_writer_ends),
        cmocka_unit_test(folders_and_endless_devices_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
