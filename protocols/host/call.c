/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers only call write() and the former handlers, as they may interrupt any code. */
#include "protocols/host/call.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK 16384u /* alternate stack of handlers: the thread's own may have overflowed */

static const struct {
    int sig;
    const char *name;
} fatal[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
             {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"}};
#define FATAL (sizeof(fatal) / sizeof(fatal[0]))

static struct sigaction before[FATAL];
static bool names_ends;
static int exit_code;

static _Thread_local struct {
    const char *volatile protocol; /* NULL: the thread is in no protocol */
    const char *volatile function;
    bool has_stack;
    _Alignas(16) char stack[STACK];
} here;

static void set_up_stack(void)
{
    stack_t old, own = {.ss_sp = here.stack, .ss_size = STACK};

    here.has_stack = true;
    if (!sigaltstack(NULL, &old) && old.ss_flags & SS_DISABLE)
        sigaltstack(&own, NULL);
}

void proto_enter(const char *protocol, const char *function)
{
    if (names_ends && !here.has_stack)
        set_up_stack();
    here.function = function;
    here.protocol = protocol;
}

void proto_leave(void)
{
    here.protocol = NULL;
}

static void call_say(const char *end)
{
    const char *part[] = {
        program_invocation_short_name, ": protocol ", here.protocol, ": ", here.function, end};
    char text[256];
    size_t len = 0;

    for (unsigned i = 0; i < sizeof(part) / sizeof(part[0]); i++)
        for (const char *at = part[i]; *at && len < sizeof(text) - 1; at++)
            text[len++] = *at;
    text[len++] = '\n';
    if (write(STDERR_FILENO, text, len) < 0)
        return;
}

static void on_fatal(int sig)
{
    unsigned i = 0;

    while (i + 1 < FATAL && fatal[i].sig != sig)
        i++;
    if (here.protocol) {
        char end[32] = " ended by ";

        memcpy(end + 10, fatal[i].name, strlen(fatal[i].name) + 1);
        call_say(end);
    }
    here.protocol = NULL;
    sigaction(sig, &before[i], NULL);
    raise(sig); /* it is delivered when this handler returns */
}

static void on_exit_called(void)
{
    if (!here.protocol)
        return;
    call_say(" called exit()");
    fflush(NULL);
    _exit(exit_code);
}

void proto_name_ends(int code)
{
    struct sigaction sa = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK};

    exit_code = code;
    names_ends = true;
    sigemptyset(&sa.sa_mask);
    for (unsigned i = 0; i < FATAL; i++)
        sigaction(fatal[i].sig, &sa, &before[i]);
    atexit(on_exit_called);
}
