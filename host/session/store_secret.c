/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/session/store_secret.h"

#include "host/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOW "; or set " STORE_SECRET_ENV "_FILE for all ranks"

/* Derives the secret from the fabric's trunk_key. False: there is no fabric, or it has no
 * trunk_key. A fabric that cannot be loaded is reported when it is opened. */
static bool from_trunk_key(struct store_secret *s)
{
    static const char purpose[] = "tributary store";
    const char *run = getenv("TRIB_RUN");
    uint8_t mac[CREDENTIAL_MAC];
    struct rundir rd = {.sh = NULL};
    struct fabric *f;
    char path[RUN_PATH + 16];
    bool yes;

    if (!run || !*run || strlen(run) >= sizeof(rd.path))
        return false;
    snprintf(rd.path, sizeof(rd.path), "%s", run);
    if (rundir_path(&rd, path, sizeof(path), "fabric.conf") || access(path, R_OK))
        return false;
    f = rundir_fabric(&rd);
    yes = f && *f->trunk_key && credential_mac(f->trunk_key, purpose, sizeof(purpose), mac);
    if (f) {
        credential_wipe(f->trunk_key, sizeof(f->trunk_key));
        fabric_free(f);
    }
    for (unsigned i = 0; yes && i < sizeof(mac); i++)
        snprintf(s->text + 2 * i, 3, "%02x", mac[i]);
    credential_wipe(mac, sizeof(mac));
    snprintf(s->from, sizeof(s->from), "the fabric's trunk_key");
    return yes;
}

int store_secret_find(struct store_secret *s, char *err)
{
    char why[CREDENTIAL_WHY], dir[RUN_PATH];
    int rc = credential_from_env(STORE_SECRET_ENV, s->text, why);

    snprintf(s->from, sizeof(s->from), "%s%s", STORE_SECRET_ENV,
             getenv(STORE_SECRET_ENV) ? "" : "_FILE");
    if (rc != -ENOENT)
        return rc ? session_say(err, rc, "store: %s", why) : 0;
    if (from_trunk_key(s))
        return 0;
    if (rundir_default(dir, sizeof(dir), NULL, NULL))
        return session_say(err, -ENAMETOOLONG,
                           "store: XDG_RUNTIME_DIR is too long for a secret "
                           "there" HOW);
    rc = credential_own(dir, STORE_SECRET_FILE, s->text, why);
    snprintf(s->from, sizeof(s->from), "%.120s/%s", dir, STORE_SECRET_FILE);
    return rc ? session_say(err, rc, "store: %.200s" HOW, why) : 0;
}
