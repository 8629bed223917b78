/* Stop strings over streamed text: text that may turn out to be the start of one is held back. */
#ifndef SK_ENGINE_STOPS_H
#define SK_ENGINE_STOPS_H

#include "base/str.h"

struct sk_stop_matcher {
    const struct sk_str *stops;
    size_t n;
    struct sk_buf held;  /* not yet given out */
    struct sk_buf ready; /* what the last call gave */
};

/* Adds text; gives what can be shown. True if a stop string has appeared: what came before it is in *out, the rest is
 * gone. */
bool sk_stops_feed(struct sk_stop_matcher *m, struct sk_str text, struct sk_str *out);
/* What is still held, at the end of a generation. */
struct sk_str sk_stops_end(struct sk_stop_matcher *m);
void sk_stops_free(struct sk_stop_matcher *m);

#endif
