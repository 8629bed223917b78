#include "speculate/cost.h"

/* One pass may be slow for the machine's reasons: it moves a belief by a bounded step. */
static const double LEAST = 0.4, MOST = 2.0;
/* The prior counts as much as one pass of five rows. */
static const double PRIOR_EVIDENCE = 16.0, EVIDENCE_DECAY = 0.97;
static const double MOST_FIRST = 9.0, MOST_SEEN = 12.0, WEIGHT_DECAY = 0.995;
/* How fast a drift of the whole machine is followed by passes whose share is well known. */
static const double DRIFT = 0.1;
/* Per pass of one row, down to the least. */
static const double FADE = 0.98, LEAST_BELIEF = 0.25;

/* Of a pass of one row, until drafts are seen. */
static const double PRIOR_DRAFT = 0.1, MOST_DRAFTS = 30.0;

void sk_cost_init(struct sk_cost_model *c, double row_cost) {
    *c = (struct sk_cost_model){
        .prior_slope = row_cost, .slope = row_cost, .slope_evidence = PRIOR_EVIDENCE, .belief = 1.0};
}

bool sk_cost_knows_one_row(const struct sk_cost_model *c) {
    return c->first_weight > 0.0;
}

static double line(const struct sk_cost_model *c, size_t rows) {
    return 1.0 + c->slope * (double)(rows - 1);
}

static double shape(const struct sk_cost_model *c, size_t rows) {
    if (rows == 1) return 1.0;
    if (rows > SK_MAX_WINDOW) return line(c, rows);
    return (line(c, rows) + c->seen[rows] * c->weight[rows]) / (1.0 + c->weight[rows]);
}

double sk_cost_of(const struct sk_cost_model *c, size_t rows) {
    if (rows == 0) return 0.0;
    return (c->first > 0.0 ? c->first : 1.0) * (1.0 + (shape(c, rows) - 1.0) * c->belief);
}

static double clamp(double x, double least, double most) {
    return x < least ? least : x > most ? most : x;
}

static void observe_one(struct sk_cost_model *c, double ratio) {
    c->first *= 1.0 + (ratio - 1.0) / (1.0 + c->first_weight);
    if (c->first_weight < MOST_FIRST) c->first_weight += 1.0;
    c->belief = c->belief * FADE > LEAST_BELIEF ? c->belief * FADE : LEAST_BELIEF;
}

/* What differs from the belief is the share's fault where the share is new, the machine's where it is well known. While
 * no pass of one row was seen all of it is the machine's. */
static void observe_several(struct sk_cost_model *c, size_t rows, double ratio) {
    const double share = shape(c, rows) * ratio, x = (double)(rows - 1), own = 1.0 / (1.0 + c->weight[rows]);
    c->belief = 1.0;
    if (!sk_cost_knows_one_row(c)) {
        c->first *= 1.0 + 0.5 * (ratio - 1.0);
        return;
    }
    c->slope += x * (share - line(c, rows)) / (c->slope_evidence + x * x);
    c->slope = clamp(c->slope, 0.02 * c->prior_slope, 20.0 * c->prior_slope);
    c->slope_evidence = c->slope_evidence * EVIDENCE_DECAY + x * x;
    c->seen[rows] += own * (share - c->seen[rows]);
    if (c->weight[rows] < MOST_SEEN) c->weight[rows] += 1.0;
    c->first *= 1.0 + DRIFT * (1.0 - own) * (ratio - 1.0);
}

void sk_cost_observe(struct sk_cost_model *c, size_t rows, double seconds) {
    if (rows == 0 || rows > SK_MAX_WINDOW || !(seconds > 0.0)) return;
    if (c->first <= 0.0) c->first = seconds / shape(c, rows);
    double ratio = seconds / (c->first * shape(c, rows));
    if (rows > 1 || sk_cost_knows_one_row(c))
        ratio = clamp(ratio, LEAST, MOST); /* the first of one row is all there is */
    for (size_t n = 2; n <= SK_MAX_WINDOW; n++) c->weight[n] *= WEIGHT_DECAY;
    if (rows == 1)
        observe_one(c, ratio);
    else
        observe_several(c, rows, ratio);
}

void sk_cost_observe_drafts(struct sk_cost_model *c, size_t drafts, double seconds) {
    if (drafts == 0 || !(seconds > 0.0)) return;
    const double each = seconds / (double)drafts;
    c->draft_weight = c->draft_weight + (double)drafts < MOST_DRAFTS ? c->draft_weight + (double)drafts : MOST_DRAFTS;
    const double share = (double)drafts / c->draft_weight;
    if (c->draft <= 0.0) c->draft = each;
    c->draft += (share < 1.0 ? share : 1.0) * (clamp(each, LEAST * c->draft, MOST * c->draft) - c->draft);
}

double sk_cost_of_draft(const struct sk_cost_model *c) {
    return c->draft > 0.0 && c->first > 0.0 ? c->draft : PRIOR_DRAFT * sk_cost_of(c, 1);
}
