/* Rotary position embedding (Su et al. 2021, arXiv 2104.09864) and its context extensions: linear interpolation
 * (Chen et al. 2023, arXiv 2306.15595), YaRN (Peng et al. 2023, arXiv 2309.00071), and per-frequency factors as in
 * Llama 3.1, which files carry as the tensor rope_freqs.weight. All in double, so that tables are the same everywhere.
 */
#include <math.h>
#include <stdlib.h>

#include "base/exact_math.h"
#include "base/memory.h"
#include "internal.h"

static const double TWO_PI = 6.28318530717958647693;

/* The pair index at which a wavelength makes `rotations` turns over the original context. */
static double yarn_dimension(const struct sk_hparams *h, double rotations) {
    return h->n_rot * sk_log(h->rope_original_ctx / (rotations * TWO_PI)) / (2.0 * sk_log(h->rope_base));
}

static void scale_yarn(struct sk_model *m) {
    const struct sk_hparams *h = &m->h;
    double low = floor(yarn_dimension(h, h->yarn_beta_fast)), high = ceil(yarn_dimension(h, h->yarn_beta_slow));
    low = low < 0.0 ? 0.0 : low;
    high = high > h->n_rot - 1.0 ? h->n_rot - 1.0 : high;
    const double span = high - low < 0.001 ? 0.001 : high - low;
    for (uint32_t i = 0; i < h->n_rot / 2; i++) {
        double ramp = (i - low) / span;
        ramp = ramp < 0.0 ? 0.0 : (ramp > 1.0 ? 1.0 : ramp);
        const double f = m->rope_frequencies[i];
        m->rope_frequencies[i] = f / h->rope_factor * ramp + f * (1.0 - ramp);
    }
    if (h->rope_factor > 1.0f) m->rope_magnitude = (float)(m->rope_magnitude * (1.0 + 0.1 * sk_log(h->rope_factor)));
}

sk_status sk_rope_prepare(struct sk_model *m, struct sk_error *err) {
    const struct sk_hparams *h = &m->h;
    const uint32_t n_pairs = h->n_rot / 2;
    m->rope_frequencies = sk_calloc(n_pairs, sizeof *m->rope_frequencies);
    if (!m->rope_frequencies) return sk_fail_memory(err, n_pairs * sizeof(double), "rotary frequencies");
    m->rope_magnitude = h->rope_attention_factor;
    for (uint32_t i = 0; i < n_pairs; i++) m->rope_frequencies[i] = sk_pow(h->rope_base, -2.0 * i / h->n_rot);

    const struct sk_gguf_tensor *factors = sk_gguf_find_tensor(m->gguf, "rope_freqs.weight");
    if (factors) {
        if (factors->type != SK_F32 || factors->n_elements != n_pairs)
            return sk_fail(err, SK_EFORMAT, "the tensor 'rope_freqs.weight' must be F32 with %u elements", n_pairs);
        for (uint32_t i = 0; i < n_pairs; i++) {
            float f;
            memcpy(&f, factors->data + i * sizeof f, sizeof f);
            if (!(f > 0.0f))
                return sk_fail(err, SK_EFORMAT,
                               "the tensor 'rope_freqs.weight' has the factor %g at %u: factors are positive",
                               (double)f, i);
            m->rope_frequencies[i] /= f;
        }
    }
    if (h->rope_scaling == SK_ROPE_LINEAR)
        for (uint32_t i = 0; i < n_pairs; i++) m->rope_frequencies[i] /= h->rope_factor;
    if (h->rope_scaling == SK_ROPE_YARN) scale_yarn(m);
    return SK_OK;
}

void sk_rope_angles(const struct sk_model *m, uint32_t position, float *cos, float *sin) {
    for (uint32_t i = 0; i < m->h.n_rot / 2; i++) {
        double s, c;
        sk_sincos(position * m->rope_frequencies[i], &s, &c);
        cos[i] = (float)c * m->rope_magnitude;
        sin[i] = (float)s * m->rope_magnitude;
    }
}
