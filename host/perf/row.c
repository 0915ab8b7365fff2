#include "host/perf/row.h"

double row_algbw(const struct row *r, double time_us)
{
    return time_us > 0 ? (double)r->bytes / time_us * 1e-3 : 0;
}

/* All-reduce: what each link would carry of a ring, so that figures of different rank counts
 * compare (as nccl-tests). */
double row_busbw(const struct row *r, double time_us)
{
    return row_algbw(r, time_us) * row_asymptote(r->nranks);
}

double row_predicted_us(const struct row *r)
{
    return (double)r->pred.time_ps * 1e-6;
}

double row_utilisation(const struct row *r, double time_us)
{
    if (!(time_us > 0) || !r->link_bps)
        return 0;
    return (double)r->pred.busiest_link_bytes * 8 / ((double)r->link_bps * time_us * 1e-6);
}

double row_asymptote(unsigned nranks)
{
    return nranks > 1 ? 2.0 * (nranks - 1) / nranks : 1;
}
