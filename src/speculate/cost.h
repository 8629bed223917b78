/* What a pass of n rows costs: a prior, corrected by the passes that serve. Nothing is run to find out. */
#ifndef SK_SPECULATE_COST_H
#define SK_SPECULATE_COST_H

#include "speculate/proposal.h"

/* seconds(n) = first * shape(n). `first` follows everything that makes all passes slower (a longer context, a busy
 * machine), so that the cost of widths that are not used now stays comparable. shape(n) is a mean of a line
 * 1 + slope (n - 1), on which every pass has a say, and of what passes of just n rows took.
 *
 * While no pass of several rows is seen the slope is believed less and less: had a slow moment of the machine made it
 * too steep, no draft would be tried any more, and nothing would correct it. */
struct sk_cost_model {
    double prior_slope, slope, slope_evidence; /* evidence: sum of (n - 1)^2 of passes, decayed */
    double first, first_weight;                /* seconds of a pass of one row, and how many such were seen */
    double seen[SK_MAX_WINDOW + 1], weight[SK_MAX_WINDOW + 1]; /* [rows] share of `first`, and how many were seen */
    double belief;              /* in the slope: less with every pass of one row, whole again after one of several */
    double draft, draft_weight; /* seconds of one draft of the model's own head, and how many such were seen */
};
/* `row_cost`: what one more row takes, as a share of the first. */
void sk_cost_init(struct sk_cost_model *c, double row_cost);
/* A pass of `rows` rows took so long. */
void sk_cost_observe(struct sk_cost_model *c, size_t rows, double seconds);
/* Seconds; in units of a one-row pass while none was observed. */
double sk_cost_of(const struct sk_cost_model *c, size_t rows);
/* So many drafts of the model's own head took so long; they are no part of a pass's time. */
void sk_cost_observe_drafts(struct sk_cost_model *c, size_t drafts, double seconds);
/* What one takes, in the same units. */
double sk_cost_of_draft(const struct sk_cost_model *c);
/* Whether a pass of one row was ever seen: until then only passes of several can be compared with each other. */
bool sk_cost_knows_one_row(const struct sk_cost_model *c);

#endif
