/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/openmpi/coll_trib.h"

#include <opal/mca/base/mca_base_var.h>
#include <stdlib.h>

int coll_trib_priority = 80;
static char usual[] = "sharp,ring";
char *coll_trib_algo = usual;

static int take_parameters(void)
{
    const mca_base_component_t *c;
    extern const mca_coll_base_component_2_0_0_t mca_coll_trib_component;

    c = &mca_coll_trib_component.collm_version;
    mca_base_component_var_register(c, "priority",
                                    "0 to 100; a component of higher priority has its collectives",
                                    MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_9,
                                    MCA_BASE_VAR_SCOPE_READONLY, &coll_trib_priority);
    mca_base_component_var_register(c, "algo",
                                    "algorithms in order, as for trib perf --policy, or auto",
                                    MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_9,
                                    MCA_BASE_VAR_SCOPE_READONLY, &coll_trib_algo);
    return OMPI_SUCCESS;
}

/* Offers the component only if there is a fabric. */
static int init_query(bool progress_threads, bool mpi_threads)
{
    const char *run = getenv("TRIB_RUN"), *host = getenv("TRIB_HOST");

    (void)progress_threads;
    (void)mpi_threads;
    return run && *run && host && *host ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

__attribute__((visibility("default")))
const mca_coll_base_component_2_0_0_t mca_coll_trib_component = {
    .collm_version =
        {
            MCA_COLL_BASE_VERSION_2_0_0,
            .mca_component_name = "trib",
            MCA_BASE_MAKE_VERSION(component, 0, 2, 0),
            .mca_register_component_params = take_parameters,
        },
    .collm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .collm_init_query = init_query,
    .collm_comm_query = coll_trib_query,
};
