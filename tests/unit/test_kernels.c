/* Weight formats mean what GGUF says. (That all kernel tables agree is checkkernel's subject.) */
#include "harness.h"

#include "base/exact_math.h"
#include "kernels/format.h"
#include "kernels/kernels.h"

#include <math.h>

static void test_dequantisation_equals_the_gguf_packages_value_for_value(void **state) {
    (void)state;
    struct sk_buf file = repo_file("tests/oracle/dequantized.bin");
    size_t at = 0, n_types = 0;
    while (at < file.len) {
        uint32_t head[3];
        memcpy(head, file.data + at, sizeof head);
        at += sizeof head;
        const struct sk_format *f = sk_format_for_type(head[0]);
        assert_non_null(f);
        float *got = calloc(head[2], sizeof *got);
        f->dequantize(file.data + at, got, head[2]);
        at += head[1];
        for (uint32_t i = 0; i < head[2]; i++) {
            float want;
            memcpy(&want, file.data + at + i * sizeof want, sizeof want);
            if (memcmp(&want, &got[i], sizeof want) != 0 && !(want == 0.0f && got[i] == 0.0f))
                fail_msg("%s, value %u: %a instead of %a", f->name, i, (double)got[i], (double)want);
        }
        at += head[2] * sizeof(float);
        free(got);
        n_types++;
    }
    assert_int_equal(n_types, SK_N_FORMATS);
    sk_buf_free(&file);
}

static void test_exact_math_is_accurate(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 100000; i++) {
        const double x = (double)(int64_t)next_random(&seed) * 0x1p-63 * 700.0;
        if (fabs(sk_exp(x) / exp(x) - 1.0) > 4e-15) fail_msg("exp(%a)", x);
        const double y = exp(x);
        if (fabs(sk_log(y) - log(y)) > 4e-15 * (1.0 + fabs(log(y)))) fail_msg("log(%a)", y);
        double s, c;
        sk_sincos(x * 1000.0, &s, &c);
        if (fabs(s - sin(x * 1000.0)) > 1e-12 || fabs(c - cos(x * 1000.0)) > 1e-12)
            fail_msg("sin, cos(%a)", x * 1000.0);
    }
    assert_true(sk_exp(-800.0) == 0.0);
    assert_true(isinf(sk_exp(800.0)));
    assert_true(isinf(sk_log(0.0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dequantisation_equals_the_gguf_packages_value_for_value),
        cmocka_unit_test(test_exact_math_is_accurate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
