/* SPDX-License-Identifier: BSD-3-Clause */
/* A network plug-in's tables, and ranks that meet by a store. */
#ifndef TRIB_TESTS_TOOLS_NCCL_PLUGIN_H
#define TRIB_TESTS_TOOLS_NCCL_PLUGIN_H

#include "plugins/check/tables.h"

#include <tributary/coll.h>

#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, version;
static struct trib_oob oob;
static unsigned checked, warnings;
static bool quiet;
static char warning[1024]; /* the plug-in's last one */

#define must(cond, ...)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "rank %d, version %d, line %d: expected %s: ", rank, version,          \
                    __LINE__, #cond);                                                              \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__attribute__((format(printf, 5, 6))) static inline void
say(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    (void)flags, (void)file, (void)line;
    if (level > NCCL_LOG_WARN)
        return;
    va_start(ap, fmt);
    vsnprintf(warning, sizeof(warning), fmt, ap);
    va_end(ap);
    warnings++;
    if (!quiet)
        fprintf(stderr, "rank %d: %s\n", rank, warning);
}

/* ---- tables ---- */

static void *net_ctx, *coll_ctx;
static struct plugin_table net, coll;

/* Functions whose arguments no version has changed: all tables have them in one place. */
#define NET(field)  (((const struct nccl_net_v8 *)net.at)->field)
#define COLL(field) (((const struct nccl_coll_v8 *)coll.at)->field)

static inline void tables(void *library, int v)
{
    version = v;
    for (unsigned i = 0; i < TABLES; i++) {
        struct plugin_table t;
        bool found = table_find(library, i, &t);

        if (t.version != v)
            continue;
        must(found, "%s", table_symbol(i));
        *(t.coll ? &coll : &net) = t;
    }
}

static inline void tables_init(void)
{
    int rc = table_init(&net, &net_ctx, 1, say), n = 0;

    must(!rc, "init of the net table, not %d", rc);
    rc = table_init(&coll, &coll_ctx, 1, say);
    must(!rc, "init of the CollNet table, not %d", rc);
    must(!table_devices(&net, &n) && n > 0, "a device, not %d", n);
    must(!table_devices(&coll, &n) && n > 0, "a device, not %d", n);
}

/* ---- ranks ---- */

static inline void barrier(void)
{
    must(!oob.barrier(oob.ctx), "a barrier");
}

/* Handles of all ranks, in order. */
static inline void exchange(const void *mine, void *all)
{
    must(!oob.gather(oob.ctx, 0, mine, all, NCCL_HANDLE), "gather");
    for (int r = 0; r < size; r++)
        must(!oob.bcast(oob.ctx, (char *)all + r * NCCL_HANDLE, NCCL_HANDLE, 0), "bcast");
}

static inline void meet(const char *where)
{
    struct trib_store *store;
    char why[TRIB_TEXT];

    must(!trib_store_open(&store, where, (uint32_t)rank, (uint32_t)size, 30, why), "%s", why);
    trib_store_oob(store, &oob);
}

#endif
