#include "cache/recurrent.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

struct layer_state {
    float *base, *state; /* [n_state] */
    float *journal;      /* [n_journal][n_input] */
    size_t cap_journal;  /* floats */
    size_t n_journal;    /* positions */
};

struct sk_recurrent {
    struct sk_recurrent_layout layout;
    uint32_t base_position;
    struct layer_state layers[];
};

struct sk_recurrent *sk_recurrent_create(const struct sk_recurrent_layout *layout) {
    struct sk_recurrent *r = sk_calloc(1, sizeof *r + layout->n_layers * sizeof *r->layers);
    if (!r) return NULL;
    r->layout = *layout;
    for (size_t i = 0; i < layout->n_layers; i++) {
        struct layer_state *l = &r->layers[i];
        l->base = sk_calloc(layout->kinds[i].n_state, sizeof *l->base);
        l->state = sk_calloc(layout->kinds[i].n_state, sizeof *l->state);
        if (l->base && l->state) continue;
        sk_recurrent_free(r);
        return NULL;
    }
    return r;
}

void sk_recurrent_free(struct sk_recurrent *r) {
    if (!r) return;
    for (size_t i = 0; i < r->layout.n_layers; i++) {
        free(r->layers[i].base);
        free(r->layers[i].state);
        free(r->layers[i].journal);
    }
    free(r);
}

sk_status sk_recurrent_reserve(struct sk_recurrent *r, size_t position, struct sk_error *err) {
    if (position <= r->base_position) return SK_OK;
    for (size_t i = 0; i < r->layout.n_layers; i++) {
        size_t floats;
        if (__builtin_mul_overflow(position - r->base_position, r->layout.kinds[i].n_input, &floats) ||
            !sk_grow(&r->layers[i].journal, &r->layers[i].cap_journal, floats, sizeof(float)))
            return sk_fail_memory(err, (position - r->base_position) * r->layout.kinds[i].n_input * sizeof(float),
                                  "the journal of a recurrent layer");
    }
    return SK_OK;
}

float *sk_recurrent_advance(struct sk_recurrent *r, size_t layer, const float *input) {
    const struct sk_recurrent_kind *k = &r->layout.kinds[layer];
    struct layer_state *l = &r->layers[layer];
    memcpy(l->journal + l->n_journal++ * k->n_input, input, k->n_input * sizeof *input);
    k->step(k->ctx, l->state, input);
    return l->state;
}

static void step_through(const struct sk_recurrent_kind *k, float *state, const float *journal, size_t n) {
    for (size_t i = 0; i < n; i++) k->step(k->ctx, state, journal + i * k->n_input);
}

/* Moves the base on when the journal has become twice as long as it must be. */
static void follow(struct sk_recurrent *r, uint32_t position) {
    const size_t n = position - r->base_position;
    if (n <= 2 * SK_RECURRENT_KEPT) return;
    const size_t gone = n - SK_RECURRENT_KEPT;
    for (size_t i = 0; i < r->layout.n_layers; i++) {
        const struct sk_recurrent_kind *k = &r->layout.kinds[i];
        struct layer_state *l = &r->layers[i];
        step_through(k, l->base, l->journal, gone);
        memmove(l->journal, l->journal + gone * k->n_input, (n - gone) * k->n_input * sizeof *l->journal);
        l->n_journal = n - gone;
    }
    r->base_position += (uint32_t)gone;
}

sk_status sk_recurrent_trim(struct sk_recurrent *r, uint32_t from, uint32_t position, struct sk_error *err) {
    if (position < r->base_position)
        return sk_fail(err, SK_EINVAL,
                       "a session at position %u cannot go back to %u: its recurrent state is kept from %u on", from,
                       position, r->base_position);
    const size_t n = position - r->base_position;
    for (size_t i = 0; i < r->layout.n_layers && position != from; i++) {
        const struct sk_recurrent_kind *k = &r->layout.kinds[i];
        struct layer_state *l = &r->layers[i];
        memcpy(l->state, l->base, k->n_state * sizeof *l->state);
        step_through(k, l->state, l->journal, n);
        l->n_journal = n;
    }
    follow(r, position);
    return SK_OK;
}

uint64_t sk_recurrent_hash(const struct sk_recurrent *r, uint64_t seed) {
    for (size_t i = 0; i < r->layout.n_layers; i++)
        seed = XXH3_64bits_withSeed(r->layers[i].state, r->layout.kinds[i].n_state * sizeof(float), seed);
    return seed;
}
