/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric on whose hosts ranks run, by the command trib. */
#ifndef TRIB_PLUGINS_CHECK_FABRIC_UP_H
#define TRIB_PLUGINS_CHECK_FABRIC_UP_H

#include <stdbool.h>

/* Brings it up unless it is. *mine: it was not. 0, or the exit status of trib, which has said why. */
int fabric_up(const char *trib, const char *conf, unsigned dilation, bool *mine);
void fabric_down(const char *trib, const char *conf);

#endif
