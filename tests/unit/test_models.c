/* Models are right: logits against transformers in float64 (tests/oracle/make_models.py), and equal bits however the
 * rows are cut. */
#include "harness.h"

#include <math.h>

#include "base/memory.h"
#include "runtime/runtime.h"

struct expected {
    struct sk_buf file;
    int32_t n_tokens, n_vocab;
    const int32_t *tokens;
    const float *logits;
};

static struct expected load_expected(const char *name) {
    char path[256];
    struct expected e;
    snprintf(path, sizeof path, "tests/oracle/models/%s.logits", name);
    e.file = repo_file(path);
    memcpy(&e.n_tokens, e.file.data, 4);
    memcpy(&e.n_vocab, e.file.data + 4, 4);
    e.tokens = (const int32_t *)(const void *)(e.file.data + 8);
    e.logits = (const float *)(const void *)(e.tokens + e.n_tokens);
    return e;
}

static struct sk_runtime *open_runtime(const char *name, const char *isa, size_t n_threads, struct sk_gguf **g) {
    char path[256];
    struct sk_error err = {0};
    struct sk_runtime *rt;
    const struct sk_runtime_options options = {.n_threads = n_threads, .isa = isa, .max_rows = 16};
    snprintf(path, sizeof path, "tests/oracle/models/%s.gguf", name);
    assert_sk_ok(sk_gguf_open(repo_path(path), g, &err));
    assert_sk_ok(sk_runtime_create(*g, &options, &rt, &err));
    return rt;
}

/* All rows' logits, in chunks. */
static float *run_all(struct sk_runtime *rt, const struct expected *e, size_t chunk) {
    struct sk_error err = {0};
    struct sk_session *s;
    const size_t stride = sk_model_logits_stride(rt->model), n = (size_t)e->n_tokens;
    float *logits = sk_calloc(n * stride, sizeof *logits);
    struct sk_row rows[128];
    assert_sk_ok(sk_session_open(rt->kv, &s, &err));
    for (size_t i = 0; i < n; i += chunk) {
        size_t m = 0;
        for (; m < chunk && i + m < n; m++) rows[m] = (struct sk_row){s, e->tokens[i + m], true};
        assert_sk_ok(sk_runtime_run(rt, rows, m, logits + i * stride, &err));
    }
    assert_int_equal(s->position, n);
    sk_session_close(s);
    return logits;
}

/* Root of the mean squared difference, relative to the logits' own spread. */
static double relative_error(const struct expected *e, const float *logits, size_t stride) {
    double difference = 0.0, size = 0.0;
    for (int32_t i = 0; i < e->n_tokens; i++)
        for (int32_t v = 0; v < e->n_vocab; v++) {
            const double want = (double)e->logits[i * e->n_vocab + v],
                         got = (double)logits[(size_t)i * stride + (size_t)v];
            difference += (got - want) * (got - want);
            size += want * want;
        }
    return sqrt(difference / size);
}

static void check_model(const char *name, double tolerance) {
    struct sk_gguf *g;
    struct expected e = load_expected(name);
    struct sk_runtime *rt = open_runtime(name, NULL, 2, &g);
    float *logits = run_all(rt, &e, 70);
    const double error = relative_error(&e, logits, sk_model_logits_stride(rt->model));
    print_message("%s: relative error %.2g\n", name, error);
    if (!(error < tolerance)) fail_msg("%s: relative error %g, allowed %g", name, error, tolerance);
    free(logits);
    sk_runtime_free(rt);
    sk_gguf_close(g);
    sk_buf_free(&e.file);
}

/* What is left is the rounding of keys and values to f16; int8 activations add theirs. */
static const double FLOAT_TOLERANCE = 2e-3, INT8_TOLERANCE = 4e-2;

static void test_float_weights_agree_with_transformers(void **state) {
    (void)state;
    check_model("f32", FLOAT_TOLERANCE);
    check_model("f16", FLOAT_TOLERANCE);
    check_model("bf16", FLOAT_TOLERANCE);
}
static void test_quantised_weights_agree_with_transformers(void **state) {
    (void)state;
    check_model("q4_0", INT8_TOLERANCE);
    check_model("q4_1", INT8_TOLERANCE);
    check_model("q5_0", INT8_TOLERANCE);
    check_model("q5_1", INT8_TOLERANCE);
    check_model("q8_0", INT8_TOLERANCE);
}
static void test_variants_agree_with_transformers(void **state) {
    (void)state;
    check_model("tied", FLOAT_TOLERANCE);
    check_model("bias", FLOAT_TOLERANCE);
    check_model("wide_heads", FLOAT_TOLERANCE);
}
static void test_rope_scalings_agree_with_transformers(void **state) {
    (void)state;
    check_model("linear", FLOAT_TOLERANCE);
    check_model("yarn", FLOAT_TOLERANCE);
    check_model("llama3", FLOAT_TOLERANCE);
}

static void compare_bits(const char *name, const char *isa, size_t n_threads, size_t chunk) {
    struct sk_gguf *g;
    struct expected e = load_expected(name);
    struct sk_runtime *rt = open_runtime(name, "scalar", 1, &g);
    float *want = run_all(rt, &e, 1);
    const size_t bytes = (size_t)e.n_tokens * sk_model_logits_stride(rt->model) * sizeof *want;
    sk_runtime_free(rt);
    sk_gguf_close(g);
    rt = open_runtime(name, isa, n_threads, &g);
    float *got = run_all(rt, &e, chunk);
    if (memcmp(want, got, bytes) != 0)
        fail_msg("%s: other bits with isa %s, %zu threads, chunks of %zu", name, isa ? isa : "best", n_threads, chunk);
    free(want);
    free(got);
    sk_runtime_free(rt);
    sk_gguf_close(g);
    sk_buf_free(&e.file);
}

