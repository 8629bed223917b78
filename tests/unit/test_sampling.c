/* Sampling: a pure function, and the right distribution. */
#include "harness.h"

#include <math.h>

#include "base/exact_math.h"
#include "sampling/sampling.h"

enum { N = 64 };

static struct sk_sampler *sampler_of(size_t n) {
    struct sk_sampler *s;
    struct sk_error err = {0};
    assert_sk_ok(sk_sampler_create(n, &s, &err));
    return s;
}

static struct sk_sampling_params plain(float temperature) {
    struct sk_sampling_params p = sk_sampling_defaults();
    p.temperature = temperature;
    p.top_k = 0;
    p.top_p = 1.0f;
    p.min_p = 0.0f;
    return p;
}

static void fill_logits(float *l, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) l[i] = (float)(int64_t)next_random(&seed) * 0x1p-62f;
}

static void test_greedy_takes_the_lowest_id_among_equals(void **state) {
    (void)state;
    struct sk_sampler *s = sampler_of(N);
    float l[N] = {0};
    const struct sk_sampling_params p = plain(0.0f);
    assert_int_equal(sk_sample(s, &p, l, NULL, 0, 0, NULL), 0);
    l[7] = l[40] = 3.0f;
    assert_int_equal(sk_sample(s, &p, l, NULL, 0, 0, NULL), 7);
    sk_sampler_free(s);
}

/* Chi-square of draws over positions against softmax; 25 of 24 degrees of freedom is usual, 60 is one in 20,000. */
static double chi_square(const struct sk_sampling_params *params, const float *l, size_t n, const double *want) {
    struct sk_sampler *s = sampler_of(n);
    size_t counts[N] = {0};
    const size_t draws = 200000;
    struct sk_sampling_params p = *params;
    for (size_t i = 0; i < draws; i++) {
        p.seed = i % 1000;
        counts[sk_sample(s, &p, l, NULL, 0, i / 1000, NULL)]++;
    }
    double chi = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double expected = want[i] * (double)draws, d = (double)counts[i] - expected;
        if (expected == 0.0)
            assert_int_equal(counts[i], 0);
        else
            chi += d * d / expected;
    }
    sk_sampler_free(s);
    return chi;
}

static void softmax(const float *l, size_t n, double temperature, double *out) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += out[i] = exp((double)l[i] / temperature);
    for (size_t i = 0; i < n; i++) out[i] /= sum;
}

static void test_draws_follow_softmax(void **state) {
    (void)state;
    float l[25];
    double want[25];
    fill_logits(l, 25, 5);
    for (double t = 0.5; t < 2.1; t *= 2.0) {
        const struct sk_sampling_params p = plain((float)t);
        softmax(l, 25, t, want);
        const double chi = chi_square(&p, l, 25, want);
        if (chi > 60.0) fail_msg("temperature %g: chi-square %g over 24 degrees of freedom", t, chi);
    }
}

static void test_filters_cut_the_tail_and_keep_the_rest_in_proportion(void **state) {
    (void)state;
    float l[20];
    double want[20], sum = 0.0;
    for (size_t i = 0; i < 20; i++) l[i] = -0.3f * (float)((i * 7) % 20); /* most likely first: 0, 3, 6, 9, … */
    struct sk_sampling_params p = plain(1.0f);
    p.top_k = 5;
    softmax(l, 20, 1.0, want);
    for (size_t i = 0; i < 20; i++) sum += want[i] *= (i * 7) % 20 < 5;
    for (size_t i = 0; i < 20; i++) want[i] /= sum;
    assert_true(chi_square(&p, l, 20, want) < 35.0);
    /* min-p 0.5: logits within ln 2 of the first, that is the first three */
    p = plain(1.0f);
    p.min_p = 0.5f;
    softmax(l, 20, 1.0, want), sum = 0.0;
    for (size_t i = 0; i < 20; i++) sum += want[i] *= (i * 7) % 20 < 3;
    for (size_t i = 0; i < 20; i++) want[i] /= sum;
    assert_true(chi_square(&p, l, 20, want) < 30.0);
    /* top-p 0.5: e^(-0.3 k) (1 - e^-0.3) sums to 0.5 at k = 2, so three tokens again */
    p = plain(1.0f);
    p.top_p = 0.5f;
    assert_true(chi_square(&p, l, 20, want) < 30.0);
    p = plain(1.0f);
    p.typical_p = 0.2f;
    struct sk_sampler *s = sampler_of(20);
    for (uint64_t i = 0; i < 1000; i++) {
        const size_t rank = (size_t)(sk_sample(s, &p, l, NULL, 0, i, NULL) * 7) % 20;
        assert_in_range(rank, 1, 7); /* about the entropy, so neither the most likely nor the tail */
    }
    sk_sampler_free(s);
}

static void test_selection_ends_on_every_shape_of_input(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 3000; round++) {
        const size_t n = 2 + random_below(&seed, 200);
        float l[256];
        const int kind = round % 4;
        for (size_t i = 0; i < n; i++)
            l[i] = kind == 0   ? (float)i
                   : kind == 1 ? -(float)i
                   : kind == 2 ? (float)random_below(&seed, 3)
                               : (float)random_below(&seed, 1000);
        struct sk_sampler *s = sampler_of(n);
        struct sk_sampling_params p = plain(1.0f);
        p.top_k = (uint32_t)(1 + random_below(&seed, n));
        const int32_t got = sk_sample(s, &p, l, NULL, 0, 0, NULL);
        size_t before = 0;
        for (size_t i = 0; i < n; i++) before += l[i] > l[got] || (l[i] == l[got] && (int32_t)i < got);
        assert_true(before < p.top_k);
        sk_sampler_free(s);
    }
}

