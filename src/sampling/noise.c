/* Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). */
#include "noise.h"

#include "base/exact_math.h"

void sk_philox(uint64_t seed, uint64_t position, uint32_t block, uint32_t out[4]) {
    uint32_t c[4] = {block, 0x736b6970u, (uint32_t)position, (uint32_t)(position >> 32)};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        const uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++) out[i] = c[i];
}

double sk_gumbel_of_bits(uint32_t bits) {
    const double u = ((double)bits + 0.5) * 0x1p-32; /* in (0, 1), never at an end */
    return -sk_log(-sk_log(u));
}

double sk_gumbel_noise(uint64_t seed, uint64_t position, uint32_t token) {
    uint32_t four[4];
    sk_philox(seed, position, token / 4, four);
    return sk_gumbel_of_bits(four[token % 4]);
}
