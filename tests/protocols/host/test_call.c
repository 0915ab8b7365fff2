/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process says of the protocol that has ended it, and how it ends then. Each in a child. */
#include "protocols/host/call.h"
#include "tests/support/captured.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CODE 5 /* of a process that a protocol has ended by exit() */

static const struct {
    int sig;
    const char *name;
} fatal[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
             {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"}};
#define FATAL (sizeof(fatal) / sizeof(fatal[0]))

static struct captured said;

/* The status of a child that does so; what it says is in said.text. */
static int ended(void (*does)(void))
{
    const struct rlimit no_core = {0};
    int status;
    pid_t child;

    captured_begin(&said, stderr);
    child = fork();
    if (!child) {
        setrlimit(RLIMIT_CORE, &no_core);
        for (unsigned i = 0; i < FATAL; i++)
            signal(fatal[i].sig, SIG_DFL); /* a sanitizer's */
        does();
        _exit(99);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    captured_end(&said);
    return status;
}

static void assert_said(const char *what)
{
    char text[512] = "";

    if (*what)
        snprintf(text, sizeof(text), "%s: protocol %s\n", program_invocation_short_name, what);
    assert_string_equal(said.text, text);
}

static int sig;

static void raises_within(void)
{
    proto_name_ends(CODE);
    proto_enter("p", "packet()");
    raise(sig);
}

static void raises_between(void)
{
    proto_name_ends(CODE);
    proto_enter("p", "packet()");
    proto_leave();
    raise(sig);
}

static void raises_unnamed(void)
{
    proto_enter("p", "packet()");
    raise(sig);
}

static void a_signal_is_named_and_does_what_it_does(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FATAL; i++) {
        char text[64];
        int status;

        sig = fatal[i].sig;
        status = ended(raises_within);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == sig);
        snprintf(text, sizeof(text), "p: packet() ended by %s", fatal[i].name);
        assert_said(text);
        status = ended(raises_between);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == sig);
        assert_said("");
    }
    ended(raises_unnamed);
    assert_said("");
}

static void own_handler(int s)
{
    _exit(s == SIGTRAP ? 7 : 8);
}

static void raises_to_a_handler(void)
{
    signal(SIGTRAP, own_handler);
    raises_within();
}

/* A handler from before has its turn, once the protocol is named. */
static void a_handler_from_before_runs(void **state)
{
    int status;

    (void)state;
    sig = SIGTRAP;
    status = ended(raises_to_a_handler);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_said("p: packet() ended by SIGTRAP");
}

/* ---- exit() ---- */

static void exits_within(void)
{
    proto_name_ends(CODE);
    PROTO_CALL("p", "start()", exit(3));
}

static void exits_between(void)
{
    int done = 0;

    proto_name_ends(CODE);
    PROTO_CALL("p", "start()", done = 1);
    exit(done ? 3 : 4);
}

static void exit_is_named_and_has_a_code_of_its_own(void **state)
{
    int status = ended(exits_within);

    (void)state;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CODE);
    assert_said("p: start() called exit()");
    status = ended(exits_between);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_said("");
}

static void prints_and_exits_within(void)
{
    char buffer[256];

    setvbuf(stderr, buffer, _IOFBF, sizeof(buffer));
    fputs("whole", stderr);
    proto_name_ends(CODE);
    PROTO_CALL("p", "start()", exit(3));
}

/* What the process has written before is not lost. */
static void what_was_printed_is_written_out(void **state)
{
    (void)state;
    ended(prints_and_exits_within);
    assert_non_null(strstr(said.text, "\nwhole"));
}

/* ---- texts and stacks ---- */

static void has_a_long_name(void)
{
    static char name[400];

    memset(name, 'n', sizeof(name) - 1);
    proto_name_ends(CODE);
    proto_enter(name, "start()");
    raise(SIGABRT);
}

static void a_long_line_is_cut(void **state)
{
    (void)state;
    ended(has_a_long_name);
    assert_int_equal(strlen(said.text), 256);
    assert_string_equal(said.text + 253, "nn\n");
}

#define ENDS(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(__LINE__ % 90 + 1);                                                              \
    } while (0)

static stack_t stack_now(void)
{
    stack_t s;

    sigaltstack(NULL, &s);
    return s;
}

static void set_stack(void *at, size_t size)
{
    const stack_t s = {.ss_sp = at, .ss_size = size, .ss_flags = at ? 0 : SS_DISABLE};

    sigaltstack(&s, NULL);
}

/* Only once ends are named, and once a thread. */
static void gives_handlers_a_stack(void)
{
    set_stack(NULL, 0);
    proto_enter("p", "start()");
    ENDS(stack_now().ss_flags & SS_DISABLE);
    proto_name_ends(CODE);
    ENDS(stack_now().ss_flags & SS_DISABLE);
    proto_enter("p", "start()");
    ENDS(!(stack_now().ss_flags & SS_DISABLE) && stack_now().ss_size == 16384);
    set_stack(NULL, 0);
    proto_enter("p", "start()");
    ENDS(stack_now().ss_flags & SS_DISABLE);
    _exit(0);
}

static void leaves_another_stack(void)
{
    static char other[65536];

    set_stack(other, sizeof(other));
    proto_name_ends(CODE);
    proto_enter("p", "start()");
    ENDS(stack_now().ss_sp == other && stack_now().ss_size == sizeof(other));
    _exit(0);
}

static void handlers_get_a_stack_where_there_is_none(void **state)
{
    (void)state;
    assert_int_equal(ended(gives_handlers_a_stack), 0);
    assert_int_equal(ended(leaves_another_stack), 0);
}

/* Never tail-called: what it returns is added to. */
__attribute__((noinline)) static unsigned deep(const volatile char *above)
{
    volatile char here[4096];

    here[0] = *above;
    return here[0] ? 0 : 1 + deep(here);
}

static void fills_its_stack(void)
{
    const struct rlimit small = {1 << 20, 1 << 20};

    setrlimit(RLIMIT_STACK, &small);
    set_stack(NULL, 0);
    proto_name_ends(CODE);
    proto_enter("p", "timer()");
    _exit(deep("") & 1);
}

static void a_full_stack_is_named_too(void **state)
{
    int status = ended(fills_its_stack);

    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_said("p: timer() ended by SIGSEGV");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_named_and_does_what_it_does),
        cmocka_unit_test(a_handler_from_before_runs),
        cmocka_unit_test(exit_is_named_and_has_a_code_of_its_own),
        cmocka_unit_test(what_was_printed_is_written_out),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(handlers_get_a_stack_where_there_is_none),
        cmocka_unit_test(a_full_stack_is_named_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
