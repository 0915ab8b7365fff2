/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/machine_choice.h"

#include "fabric/report/plan.h"
#include "trib/run/text.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

unsigned machine_choice_addresses(uint32_t *addresses, unsigned most)
{
    struct ifaddrs *all = NULL;
    unsigned n = 0;

    addresses[n++] = INADDR_LOOPBACK;
    if (getifaddrs(&all))
        return n;
    for (const struct ifaddrs *a = all; a && n < most; a = a->ifa_next)
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && (a->ifa_flags & IFF_UP) &&
            !(a->ifa_flags & IFF_LOOPBACK)) {
            struct sockaddr_in in;

            memcpy(&in, a->ifa_addr, sizeof(in));
            addresses[n++] = ntohl(in.sin_addr.s_addr);
        }
    freeifaddrs(all);
    return n;
}

static bool is_here(const struct fab_machine *m, const char *named, const uint32_t *addresses,
                    unsigned n)
{
    if (named)
        return !strcmp(m->name, named);
    for (unsigned i = 0; i < n; i++)
        if (addresses[i] == m->ip)
            return true;
    return false;
}

/* The processes of machine m, the trunk's first; all processes if the conf has no machines. */
static struct words processes_of(const struct fabric *f, unsigned m)
{
    struct words procs = {0};

    if (f->n_machines)
        words_append(&procs, FAB_TRUNK);
    for (unsigned i = 0; i < f->n_procs; i++)
        if (!f->n_machines || f->procs[i].machine == m)
            words_append(&procs, text_of("%s", f->procs[i].name));
    return procs;
}

static char *why_not_one(const char *conf, const char *named, const struct words *all,
                         const struct words *found)
{
    if (found->n)
        return text_of(
            "the machines %s of %s have addresses of this one; --machine says which it is",
            words_join(found->n, found->at, " "), conf);
    if (named)
        return text_of("found --machine %s, expected a machine of %s: %s", named, conf,
                       words_join(all->n, all->at, " "));
    return text_of(
        "none of the machines %s of %s has an address of this one; --machine says which it is",
        words_join(all->n, all->at, " "), conf);
}

bool machine_choice_make(struct machine_choice *m, const struct fabric *f, const char *conf,
                         const char *named, const uint32_t *addresses, unsigned n, char **why)
{
    struct words all = {0}, found = {0};
    char text[PLAN_WHY];
    unsigned at = 0;

    *m = (struct machine_choice){NULL, {0}};
    if (!plan_runs(f, text, sizeof(text))) {
        *why = text_of("%s", text);
        return false;
    }
    if (!f->n_machines && named) {
        *why = text_of("trib: found --machine %s, expected a conf with machines: %s has none",
                       named, conf);
        return false;
    }
    for (unsigned i = 0; i < f->n_machines; i++) {
        words_append(&all, text_of("%s", f->machines[i].name));
        if (!is_here(&f->machines[i], named, addresses, n))
            continue;
        at = i;
        words_append(&found, all.at[i]);
    }
    if (f->n_machines && found.n != 1) {
        *why = text_of("trib: %s", why_not_one(conf, named, &all, &found));
        return false;
    }
    m->machine = f->n_machines ? all.at[at] : NULL;
    m->procs = processes_of(f, at);
    return true;
}
