/* Private to sampling/: random bits by counter, four tokens to a block. */
#ifndef SK_SAMPLING_NOISE_H
#define SK_SAMPLING_NOISE_H

#include "sampling/sampling.h"

void sk_philox(uint64_t seed, uint64_t position, uint32_t block, uint32_t out[4]);
double sk_gumbel_of_bits(uint32_t bits);

#endif
