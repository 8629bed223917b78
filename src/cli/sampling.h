/* Sampling on the command line: what the user says, else what the file recommends, else Skipstone's defaults. */
#ifndef SK_CLI_SAMPLING_H
#define SK_CLI_SAMPLING_H

#include "gguf/gguf.h"
#include "options.h"
#include "sampling/sampling.h"

#include <jansson.h>

enum { N_SAMPLING_FIELDS = 9 };

/* Who chose a value. */
enum sampling_source { SAMPLING_DEFAULT, SAMPLING_FILE, SAMPLING_OPTION };

struct sampling_options {
    /* From the options; NAN and NOT_GIVEN where there was none. */
    float temperature, top_p, min_p, typical_p, repetition_penalty, presence_penalty, frequency_penalty;
    int64_t top_k, penalty_window;
    struct option_seed seed;
    struct option_strings bias, stops;
    /* What is to be used, and whence each field has it. */
    struct sk_sampling_params params;
    enum sampling_source from[N_SAMPLING_FIELDS];
};
struct sampling_options sampling_unset(void);

/* The options that fill these. */
void sampling_option_rows(struct option_list *list, struct sampling_options *s);

/* Fills s->params from the options, and a seed, drawn if none was given; checks them. Bias entries go to `bias`, which
 * must hold 64. */
sk_status sampling_prepare(struct sampling_options *s, struct sk_logit_bias *bias, struct sk_error *err);
/* Takes the file's recommendations (keys general.sampling.*) where no option was given. One that is out of its range is
 * named on stderr and not used. */
void sampling_from_file(struct sampling_options *s, const struct sk_gguf *g, const char *path);

/* {"temperature": 0.8, …, "from": {"temperature": "default", …}} */
json_t *sampling_json(const struct sampling_options *s);
/* "temperature 0.2 (option), top-k 40 (default), …": what is switched on. */
void sampling_line(const struct sampling_options *s, char *out, size_t cap);

/* The file's general.sampling.* keys: {"general.sampling.temp": 0.6, …}. */
json_t *sampling_file_json(const struct sk_gguf *g);
/* Whether Skipstone uses such a key. */
bool sampling_uses_key(const char *key);

#endif
