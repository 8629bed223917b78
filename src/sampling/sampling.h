/* Choosing a token from logits.
 *
 * The choice is a pure function of (logits, history, parameters, seed, position): the noise that makes it random is
 * computed from (seed, position, token id) by a counter-based generator (Philox 4x32-10: Salmon et al., SC 2011), and
 * the token with the greatest log p + Gumbel noise is taken (the Gumbel-max trick). Nothing is remembered between
 * draws, so it cannot matter in which order rows are sampled or how many draws were thrown away.
 *
 * Order of the steps: logit bias, penalties, then, unless temperature is 0: top-k, typical-p, top-p, min-p on the
 * probabilities at temperature 1, and the draw at the temperature. */
#ifndef SK_SAMPLING_H
#define SK_SAMPLING_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sk_logit_bias {
    int32_t token;
    float bias; /* added to the logit; -infinity forbids the token */
};

/* A penalty window that is never left. */
#define SK_PENALIZE_ALL UINT32_MAX

struct sk_sampling_params {
    float temperature;                         /* 0: the most likely token; at most 100 */
    uint32_t top_k;                            /* 0: off */
    float top_p;                               /* 1: off */
    float min_p;                               /* 0: off */
    float typical_p;                           /* 1: off (Meister et al. 2022, arXiv 2202.00666) */
    float repetition_penalty;                  /* 1: off (Keskar et al. 2019, arXiv 1909.05858) */
    float presence_penalty, frequency_penalty; /* 0: off, as in OpenAI's API */
    uint32_t penalty_window;                   /* last tokens of the history that penalties look at; 0: none */
    uint64_t seed;
    const struct sk_logit_bias *bias; /* borrowed */
    size_t n_bias;
};

/* Temperature 0.8, top-k 40, top-p 0.95, min-p 0.05; the rest off, penalties over 64 tokens. */
struct sk_sampling_params sk_sampling_defaults(void);
/* Names the first parameter that is out of its range. */
sk_status sk_sampling_check(const struct sk_sampling_params *p, size_t n_vocab, struct sk_error *err);
/* Whether the choice depends on the history: whether any penalty is on. */
bool sk_sampling_looks_back(const struct sk_sampling_params *p);
/* A seed from the system's entropy. */
uint64_t sk_sampling_draw_seed(void);

/* Scratch memory for one vocabulary size; one thread at a time. */
struct sk_sampler;
sk_status sk_sampler_create(size_t n_vocab, struct sk_sampler **out, struct sk_error *err);
void sk_sampler_free(struct sk_sampler *s);

/* The token for `position` (the place in the session that it will take), after `history` (prompt and output so far).
 * Ties go to the lower id. If `logprob` is not NULL it gets the natural logarithm of the token's probability under the
 * model's own distribution (temperature 1, no filters or penalties). */
int32_t sk_sample(struct sk_sampler *s, const struct sk_sampling_params *p, const float *logits, const int32_t *history,
                  size_t n_history, uint64_t position, double *logprob);

/* The same with logits of n tokens only, ids[i] being the i-th (ascending); the others cannot be drawn. NULL: all. */
int32_t sk_sample_among(struct sk_sampler *s, const struct sk_sampling_params *p, const float *logits,
                        const int32_t *ids, size_t n, const int32_t *history, size_t n_history, uint64_t position);

/* log(sum of e^logit), the denominator of a log-probability. */
double sk_log_sum_exp(const float *logits, size_t n);

/* About the probability of the i-th of n logits at temperature 1, within a percent. */
double sk_probability_estimate(const float *logits, size_t n, size_t i);

/* The noise itself: standard Gumbel, a pure function of its arguments. */
double sk_gumbel_noise(uint64_t seed, uint64_t position, uint32_t token);

#endif
