/* Compute threads. One job at a time: a function is called once for each index of a range, spread over the
 * threads as they become free. What a call computes must not depend on which thread makes it. */
#ifndef SK_BASE_POOL_H
#define SK_BASE_POOL_H

#include "base/error.h"

#include <stddef.h>

struct sk_pool;

/* `n_threads` counts the caller: n_threads - 1 are started. 1 to 256. */
sk_status sk_pool_create(size_t n_threads, struct sk_pool **out, struct sk_error *err);
void sk_pool_destroy(struct sk_pool *pool);
size_t sk_pool_threads(const struct sk_pool *pool);

/* Calls fn(ctx, i, thread) for every i in [0, n), thread in [0, n_threads), and returns when all are done.
 * Only one thread may call this on a pool at a time. */
void sk_pool_run(struct sk_pool *pool, size_t n, void (*fn)(void *ctx, size_t i, size_t thread), void *ctx);

/* Physical cores this process may run on, within its control group's quota (at least 1). */
size_t sk_physical_cores(void);

#endif
