/* Recurrent state of a session: what layers with a running state (linear attention, convolutions) remember, with a way
 * back.
 *
 * A base state stands at some position; a journal keeps each layer's inputs for the positions since. The current state
 * is always the base stepped through the journal in order, so going back is replaying: the same steps on the same
 * inputs, hence the same bits. The base follows at a distance: at least SK_RECURRENT_KEPT positions can be taken back.
 */
#ifndef SK_CACHE_RECURRENT_H
#define SK_CACHE_RECURRENT_H

#include "base/error.h"
#include "kernels/ops.h"

enum { SK_RECURRENT_KEPT = 64 };

/* What the layers of a model keep, by recurrent layer. */
struct sk_recurrent_layout {
    const struct sk_recurrent_kind *kinds;
    size_t n_layers;
};

struct sk_recurrent;

/* At position 0, all states zero. The layout is borrowed. NULL when memory is short. */
struct sk_recurrent *sk_recurrent_create(const struct sk_recurrent_layout *layout);
void sk_recurrent_free(struct sk_recurrent *r);
/* Room for the journal up to (not including) `position`. */
sk_status sk_recurrent_reserve(struct sk_recurrent *r, size_t position, struct sk_error *err);
/* Steps one layer with the input of its next position, and gives the state after it. Room must have been reserved. */
float *sk_recurrent_advance(struct sk_recurrent *r, size_t layer, const float *input);
/* Makes `position` the current one, `from` being the present one. Fails, with nothing changed, if that is before the
 * base. */
sk_status sk_recurrent_trim(struct sk_recurrent *r, uint32_t from, uint32_t position, struct sk_error *err);
uint64_t sk_recurrent_hash(const struct sk_recurrent *r, uint64_t seed);

#endif
