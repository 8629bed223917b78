/* Elementary functions in double precision that give the same bits on every machine.
 *
 * The C library's exp, log, sin and cos differ between libraries and versions; these are fixed sequences of
 * +, *, / and fma (IEEE 754 exact operations), accurate to about 1e-15 relative. Used where speed does not
 * matter: rotary tables, sampling. The float versions used inside kernels are in kernels/portable.h. */
#ifndef SK_BASE_EXACT_MATH_H
#define SK_BASE_EXACT_MATH_H

/* e^x; 0 below -708, infinity above 709. */
double sk_exp(double x);
/* Natural logarithm of x > 0; -infinity for 0. */
double sk_log(double x);
/* base^e for base > 0. */
double sk_pow(double base, double e);
/* Both at once, for |x| up to about 1e9. */
void sk_sincos(double x, double *sin_out, double *cos_out);

#endif
