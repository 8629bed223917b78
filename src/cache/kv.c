#include "cache/kv.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

struct sk_kv_pool {
    struct sk_kv_layout layout;
    struct sk_recurrent_layout recurrent; /* n_layers 0: none */
    size_t page_bytes, max_pages;
    size_t n_allocated; /* pages that exist, in sessions or free */
    uint16_t **free_pages;
    size_t n_free;
};

sk_status sk_kv_pool_create(const struct sk_kv_layout *layout, size_t n_positions, struct sk_kv_pool **out,
                            struct sk_error *err) {
    const size_t n_pages = n_positions / SK_TILE + (n_positions % SK_TILE != 0), page_bytes = sk_kv_page_bytes(layout);
    size_t bytes;
    if (__builtin_mul_overflow(n_pages, page_bytes, &bytes))
        return sk_fail_memory(err, SIZE_MAX, "the key-value cache");
    const size_t available = sk_memory_available();
    if (bytes > available)
        return sk_fail(
            err, SK_ENOMEM,
            "a context of %zu positions needs %zu bytes of memory and %zu are available: choose a smaller one (-c)",
            n_positions, bytes, available);
    struct sk_kv_pool *pool = sk_calloc(1, sizeof *pool);
    if (pool) pool->free_pages = sk_calloc(n_pages, sizeof *pool->free_pages);
    if (!pool || !pool->free_pages) {
        free(pool);
        return sk_fail_memory(err, n_pages * sizeof(void *), "the key-value cache");
    }
    pool->layout = *layout;
    pool->page_bytes = page_bytes;
    pool->max_pages = n_pages;
    *out = pool;
    return SK_OK;
}

void sk_kv_pool_set_recurrent(struct sk_kv_pool *pool, const struct sk_recurrent_layout *layout) {
    pool->recurrent = *layout;
}

void sk_kv_pool_free(struct sk_kv_pool *pool) {
    if (!pool) return;
    for (size_t i = 0; i < pool->n_free; i++) sk_region_free(pool->free_pages[i], pool->page_bytes);
    free(pool->free_pages);
    free(pool);
}

size_t sk_kv_pool_bytes(const struct sk_kv_pool *pool) {
    return pool->max_pages * pool->page_bytes;
}

static size_t pages_left(const struct sk_kv_pool *pool) {
    return pool->n_free + pool->max_pages - pool->n_allocated;
}

size_t sk_kv_pool_free_positions(const struct sk_kv_pool *pool) {
    return pages_left(pool) * SK_TILE;
}

static uint16_t *take_page(struct sk_kv_pool *pool) {
    if (pool->n_free) return pool->free_pages[--pool->n_free];
    uint16_t *page = sk_region_alloc(pool->page_bytes);
    if (page) pool->n_allocated++;
    return page;
}

static void give_pages_back(struct sk_session *s, size_t keep) {
    while (s->n_pages > keep) s->pool->free_pages[s->pool->n_free++] = s->pages[--s->n_pages];
}

sk_status sk_session_open(struct sk_kv_pool *pool, struct sk_session **out, struct sk_error *err) {
    struct sk_session *s = sk_calloc(1, sizeof *s);
    if (!s) return sk_fail_memory(err, sizeof *s, "a session");
    s->pool = pool;
    if (pool->recurrent.n_layers && !(s->recurrent = sk_recurrent_create(&pool->recurrent))) {
        free(s);
        return sk_fail_memory(err, sizeof *s, "a session");
    }
    *out = s;
    return SK_OK;
}

void sk_session_close(struct sk_session *s) {
    if (!s) return;
    give_pages_back(s, 0);
    sk_recurrent_free(s->recurrent);
    free(s->pages);
    free(s);
}

