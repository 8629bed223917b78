/* Which tables this processor can run. Decided once, at the first question. */
#include "isa.h"

#if defined(SK_HAVE_X86)
#include <cpuid.h>
#endif
#include <pthread.h>
#include <string.h>

enum { MAX_TABLES = 4 };

static struct {
    struct sk_kernels tables[MAX_TABLES]; /* the fastest last */
    size_t n;
} known;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct sk_kernels *next_table(void) {
    struct sk_kernels *k = &known.tables[known.n];
    if (known.n) *k = known.tables[known.n - 1];
    known.n++;
    return k;
}

#if defined(SK_HAVE_X86)
/* clang 14's __builtin_cpu_supports does not know f16c: CPUID leaf 1, ECX bit 29. */
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & 1u << 29);
}
#endif

static void find_tables(void) {
    sk_kernels_init_scalar(next_table());
#if defined(SK_HAVE_X86)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return;
    sk_kernels_init_avx2(next_table());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
        sk_kernels_init_avx512(next_table());
#endif
}

const struct sk_kernels *sk_kernels_at(size_t i) {
    pthread_once(&once, find_tables);
    return i < known.n ? &known.tables[known.n - 1 - i] : NULL;
}

const struct sk_kernels *sk_kernels_named(const char *name) {
    for (size_t i = 0;; i++) {
        const struct sk_kernels *k = sk_kernels_at(i);
        if (!k || strcmp(k->name, name) == 0) return k;
    }
}
