/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/shortage/fault.h"

#include "base/random.h"

#include <errno.h>
#include <stdatomic.h>

_Static_assert(FAULT_ENOMEM == ENOMEM && FAULT_EMFILE == EMFILE, "as the system numbers them");

static struct {
    char file[128];
    int line;
    unsigned long call; /* which call of the site fails, from 1 */
    uint64_t seed, one_in;
    bool list;
} asked;
static struct fault_site *_Atomic reached;
static _Atomic uint64_t drawn;
static _Atomic int asking; /* 1: the environment is being read, 2: it has been read */

static void list_sites(void)
{
    for (struct fault_site *s = reached; s; s = s->next)
        fprintf(stderr, "fault: %s:%d %s %lu\n", s->file, s->line, s->what, s->calls);
}

static void fault_refuse(const char *found)
{
    fprintf(stderr,
            "TRIB_FAULT: found \"%s\", expected list, FILE:LINE[:CALL] or seed:SEED:ONE-IN\n",
            found);
    asking = 2; /* handlers that run at exit call fault_at(), too */
    exit(2);
}

static void read_environment(void)
{
    const char *text = getenv("TRIB_FAULT");
    unsigned long long seed, one_in;
    char end;
    int n;

    if (!text || !*text)
        return;
    asked.call = 1;
    if (!strcmp(text, "list")) {
        asked.list = true;
        atexit(list_sites);
    } else if (sscanf(text, "seed:%llu:%llu%c", &seed, &one_in, &end) == 2 && one_in) {
        asked.seed = seed;
        asked.one_in = one_in;
    } else {
        n = sscanf(text, "%127[^:]:%d:%lu%c", asked.file, &asked.line, &asked.call, &end);
        if ((n != 2 && n != 3) || !asked.call)
            fault_refuse(text);
    }
}

/* Reads the environment once; other threads wait meanwhile. */
static void read_once(void)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&asking, &none, 1)) {
        read_environment();
        atomic_store(&asking, 2);
    }
    while (atomic_load(&asking) != 2)
        ;
}

static bool is_asked(const struct fault_site *s, unsigned long call)
{
    if (asked.one_in)
        return random_mix(asked.seed + 0x9e3779b97f4a7c15u * ++drawn) % asked.one_in == 0;
    return asked.line == s->line && asked.call == call && !strcmp(asked.file, s->file);
}

bool fault_at(struct fault_site *s)
{
    unsigned long call = ++s->calls;

    read_once();
    if (call == 1 && asked.list) {
        struct fault_site *first = reached;

        do
            s->next = first;
        while (!__atomic_compare_exchange_n((struct fault_site **)&reached, &first, s, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    }
    if (!is_asked(s, call))
        return false;
    fprintf(stderr, "fault: %s:%d %s fails\n", s->file, s->line, s->what);
    errno = s->err;
    return true;
}
