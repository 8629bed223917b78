#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 * 1024 * 1024 };

void *sk_calloc(size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
    return calloc(1, bytes ? bytes : 1);
}

bool sk_grow(void *array, size_t *cap, size_t need, size_t size) {
    if (need <= *cap) return true;
    size_t grown = *cap ? *cap : 16, bytes;
    while (grown < need)
        if (__builtin_mul_overflow(grown, (size_t)2, &grown)) return false;
    if (__builtin_mul_overflow(grown, size, &bytes)) return false;
    void *old, *p;
    memcpy(&old, array, sizeof old); /* the caller's pointer may be of any object type */
    p = realloc(old, bytes);
    if (!p) return false;
    memcpy(array, &p, sizeof p);
    *cap = grown;
    return true;
}

void *sk_region_alloc(size_t n_bytes) {
    if (n_bytes == 0) n_bytes = 1;
    const size_t align = n_bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
    if (n_bytes > SIZE_MAX - align) return NULL;
    if (align == 64) {
        void *p = aligned_alloc(64, sk_round_up(n_bytes, 64));
        if (p) memset(p, 0, n_bytes);
        return p;
    }
    void *p =
        mmap(NULL, n_bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    /* Give back what lies before and after the aligned part. */
    char *start = p, *aligned = (char *)sk_round_up((uintptr_t)start, HUGE_PAGE);
    char *end = start + n_bytes + HUGE_PAGE, *used_end = (char *)sk_round_up((uintptr_t)(aligned + n_bytes), 4096);
    if (aligned > start) munmap(start, (size_t)(aligned - start));
    if (end > used_end) munmap(used_end, (size_t)(end - used_end));
    madvise(aligned, n_bytes, MADV_HUGEPAGE); /* a hint: failure costs speed only */
    return aligned;
}

void sk_region_free(void *p, size_t n_bytes) {
    if (!p) return;
    if (n_bytes >= HUGE_PAGE)
        munmap(p, n_bytes);
    else
        free(p);
}

static size_t read_number(const char *path, const char *key) {
    FILE *f = fopen(path, "re");
    if (!f) return SIZE_MAX;
    char line[256];
    size_t value = SIZE_MAX;
    while (fgets(line, sizeof line, f)) {
        const size_t n = strlen(key);
        if (strncmp(line, key, n) != 0) continue;
        char *end;
        const unsigned long long v = strtoull(line + n, &end, 10);
        if (end != line + n) value = (size_t)v;
        break;
    }
    fclose(f);
    return value;
}

size_t sk_memory_available(void) {
    const size_t kb = read_number("/proc/meminfo", "MemAvailable:");
    size_t available = kb > SIZE_MAX / 1024 ? SIZE_MAX : kb * 1024;
    const size_t max = read_number("/sys/fs/cgroup/memory.max", "");
    const size_t now = read_number("/sys/fs/cgroup/memory.current", "");
    if (max != SIZE_MAX && now != SIZE_MAX) {
        const size_t left = max > now ? max - now : 0;
        if (left < available) available = left;
    }
    return available;
}