static void test_every_tensor_type_gives_the_scalar_bits_on_every_table(void **state) {
    (void)state;
    static const char *const names[] = {"f32",  "f16",  "bf16", "q4_0", "q4_1",
                                        "q5_0", "q5_1", "q8_0", "bias", "wide_heads"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; sk_kernels_at(k); k++) {
            compare_bits(names[i], sk_kernels_at(k)->name, 1, 1);
            compare_bits(names[i], sk_kernels_at(k)->name, 3, 13);
        }
}

/* Contexts long enough for threads to share one row's walk over its keys. */
static void test_long_contexts_give_the_same_bits_however_attention_is_shared(void **state) {
    (void)state;
    static const char *const names[] = {"q8_0", "wide_heads"};
    static int32_t tokens[450];
    uint64_t seed = 8;
    for (size_t i = 0; i < 450; i++) tokens[i] = 3 + (int32_t)random_below(&seed, 250);
    const struct expected e = {.n_tokens = 450, .tokens = tokens};
    for (size_t k = 0; k < 2; k++) {
        struct sk_gguf *g;
        struct sk_runtime *rt = open_runtime(names[k], NULL, 1, &g);
        float *want = run_all(rt, &e, 1);
        const size_t bytes = 450 * sk_model_logits_stride(rt->model) * sizeof *want;
        sk_runtime_free(rt);
        sk_gguf_close(g);
        for (size_t threads = 2; threads <= 5; threads++) {
            static const size_t chunks[] = {1, 2, 5, 8, 13};
            rt = open_runtime(names[k], NULL, threads, &g);
            for (size_t c = 0; c < 5; c++) {
                float *got = run_all(rt, &e, chunks[c]);
                if (memcmp(want, got, bytes) != 0)
                    fail_msg("%s: other bits with %zu threads in chunks of %zu", names[k], threads, chunks[c]);
                free(got);
            }
            sk_runtime_free(rt);
            sk_gguf_close(g);
        }
        free(want);
    }
}

static void test_a_pass_in_two_layer_ranges_equals_one(void **state) {
    (void)state;
    struct sk_gguf *g;
    struct sk_error err = {0};
    struct expected e = load_expected("q4_1");
    struct sk_runtime *rt = open_runtime("q4_1", NULL, 1, &g);
    float *want = run_all(rt, &e, 10);
    struct sk_session *s;
    assert_sk_ok(sk_session_open(rt->kv, &s, &err));
    assert_sk_ok(sk_session_reserve(s, 10, &err));
    const size_t stride = sk_model_logits_stride(rt->model);
    struct sk_row_place places[10];
    uint32_t outputs[10];
    float *x = sk_calloc(10 * rt->model->h.n_embd, sizeof *x), *logits = sk_calloc(10 * stride, sizeof *logits);
    for (uint32_t i = 0; i < 10; i++) places[i] = (struct sk_row_place){i, s->pages}, outputs[i] = i;
    struct sk_forward f = {.rows = 10,
                           .places = places,
                           .tokens = e.tokens,
                           .first_layer = 0,
                           .last_layer = 1,
                           .x = x,
                           .outputs = outputs,
                           .n_outputs = 10,
                           .logits = logits};
    sk_model_forward(rt->model, &rt->ops, rt->ws, &f);
    f.first_layer = 1, f.last_layer = 2, f.tokens = NULL;
    sk_model_forward(rt->model, &rt->ops, rt->ws, &f);
    assert_memory_equal(logits, want, 10 * stride * sizeof *logits);
    free(x);
    free(logits);
    free(want);
    sk_session_close(s);
    sk_runtime_free(rt);
    sk_gguf_close(g);
    sk_buf_free(&e.file);
}

static void test_a_token_out_of_the_vocabulary_is_refused_and_changes_nothing(void **state) {
    (void)state;
    struct sk_gguf *g;
    struct sk_error err = {0};
    struct sk_session *s;
    struct sk_runtime *rt = open_runtime("f16", NULL, 1, &g);
    assert_sk_ok(sk_session_open(rt->kv, &s, &err));
    const struct sk_row rows[] = {{s, 5, false}, {s, 100000, false}};
    assert_int_equal(sk_runtime_run(rt, rows, 2, NULL, &err), SK_EINVAL);
    assert_int_equal(s->position, 0);
    sk_session_close(s);
    sk_runtime_free(rt);
    sk_gguf_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float_weights_agree_with_transformers),
        cmocka_unit_test(test_quantised_weights_agree_with_transformers),
        cmocka_unit_test(test_variants_agree_with_transformers),
        cmocka_unit_test(test_rope_scalings_agree_with_transformers),
        cmocka_unit_test(test_every_tensor_type_gives_the_scalar_bits_on_every_table),
        cmocka_unit_test(test_long_contexts_give_the_same_bits_however_attention_is_shared),
        cmocka_unit_test(test_a_pass_in_two_layer_ranges_equals_one),
        cmocka_unit_test(test_a_token_out_of_the_vocabulary_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
