/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/check/property.h"

#include "protocols/check/check_fabric.h"
#include "protocols/check/check_heap.h"
#include "protocols/check/check_watch.h"
#include "protocols/host/registry.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static bool failed(struct property_found *found,
                                                         const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(found->text, sizeof(found->text), fmt, ap);
    va_end(ap);
    found->failed = true;
    return false;
}

/* Prints the keys that the seed has drawn. */
static void say_keys(const struct property_plan *plan, const struct check_case *c,
                     struct property_found *found)
{
    for (unsigned i = 0; i < proto_keys(plan->protocol); i++) {
        size_t n = strlen(found->text);

        if (c->key[i] != plan->key[i])
            snprintf(found->text + n, sizeof(found->text) - n, " (%s=%" PRId64 ")",
                     plan->protocol->keys[i].name, c->key[i]);
    }
}

static bool property_plan_run(const struct property_plan *plan, const struct check_case *c,
                              FILE *trace, struct property_found *found, struct fabric_result *r)
{
    const bool limit = c->property == P_WORK || c->property == P_HOSTILE;
    const struct trib_protocol *p = watch_begin(plan->protocol, limit, c->property != P_MEMORY);

    fabric_run(c, p, trace, &found->packet, r);
    if (!r->failed && watch_seen()->why[0] && watch_seen()->why[0] != 'w') {
        r->failed = true;
        snprintf(r->why, sizeof(r->why), "%s", watch_seen()->why);
    }
    found->packets += r->packets;
    if (!r->failed)
        return true;
    failed(found, "%s", r->why);
    say_keys(plan, c, found);
    return false;
}

/* ---- properties that need more than a run ---- */

/* Whether the case gives the same packets again, with other bytes in uninitialised memory. */
static bool same_again(const struct property_plan *plan, const struct check_case *c,
                       const struct fabric_result *first, struct property_found *found)
{
    struct fabric_result again;
    uint64_t i = 0;
    bool right;

    mallopt(M_PERTURB, 0x3c);
    right = property_plan_run(plan, c, NULL, found, &again);
    mallopt(M_PERTURB, 0xb1);
    while (i < first->packets && i < again.packets && first->hash[i] == again.hash[i])
        i++;
    if (right && (i < first->packets || i < again.packets)) {
        found->packet = i + 1;
        right = failed(found,
                       "a second run of the same case differs from this packet on "
                       "(%" PRIu64 " and %" PRIu64 " packets)",
                       first->packets, again.packets);
    }
    free(again.hash);
    return right;
}

/* Whether the protocol frees all memory that it allocates. It is not the first run, so that
 * one-time allocations do not count. */
static bool memory_back(const struct property_plan *plan, const struct check_case *c,
                        struct property_found *found)
{
    const size_t before = heap_bytes();
    struct fabric_result r;
    bool right = property_plan_run(plan, c, NULL, found, &r);

    free(r.hash);
    if (right && heap_bytes() > before)
        return failed(found,
                      "%zu bytes that the protocol has allocated are not freed when all "
                      "jobs have ended",
                      heap_bytes() - before);
    return right;
}

static bool versions(const struct property_plan *plan, struct property_found *found)
{
    static const int off[] = {-1, 1, 1000};

    for (unsigned i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        struct trib_protocol other = *plan->protocol;
        char err[PROTO_TEXT] = "";

        other.version += (uint32_t)off[i];
        if (proto_add(&other, err) != -EPROTO || !strstr(err, "version"))
            return failed(found, "version %u is not refused", other.version);
    }
    snprintf(found->text, sizeof(found->text), "version %u; others are refused",
             plan->protocol->version);
    return true;
}

static bool keys(const struct property_plan *plan, struct property_found *found)
{
    for (unsigned i = 0; i < proto_keys(plan->protocol); i++) {
        const struct trib_key *k = &plan->protocol->keys[i];

        if (!k->about || k->usual < k->least || k->usual > k->most)
            return failed(found,
                          "key %s: found %" PRId64 " as its usual value, expected %" PRId64
                          " to %" PRId64 ", and a text",
                          k->name, k->usual, k->least, k->most);
    }
    return true;
}

/* ---- what a property has seen ---- */

static void seen(const struct property_plan *plan, enum property p, const struct fabric_result *r,
                 struct property_found *found)
{
    static uint64_t peak;
    static uint32_t bytes, ops;
    static unsigned jobs, refused;
    const struct watch_seen *w = watch_seen();

    bytes = bytes > w->most_bytes ? bytes : w->most_bytes;
    ops = ops > w->most_ops ? ops : w->most_ops;
    peak = peak > r->memory_peak ? peak : r->memory_peak;
    jobs += r->jobs;
    refused += r->refused;
    if (p == P_WORK && plan->protocol->sw)
        snprintf(found->text, sizeof(found->text),
                 "at most %u bytes and %u operations on a packet, declared %u and %u", bytes, ops,
                 plan->protocol->sw->max_bytes, plan->protocol->sw->max_ops);
    if (p == P_MEMORY)
        snprintf(found->text, sizeof(found->text),
                 "%u of %u jobs refused for want of memory, %" PRIu64 " bytes at most", refused,
                 jobs, peak);
    if (p == P_KEYS)
        snprintf(found->text, sizeof(found->text), "%u keys; %u of %u jobs refused",
                 proto_keys(plan->protocol), refused, jobs);
}

bool property_seed(const struct property_plan *plan, enum property p, uint64_t seed,
                   struct property_found *found)
{
    struct fabric_result r;
    struct check_case c;
    bool right;

    found->seed = seed;
    found->packet = 0;
    found->seeds++;
    if (p == P_VERSIONS)
        return versions(plan, found);
    if (p == P_KEYS && !keys(plan, found))
        return false;
    if (case_draw(&c, plan->protocol, plan->key, p, seed))
        return failed(found, "supports() accepts no reduction of any type");
    right = property_plan_run(plan, &c, plan->trace, found, &r);
    if (right)
        seen(plan, p, &r, found);
    if (right && p == P_DETERMINISM)
        right = same_again(plan, &c, &r, found);
    free(r.hash);
    if (right && p == P_LEAKS && seed % 4 == 1)
        right = memory_back(plan, &c, found);
    return right;
}
