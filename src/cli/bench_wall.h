/* Whole processes, from start to exit: what somebody waits for who asks one thing. */
#ifndef SK_CLI_BENCH_WALL_H
#define SK_CLI_BENCH_WALL_H

#include "workload.h"

/* Answers of at most so many tokens; of each workload, at most so many of its first prompts. */
enum { N_WALL_LENGTHS = 3, WALL_PROMPTS = 3 };
extern const size_t wall_lengths[N_WALL_LENGTHS];

/* Sums over the prompts of the median time of `runs` processes each. */
struct wall {
    double off_s, auto_s;
};

/* Runs `skipstone run`, this very program, with speculation off and by default in turns. */
sk_status bench_wall(const struct model_options *mo, const struct workload *w, size_t runs,
                     struct wall out[N_WALL_LENGTHS], struct sk_error *err);

#endif
