/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/report/plan.h"

#include <inttypes.h>
#include <string.h>

/* Prints a value in the largest unit that gives a whole number. */
static const char *print_unit(uint64_t v, const char *const *units, uint64_t step, char *buf,
                              size_t n)
{
    for (; units[1] && v >= step && v % step == 0; units++)
        v /= step;
    snprintf(buf, n, "%" PRIu64 "%s", v, *units);
    return buf;
}

const char *plan_rate(uint64_t v, char *buf, size_t n)
{
    static const char *const units[] = {"b/s", "kb/s", "Mb/s", "Gb/s", NULL};

    return print_unit(v, units, 1000, buf, n);
}

const char *plan_duration(int64_t v, char *buf, size_t n)
{
    static const char *const units[] = {"ps", "ns", "us", "ms", "s", NULL};

    return v ? print_unit((uint64_t)v, units, 1000, buf, n) : "0";
}

const char *plan_size(uint64_t v, char *buf, size_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", NULL};

    return v ? print_unit(v, units, 1024, buf, n) : "off";
}

const char *plan_address(uint32_t ip, char *buf, size_t n)
{
    snprintf(buf, n, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
    return buf;
}

/* roce_mac_of_ip() as text; fabric/ must not include roce/. */
const char *plan_mac(uint32_t ip, char *buf, size_t n)
{
    snprintf(buf, n, "02:54:%02x:%02x:%02x:%02x", ip >> 24, ip >> 16 & 255, ip >> 8 & 255,
             ip & 255);
    return buf;
}

/* "loss 0.01 dup 0.001", empty for a link without faults. */
void plan_faults(const struct fab_link *l, char *buf, size_t n)
{
    const struct {
        const char *name;
        double p;
    } f[] = {{"loss", l->loss}, {"dup", l->dup}, {"reorder", l->reorder}, {"corrupt", l->corrupt}};
    char d[32];
    size_t len = 0;

    *buf = 0;
    for (unsigned i = 0; i < sizeof(f) / sizeof(f[0]); i++)
        if (f[i].p > 0 && len < n)
            len +=
                (size_t)snprintf(buf + len, n - len, "%s%s %g", len ? " " : "", f[i].name, f[i].p);
    if (l->jitter_ps && len < n)
        snprintf(buf + len, n - len, "%sjitter %s", len ? " " : "",
                 plan_duration(l->jitter_ps, d, sizeof(d)));
}

const char *fab_role_name(enum fab_role role)
{
    static const char *const names[] = {"host", "leaf", "spine", "core", "nvswitch", "switch"};

    return names[role];
}

bool plan_has_turns(const struct fabric *f)
{
    return f->n_trees && f->trees[f->n_trees - 1].turn;
}

const char *plan_tree_ports(const struct fabric *f, const struct fab_tree *t, char *buf,
                            size_t size)
{
    bool used[FAB_MAX_HOST_PORTS] = {false};
    const fab_id *port = fabric_tree_ports(f, t);
    size_t len = 0;

    for (unsigned h = 0; h < f->n_hosts; h++)
        if (port[h] < FAB_MAX_HOST_PORTS)
            used[port[h]] = true;
    buf[0] = 0;
    for (unsigned p = 0; p < FAB_MAX_HOST_PORTS && len < size; p++)
        if (used[p])
            len += (size_t)snprintf(buf + len, size - len, "%s%u", len ? " " : "", p);
    return buf;
}
