/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port page of a memif (shared.h). The client makes it and passes it as one more region, with a mark
 * behind the standard's fields. Other servers ignore the mark: they map the region and never use it. A
 * client that sends no such mark has no page, and nobody rings its bell.
 */
#include "io/memif/memif.h"

#include "base/assert.h"
#include "machine/shared.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int memif_page_make(struct memif *mf)
{
    T_ASSERT(!mf->page, "a port gets a second page");
    mf->page = shared_make("port", sizeof(*mf->page), &mf->page_fd);
    return mf->page ? 0 : mf->page_fd;
}

bool memif_page_message(const struct memif *mf, const struct memif_msg *hello,
                        struct memif_msg *msg)
{
    *msg = (struct memif_msg){.type = MEMIF_ADD_REGION};
    msg->region.index = mf->n_regions;
    msg->region.size = sizeof(*mf->page);
    msg->region.kind = MEMIF_PORT_PAGE;
    return mf->page && hello->hello.max_region >= mf->n_regions;
}

int memif_page_take(struct memif *mf, const struct memif_msg *msg, int fd)
{
    if (fd < 0 || mf->page || msg->region.size != sizeof(*mf->page))
        return -EPROTO;
    mf->page = shared_map(fd, sizeof(*mf->page), true);
    return mf->page ? 0 : -EPROTO;
}

void memif_page_drop(struct memif *mf)
{
    if (mf->page)
        munmap(mf->page, sizeof(*mf->page));
    if (mf->page_fd >= 0)
        close(mf->page_fd);
    mf->page = NULL;
    mf->page_fd = -1;
}

void memif_page_orphan(struct memif *mf, bool fds)
{
    if (mf->page)
        (void)mmap(mf->page, sizeof(*mf->page), PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fds && mf->page_fd >= 0)
        close(mf->page_fd);
    mf->page_fd = -1;
}
