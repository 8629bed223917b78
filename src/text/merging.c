#include "text/merging.h"

#include <stdlib.h>

#include "base/memory.h"

void sk_merging_clear(struct merging *m) {
    m->n_symbols = m->n_heap = 0;
}

bool sk_merging_add(struct merging *m, size_t start, size_t n, int32_t id) {
    if (m->n_symbols >= UINT32_MAX - 1 || !sk_grow(&m->symbols, &m->cap_symbols, m->n_symbols + 1, sizeof *m->symbols))
        return false;
    const uint32_t i = (uint32_t)m->n_symbols++;
    m->symbols[i] = (struct symbol){start, n, id, i ? i - 1 : UINT32_MAX, UINT32_MAX};
    if (i) m->symbols[i - 1].next = i;
    return true;
}

static bool before(const struct candidate *a, const struct candidate *b) {
    return a->order < b->order || (a->order == b->order && a->left < b->left);
}

static bool push(struct merging *m, struct candidate c) {
    if (!sk_grow(&m->heap, &m->cap_heap, m->n_heap + 1, sizeof *m->heap)) return false;
    size_t i = m->n_heap++;
    for (; i && before(&c, &m->heap[(i - 1) / 2]); i = (i - 1) / 2) m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = c;
    return true;
}

static struct candidate pop(struct merging *m) {
    const struct candidate top = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->n_heap; i = child) {
        if (child + 1 < m->n_heap && before(&m->heap[child + 1], &m->heap[child])) child++;
        if (!before(&m->heap[child], &last)) break;
        m->heap[i] = m->heap[child];
    }
    if (m->n_heap) m->heap[i] = last;
    return top;
}

static bool consider(struct merging *m, uint32_t left, sk_pair_fn *pair, const void *ctx) {
    if (left == UINT32_MAX || m->symbols[left].next == UINT32_MAX) return true;
    const struct symbol *a = &m->symbols[left], *b = &m->symbols[a->next];
    struct candidate c = {.left = left, .n = a->n + b->n};
    return !pair(ctx, a, b, &c) || push(m, c);
}

sk_status sk_merging_run(struct merging *m, sk_pair_fn *pair, const void *ctx, struct sk_error *err) {
    for (uint32_t i = 0; i + 1 < m->n_symbols; i++)
        if (!consider(m, i, pair, ctx)) goto memory;
    while (m->n_heap) {
        const struct candidate c = pop(m);
        struct symbol *a = &m->symbols[c.left];
        /* Stale if either part was merged since: then their bytes no longer add up, or the left one is gone. */
        if (a->n == 0 || a->next == UINT32_MAX || a->n + m->symbols[a->next].n != c.n) continue;
        struct candidate now = {0};
        if (!pair(ctx, a, &m->symbols[a->next], &now) || now.result != c.result || now.order != c.order) continue;
        struct symbol *b = &m->symbols[a->next];
        a->n += b->n;
        a->id = c.result;
        a->next = b->next;
        b->n = 0;
        if (a->next != UINT32_MAX) m->symbols[a->next].previous = c.left;
        if (!consider(m, a->previous, pair, ctx) || !consider(m, c.left, pair, ctx)) goto memory;
    }
    return SK_OK;
memory:
    return sk_fail_memory(err, m->cap_heap * sizeof *m->heap, "merging");
}

void sk_merging_free(struct merging *m) {
    free(m->symbols);
    free(m->heap);
    *m = (struct merging){0};
}
