#include "base/exact_math.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static double from_bits(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t to_bits(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* Reduction by multiples of ln 2 (Cody and Waite), then the Taylor series to degree 14 on |r| <= 0.347. */
double sk_exp(double x) {
    if (x < -708.0) return 0.0;
    if (x > 709.0) return from_bits(0x7ff0000000000000u);
    const double n = rint(x * 1.44269504088896340736);
    double r = fma(n, -6.93147180369123816490e-01, x);
    r = fma(n, -1.90821492927058770002e-10, r);
    double p = 1.0;
    for (int i = 14; i >= 1; i--) p = fma(p, r / i, 1.0);
    /* 2^n in two steps: n may reach -1022 or 1023 where one step would leave the normal numbers. */
    const int64_t half = (int64_t)n / 2, rest = (int64_t)n - half;
    return p * from_bits((uint64_t)(half + 1023) << 52) * from_bits((uint64_t)(rest + 1023) << 52);
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m-1)/(m+1)) by its series. */
double sk_log(double x) {
    if (!(x > 0.0)) return -from_bits(0x7ff0000000000000u);
    int e = 0;
    if (x < 2.2250738585072014e-308) {
        x *= 18014398509481984.0; /* 2^54: out of the denormals */
        e = -54;
    }
    uint64_t bits = to_bits(x);
    e += (int)(bits >> 52) - 1023;
    double m = from_bits((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        e++;
    }
    const double f = (m - 1.0) / (m + 1.0), f2 = f * f;
    double s = 0.0;
    for (int i = 23; i >= 1; i -= 2) s = fma(s, f2, 1.0 / i);
    return fma(e, 6.93147180369123816490e-01, fma(e, 1.90821492927058770002e-10, 2.0 * f * s));
}

double sk_pow(double base, double e) {
    return sk_exp(e * sk_log(base));
}

void sk_sincos(double x, double *sin_out, double *cos_out) {
    const double n = rint(x * 0.63661977236758134308);
    double r = fma(n, -1.57079632679489655800e+00, x);
    r = fma(n, -6.12323399573676603587e-17, r);
    const double r2 = r * r;
    double s = 1.0, c = 1.0;
    for (int i = 18; i >= 2; i -= 2) s = fma(-s, r2 / (i * (i + 1)), 1.0);
    for (int i = 19; i >= 1; i -= 2) c = fma(-c, r2 / (i * (i + 1)), 1.0);
    s *= r;
    switch ((int64_t)n & 3) {
    case 0: *sin_out = s, *cos_out = c; break;
    case 1: *sin_out = c, *cos_out = -s; break;
    case 2: *sin_out = -s, *cos_out = -c; break;
    default: *sin_out = -c, *cos_out = s; break;
    }
}
