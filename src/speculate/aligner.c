#include "speculate/aligner.h"

#include <string.h>

/* A place is given up at the first surprise if it has less support than LITTLE, and for a better match while it has
 * less than MUCH; what is lost with MUCH is looked for again. */
enum { LITTLE_SUPPORT = 3, LEARNING_SUPPORT = 6, MUCH_SUPPORT = 32, HOME_SUPPORT = 8, HOME_LEAD = 6, ASIDE_LEAD = 2 };
static const float TRUST_STEP = 0.15f;

void sk_aligner_init(struct sk_aligner *a, bool at_start) {
    *a = (struct sk_aligner){.state = SK_LOST, .inserted = SIZE_MAX, .home = SIZE_MAX, .trust = 1.0f};
    if (!at_start) return;
    a->state = SK_COPYING;
    a->run = 16;
    a->support = MUCH_SUPPORT;
    a->edits = 1;
}

void sk_aligner_free(struct sk_aligner *a) {
    sk_index_free(&a->index);
}

/* ---- candidates while unsure --------------------------------------------------------------------------- */

/* Source tokens passed on a diagonal after n_unexplained tokens; negative before its beginning. */
static ptrdiff_t passed(const struct sk_aligner *a, size_t diagonal) {
    return (ptrdiff_t)diagonal - SK_EDIT_OUTPUT + (ptrdiff_t)a->n_unexplained;
}

static void advance_diagonals(struct sk_aligner *a, const int32_t *source, size_t n_source, int32_t token) {
    a->unexplained[a->n_unexplained++] = token;
    for (size_t d = 0; d < SK_DIAGONALS; d++) {
        const ptrdiff_t j = passed(a, d);
        const bool agrees = j >= 1 && a->at + (size_t)j <= n_source && source[a->at + (size_t)j - 1] == token;
        a->runs[d] = agrees ? (uint8_t)(a->runs[d] + 1) : 0;
        a->hits[d] = (uint8_t)(a->hits[d] + agrees);
    }
}

static int score_of(const struct sk_aligner *a, size_t diagonal) {
    const int shift = (int)diagonal - SK_EDIT_OUTPUT, size = shift < 0 ? -shift : shift;
    const int cost = shift == 0 ? 0 : 3 + (size < 6 ? size : 6);
    return 8 * a->runs[diagonal] + 2 * a->hits[diagonal] - cost;
}

/* The diagonal with most to say for it, the cheapest edit first: in place, then ever larger shifts. */
static size_t best_diagonal(const struct sk_aligner *a, size_t n_source) {
    size_t best = SK_EDIT_OUTPUT;
    for (size_t shift = 1; shift <= SK_EDIT_SOURCE; shift++)
        for (int longer = 1; longer >= 0; longer--) {
            if (longer && shift > SK_EDIT_OUTPUT) continue;
            const size_t d = longer ? SK_EDIT_OUTPUT - shift : SK_EDIT_OUTPUT + shift;
            const ptrdiff_t j = passed(a, d);
            if (j < 0 || a->at + (size_t)j > n_source) continue;
            if (score_of(a, d) > score_of(a, best)) best = d;
        }
    return best;
}

static bool is_decided(const struct sk_aligner *a, size_t best) {
    if (a->runs[best] >= 3) return true;
    if (a->runs[best] < 2) return false;
    for (size_t d = 0; d < SK_DIAGONALS; d++)
        if (d != best && a->runs[d] >= a->runs[best]) return false;
    return true;
}

/* ---- what an edit teaches ------------------------------------------------------------------------------ */

/* Longest common subsequence of the edit's two sides: [i][j] of from[i ..) and to[j ..). */
struct common {
    uint8_t length[SK_EDIT_OUTPUT + 1][SK_EDIT_OUTPUT + 1];
};

