#include "speculate/width.h"

#include <math.h>

/* ---- acceptance ---------------------------------------------------------------------------------------- */

/* Before anything is known each class counts as three drafts of which the proposer's usual share was accepted. */
static const double PRIOR_WEIGHT = 3.0;
static const float DECAY = 0.97f;
/* A text in which nothing repeats disappoints each class: the first that do speak for those not tried yet. Good news
 * only takes doubt back, since classes that come true often say little about weak ones. */
static const double DOUBT_STEP = 0.3, MOST_DOUBT = 2.0;

/* By enum sk_copy_evidence: about what edited texts show (`bench --spec-edits`), less for anchors, which other texts
 * have too. */
static const double copy_prior[SK_EVIDENCE_CLASSES] = {0.35, 0.3, 0.65, 0.85, 0.8,  0.95, 0.85, 0.94,
                                                       0.95, 0.4, 0.55, 0.75, 0.55, 0.85, 0.7,  0.95};

static double usual_share(const struct sk_draft *d) {
    const double high = (double)(d->evidence % 8) / 7.0; /* most proposers number their classes from weak to strong */
    switch ((enum sk_proposer_kind)d->kind) {
    case SK_MTP: return 0.5 + 0.4 * (double)d->evidence / 15.0;
    case SK_DRAFT: return 0.4 + 0.5 * (double)d->evidence / 15.0;
    case SK_COPY:
    case SK_PREDICTION: return copy_prior[d->evidence];
    case SK_PLUGIN: return 0.5;
    case SK_SUFFIX: return (d->evidence >= 8 ? 0.4 : 0.25) + 0.5 * high;
    case SK_CACHE: return 0.3 + 0.3 * (double)(d->evidence % 4) / 3.0;
    default: return 0.0;
    }
}

static double prior_of(const struct sk_acceptance *a, const struct sk_draft *d) {
    const double p = usual_share(d), doubt = (double)a->doubt[d->kind];
    return doubt > 0.0 ? p / (p + (1.0 - p) * exp(doubt)) : p;
}

double sk_acceptance_of(const struct sk_acceptance *a, const struct sk_draft *d) {
    if (d->kind >= SK_N_PROPOSERS || d->evidence >= SK_EVIDENCE_CLASSES) return 0.0;
    return ((double)a->accepted[d->kind][d->evidence] + PRIOR_WEIGHT * prior_of(a, d)) /
           ((double)a->total[d->kind][d->evidence] + PRIOR_WEIGHT);
}

void sk_acceptance_observe(struct sk_acceptance *a, const struct sk_draft *d, bool accepted) {
    if (d->kind >= SK_N_PROPOSERS || d->evidence >= SK_EVIDENCE_CLASSES) return;
    const double doubt = (double)a->doubt[d->kind] + DOUBT_STEP * (prior_of(a, d) - (accepted ? 1.0 : 0.0));
    a->doubt[d->kind] = (float)(doubt < 0.0 ? 0.0 : doubt > MOST_DOUBT ? MOST_DOUBT : doubt);
    float *yes = &a->accepted[d->kind][d->evidence], *all = &a->total[d->kind][d->evidence];
    *yes = *yes * DECAY + (accepted ? 1.0f : 0.0f);
    *all = *all * DECAY + 1.0f;
}

/* ---- choice -------------------------------------------------------------------------------------------- */

/* A wider window must promise this much more than the narrower one: beliefs are noisy and the narrow one is safe. */
static const double MARGIN = 1.02;

size_t sk_goodput_width(const struct sk_acceptance *a, const struct sk_cost_model *c, const struct sk_draft *drafts,
                        size_t n, size_t other_rows, double other_tokens) {
    double reach = 1.0, tokens = other_tokens + 1.0;
    double best = tokens / sk_cost_of(c, other_rows + 1);
    size_t width = 0;
    for (size_t k = 1; k <= n; k++) {
        reach *= sk_acceptance_of(a, &drafts[k - 1]);
        tokens += reach;
        const double rate = tokens / sk_cost_of(c, other_rows + 1 + k);
        if (rate > best * (width == 0 ? MARGIN : 1.0)) best = rate, width = k;
        if (reach < 0.01) break;
    }
    return width;
}

void sk_adaptive_init(struct sk_adaptive_width *w, size_t min, size_t max) {
    *w = (struct sk_adaptive_width){.now = 2 < max ? 2 : max, .min = min, .max = max};
    if (w->now < min) w->now = min;
}

void sk_adaptive_observe(struct sk_adaptive_width *w, bool full_accept) {
    if (full_accept)
        w->now += w->now < w->max;
    else
        w->now -= w->now > w->min;
}
