/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A training step: the collectives of a workload's parallelism, the time of each on a fabric in
 * virtual time, and the length of the step when computing and communication overlap.
 *
 *   step_collectives.c  workload to collectives (pure)
 *   step_bound.c        the least time that links allow (pure)
 *   step_algorithm.c    algorithms that the workload names
 *   step_load.c         what groups send over links that they share (pure)
 *   step_groups.c       the groups that are simulated together
 *   step_measure.c      collectives to times, in virtual time
 *   step_time.c         times to the length of a step (pure)
 *   step.c              all of it, printed and as JSON
 *
 * Times of a step are seconds as double: they are results, no control decision reads them.
 */
#ifndef TRIB_SIM_STEP_STEP_H
#define TRIB_SIM_STEP_STEP_H

#include "fabric/theory/roofline.h"
#include "host/coll/coll.h"

#include <rte_mempool.h>

#define STEP_MAX_RANKS    64u  /* simulated of a group, at most */
#define STEP_MAX_TOGETHER 256u /* simulated of all groups that run together */
#define STEP_MAX_GROUPS   128u
#define STEP_MAX_MIB      64u /* of all ranks' larger buffers, or of few ranks' vectors, at most */
#define STEP_SATURATED    4u  /* times as many at most, where links are not saturated by that */

/* Who executes collectives: the hosts' own algorithms, NVSwitches too (a GPU node has them whatever
 * the leaves are), or every switch that reduces. */
enum step_method { STEP_HOSTS, STEP_NVSWITCHES, STEP_SWITCHES, STEP_METHODS };

/* The measured time of a collective. */
struct step_timing {
    enum coll_algo algo;
    double s;
    double high_s;  /* of an extrapolated one at most: in proportion to its bytes; else s */
    double bound_s; /* what the links allow at best while all groups of its kind run */
    bool extrapolated_bytes, extrapolated_ranks; /* extrapolated to its size; to its ranks */
    bool shared;         /* simulated together with others of its kind, or at the bound of all */
    uint64_t bytes;      /* simulated */
    uint32_t fell_back;  /* groups that switches refused in part or whole; */
    char why[COMM_TEXT]; /* what the first of them was told */
};

/* A collective that a GPU runs `times` a step, with `degree` GPUs at distances of `stride`. */
struct step_collective {
    enum roof_kind kind;
    bool experts; /* DATA: of the experts' copies */
    enum coll_kind coll;
    uint32_t degree;
    uint64_t stride;
    uint64_t gpus;  /* of the workload: so many of the fabric's hosts, from the first on */
    uint64_t bytes; /* nccl-tests' size: the larger of a rank's buffers */
    double times;
    enum coll_algo named;            /* by the workload; ALGO_AUTO: none */
    uint32_t ranks;                  /* simulated of the group */
    uint32_t groups;                 /* simulated at the same time, */
    uint16_t first[STEP_MAX_GROUPS]; /* their first hosts */
    struct step_timing timing[STEP_METHODS];
};

#define STEP_COLLECTIVES 8
/*
 * Of the fullest pipeline stage:
 *   tensor    an all-reduce of the activations after attention and after the feed-forward block of
 *             each layer, forward and backward (Megatron-LM)
 *   expert    an all-to-all to the experts and one back for each of their layers, forward and
 *             backward; a token is sent once to each GPU that has one of its experts, k at most,
 *             or once to each of its nodes (nodes_per_token), if those are fewer
 *   data      ZeRO 0: all-reduce of the gradients; 1 and 2: reduce-scatter, and all-gather of the
 *             weights; 3: one more of these. Copies of experts by themselves
 *   pipeline  activations to the next stage and gradients to the one before
 */
unsigned step_collectives(const struct workload *w, struct step_collective u[STEP_COLLECTIVES]);

/* Sets `named` of each. 0, or -EINVAL with a sentence in err (COMM_TEXT bytes). */
int step_name_algorithms(const struct workload *w, struct step_collective *u, unsigned n,
                         char *err);

/* The least time of a collective of `ranks` ranks and so many bytes, as if the method's switches
 * reduced everywhere. All groups of its kind run at the same time and share the links between
 * leaves, spines and cores; alone: one does. */
double step_bound(const struct cost_levels *l, const struct step_collective *u, unsigned ranks,
                  uint64_t bytes, enum step_method method, bool alone);

/* Parameters of the schedule; seconds. */
struct step_cost {
    unsigned layers, stages, microbatches; /* layers: of a stage */
    double forward, backward;              /* computing of one layer and microbatch */
    double comms[ROOF_KINDS];              /* TP, EP: of one layer, microbatch and direction; PP: of
                                              one message; DP: of one pass over one layer */
    unsigned zero;
};
struct step_cost step_cost(const struct workload *w, const struct step_collective *u, unsigned n,
                           enum step_method method);
/*
 * One step, one microbatch forward and one backward in turn (1F1B). Tensor parallel communication
 * stands between layers and is not hidden. That of experts hides behind a layer's computing where
 * there is another microbatch to compute (as in DeepSeek's DualPipe). Pipeline messages travel
 * while stages compute. Gradients are reduced layer by layer behind the last backward pass; weights
 * come layer by layer behind the first forward pass, and with ZeRO 3 before the first backward one
 * as well.
 */
double step_seconds(const struct step_cost *c);

#define STEP_PASSES (1u << 24) /* microbatches of all stages, at most */

/* Fills took[] of all. 0 or -errno with a sentence in err (COMM_TEXT bytes). */
int step_measure(const struct fabric *f, struct step_collective *u, unsigned n,
                 struct rte_mempool *pool, uint64_t seed, const volatile int *stop, char *err);
/* Number of frames that it needs. */
unsigned step_frames(void);

struct step_opts {
    const struct fabric *fab;
    const struct workload *work;
    const char *json; /* file; NULL: none */
    bool wide;        /* all times of a collective on one line */
    struct provenance *from;
    uint64_t seed;
    struct rte_mempool *pool;
    const volatile int *stop;
};
/* Measures and prints. 0 or -errno with a sentence in err (COMM_TEXT bytes). */
int step_run(const struct step_opts *o, char *err);

#endif
