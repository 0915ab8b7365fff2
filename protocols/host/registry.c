/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/host/registry.h"

#include "protocols/builtin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct trib_protocol *seats[PROTO_SEATS] = {&trib_switchml, &trib_ps, &trib_atp};

const struct trib_protocol *proto_at(unsigned seat)
{
    return seat < PROTO_SEATS ? seats[seat] : NULL;
}

int proto_seat(const char *name)
{
    for (unsigned i = 0; i < PROTO_SEATS; i++)
        if (seats[i] && !strcmp(seats[i]->name, name))
            return (int)i;
    return -ENOENT;
}

unsigned proto_keys(const struct trib_protocol *p)
{
    unsigned n = 0;

    while (p->keys && n < TRIB_KEYS && p->keys[n].name)
        n++;
    return n;
}

unsigned proto_counters(const char *const *names)
{
    unsigned n = 0;

    while (names && n < TRIB_COUNTERS && names[n])
        n++;
    return n;
}

int proto_key(const struct trib_protocol *p, const char *name)
{
    for (unsigned i = 0; i < proto_keys(p); i++)
        if (!strcmp(p->keys[i].name, name))
            return (int)i;
    return -ENOENT;
}

void proto_usual(const struct trib_protocol *p, int64_t key[TRIB_KEYS])
{
    memset(key, 0, TRIB_KEYS * sizeof(*key));
    for (unsigned i = 0; i < proto_keys(p); i++)
        key[i] = p->keys[i].usual;
}

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

static bool name_valid(const char *s)
{
    size_t n = s ? strlen(s) : 0;

    return n && n < 16 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && *s != '-';
}

/* Whether confs, tables and telemetry can hold this name of a key or counter. */
static bool word_valid(const char *s)
{
    size_t n = strlen(s);

    return n && n < 32 && strspn(s, WORD) == n;
}

/* NULL: nothing. */
static const char *fault_of_counters(const char *const *names)
{
    for (unsigned i = 0; names && names[i]; i++) {
        if (i == TRIB_COUNTERS)
            return "a half of it has more than 16 counters";
        if (!word_valid(names[i]))
            return "a counter's name is not 1 to 31 of a-z, A-Z, 0-9, _ and -";
    }
    return NULL;
}

/* What is wrong with the protocol; NULL: nothing. */
static const char *fault(const struct trib_protocol *p)
{
    const struct trib_switch_half *sw = p->sw;
    const struct trib_rank_half *r = p->rank;

    if (!name_valid(p->name))
        return "its name is not 1 to 15 characters a-z, 0-9, -";
    if (!p->supports)
        return "it has no supports()";
    if (!r || !r->start || !r->packet || !r->room)
        return "its rank half lacks start(), packet() or room()";
    if (sw && (!sw->job_open || !sw->job_close || !sw->packet))
        return "its switch half lacks job_open(), job_close() or packet()";
    for (unsigned i = 0; p->keys && p->keys[i].name; i++) {
        const struct trib_key *k = &p->keys[i];

        if (i == TRIB_KEYS)
            return "it has more than 8 keys";
        if (!word_valid(k->name))
            return "a key's name is not 1 to 31 of a-z, A-Z, 0-9, _ and -";
        if (k->least > k->usual || k->usual > k->most)
            return "a key's usual value is out of its range";
    }
    if (sw && fault_of_counters(sw->counters))
        return fault_of_counters(sw->counters);
    return fault_of_counters(r->counters);
}

int proto_add(const struct trib_protocol *p, char *err)
{
    const char *what;
    int seat;

    if (p->version != TRIB_PROTOCOL_VERSION) {
        snprintf(
            err, PROTO_TEXT,
            "found version %u of the protocol interface, expected %u: build it again with this "
            "version's header",
            p->version, (unsigned)TRIB_PROTOCOL_VERSION);
        return -EPROTO;
    }
    what = fault(p);
    if (what) {
        snprintf(err, PROTO_TEXT, "protocol \"%.20s\": %s", p->name ? p->name : "", what);
        return -EINVAL;
    }
    seat = proto_seat(p->name);
    if (seat >= 0 && seats[seat] != p) {
        snprintf(err, PROTO_TEXT, "there is another protocol \"%s\"", p->name);
        return -EEXIST;
    }
    for (unsigned i = 0; seat < 0 && i < PROTO_SEATS; i++)
        if (!seats[i]) {
            seats[i] = p;
            seat = (int)i;
        }
    if (seat < 0) {
        snprintf(err, PROTO_TEXT, "protocol \"%s\": there are %u already", p->name, PROTO_SEATS);
        return -ENOSPC;
    }
    return seat;
}