static void test_penalties_look_at_their_window_only(void **state) {
    (void)state;
    struct sk_sampler *s = sampler_of(N);
    float l[N] = {0};
    struct sk_sampling_params p = plain(0.0f);
    const int32_t history[] = {5, 6, 6, 7};
    l[5] = 3.0f, l[6] = 2.9f, l[7] = 2.8f, l[8] = 2.0f;
    p.repetition_penalty = 2.0f;
    p.penalty_window = 3;
    assert_int_equal(sk_sample(s, &p, l, history, 4, 4, NULL), 5);
    p.penalty_window = 0;
    assert_false(sk_sampling_looks_back(&p));
    assert_int_equal(sk_sample(s, &p, l, history, 4, 4, NULL), 5);
    p.penalty_window = SK_PENALIZE_ALL;
    assert_int_equal(sk_sample(s, &p, l, history, 4, 4, NULL), 8);
    p.repetition_penalty = 1.0f;
    p.frequency_penalty = 0.15f; /* 5: 2.85, 6: 2.6, 7: 2.65 */
    assert_int_equal(sk_sample(s, &p, l, history, 4, 4, NULL), 5);
    p.frequency_penalty = 0.0f;
    p.presence_penalty = 1.5f;
    assert_int_equal(sk_sample(s, &p, l, history, 4, 4, NULL), 8);
    const struct sk_logit_bias bias[] = {{8, -INFINITY}, {9, 2.5f}};
    p.bias = bias;
    p.n_bias = 2;
    assert_int_equal(sk_sample(s, &p, l, history, 4, 4, NULL), 9);
    sk_sampler_free(s);
}

static void test_log_probabilities_are_the_models_own(void **state) {
    (void)state;
    struct sk_sampler *s = sampler_of(25);
    float l[25];
    double want[25], got;
    fill_logits(l, 25, 9);
    softmax(l, 25, 1.0, want);
    struct sk_sampling_params p = plain(1.7f);
    p.top_k = 3;
    const int32_t token = sk_sample(s, &p, l, NULL, 0, 0, &got);
    assert_true(fabs(got - log(want[token])) < 1e-9);
    sk_sampler_free(s);
}

/* The skipped noise of candidates that cannot win must never have won. */
static void test_the_shortcut_changes_no_draw(void **state) {
    (void)state;
    uint64_t seed = 11;
    struct sk_sampler *s = sampler_of(N);
    for (int round = 0; round < 5000; round++) {
        float l[N];
        fill_logits(l, N, next_random(&seed));
        struct sk_sampling_params p = plain(0.1f + (float)random_below(&seed, 30) * 0.1f);
        p.seed = next_random(&seed);
        double best = -INFINITY;
        int32_t want = 0;
        for (uint32_t i = 0; i < N; i++) {
            const double score = (double)l[i] * (1.0 / p.temperature) + sk_gumbel_noise(p.seed, 77, i);
            if (score > best) best = score, want = (int32_t)i;
        }
        assert_int_equal(sk_sample(s, &p, l, NULL, 0, 77, NULL), want);
    }
    sk_sampler_free(s);
}

/* Two distributions drawn with the same noise agree at least as often as (1 - d) / (1 + d), d their total variation
 * distance. */
static void test_coupled_draws_agree_as_often_as_theory_says(void **state) {
    (void)state;
    struct sk_sampler *s = sampler_of(25);
    float a[25], b[25];
    double pa[25], pb[25], distance = 0.0;
    fill_logits(a, 25, 21);
    fill_logits(b, 25, 22);
    for (size_t i = 0; i < 25; i++) b[i] = a[i] + 0.4f * b[i];
    softmax(a, 25, 1.0, pa);
    softmax(b, 25, 1.0, pb);
    for (size_t i = 0; i < 25; i++) distance += fabs(pa[i] - pb[i]) / 2.0;
    struct sk_sampling_params p = plain(1.0f);
    const size_t draws = 50000;
    size_t agree = 0;
    for (size_t i = 0; i < draws; i++) {
        p.seed = i;
        agree += sk_sample(s, &p, a, NULL, 0, 3, NULL) == sk_sample(s, &p, b, NULL, 0, 3, NULL);
    }
    const double rate = (double)agree / (double)draws, bound = (1.0 - distance) / (1.0 + distance);
    if (rate < bound - 0.005) fail_msg("agreement %g, at least %g was expected", rate, bound);
    sk_sampler_free(s);
}

static void test_bad_parameters_are_named(void **state) {
    (void)state;
    struct sk_error err = {0};
    struct sk_sampling_params p = sk_sampling_defaults();
    assert_sk_ok(sk_sampling_check(&p, N, &err));
    p.temperature = NAN;
    assert_int_equal(sk_sampling_check(&p, N, &err), SK_EINVAL);
    assert_non_null(strstr(err.message, "temperature"));
    p = sk_sampling_defaults();
    const struct sk_logit_bias bias = {N, 1.0f};
    p.bias = &bias, p.n_bias = 1;
    assert_int_equal(sk_sampling_check(&p, N, &err), SK_EINVAL);
    assert_non_null(strstr(err.message, "64"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_takes_the_lowest_id_among_equals),
        cmocka_unit_test(test_draws_follow_softmax),
        cmocka_unit_test(test_filters_cut_the_tail_and_keep_the_rest_in_proportion),
        cmocka_unit_test(test_selection_ends_on_every_shape_of_input),
        cmocka_unit_test(test_penalties_look_at_their_window_only),
        cmocka_unit_test(test_log_probabilities_are_the_models_own),
        cmocka_unit_test(test_the_shortcut_changes_no_draw),
        cmocka_unit_test(test_coupled_draws_agree_as_often_as_theory_says),
        cmocka_unit_test(test_bad_parameters_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
