/* Where a page of the key-value cache keeps what. A page holds SK_TILE consecutive positions of one session, for
 * all layers of this process: for each layer and KV head first the keys, f16 [head_dim][SK_TILE] (transposed, so that
 * lanes of the score product are positions), then the values, f16 [SK_TILE][head_dim_v]. */
#ifndef SK_KERNELS_KV_LAYOUT_H
#define SK_KERNELS_KV_LAYOUT_H

#include "kernels/kernels.h"

struct sk_kv_layout {
    size_t n_layers, n_kv_heads, head_dim, head_dim_v;
};

static inline size_t sk_kv_head_halves(const struct sk_kv_layout *l) {
    return SK_TILE * (l->head_dim + l->head_dim_v);
}
static inline size_t sk_kv_page_bytes(const struct sk_kv_layout *l) {
    return l->n_layers * l->n_kv_heads * sk_kv_head_halves(l) * sizeof(uint16_t);
}
static inline uint16_t *sk_kv_keys(const struct sk_kv_layout *l, uint16_t *page, size_t layer, size_t head) {
    return page + (layer * l->n_kv_heads + head) * sk_kv_head_halves(l);
}
static inline uint16_t *sk_kv_values(const struct sk_kv_layout *l, uint16_t *page, size_t layer, size_t head) {
    return sk_kv_keys(l, page, layer, head) + SK_TILE * l->head_dim;
}

#endif
