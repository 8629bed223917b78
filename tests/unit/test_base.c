/* Threads, strings, arenas, UTF-8. */
#include "harness.h"

#include <stdatomic.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/utf8.h"

struct job {
    atomic_uint *hits;
    size_t n;
    uint64_t *sums; /* written by index: what a job writes must be seen when it is over */
};

static void hit(void *ctx, size_t i, size_t thread) {
    const struct job *j = ctx;
    assert_true(i < j->n);
    (void)thread;
    atomic_fetch_add(&j->hits[i], 1);
    j->sums[i] += i;
}

/* Many short jobs of changing sizes: an index taken twice, or taken for a job that is over, shows here (and under
 * TSan). */
static void run_jobs(size_t n_threads, size_t n_jobs) {
    struct sk_error err = {0};
    struct sk_pool *pool;
    atomic_uint hits[64];
    uint64_t sums[64], seed = n_threads;
    assert_sk_ok(sk_pool_create(n_threads, &pool, &err));
    for (size_t k = 0; k < n_jobs; k++) {
        struct job j = {hits, random_below(&seed, 64), sums};
        for (size_t i = 0; i < 64; i++) atomic_store(&hits[i], 0), sums[i] = 0;
        sk_pool_run(pool, j.n, hit, &j);
        for (size_t i = 0; i < 64; i++)
            if (atomic_load(&hits[i]) != (i < j.n) || sums[i] != (i < j.n ? i : 0))
                fail_msg("job %zu, index %zu of %zu: %u hits", k, i, j.n, atomic_load(&hits[i]));
    }
    sk_pool_destroy(pool);
}

static void test_every_index_runs_exactly_once(void **state) {
    (void)state;
    run_jobs(1, 100);
    run_jobs(2, 20000);
}
static void test_more_threads_than_processors_change_nothing(void **state) {
    (void)state;
    run_jobs(3, 3000);
    run_jobs(16, 500);
}
static void test_impossible_thread_counts_are_refused(void **state) {
    (void)state;
    struct sk_error err = {0};
    struct sk_pool *pool;
    assert_int_equal(sk_pool_create(0, &pool, &err), SK_EINVAL);
    assert_int_equal(sk_pool_create(257, &pool, &err), SK_EINVAL);
}

static void test_growing_never_overflows(void **state) {
    (void)state;
    int32_t *a = NULL;
    size_t cap = 0;
    assert_false(sk_grow(&a, &cap, SIZE_MAX / 2, sizeof *a));
    assert_null(a);
    assert_true(sk_grow(&a, &cap, 10, sizeof *a));
    assert_true(cap >= 10);
    assert_null(sk_calloc(SIZE_MAX / 4, 8));
    free(a);
}

static void test_an_arena_keeps_its_limit(void **state) {
    (void)state;
    struct sk_arena a = {.limit_bytes = 10000};
    size_t n = 0;
    while (sk_arena_alloc(&a, 100)) n++;
    assert_in_range(n, 10, 100);
    assert_null(sk_arena_array(&a, SIZE_MAX / 2, 16));
    sk_arena_free(&a);
}

static void test_a_buffer_fails_once_and_stays_failed(void **state) {
    (void)state;
    struct sk_buf b = {.limit = 8};
    sk_buf_puts(&b, "12345");
    assert_false(b.failed);
    sk_buf_puts(&b, "67890");
    assert_true(b.failed);
    assert_string_equal(b.data, "12345");
    sk_buf_free(&b);
}

static void test_utf8_refuses_what_rfc_3629_refuses(void **state) {
    (void)state;
    static const char *const bad[] = {
        "\x80", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80", "\xFF", "\xC3("};
    size_t len;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(sk_utf8_decode(bad[i], strlen(bad[i]), &len), SK_UTF8_BAD);
        assert_int_equal(len, 1);
    }
    assert_int_equal(sk_utf8_decode("\xF0\x9F\x98", 3, &len), SK_UTF8_SHORT);
    for (uint32_t cp = 0; cp < 0x110000; cp += cp < 0x3000 ? 1 : 97) {
        char out[4];
        if (cp >= 0xD800 && cp < 0xE000) continue;
        const size_t n = sk_utf8_encode(cp, out);
        assert_int_equal(sk_utf8_decode(out, n, &len), (int32_t)cp);
        assert_int_equal(len, n);
        assert_int_equal(sk_utf8_complete(out, n), n);
        if (n > 1) assert_int_equal(sk_utf8_complete(out, n - 1), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_runs_exactly_once),
        cmocka_unit_test(test_more_threads_than_processors_change_nothing),
        cmocka_unit_test(test_impossible_thread_counts_are_refused),
        cmocka_unit_test(test_growing_never_overflows),
        cmocka_unit_test(test_an_arena_keeps_its_limit),
        cmocka_unit_test(test_a_buffer_fails_once_and_stays_failed),
        cmocka_unit_test(test_utf8_refuses_what_rfc_3629_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
