/* Private to text/: merging neighbours, the best pair first, with a heap over a linked list. O(n log n). Used by both
 * BPE (best = least rank) and SentencePiece (best = greatest score); of equals the leftmost goes first. */
#ifndef SK_TEXT_MERGING_H
#define SK_TEXT_MERGING_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
    size_t start, n;         /* its bytes in the text; n == 0 once it was merged into its left neighbour */
    int32_t id;              /* token, or SK_NO_TOKEN */
    uint32_t previous, next; /* UINT32_MAX at the ends */
};

struct candidate {
    double order; /* the smallest goes first */
    uint32_t left;
    int32_t result;
    size_t n; /* bytes of both parts when the candidate was made: tells whether it still stands */
};

struct merging {
    struct symbol *symbols;
    size_t n_symbols, cap_symbols;
    struct candidate *heap;
    size_t n_heap, cap_heap;
};

/* Whether two neighbours can be merged: fills order and result. */
typedef bool sk_pair_fn(const void *ctx, const struct symbol *left, const struct symbol *right, struct candidate *out);

void sk_merging_clear(struct merging *m);
bool sk_merging_add(struct merging *m, size_t start, size_t n, int32_t id);
/* Merges until no pair can be; symbols with n > 0, in list order from 0, are the result. */
sk_status sk_merging_run(struct merging *m, sk_pair_fn *pair, const void *ctx, struct sk_error *err);
void sk_merging_free(struct merging *m);

#endif
