#include "sampling/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/exact_math.h"
#include "base/memory.h"
#include "noise.h"

struct candidate {
    float logit;
    int32_t token;
};

struct sk_sampler {
    size_t n_vocab;
    float *adjusted;  /* [n_vocab]: logits after bias and penalties */
    uint32_t *counts; /* [n_vocab]: zero between calls */
    struct candidate *candidates, *sorted;
    double *weights; /* [n_vocab] */
};

struct sk_sampling_params sk_sampling_defaults(void) {
    return (struct sk_sampling_params){.temperature = 0.8f,
                                       .top_k = 40,
                                       .top_p = 0.95f,
                                       .min_p = 0.05f,
                                       .typical_p = 1.0f,
                                       .repetition_penalty = 1.0f,
                                       .penalty_window = 64};
}

sk_status sk_sampling_check(const struct sk_sampling_params *p, size_t n_vocab, struct sk_error *err) {
    if (!(p->temperature >= 0.0f && p->temperature <= 100.0f))
        return sk_fail(err, SK_EINVAL, "temperature is %g: 0 to 100 are possible", (double)p->temperature);
    if (!(p->top_p > 0.0f && p->top_p <= 1.0f))
        return sk_fail(err, SK_EINVAL, "top-p is %g: more than 0, at most 1 is possible", (double)p->top_p);
    if (!(p->min_p >= 0.0f && p->min_p <= 1.0f))
        return sk_fail(err, SK_EINVAL, "min-p is %g: 0 to 1 are possible", (double)p->min_p);
    if (!(p->typical_p > 0.0f && p->typical_p <= 1.0f))
        return sk_fail(err, SK_EINVAL, "typical-p is %g: more than 0, at most 1 is possible", (double)p->typical_p);
    if (!(p->repetition_penalty > 0.0f && p->repetition_penalty <= 100.0f))
        return sk_fail(err, SK_EINVAL, "repetition penalty is %g: more than 0, at most 100 is possible",
                       (double)p->repetition_penalty);
    if (!(fabsf(p->presence_penalty) <= 100.0f))
        return sk_fail(err, SK_EINVAL, "presence penalty is %g: -100 to 100 are possible", (double)p->presence_penalty);
    if (!(fabsf(p->frequency_penalty) <= 100.0f))
        return sk_fail(err, SK_EINVAL, "frequency penalty is %g: -100 to 100 are possible",
                       (double)p->frequency_penalty);
    for (size_t i = 0; i < p->n_bias; i++) {
        if (p->bias[i].token < 0 || (size_t)p->bias[i].token >= n_vocab)
            return sk_fail(err, SK_EINVAL, "logit bias names token %d, which is not in the vocabulary of %zu",
                           p->bias[i].token, n_vocab);
        if (isnan(p->bias[i].bias))
            return sk_fail(err, SK_EINVAL, "logit bias of token %d is not a number", p->bias[i].token);
    }
    return SK_OK;
}

uint64_t sk_sampling_draw_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = (uint64_t)time(NULL) * 0x9E3779B97F4A7C15ull;
    return seed >> 16; /* 48 bits: JSON readers keep it whole */
}

sk_status sk_sampler_create(size_t n_vocab, struct sk_sampler **out, struct sk_error *err) {
    struct sk_sampler *s = sk_calloc(1, sizeof *s);
    if (s) {
        s->n_vocab = n_vocab;
        s->adjusted = sk_calloc(n_vocab, sizeof *s->adjusted);
        s->counts = sk_calloc(n_vocab, sizeof *s->counts);
        s->candidates = sk_calloc(n_vocab, sizeof *s->candidates);
        s->sorted = sk_calloc(n_vocab, sizeof *s->sorted);
        s->weights = sk_calloc(n_vocab, sizeof *s->weights);
    }
    if (!s || !s->adjusted || !s->counts || !s->candidates || !s->sorted || !s->weights) {
        sk_sampler_free(s);
        return sk_fail_memory(err, n_vocab * 36, "the sampler");
    }
    *out = s;
    return SK_OK;
}

