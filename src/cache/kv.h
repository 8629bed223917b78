/* Sessions and their paged key-value cache.
 *
 * A page holds SK_TILE positions (kernels/kv_layout.h). Pages come from a pool with a fixed number of them, counted
 * before the memory is taken; a session takes pages as it grows and gives them back when trimmed or closed. A session
 * and its pool belong to one thread at a time. */
#ifndef SK_CACHE_KV_H
#define SK_CACHE_KV_H

#include "base/error.h"
#include "cache/recurrent.h"
#include "kernels/kv_layout.h"

struct sk_kv_pool;

/* Room for n_positions in total, rounded up to pages. The memory is taken page by page, but never more than this. */
sk_status sk_kv_pool_create(const struct sk_kv_layout *layout, size_t n_positions, struct sk_kv_pool **out,
                            struct sk_error *err);
/* Sessions of this pool keep running states too; before the first is opened. The layout is borrowed. */
void sk_kv_pool_set_recurrent(struct sk_kv_pool *pool, const struct sk_recurrent_layout *layout);
void sk_kv_pool_free(struct sk_kv_pool *pool);          /* all sessions must be closed */
size_t sk_kv_pool_bytes(const struct sk_kv_pool *pool); /* most it will take */
size_t sk_kv_pool_free_positions(const struct sk_kv_pool *pool);

struct sk_session {
    struct sk_kv_pool *pool;
    uint32_t position; /* tokens whose keys and values are here; the next row's position */
    uint16_t **pages;
    size_t n_pages, cap_pages;
    struct sk_recurrent *recurrent; /* NULL for models without running states */
};

sk_status sk_session_open(struct sk_kv_pool *pool, struct sk_session **out, struct sk_error *err);
void sk_session_close(struct sk_session *s);
/* Makes sure that positions [0, n_positions) have pages; on failure nothing has changed. */
sk_status sk_session_reserve(struct sk_session *s, size_t n_positions, struct sk_error *err);
/* Forgets positions from `position` on, which must not be past the session's. With running states the way back is
 * limited (SK_RECURRENT_KEPT positions at least); beyond it nothing is changed. */
sk_status sk_session_trim(struct sk_session *s, uint32_t position, struct sk_error *err);
/* Whether two sessions hold the same positions with the same bytes. */
bool sk_session_equal(const struct sk_session *a, const struct sk_session *b);

/* A hash (XXH3) of what a session holds: equal for sessions that are equal. */
uint64_t sk_session_hash(const struct sk_session *s);

#endif
