/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings up the fabric on whose hosts ranks run, with the command trib. */
#ifndef TRIB_PLUGINS_CHECK_FABRIC_UP_H
#define TRIB_PLUGINS_CHECK_FABRIC_UP_H

#include <stdbool.h>

/* Brings the fabric up unless it is up. *mine: whether this call did. 0, or the exit status of
 * trib, which has printed the reason. */
int fabric_up(const char *trib, const char *conf, unsigned dilation, bool *mine);
void fabric_down(const char *trib, const char *conf);

#endif