static void find_common(struct common *c, const int32_t *from, size_t n_from, const int32_t *to, size_t n_to) {
    memset(c, 0, sizeof *c);
    for (size_t i = n_from; i-- > 0;)
        for (size_t j = n_to; j-- > 0;) {
            const uint8_t skip = c->length[i + 1][j] > c->length[i][j + 1] ? c->length[i + 1][j] : c->length[i][j + 1];
            c->length[i][j] = from[i] == to[j] ? (uint8_t)(c->length[i + 1][j + 1] + 1) : skip;
        }
}

/* An edit may be several, with tokens between them that stayed: each is learnt by itself. */
static void learn_edit(struct sk_aligner *a, const int32_t *source, size_t n_source, size_t n_from, size_t n_to) {
    struct common c;
    const int32_t *from = source + a->at, *to = a->unexplained;
    if (n_from > SK_EDIT_OUTPUT || n_to > SK_EDIT_OUTPUT) return;
    find_common(&c, from, n_from, to, n_to);
    size_t i = 0, j = 0, from_start = 0, to_start = 0;
    while (i < n_from && j < n_to) {
        if (from[i] == to[j]) {
            sk_substitutions_learn(&a->substitutions, source, n_source, a->at + from_start, i - from_start,
                                   to + to_start, j - to_start);
            from_start = ++i, to_start = ++j;
        } else if (c.length[i + 1][j] >= c.length[i][j + 1]) {
            i++;
        } else {
            j++;
        }
    }
    sk_substitutions_learn(&a->substitutions, source, n_source, a->at + from_start, n_from - from_start, to + to_start,
                           n_to - to_start);
}

/* ---- following ----------------------------------------------------------------------------------------- */

static void anchor(struct sk_aligner *a, const struct sk_match *m) {
    a->state = SK_COPYING;
    a->at = m->place;
    a->run = a->support = m->length;
    a->edits = 0;
    a->inserted = SIZE_MAX;
}

static void lose(struct sk_aligner *a) {
    if (a->support >= HOME_SUPPORT) a->home = a->at;
    a->state = SK_LOST;
    a->support = 0;
}

static struct sk_match search(const struct sk_aligner *a, const int32_t *source, size_t n_source, const int32_t *end,
                              size_t n_end) {
    return sk_index_find(&a->index, source, n_source, end, n_end, a->home, HOME_LEAD);
}

static void find_place(struct sk_aligner *a, const int32_t *source, size_t n_source, const int32_t *end, size_t n_end) {
    const struct sk_match m = search(a, source, n_source, end, n_end);
    if (m.length) anchor(a, &m);
}

static void become_unsure(struct sk_aligner *a) {
    a->state = SK_UNSURE;
    a->n_unexplained = 0;
    memset(a->runs, 0, sizeof a->runs);
    memset(a->hits, 0, sizeof a->hits);
}

/* The edit ends where the run on the diagonal began. */
static void decide(struct sk_aligner *a, const int32_t *source, size_t n_source, size_t diagonal) {
    const size_t run = a->runs[diagonal], j = (size_t)passed(a, diagonal);
    a->support -= a->support / 4;
    if (a->support >= LEARNING_SUPPORT) learn_edit(a, source, n_source, j - run, a->n_unexplained - run);
    a->state = SK_COPYING;
    a->at += j;
    a->run = run;
    a->support += run;
    a->edits++;
}

static void copied(struct sk_aligner *a) {
    a->at++;
    a->run++;
    a->support++;
    if (a->support >= MUCH_SUPPORT) a->home = SIZE_MAX;
}

static void judge(struct sk_aligner *a, bool came) {
    a->trust += TRUST_STEP * ((came ? 1.0f : 0.0f) - a->trust);
}

static void wrote_substitution(struct sk_aligner *a, const int32_t *source, size_t n_source) {
    sk_substitutions_confirm(&a->substitutions, source, n_source, a->at, &a->now);
    judge(a, true);
    if (a->now.n_from == 0) a->inserted = a->at;
    a->at += a->now.n_from;
    a->run = 0;
    a->support++;
    a->edits += a->edits == 0;
    a->state = SK_COPYING;
}

