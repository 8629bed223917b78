#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 64 * 1024, ALIGN = 16 };

struct sk_arena_block {
    struct sk_arena_block *next;
    size_t used, cap;
    _Alignas(ALIGN) unsigned char data[];
};

void *sk_arena_alloc(struct sk_arena *a, size_t n_bytes) {
    if (n_bytes > SIZE_MAX / 2) return NULL;
    n_bytes = (n_bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (n_bytes == 0) n_bytes = ALIGN;
    if (a->limit_bytes && (n_bytes > a->limit_bytes || a->used_bytes > a->limit_bytes - n_bytes)) return NULL;
    struct sk_arena_block *block = a->head;
    if (!block || block->cap - block->used < n_bytes) {
        const size_t cap = n_bytes > BLOCK_BYTES ? n_bytes : BLOCK_BYTES;
        block = calloc(1, sizeof *block + cap);
        if (!block) return NULL;
        block->cap = cap;
        block->next = a->head;
        a->head = block;
    }
    void *p = block->data + block->used;
    block->used += n_bytes;
    a->used_bytes += n_bytes;
    return p;
}

void *sk_arena_array(struct sk_arena *a, size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
    return sk_arena_alloc(a, bytes);
}

char *sk_arena_copy(struct sk_arena *a, struct sk_str s) {
    char *p = sk_arena_alloc(a, s.n + 1);
    if (p && s.n) memcpy(p, s.p, s.n);
    return p;
}

void sk_arena_free(struct sk_arena *a) {
    while (a->head) {
        struct sk_arena_block *next = a->head->next;
        free(a->head);
        a->head = next;
    }
    a->used_bytes = 0;
}
