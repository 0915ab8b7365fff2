/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/host/load.h"

#include "system/own_path.h"
#include "system/shared_object.h"
#include "protocols/host/call.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char object[PROTO_SEATS][PATH_MAX]; /* file of each seat; "": built in, or empty */

const char *proto_object(unsigned seat)
{
    return seat < PROTO_SEATS && *object[seat] ? object[seat] : NULL;
}

int proto_load(const char *path, char *err)
{
    char why[PROTO_TEXT];
    const struct trib_protocol *p = NULL;
    void *so;
    int rc;

    if (shared_object_unfit(path, why, sizeof(why))) {
        snprintf(err, PROTO_TEXT, "%.100s: %.150s", path, why);
        return -ENOENT;
    }
    PROTO_CALL(path, "its constructors", so = dlopen(path, RTLD_NOW | RTLD_LOCAL));
    p = so ? dlsym(so, "trib_protocol") : NULL;
    if (!p) {
        if (so) {
            snprintf(err, PROTO_TEXT, "%s: found no symbol trib_protocol in it", path);
            dlclose(so);
        } else {
            snprintf(err, PROTO_TEXT, "%s", dlerror()); /* includes the path */
        }
        return -ENOENT;
    }
    rc = proto_add(p, err);
    if (rc < 0) {
        snprintf(why, sizeof(why), "%s", err);
        snprintf(err, PROTO_TEXT, "%.100s: %.150s", path, why);
        dlclose(so);
    } else if (rc < (int)PROTO_SEATS) {
        snprintf(object[rc], sizeof(object[rc]), "%s", path);
    }
    return rc;
}

/* ---- what a conf names ---- */

__attribute__((format(printf, 4, 5))) static int mistake(char *err, const struct fab_protocol *c,
                                                         int line, const char *fmt, ...)
{
    char text[PROTO_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(err, PROTO_CONF_TEXT, "%.110s:%d: %s", c->file, line, text);
    return -EINVAL;
}

static void list_protocols(char *text, size_t size)
{
    size_t len = 0;

    *text = '\0';
    for (unsigned i = 0; i < PROTO_SEATS && len < size; i++)
        if (proto_at(i))
            len += (size_t)snprintf(text + len, size - len, "%s, ", proto_at(i)->name);
}

static int check_key(const struct trib_protocol *p, const struct fab_protocol *c,
                     const struct fab_protocol_key *k, char *err)
{
    int i = proto_key(p, k->name);
    char list[160] = "";
    size_t len = 0;

    if (i >= 0 && k->value >= p->keys[i].least && k->value <= p->keys[i].most)
        return 0;
    if (i >= 0)
        return mistake(err, c, k->line, "%s: found %" PRId64 ", expected %" PRId64 " to %" PRId64,
                       k->name, k->value, p->keys[i].least, p->keys[i].most);
    if (k->known)
        return 0;
    for (unsigned n = 0; n < proto_keys(p) && len < sizeof(list); n++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", n ? ", " : "",
                                p->keys[n].name);
    return mistake(err, c, k->line, "found unknown key \"%s\", expected one of protocol %s's: %s",
                   k->name, p->name, *list ? list : "it has none");
}

/* Loads the object of a conf's protocol. A relative path is relative to the conf's directory, else
 * to the working directory. The conf may be another user's (a service's), so the object must be
 * this user's or root's. */
static int seat_load(const struct fab_protocol *c, char *err)
{
    const char *slash = strrchr(c->file, '/');
    char path[sizeof(c->file) + sizeof(c->name)], why[OWN_WHY];
    const char *at = path;

    snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - c->file) : 0, c->file,
             c->name);
    if (*c->name == '/' || access(path, F_OK))
        at = c->name;
    if (own_code_check(at, why, sizeof(why)) != -EPERM) /* proto_load() reports other errors */
        return proto_load(at, err);
    snprintf(err, PROTO_TEXT, "%.*s", PROTO_TEXT - 1, why);
    return -EPERM;
}

/* Seat of the protocol that a conf names. */
static int seat_of(const struct fab_protocol *c, char *err)
{
    char why[PROTO_TEXT], list[160];
    int seat;

    if (strchr(c->name, '/')) {
        seat = seat_load(c, why);
        return seat < 0 ? mistake(err, c, c->line, "protocol: %s", why) : seat;
    }
    seat = proto_seat(c->name);
    list_protocols(list, sizeof(list));
    return seat < 0 ? mistake(err, c, c->line,
                              "protocol: found \"%.40s\", expected %sor the path of a shared "
                              "object with a /",
                              c->name, list)
                    : seat;
}

static int load_check(struct fab_protocol *c, char *err)
{
    int seat = seat_of(c, err), rc = 0;

    for (unsigned i = 0; seat >= 0 && i < c->n_keys && !rc; i++)
        rc = check_key(proto_at((unsigned)seat), c, &c->key[i], err);
    if (seat >= 0 && !rc)
        c->seat = seat;
    return seat < 0 ? seat : rc;
}

int proto_setup(struct fabric *f, char *err)
{
    const struct fab_protocol *last = NULL;
    int rc = 0;

    for (unsigned n = 0; n < f->n_nodes && !rc; n++) {
        struct fab_protocol *c = f->nodes[n].reduce.protocol;

        if (c && c != last)
            rc = load_check(c, err);
        if (c)
            last = c;
    }
    return rc;
}