/* One token of a place that is known. False if it was not expected. */
static bool feed_copying(struct sk_aligner *a, const int32_t *source, size_t n_source, int32_t token) {
    bool doubted;
    const struct sk_substitution *s =
        sk_substitutions_find(&a->substitutions, source, n_source, a->at, a->inserted != a->at, &doubted);
    const bool is_same = a->at < n_source && source[a->at] == token;
    if (s && s->n_to == 0) { /* a deletion: what comes after it */
        const size_t after = a->at + s->n_from;
        if (!is_same && after < n_source && source[after] == token) {
            a->now = *s;
            wrote_substitution(a, source, n_source);
            copied(a);
            return true;
        }
    } else if (s && s->to[0] == token && !is_same) {
        a->now = *s;
        a->n_written = 1;
        a->state = SK_SUBSTITUTING;
        if (s->n_to == 1) wrote_substitution(a, source, n_source);
        return true;
    }
    if (!is_same) return false;
    if (s) {
        sk_substitutions_deny(&a->substitutions, source, n_source, a->at, s);
        judge(a, false);
    }
    copied(a);
    return true;
}

static bool feed_substituting(struct sk_aligner *a, const int32_t *source, size_t n_source, int32_t token) {
    if (token == a->now.to[a->n_written]) {
        if (++a->n_written == a->now.n_to) wrote_substitution(a, source, n_source);
        return true;
    }
    const struct sk_substitution now = a->now;
    become_unsure(a);
    for (size_t i = 0; i < a->n_written; i++) advance_diagonals(a, source, n_source, now.to[i]);
    return false;
}

/* A substitution that is expected on the best diagonal decides as an equal token does. */
static bool is_expected_change(const struct sk_aligner *a, const int32_t *source, size_t n_source, size_t best,
                               int32_t token) {
    bool doubted;
    const size_t at = a->at + (size_t)passed(a, best);
    if (a->runs[best] == 0 || at >= n_source || source[at] == token) return false;
    const struct sk_substitution *s = sk_substitutions_find(&a->substitutions, source, n_source, at, true, &doubted);
    return s && s->n_to && s->to[0] == token;
}

static void feed_unsure(struct sk_aligner *a, const int32_t *source, size_t n_source, int32_t token) {
    size_t best = best_diagonal(a, n_source);
    if (a->n_unexplained && is_expected_change(a, source, n_source, best, token)) {
        decide(a, source, n_source, best);
        feed_copying(a, source, n_source, token);
        return;
    }
    advance_diagonals(a, source, n_source, token);
    best = best_diagonal(a, n_source);
    if (is_decided(a, best))
        decide(a, source, n_source, best);
    else if (a->n_unexplained == SK_EDIT_OUTPUT)
        lose(a);
}

void sk_aligner_feed(struct sk_aligner *a, const int32_t *source, size_t n_source, const int32_t *end, size_t n_end) {
    const int32_t token = end[n_end - 1];
    const size_t n_known = source == end ? n_source - 1 : n_source;
    if (a->state == SK_COPYING) {
        if (feed_copying(a, source, n_known, token)) return;
        if (a->support < LITTLE_SUPPORT)
            lose(a);
        else
            become_unsure(a);
    } else if (a->state == SK_SUBSTITUTING && feed_substituting(a, source, n_known, token)) {
        return;
    }
    if (a->state == SK_UNSURE) feed_unsure(a, source, n_known, token);
    if (a->state == SK_LOST) find_place(a, source, n_source, end, n_end);
}

void sk_aligner_reconsider(struct sk_aligner *a, const int32_t *source, size_t n_source, const int32_t *end,
                           size_t n_end) {
    const bool is_young = a->state == SK_COPYING && a->support < MUCH_SUPPORT;
    a->aside = (struct sk_match){0};
    if (!is_young && a->state != SK_UNSURE) return;
    const struct sk_match m = search(a, source, n_source, end, n_end);
    if (a->state == SK_UNSURE) {
        if (m.length > (size_t)a->runs[best_diagonal(a, n_source)] + ASIDE_LEAD) a->aside = m;
        return;
    }
    const size_t before = a->support > a->run ? a->support - a->run : 0;
    if (m.length <= a->run + before / 2 + (a->edits > 0)) return;
    if (a->edits) lose(a);
    anchor(a, &m);
}

