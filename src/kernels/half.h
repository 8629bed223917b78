/* IEEE binary16 and bfloat16 in scalar code: exact widening, narrowing to nearest even. */
#ifndef SK_KERNELS_HALF_H
#define SK_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float sk_bits_to_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline uint32_t sk_float_to_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float sk_half_to_float(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31u, mantissa = h & 0x3ffu;
    if (exponent == 31) /* infinity, or NaN made quiet as the hardware does */
        return sk_bits_to_float(sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000u : 0));
    if (exponent) return sk_bits_to_float(sign | (exponent + 112) << 23 | mantissa << 13);
    const float magnitude = (float)mantissa * 0x1p-24f; /* zero and denormals: exact */
    return sk_bits_to_float(sign | sk_float_to_bits(magnitude));
}

static inline uint16_t sk_float_to_half(float f) {
    const uint32_t bits = sk_float_to_bits(f), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u); /* 65536 and up */
    if (magnitude < 0x38800000u) {
        /* Below the least normal: adding 1/2 aligns the value to 2^-24, rounding to nearest even on the way. */
        const float aligned = sk_bits_to_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (sk_float_to_bits(aligned) - 0x3f000000u));
    }
    const uint32_t odd = magnitude >> 13 & 1u;
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}

static inline float sk_bf16_to_float(uint16_t h) {
    return sk_bits_to_float((uint32_t)h << 16);
}

#endif