void sk_sampler_free(struct sk_sampler *s) {
    if (!s) return;
    free(s->adjusted);
    free(s->counts);
    free(s->candidates);
    free(s->sorted);
    free(s->weights);
    free(s);
}

double sk_log_sum_exp(const float *logits, size_t n) {
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++) max = logits[i] > max ? logits[i] : max;
    if (isinf(max)) return max;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)logits[i] - max;
        if (d > -60.0) sum += sk_exp(d); /* less could not change the sum's bits that matter */
    }
    return max + sk_log(sum);
}

/* The first of the greatest. Most blocks hold nothing greater, which compilers can see eight values at a time. */
static size_t most_likely(const float *logits, size_t n) {
    enum { BLOCK = 32 };
    size_t best = 0, i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const float least = logits[best];
        int greater = 0;
        for (size_t k = 0; k < BLOCK; k++) greater |= logits[i + k] > least;
        for (size_t k = 0; k < BLOCK && greater; k++)
            if (logits[i + k] > logits[best]) best = i + k;
    }
    for (; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* e^x for x <= 0 within 0.2 %: the exponent by shifting, the rest by a parabola. */
static float rough_exp(float x) {
    const float y = x < -80.0f ? -80.0f * 1.44269504f : x * 1.44269504f, whole = (float)(int32_t)(y - 1.0f);
    const float f = y - whole; /* in (0, 1] */
    const uint32_t bits = (uint32_t)((int32_t)whole + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power * (1.0f + f * (0.656366f + f * 0.343634f));
}

double sk_probability_estimate(const float *logits, size_t n, size_t i) {
    const float max = logits[most_likely(logits, n)];
    float sums[8] = {0};
    double sum = 0.0;
    if (!isfinite(max)) return 0.0;
    for (size_t k = 0; k + 8 <= n; k += 8)
        for (size_t lane = 0; lane < 8; lane++) sums[lane] += rough_exp(logits[k + lane] - max);
    for (size_t k = n / 8 * 8; k < n; k++) sums[k % 8] += rough_exp(logits[k] - max);
    for (size_t lane = 0; lane < 8; lane++) sum += (double)sums[lane];
    const double p = (double)rough_exp(logits[i] - max) / sum;
    return p < 1.0 ? p : 1.0;
}

/* ---- bias and penalties -------------------------------------------------------------------------------- */

bool sk_sampling_looks_back(const struct sk_sampling_params *p) {
    return p->penalty_window != 0 &&
           (p->repetition_penalty != 1.0f || p->presence_penalty != 0.0f || p->frequency_penalty != 0.0f);
}

static void penalise(float *logit, uint32_t count, const struct sk_sampling_params *p) {
    *logit = *logit > 0.0f ? *logit / p->repetition_penalty : *logit * p->repetition_penalty;
    *logit = *logit - (float)count * p->frequency_penalty;
    *logit = *logit - p->presence_penalty;
}

static void adjust_in_place(struct sk_sampler *s, const struct sk_sampling_params *p, const int32_t *history,
                            size_t n_history) {
    for (size_t i = 0; i < p->n_bias; i++) s->adjusted[p->bias[i].token] += p->bias[i].bias;
    if (!sk_sampling_looks_back(p)) return;
    const size_t start = n_history > p->penalty_window ? n_history - p->penalty_window : 0;
    for (size_t i = start; i < n_history; i++)
        if (history[i] >= 0 && (size_t)history[i] < s->n_vocab) s->counts[history[i]]++;
    for (size_t i = start; i < n_history; i++) {
        if (history[i] < 0 || (size_t)history[i] >= s->n_vocab || s->counts[history[i]] == 0) continue;
        penalise(&s->adjusted[history[i]], s->counts[history[i]], p);
        s->counts[history[i]] = 0; /* each token once, and the counts are zero again at the end */
    }
}

/* Gives the logits as they are if nothing adjusts them, or an adjusted copy. */
static const float *adjust(struct sk_sampler *s, const struct sk_sampling_params *p, const float *logits,
                           const int32_t *history, size_t n_history) {
    if (p->n_bias == 0 && !sk_sampling_looks_back(p)) return logits;
    memcpy(s->adjusted, logits, s->n_vocab * sizeof *logits);
    adjust_in_place(s, p, history, n_history);
    return s->adjusted;
}

/* ---- filters ------------------------------------------------------------------------------------------- */

/* More likely first, the lower id among equals: a total order, so the result does not depend on the sort. */
static int by_logit(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static bool is_before(struct candidate a, struct candidate b) {
    return by_logit(&a, &b) < 0;
}

/* Moves the k first candidates (by order) to the front, unsorted: Hoare's selection. */
static void select_top(struct candidate *c, size_t n, size_t k) {
    size_t low = 0, high = n;
    while (high - low > 1) {
        const struct candidate pivot = c[low + (high - low - 1) / 2]; /* never the last: each side gets one at least */
        size_t i = low, j = high - 1;
        for (;;) {
            while (is_before(c[i], pivot)) i++;
            while (is_before(pivot, c[j])) j--;
            if (i >= j) break;
            const struct candidate swap = c[i];
            c[i++] = c[j];
            c[j--] = swap;
        }
        const size_t split = j + 1; /* c[low..split) are not after c[split..high) */
        if (k < split)
            high = split;
        else if (k > split)
            low = split;
        else
            return;
        if (low >= k || high <= k) return;
    }
}

/* Candidates whose logit is at most this far below the greatest can matter to a filter: e^-40 is below any rounding. */
static const float FAR = 40.0f;

/* Logits and the tokens they are of; without ids, of token i the i-th. */
struct choice {
    const float *logits;
    const int32_t *ids;
    size_t n;
};
static int32_t token_of(const struct choice *c, size_t i) {
    return c->ids ? c->ids[i] : (int32_t)i;
}

static size_t collect(struct sk_sampler *s, const struct choice *c, float max, bool all) {
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->logits[i] > -INFINITY && (all || c->logits[i] >= max - FAR))
            s->candidates[n++] = (struct candidate){c->logits[i], token_of(c, i)};
    return n;
}

static double fill_weights(struct sk_sampler *s, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += s->weights[i] = sk_exp((double)s->candidates[i].logit - (double)s->candidates[0].logit);
    return sum;
}

struct surprise {
    double distance;
    size_t index;
};

static int by_distance(const void *a, const void *b) {
    const struct surprise *x = a, *y = b;
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Keeps the tokens whose surprise is nearest to the distribution's entropy, up to a mass of p. Candidates stay sorted.
 */
static size_t filter_typical(struct sk_sampler *s, size_t n, float p) {
    struct surprise *order = sk_calloc(n, sizeof *order);
    if (!order) return n; /* a filter less is better than a failed answer; memory this short fails elsewhere */
    const double sum = fill_weights(s, n);
    double entropy = 0.0;
    for (size_t i = 0; i < n; i++)
        if (s->weights[i] > 0.0) entropy -= s->weights[i] / sum * sk_log(s->weights[i] / sum);
    for (size_t i = 0; i < n; i++)
        order[i] = (struct surprise){s->weights[i] > 0.0 ? fabs(-sk_log(s->weights[i] / sum) - entropy) : INFINITY, i};
    qsort(order, n, sizeof *order, by_distance);
    double mass = 0.0;
    size_t kept = 0;
    while (kept < n && mass < p) mass += s->weights[order[kept++].index] / sum;
    for (size_t i = 0; i < kept; i++) s->sorted[i] = s->candidates[order[i].index];
    qsort(s->sorted, kept, sizeof *s->sorted, by_logit);
    memcpy(s->candidates, s->sorted, kept * sizeof *s->sorted);
    free(order);
    return kept;
}

/* Sorted candidates that pass all filters. */
static size_t filter(struct sk_sampler *s, const struct sk_sampling_params *p, const struct choice *c, float max) {
    size_t n = collect(s, c, max, false);
    if (p->top_k && p->top_k < n) {
        select_top(s->candidates, n, p->top_k);
        n = p->top_k;
    }
    qsort(s->candidates, n, sizeof *s->candidates, by_logit);
    if (p->typical_p < 1.0f && n > 1) n = filter_typical(s, n, p->typical_p);
    if (p->top_p < 1.0f && n > 1) {
        const double sum = fill_weights(s, n);
        double mass = 0.0;
        size_t kept = 0;
        while (kept < n && mass < p->top_p * sum) mass += s->weights[kept++];
        n = kept;
    }
    if (p->min_p > 0.0f) {
        const float least = s->candidates[0].logit + (float)sk_log(p->min_p);
        size_t kept = 1;
        while (kept < n && s->candidates[kept].logit >= least) kept++;
        n = kept;
    }
    return n;
}

/* ---- the draw ------------------------------------------------------------------------------------------ */

/* Whether noise from these bits could lift a score that is `gap` below the best: since 1 - e^-x <= x, noise of g or
 * more needs 1 - u <= e^-g, and the leading zeros of ~bits bound -log2(1 - u). Never says no where the draw could win.
 */
static bool could_win(uint32_t bits, double gap) {
    const uint32_t rest = ~bits;
    const int zeros = rest ? __builtin_clz(rest) : 33;
    return (zeros + 1) * 0.69314718055994530942 >= gap;
}

/* What no noise exceeds: could_win's bound for bits that are all ones. */
static const double MOST_NOISE = 34 * 0.69314718055994530942;

static int32_t draw(const struct candidate *c, size_t n, const struct sk_sampling_params *p, uint64_t position) {
    const double inverse = 1.0 / p->temperature;
    double best = -INFINITY;
    int32_t token = c[0].token;
    uint32_t four[4];
    int64_t block = -1;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = (uint32_t)c[i].token;
        if (best - (double)c[i].logit * inverse > MOST_NOISE) continue;
        if (block != id / 4) sk_philox(p->seed, position, (uint32_t)(block = id / 4), four);
        const double scaled = (double)c[i].logit * inverse;
        if (!could_win(four[id % 4], best - scaled)) continue;
        const double score = scaled + sk_gumbel_of_bits(four[id % 4]);
        if (score > best || (score == best && c[i].token < token)) best = score, token = c[i].token;
    }
    return token;
}

static int32_t choose(struct sk_sampler *s, const struct sk_sampling_params *p, const struct choice *c,
                      uint64_t position) {
    const size_t best = most_likely(c->logits, c->n);
    const float max = c->logits[best];
    if (p->temperature <= 0.0f || !isfinite(max)) return token_of(c, best);
    const bool filtered = p->top_k || p->top_p < 1.0f || p->min_p > 0.0f || p->typical_p < 1.0f;
    const size_t n = filtered ? filter(s, p, c, max) : collect(s, c, max, true);
    return draw(s->candidates, n, p, position);
}

int32_t sk_sample_among(struct sk_sampler *s, const struct sk_sampling_params *p, const float *logits,
                        const int32_t *ids, size_t n, const int32_t *history, size_t n_history, uint64_t position) {
    if (!ids || (p->n_bias == 0 && !sk_sampling_looks_back(p)))
        return ids ? choose(s, p, &(struct choice){logits, ids, n}, position)
                   : sk_sample(s, p, logits, history, n_history, position, NULL);
    for (size_t i = 0; i < s->n_vocab; i++) s->adjusted[i] = -INFINITY;
    for (size_t i = 0; i < n; i++) s->adjusted[ids[i]] = logits[i];
    adjust_in_place(s, p, history, n_history);
    return choose(s, p, &(struct choice){s->adjusted, NULL, s->n_vocab}, position);
}

int32_t sk_sample(struct sk_sampler *s, const struct sk_sampling_params *p, const float *logits, const int32_t *history,
                  size_t n_history, uint64_t position, double *logprob) {
    const float *l = adjust(s, p, logits, history, n_history);
    const int32_t token = choose(s, p, &(struct choice){l, NULL, s->n_vocab}, position);
    if (logprob) *logprob = (double)logits[token] - sk_log_sum_exp(logits, s->n_vocab);
    return token;
}
