/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether memory can be registered: by the kernel's query of one mapping, by the text of all of them where it has none,
 * and blind where no file can be opened. And what is prefetched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/hca/io/process_priv.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define P    4096u
#define FULL (40u << 20) /* more than what is looked at in one call */

/* ---- the ways of the machine ---- */

enum way { BY_QUERY, BY_TEXT, BLIND, WAYS };
static const char *const way_name[] = {"query", "text", "blind"};
static enum way way;

/* An older kernel has no such request. */
int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    void *arg;

    va_start(ap, request);
    arg = va_arg(ap, void *);
    va_end(ap);
    if (way == BY_TEXT && (request & 0xff00) == 'f' << 8) {
        errno = ENOTTY;
        return -1;
    }
    return (int)syscall(SYS_ioctl, fd, request, arg);
}

static int check(const void *at, size_t bytes, bool write)
{
    struct rlimit was, none;
    int rc;

    getrlimit(RLIMIT_NOFILE, &was);
    none = (struct rlimit){0, was.rlim_max};
    if (way == BLIND)
        setrlimit(RLIMIT_NOFILE, &none);
    rc = process_check_memory(NULL, at, bytes, write);
    setrlimit(RLIMIT_NOFILE, &was);
    return rc;
}

/* ---- what can be registered ---- */

/* Pages: none, read, write, both, both of a mapping of its own, a hole, both, none, both. */
static uint8_t *map_all(void)
{
    static const int rights[] = {PROT_NONE, PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE};
    uint8_t *m = mmap(NULL, 9 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(m, MAP_FAILED);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(mprotect(m + i * P, P, rights[i]), 0);
    assert_ptr_equal(
        mmap(m + 4 * P, P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        m + 4 * P);
    assert_int_equal(munmap(m + 5 * P, P), 0);
    assert_int_equal(mprotect(m + 7 * P, P, PROT_NONE), 0);
    return m;
}

static void memory_is_there_with_its_rights_as_a_whole(void **state)
{
    static const struct {
        unsigned from, to; /* bytes */
        bool read, write;  /* can be registered for it */
        bool blind;        /* as far as it is known without files, for either */
    } rows[] = {
        {0, P, false, false, false},       /* nobody can read it */
        {P, 2 * P, true, false, true},     /* read */
        {P + 7, P + 8, true, false, true}, /* a byte of it */
        {2 * P, 3 * P, true, true, true},  /* write */
        {3 * P, 4 * P, true, true, true},  /* both */
        {4 * P, 5 * P, true, true, true},  /* of another mapping */
        {3 * P, 5 * P, true, true, true},  /* of two */
        {2 * P - 1, 2 * P + 1, true, false, true},
        {3 * P - 1, 5 * P, true, true, true},
        {P, 5 * P, true, false, true}, /* of all */
        {P - 1, P + 1, false, false, false},
        {3 * P, 5 * P + 1, false, false, false}, /* its last byte in a hole */
        {5 * P, 6 * P, false, false, false},
        {5 * P - 1, 5 * P, true, true, true},
        {6 * P, 6 * P + 1, true, true, true},
        {4 * P, 7 * P, false, false, false}, /* around a hole */
        {5 * P, 7 * P, false, false, false},
        {6 * P, 9 * P, false, false, true}, /* around what nobody can read */
        {8 * P, 9 * P, true, true, true},
    };
    uint8_t *m = map_all();

    (void)state;
    for (way = BY_QUERY; way < WAYS; way++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            for (int write = 0; write < 2; write++) {
                bool is = way == BLIND ? rows[i].blind : write ? rows[i].write : rows[i].read;
                int rc = check(m + rows[i].from, rows[i].to - rows[i].from, write);

                if (rc != (is ? 0 : -EFAULT))
                    fail_msg("row %zu to %s by %s: found %d", i, write ? "write" : "read",
                             way_name[way], rc);
            }
    way = BY_QUERY;
    munmap(m, 9 * P);
}

/* A file's pages beyond its end, before a mapping that is there. */
static void pages_beyond_the_end_of_a_file_are_not_there(void **state)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    uint8_t *m = mmap(NULL, 3 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_int_equal(ftruncate(fd, P), 0);
    assert_ptr_equal(mmap(m, 2 * P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), m);
    for (way = BY_QUERY; way < BLIND; way++) {
        assert_int_equal(check(m, P, true), 0);
        assert_int_equal(check(m, P + 1, true), -EFAULT);
        assert_int_equal(check(m, 3 * P, true), -EFAULT);
        assert_int_equal(check(m + 2 * P, P, true), 0);
    }
    way = BY_QUERY;
    munmap(m, 3 * P);
    close(fd);
}

static void large_memory_is_looked_at_as_a_whole(void **state)
{
    uint8_t *m = mmap(NULL, FULL, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const size_t first = 8192u * P; /* of the second look */

    (void)state;
    assert_ptr_not_equal(m, MAP_FAILED);
    way = BLIND;
    assert_int_equal(check(m, FULL, false), 0);
    assert_int_equal(check(m + 1, FULL - 1, false), 0);
    assert_int_equal(munmap(m + first, P), 0);
    assert_int_equal(check(m, FULL, false), -EFAULT);
    assert_int_equal(check(m, first, false), 0);
    assert_int_equal(check(m + first - 1, 2 * P, false), -EFAULT);
    way = BY_QUERY;
    munmap(m, FULL);
}

/* ---- what is prefetched ---- */

static bool can_prefetch(void)
{
    uint8_t *m = mmap(NULL, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool can = !madvise(m, P, MADV_POPULATE_READ);

    munmap(m, P);
    return can;
}

static void pages_are_fetched_whole(void **state)
{
    unsigned char there[5];
    uint8_t *m;

    (void)state;
    if (!can_prefetch())
        skip();
    for (int write = 0; write < 2; write++) {
        m = mmap(NULL, 5 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_int_equal(madvise(m, 5 * P, MADV_NOHUGEPAGE), 0);
        assert_int_equal(process_prefetch(NULL, m + P + 100, 2 * P, write), 0);
        assert_int_equal(mincore(m, 5 * P, there), 0);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(there[i] & 1, i >= 1 && i <= 3);
        munmap(m, 5 * P);
    }
}

static void what_cannot_be_fetched_is_refused(void **state)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    uint8_t *m = map_all();

    (void)state;
    if (!can_prefetch())
        skip();
    assert_int_equal(process_prefetch(NULL, m + P, P, false), 0);
    assert_int_equal(process_prefetch(NULL, m + P, P, true), 0); /* rights are another's to check */
    assert_int_equal(process_prefetch(NULL, m + 4 * P, 2 * P, false), -EFAULT);
    assert_int_equal(process_prefetch(NULL, m + 3 * P, 2 * P, true), 0);
    assert_int_equal(ftruncate(fd, P), 0);
    assert_ptr_equal(mmap(m, 2 * P, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), m);
    assert_int_equal(process_prefetch(NULL, m, P, false), 0);
    assert_int_equal(process_prefetch(NULL, m, 2 * P, false), -EFAULT);
    munmap(m, 9 * P);
    close(fd);
}

#define TEST(t) cmocka_unit_test(t)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(memory_is_there_with_its_rights_as_a_whole),
        TEST(pages_beyond_the_end_of_a_file_are_not_there),
        TEST(large_memory_is_looked_at_as_a_whole),
        TEST(pages_are_fetched_whole),
        TEST(what_cannot_be_fetched_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
