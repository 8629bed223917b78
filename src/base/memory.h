/* Memory with checked sizes: arrays, and large aligned regions for weights and caches. */
#ifndef SK_BASE_MEMORY_H
#define SK_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed array of n elements; NULL on overflow or when memory is short. Free with free(). */
void *sk_calloc(size_t n, size_t size);
/* Grows `*array` (elements of `size` bytes, capacity `*cap`) to hold at least `need`; false leaves it as it was. */
bool sk_grow(void *array, size_t *cap, size_t need, size_t size);

/* Zeroed, 64-byte aligned memory, on huge pages where the system gives them. NULL on failure. */
void *sk_region_alloc(size_t n_bytes);
void sk_region_free(void *p, size_t n_bytes);

/* Bytes of memory this process could still take, as the system (and its cgroup) sees it; SIZE_MAX if unknown. */
size_t sk_memory_available(void);

static inline size_t sk_round_up(size_t n, size_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

#endif
