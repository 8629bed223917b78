/* One answer: a prompt through the engine to a stream of text. Shared by run and chat. */
#ifndef SK_CLI_ANSWER_H
#define SK_CLI_ANSWER_H

#include "setup.h"
#include "speculation.h"

struct answer {
    struct sk_tokens tokens; /* the output */
    struct sk_buf text;
    enum sk_finish finish;
    struct sk_generation_stats stats;
    struct sk_speculation_stats speculation; /* zero if it was off */
    struct sk_target_session *session;       /* what is left of it, the caller's; NULL after an error */
};

/* Gets each piece of text, with the origin of the token that completed it. */
typedef void answer_show(struct sk_str text, enum sk_proposer_kind origin);

/* Runs to the end or to Ctrl-C. `show` may be NULL. Speculates as `spec` says (NULL: not at all). */
sk_status answer_run(struct model *m, struct sk_target_session *session, const struct sk_request *r,
                     struct spec_options *spec, answer_show *show, struct answer *out, struct sk_error *err);
void answer_free(struct answer *a);
/* "24 tokens, 190.2 tokens/s; …"; no rate for the first token alone, which the prefill gives. */
void answer_line(const struct answer *a, uint64_t seed, bool sampled, char *out, size_t cap);
double per_second(size_t n, double seconds);
/* Tokens per second: of the output after its first token (which the prefill gives), and of the prompt that was run. */
double decode_rate(const struct sk_generation_stats *s);
double prefill_rate(const struct sk_generation_stats *s);

#endif
