/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabrics that a command does not mean, and that its user may have meant. */
#include "host/keep/keep.h"
#include "trib/fabric_of.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <string.h>
#include <unistd.h>

#define OTHERS_SHOWN 8

struct others {
    const char *name;
    struct words seen; /* run directories */
    FILE *out;
};

static bool is_meant(const struct others *o, const struct fabric_seen *f)
{
    return !where_is_in_base(f->dir) && !(where_run() && !strcmp(f->dir, where_run())) &&
           !words_have(&o->seen, f->dir) && (!o->name || !strcmp(text_last(f->dir), o->name));
}

static void other_print(void *ctx, const struct fabric_seen *f)
{
    struct others *o = ctx;
    const char *name = text_last(f->dir), *user = owner_name(f->uid);

    if (!is_meant(o, f))
        return;
    words_append(&o->seen, text_of("%s", f->dir));
    if (o->seen.n > OTHERS_SHOWN)
        return;
    if (f->uid == geteuid())
        fprintf(o->out,
                "  fabric %s of this user is up elsewhere: run directory %s (process %d); "
                "TRIB_RUN=%s means it\n",
                name, f->dir, (int)f->pid, f->dir);
    else
        fprintf(o->out,
                "  fabric %s of user %s is up: run directory %s (process %d); it is for %s alone\n",
                name, user, f->dir, (int)f->pid, user);
}

void fabric_of_others(const char *name, bool on_stderr)
{
    struct others o = {.name = name, .out = on_stderr ? stderr : stdout};

    procs_scan(other_print, &o);
    if (o.seen.n > OTHERS_SHOWN)
        fprintf(o.out, "  and %u more\n", o.seen.n - OTHERS_SHOWN);
}
