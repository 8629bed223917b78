/* Sessions: pages, trims, limits. */
#include "harness.h"

#include "base/memory.h"
#include "cache/kv.h"

static const struct sk_kv_layout layout = {.n_layers = 2, .n_kv_heads = 2, .head_dim = 8, .head_dim_v = 16};

static struct sk_kv_pool *pool_of(size_t n_positions) {
    struct sk_kv_pool *pool;
    struct sk_error err = {0};
    assert_sk_ok(sk_kv_pool_create(&layout, n_positions, &pool, &err));
    return pool;
}

static void test_a_session_takes_pages_as_it_grows_and_gives_them_back(void **state) {
    (void)state;
    struct sk_error err = {0};
    struct sk_kv_pool *pool = pool_of(4 * SK_TILE);
    struct sk_session *s;
    assert_sk_ok(sk_session_open(pool, &s, &err));
    assert_sk_ok(sk_session_reserve(s, SK_TILE + 1, &err));
    assert_int_equal(s->n_pages, 2);
    assert_int_equal(sk_kv_pool_free_positions(pool), 2 * SK_TILE);
    s->position = SK_TILE + 1;
    assert_sk_ok(sk_session_trim(s, SK_TILE, &err));
    assert_int_equal(s->n_pages, 1);
    sk_session_close(s);
    assert_int_equal(sk_kv_pool_free_positions(pool), 4 * SK_TILE);
    sk_kv_pool_free(pool);
}

static void test_a_full_pool_refuses_with_bytes_and_changes_nothing(void **state) {
    (void)state;
    struct sk_error err = {0};
    struct sk_kv_pool *pool = pool_of(3 * SK_TILE);
    struct sk_session *a, *b;
    assert_sk_ok(sk_session_open(pool, &a, &err));
    assert_sk_ok(sk_session_open(pool, &b, &err));
    assert_sk_ok(sk_session_reserve(a, 2 * SK_TILE, &err));
    assert_int_equal(sk_session_reserve(b, 2 * SK_TILE, &err), SK_ENOMEM);
    assert_non_null(strstr(err.message, "bytes"));
    assert_int_equal(b->n_pages, 0);
    assert_sk_ok(sk_session_reserve(b, SK_TILE, &err));
    sk_session_close(a);
    sk_session_close(b);
    sk_kv_pool_free(pool);
}

static void test_a_trim_forward_is_refused(void **state) {
    (void)state;
    struct sk_error err = {0};
    struct sk_kv_pool *pool = pool_of(SK_TILE);
    struct sk_session *s;
    assert_sk_ok(sk_session_open(pool, &s, &err));
    assert_int_equal(sk_session_trim(s, 1, &err), SK_EINVAL);
    sk_session_close(s);
    sk_kv_pool_free(pool);
}

static void test_more_memory_than_there_is_is_refused_before_it_is_taken(void **state) {
    (void)state;
    struct sk_error err = {0};
    struct sk_kv_pool *pool;
    assert_int_equal(sk_kv_pool_create(&layout, SIZE_MAX / 4096, &pool, &err), SK_ENOMEM);
    assert_int_equal(sk_kv_pool_create(&layout, (size_t)1 << 40, &pool, &err), SK_ENOMEM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session_takes_pages_as_it_grows_and_gives_them_back),
        cmocka_unit_test(test_a_full_pool_refuses_with_bytes_and_changes_nothing),
        cmocka_unit_test(test_a_trim_forward_is_refused),
        cmocka_unit_test(test_more_memory_than_there_is_is_refused_before_it_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