/* ---- drafting ------------------------------------------------------------------------------------------ */

/* While expected substitutions mostly do not come only those that came so often are drafted. */
enum { SURE_COUNT = 3 };
static const float LEAST_TRUST = 0.5f;

struct walk {
    size_t at, run, inserted;
    bool unsure, edited, young;
};

static enum sk_copy_evidence evidence_of(const struct walk *w, bool doubted) {
    if (doubted) return SK_CHANGED_MIXED;
    if (w->unsure && w->run < 3) return (enum sk_copy_evidence)(SK_UNSURE_0 + w->run);
    if (w->run >= 16) return w->run < 64 ? SK_RUN_16 : SK_RUN_64;
    if (!w->edited) return w->run < 4 ? SK_ANCHOR_3 : w->run < 6 ? SK_ANCHOR_4 : SK_ANCHOR_6;
    if (w->run < 4) return w->young ? SK_RUN_0_YOUNG : SK_RUN_0;
    return w->young ? SK_RUN_4_YOUNG : SK_RUN_4;
}

static enum sk_copy_evidence evidence_of_change(const struct sk_substitution *s) {
    return s->no ? SK_CHANGED_MIXED : s->yes > 1 ? SK_CHANGED_OFTEN : SK_CHANGED_ONCE;
}

/* Passes a substitution whose tokens [from ..) are yet to be written. */
static size_t write_change(struct walk *w, const struct sk_substitution *s, size_t from, struct sk_draft *out,
                           size_t limit) {
    size_t n = 0;
    for (size_t i = from; i < s->n_to && n < limit; i++) {
        const enum sk_copy_evidence e = i ? SK_CHANGED_REST : evidence_of_change(s);
        out[n++] = (struct sk_draft){s->to[i], 0, (uint8_t)e};
    }
    if (s->n_from == 0) w->inserted = w->at;
    w->at += s->n_from;
    w->run = 0;
    w->edited = true;
    return n;
}

static struct walk start_walk(const struct sk_aligner *a, size_t n_source) {
    struct walk w = {.at = a->at,
                     .run = a->run,
                     .inserted = a->inserted,
                     .edited = a->edits > 0,
                     .young = a->support < MUCH_SUPPORT};
    if (a->state != SK_UNSURE) return w;
    if (a->aside.length) return (struct walk){.at = a->aside.place, .run = a->aside.length, .inserted = SIZE_MAX};
    const size_t best = best_diagonal(a, n_source);
    w.at += (size_t)passed(a, best);
    w.run = a->runs[best];
    w.unsure = w.edited = true;
    return w;
}

size_t sk_aligner_draft(const struct sk_aligner *a, const int32_t *source, size_t n_source, bool grows,
                        enum sk_proposer_kind kind, size_t limit, struct sk_draft *out) {
    size_t n = 0;
    if (a->state == SK_LOST) return 0;
    struct walk w = start_walk(a, n_source);
    if (a->state == SK_SUBSTITUTING) n = write_change(&w, &a->now, a->n_written, out, limit);
    while (n < limit) {
        bool doubted = false;
        const struct sk_substitution *s = w.at < n_source ? sk_substitutions_find(&a->substitutions, source, n_source,
                                                                                  w.at, w.inserted != w.at, &doubted)
                                                          : NULL;
        if (s && a->trust < LEAST_TRUST && s->yes < SURE_COUNT) s = NULL;
        if (s) {
            n += write_change(&w, s, 0, out + n, limit - n);
            continue;
        }
        if (w.at >= n_source && !(grows && w.at - n_source < n)) break;
        const int32_t token = w.at < n_source ? source[w.at] : out[w.at - n_source].token;
        out[n++] = (struct sk_draft){token, 0, (uint8_t)evidence_of(&w, doubted)};
        w.at++, w.run++;
    }
    for (size_t i = 0; i < n; i++) out[i].kind = (uint8_t)kind;
    return n;
}
