/* A bump allocator: many small objects with one lifetime, freed together. Not thread-safe. */
#ifndef SK_BASE_ARENA_H
#define SK_BASE_ARENA_H

#include "base/str.h"

#include <stddef.h>

struct sk_arena_block;

/* Zero-initialise. `limit_bytes` bounds what it may take in total (0 = no limit). */
struct sk_arena {
    struct sk_arena_block *head;
    size_t used_bytes, limit_bytes;
};

/* Zeroed memory aligned for any type; NULL when memory or the limit is exhausted. */
void *sk_arena_alloc(struct sk_arena *a, size_t n_bytes);
/* The same for `n` elements of `size` bytes, with the product checked. */
void *sk_arena_array(struct sk_arena *a, size_t n, size_t size);
/* A NUL-terminated copy of `s`. */
char *sk_arena_copy(struct sk_arena *a, struct sk_str s);
void sk_arena_free(struct sk_arena *a);

#endif
