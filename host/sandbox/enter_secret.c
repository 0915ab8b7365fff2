/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/sandbox/enter_secret.h"

#include "host/session/store_secret.h"
#include "machine/rundir.h"

#include <errno.h>
#include <stdlib.h>

void enter_secret(const struct fabric *f)
{
    char text[CREDENTIAL_TEXT], why[CREDENTIAL_WHY], dir[RUN_PATH];
    int rc = credential_from_env(STORE_SECRET_ENV, text, why);

    if (rc == -ENOENT && !*f->trunk_key && !rundir_default(dir, sizeof(dir), NULL, NULL))
        rc = credential_own(dir, STORE_SECRET_FILE, text, why);
    if (!rc)
        setenv(STORE_SECRET_ENV, text, 1);
    credential_wipe(text, sizeof(text));
}
