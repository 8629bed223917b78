#include "engine/stops.h"

/* Bytes at the end of `text` that could be the beginning of a stop string. */
static size_t possible_start(const struct sk_stop_matcher *m, struct sk_str text) {
    size_t longest = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct sk_str stop = m->stops[i];
        size_t n = stop.n ? stop.n - 1 : 0;
        if (n > text.n) n = text.n;
        for (; n > longest; n--)
            if (memcmp(text.p + text.n - n, stop.p, n) == 0) longest = n;
    }
    return longest;
}

bool sk_stops_feed(struct sk_stop_matcher *m, struct sk_str text, struct sk_str *out) {
    m->ready.len = 0;
    sk_buf_str(&m->held, text);
    const struct sk_str all = sk_buf_view(&m->held);
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < m->n; i++) {
        const size_t at = m->stops[i].n ? sk_str_find(all, m->stops[i], 0) : SIZE_MAX;
        if (at < first) first = at;
    }
    const bool stopped = first != SIZE_MAX;
    const size_t give = stopped ? first : all.n - possible_start(m, all);
    sk_buf_append(&m->ready, all.p, give);
    if (stopped)
        m->held.len = 0;
    else if (give) {
        memmove(m->held.data, m->held.data + give, m->held.len - give);
        m->held.len -= give;
    }
    *out = sk_buf_view(&m->ready);
    return stopped;
}

struct sk_str sk_stops_end(struct sk_stop_matcher *m) {
    m->ready.len = 0;
    sk_buf_str(&m->ready, sk_buf_view(&m->held));
    m->held.len = 0;
    return sk_buf_view(&m->ready);
}

void sk_stops_free(struct sk_stop_matcher *m) {
    sk_buf_free(&m->held);
    sk_buf_free(&m->ready);
}
