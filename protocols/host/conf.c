/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/host/conf.h"

static void keys_apply(const struct fab_protocol *c, const struct trib_protocol *p,
                       int64_t key[TRIB_KEYS])
{
    for (unsigned i = 0; i < c->n_keys; i++) {
        int k = proto_key(p, c->key[i].name);

        if (k >= 0)
            key[k] = c->key[i].value;
    }
}

void proto_conf(const struct fabric *f, const struct trib_protocol *p, int64_t key[TRIB_KEYS])
{
    proto_usual(p, key);
    for (unsigned n = 0; n < f->n_nodes; n++) {
        const struct fab_protocol *c = f->nodes[n].reduce.protocol;

        if (c && c->seat >= 0 && proto_at((unsigned)c->seat) == p) {
            keys_apply(c, p, key);
            return;
        }
    }
}
