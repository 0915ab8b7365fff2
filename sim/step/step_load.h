/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What groups of ranks that run an algorithm at the same time send over links that each of their
 * messages must pass, whichever of equal routes it takes: its hosts' ports, and, between two
 * switches of the scale-out network, the links of the first one to other switches and those of the
 * last one from them; and where each flow has a fixed path (ecmp = "balanced"), every link between
 * switches. In seconds at these links' rates, payload alone: a lower bound for the time
 * of the algorithm. Inside of sim/step/.
 */
#ifndef TRIB_SIM_STEP_STEP_LOAD_H
#define TRIB_SIM_STEP_STEP_LOAD_H

#include "sim/step/step.h"

/* Times are by resource: ports out, ports in; then those between switches: switches out, switches
 * in, directions of links. */
struct step_load {
    const struct fabric *f;
    double *s;                   /* [n] */
    double *cap_bps;             /* [nodes] of a switch's links to others; 0: none */
    unsigned n, switches, links; /* resources; the first ones of switches, of links */
    bool striped; /* a message was divided over several NICs: their shares are rounded to packets */
};

/* 0 or -ENOMEM; step_load_free() in any case. */
int step_load_init(struct step_load *l, const struct fabric *f);
void step_load_free(struct step_load *l);
void step_load_clear(struct step_load *l);
/* Adds a group of u's collective, of `ranks` members from host `first` on, whose larger buffer has
 * so many bytes. Of algorithms that do not send blocks between fixed pairs nothing is added. */
void step_load_add(struct step_load *l, const struct step_collective *u, enum coll_algo algo,
                   unsigned first, unsigned ranks, uint64_t bytes);
/* The longest time of the resources [from, to), and in *at (NULL: not asked) whose it is. */
double step_load_worst(const struct step_load *l, unsigned from, unsigned to, unsigned *at);

#endif