sk_status sk_session_reserve(struct sk_session *s, size_t n_positions, struct sk_error *err) {
    const size_t need = n_positions / SK_TILE + (n_positions % SK_TILE != 0), had = s->n_pages;
    if (s->recurrent) {
        const sk_status st = sk_recurrent_reserve(s->recurrent, n_positions, err);
        if (st) return st;
    }
    if (need <= had) return SK_OK;
    if (need - had > pages_left(s->pool))
        return sk_fail(err, SK_ENOMEM,
                       "the key-value cache is full: %zu more positions (%zu bytes) are needed and %zu are free; a "
                       "larger context (-c) makes room",
                       (need - had) * SK_TILE, (need - had) * s->pool->page_bytes, pages_left(s->pool) * SK_TILE);
    if (!sk_grow(&s->pages, &s->cap_pages, need, sizeof *s->pages))
        return sk_fail_memory(err, need * sizeof(void *), "a page table");
    while (s->n_pages < need) {
        uint16_t *page = take_page(s->pool);
        if (!page) {
            give_pages_back(s, had);
            return sk_fail_memory(err, s->pool->page_bytes, "a page of the key-value cache");
        }
        s->pages[s->n_pages++] = page;
    }
    return SK_OK;
}

sk_status sk_session_trim(struct sk_session *s, uint32_t position, struct sk_error *err) {
    if (position > s->position)
        return sk_fail(err, SK_EINVAL, "a session at position %u cannot be trimmed to %u", s->position, position);
    if (s->recurrent) {
        const sk_status st = sk_recurrent_trim(s->recurrent, s->position, position, err);
        if (st) return st;
    }
    s->position = position;
    give_pages_back(s, position / SK_TILE + (position % SK_TILE != 0));
    return SK_OK;
}

bool sk_session_equal(const struct sk_session *a, const struct sk_session *b) {
    if (a->position != b->position) return false;
    if (a->recurrent && sk_recurrent_hash(a->recurrent, 0) != sk_recurrent_hash(b->recurrent, 0)) return false;
    const struct sk_kv_layout *l = &a->pool->layout;
    for (size_t p = 0; p < a->position; p += SK_TILE) {
        const size_t n = a->position - p < SK_TILE ? a->position - p : SK_TILE;
        uint16_t *pa = a->pages[p / SK_TILE], *pb = b->pages[p / SK_TILE];
        for (size_t layer = 0; layer < l->n_layers; layer++) {
            for (size_t h = 0; h < l->n_kv_heads; h++) {
                const uint16_t *ka = sk_kv_keys(l, pa, layer, h), *kb = sk_kv_keys(l, pb, layer, h);
                for (size_t d = 0; d < l->head_dim; d++)
                    if (memcmp(ka + d * SK_TILE, kb + d * SK_TILE, n * sizeof *ka) != 0) return false;
                if (memcmp(sk_kv_values(l, pa, layer, h), sk_kv_values(l, pb, layer, h),
                           n * l->head_dim_v * sizeof *ka) != 0)
                    return false;
            }
        }
    }
    return true;
}

uint64_t sk_session_hash(const struct sk_session *s) {
    const struct sk_kv_layout *l = &s->pool->layout;
    uint64_t hash = s->position;
    for (size_t p = 0; p < s->position; p += SK_TILE) {
        const size_t n = s->position - p < SK_TILE ? s->position - p : SK_TILE;
        uint16_t *page = s->pages[p / SK_TILE];
        for (size_t layer = 0; layer < l->n_layers; layer++) {
            for (size_t h = 0; h < l->n_kv_heads; h++) {
                const uint16_t *k = sk_kv_keys(l, page, layer, h);
                for (size_t d = 0; d < l->head_dim; d++)
                    hash = XXH3_64bits_withSeed(k + d * SK_TILE, n * sizeof *k, hash);
                hash = XXH3_64bits_withSeed(sk_kv_values(l, page, layer, h), n * l->head_dim_v * sizeof *k, hash);
            }
        }
    }
    return s->recurrent ? sk_recurrent_hash(s->recurrent, hash) : hash;
}
