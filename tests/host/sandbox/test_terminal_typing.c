/* SPDX-License-Identifier: BSD-3-Clause */
/* An isolated program types into no terminal, by whichever of the kernel's interfaces it asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/two_terminals.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>

static int typing_is_refused(unsigned streams, int master, int slave)
{
    struct winsize size;
    char c = 'x';

    (void)streams;
    ioctl(slave, TIOCSCTTY, 0);
    NEED(!terminal_refuse_typing());
    NEED(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    NEED(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER);
    NEED(ioctl(slave, TIOCSTI, &c) < 0 && errno == EPERM);
    NEED(ioctl(slave, TIOCLINUX, &c) < 0 && errno == EPERM);
    NEED(ioctl(slave, TIOCSTI | 1UL << 32, &c) < 0 && errno == EPERM); /* the same to the kernel */
    NEED(!ioctl(slave, TIOCGWINSZ, &size) && size.ws_col == 80);
    NEED(ioctl(master, TIOCSTI + 0x80, &c) < 0 && errno != EPERM); /* another one */
    NEED(getppid() > 0);
    /* The same number where it is no request. */
    NEED(syscall(__NR_setsockopt, slave, TIOCSTI, 0, NULL, 0) < 0 && errno == ENOTSOCK);
    return 0;
}

static void typing_into_a_terminal_is_refused(void **state)
{
    (void)state;
    ASSERT_WITH(0, typing_is_refused);
}

/* A process has so many instructions of filters at most. */
static int filters_end(unsigned streams, int master, int slave)
{
    int rc = 0;

    (void)streams, (void)master, (void)slave;
    for (unsigned i = 0; i < 5000 && !rc; i++)
        rc = terminal_refuse_typing();
    NEED(rc == -ENOMEM);
    return 0;
}

static void a_filter_that_the_kernel_refuses_is_said(void **state)
{
    (void)state;
    ASSERT_WITH(0, filters_end);
}

#if defined(__x86_64__)

#define I386_LCHOWN 16 /* the number of ioctl in x86-64 */
#define I386_GETPID 20
#define I386_IOCTL  54 /* of setsockopt there */
#define X32         0x40000000
#define X32_IOCTL   (X32 | 514)

static long call_i386(long number, long a, long b, long c)
{
    long rc;

    __asm__ volatile("int $0x80"
                     : "=a"(rc)
                     : "a"(number), "b"(a), "c"(b), "d"(c)
                     : "memory", "cc", "r8", "r9", "r10", "r11");
    return rc;
}

static int typing_by_i386(unsigned streams, int master, int slave)
{
    (void)streams, (void)master;
    signal(SIGSEGV, SIG_DFL); /* of a kernel without that interface */
    NEED(call_i386(I386_GETPID, 0, 0, 0) == getpid());
    NEED(!terminal_refuse_typing());
    NEED(call_i386(I386_GETPID, 0, 0, 0) == getpid());
    NEED(call_i386(I386_IOCTL, slave, TIOCSTI, 0) == -EPERM);
    NEED(call_i386(I386_IOCTL, slave, TIOCLINUX, 0) == -EPERM);
    NEED(call_i386(I386_IOCTL, slave, TIOCGWINSZ, 0) == -EFAULT);
    NEED(call_i386(I386_LCHOWN, 0, TIOCSTI, 0) == -EFAULT);
    return 0;
}

static void typing_is_refused_to_programs_of_32_bits(void **state)
{
    int status = with_terminal(0, typing_by_i386);

    (void)state;
    if (status == 77 || status == 1000 + SIGSEGV)
        skip();
    assert_int_equal(status, 0);
}

/* If the kernel has no x32, a call that is let through ends with ENOSYS. */
static int typing_by_x32(unsigned streams, int master, int slave)
{
    char c = 'x';

    (void)streams, (void)master;
    NEED(!terminal_refuse_typing());
    NEED(syscall(X32_IOCTL, slave, TIOCSTI, &c) < 0 && errno == EPERM);
    NEED(syscall(X32_IOCTL, slave, TIOCLINUX, &c) < 0 && errno == EPERM);
    NEED(syscall(X32_IOCTL, slave, TIOCNXCL, &c) == 0 || errno == ENOSYS);
    return 0;
}

static void typing_is_refused_to_programs_of_x32(void **state)
{
    (void)state;
    ASSERT_WITH(0, typing_by_x32);
}

#endif

#define TEST(t) cmocka_unit_test(t)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(typing_into_a_terminal_is_refused),
        TEST(a_filter_that_the_kernel_refuses_is_said),
#if defined(__x86_64__)
        TEST(typing_is_refused_to_programs_of_32_bits),
        TEST(typing_is_refused_to_programs_of_x32),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
