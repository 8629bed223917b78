#include "speculate/place.h"

#include <limits.h>
#include <string.h>

/* A place is given up at the first surprise if it has less support than LITTLE; edits teach if it has as much as
 * LEARNING. */
enum { LITTLE_SUPPORT = 3, LEARNING_SUPPORT = 5 };
/* Two tokens do not decide that more of the source than that was left out. */
enum { NEAR = 8 };
static const float TRUST_STEP = 0.25f;

void sk_place_begin(struct sk_place *p, size_t at, size_t run, size_t support) {
    p->state = SK_COPYING;
    p->at = at;
    p->run = run;
    p->support = support;
    p->edited = false;
    p->inserted = SIZE_MAX;
}

/* ---- candidates while unsure --------------------------------------------------------------------------- */

/* Source tokens passed on the best diagonal. */
static size_t passed(const struct sk_place *p) {
    return p->best + p->n_unexplained - SK_EDIT_OUTPUT;
}

/* What an edit costs in place, and with the source and the output of different lengths: 0, or 4 to 9. */
static int cost_of(int shift) {
    const int size = shift < 0 ? -shift : shift;
    return shift == 0 ? 0 : 3 + (size < 6 ? size : 6);
}

/* Takes in one more token, and finds the diagonal with most to say for it: among equals the cheapest edit. Two plain
 * loops, which compilers turn into vector code. */
static void advance_diagonals(struct sk_place *p, const int32_t *source, size_t n_source, int32_t token) {
    p->unexplained[p->n_unexplained++] = token;
    const size_t first = SK_EDIT_OUTPUT - p->n_unexplained, room = n_source - p->at + first;
    const size_t last = room < SK_DIAGONALS - 1 ? room : SK_DIAGONALS - 1;
    const int32_t *next = source + p->at;
    uint8_t *runs = p->runs + first + 1, *hits = p->hits + first + 1;
    p->runs[first] = 0;
    for (size_t i = 0; i < last - first; i++) { /* those that pass one token of the source or more */
        const uint8_t agrees = next[i] == token;
        runs[i] = (uint8_t)((runs[i] + 1) * agrees);
        hits[i] = (uint8_t)(hits[i] + agrees);
    }
    int most = INT_MIN;
    for (size_t d = first; d <= last; d++) {
        const int cost = cost_of((int)d - SK_EDIT_OUTPUT);
        const int score = 16 * (8 * p->runs[d] + 2 * p->hits[d] - cost) - cost;
        if (score > most) most = score, p->best = d;
    }
}

static bool is_decided(const struct sk_place *p) {
    const size_t best = p->best;
    const int shift = (int)best - SK_EDIT_OUTPUT;
    if (p->runs[best] >= (shift > NEAR ? 4 : 3)) return true;
    if (p->runs[best] < 2 || shift > NEAR) return false;
    for (size_t d = 0; d < SK_DIAGONALS; d++)
        if (d != best && p->runs[d] >= p->runs[best]) return false;
    return true;
}

size_t sk_place_next(const struct sk_place *p, size_t *run) {
    const bool unsure = p->state == SK_UNSURE;
    *run = unsure ? p->runs[p->best] : p->run;
    return p->at + (unsure ? passed(p) : 0);
}

size_t sk_place_strength(const struct sk_place *p) {
    if (p->state == SK_NOWHERE) return 0;
    if (p->state == SK_UNSURE) {
        const size_t good = 8 * p->runs[p->best] + p->support / 2, bad = 2 * p->n_unexplained;
        return good > bad ? good - bad : 1;
    }
    return 8 * (p->run < p->support ? p->run + (p->support - p->run) / 2 : p->run);
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
static void learn_edit(const struct sk_place *p, struct sk_substitutions *t, const int32_t *source, size_t n_source,
                       size_t n_from, size_t n_to) {
    struct common c;
    const int32_t *from = source + p->at, *to = p->unexplained;
    size_t i = 0, j = 0, from_start = 0, to_start = 0;
    if (n_from > SK_EDIT_OUTPUT) return;
    find_common(&c, from, n_from, to, n_to);
    while (i < n_from && j < n_to) {
        if (from[i] == to[j]) {
            sk_substitutions_learn(t, source, n_source, p->at + from_start, i - from_start, to + to_start,
                                   j - to_start);
            from_start = ++i, to_start = ++j;
        } else if (c.length[i + 1][j] >= c.length[i][j + 1]) {
            i++;
        } else {
            j++;
        }
    }
    sk_substitutions_learn(t, source, n_source, p->at + from_start, n_from - from_start, to + to_start,
                           n_to - to_start);
}

/* ---- following ----------------------------------------------------------------------------------------- */

struct step {
    const int32_t *source;
    size_t n_source;
    struct sk_changes *changes;
    bool teaches;
};

static void become_unsure(struct sk_place *p) {
    p->state = SK_UNSURE;
    p->n_unexplained = 0;
    p->best = SK_EDIT_OUTPUT;
    memset(p->runs, 0, sizeof p->runs);
    memset(p->hits, 0, sizeof p->hits);
}

/* The edit ends where the run on the diagonal began. */
static void decide(struct sk_place *p, const struct step *s) {
    const size_t run = p->runs[p->best], j = passed(p);
    p->support += run - p->support / 4;
    if (s->teaches && p->support >= LEARNING_SUPPORT)
        learn_edit(p, &s->changes->table, s->source, s->n_source, j - run, p->n_unexplained - run);
    p->state = SK_COPYING;
    p->at += j;
    p->run = run;
    p->edited = true;
}

static void copied(struct sk_place *p) {
    p->at++;
    p->run++;
    p->support++;
}

static void judge(struct sk_place *p, const struct step *s, const struct sk_substitution *what, bool came) {
    if (!s->teaches) return;
    s->changes->trust += TRUST_STEP * ((came ? 1.0f : 0.0f) - s->changes->trust);
    if (came)
        sk_substitutions_confirm(&s->changes->table, s->source, s->n_source, p->at, what);
    else
        sk_substitutions_deny(&s->changes->table, s->source, s->n_source, p->at, what);
}

static void wrote_substitution(struct sk_place *p, const struct step *s) {
    judge(p, s, &p->now, true);
    if (p->now.n_from == 0) p->inserted = p->at;
    p->at += p->now.n_from;
    p->run = 0;
    p->support++;
    p->edited = true;
    p->state = SK_COPYING;
}

/* One token of a place that is known. False if it was not expected. */
static bool feed_copying(struct sk_place *p, const struct step *s, int32_t token) {
    bool doubted;
    const struct sk_substitution *change =
        sk_substitutions_find(&s->changes->table, s->source, s->n_source, p->at, p->inserted != p->at, &doubted);
    const bool is_same = p->at < s->n_source && s->source[p->at] == token;
    if (change && !is_same && change->n_to == 0) { /* a deletion: what comes after it */
        const size_t after = p->at + change->n_from;
        if (after >= s->n_source || s->source[after] != token) return false;
        p->now = *change;
        wrote_substitution(p, s);
        copied(p);
        return true;
    }
    if (change && !is_same && change->to[0] == token) {
        p->now = *change;
        p->n_written = 1;
        p->state = SK_SUBSTITUTING;
        if (p->now.n_to == 1) wrote_substitution(p, s);
        return true;
    }
    if (!is_same) return false;
    if (change) judge(p, s, change, false);
    copied(p);
    return true;
}

static bool feed_substituting(struct sk_place *p, const struct step *s, int32_t token) {
    if (token == p->now.to[p->n_written]) {
        if (++p->n_written == p->now.n_to) wrote_substitution(p, s);
        return true;
    }
    become_unsure(p);
    for (size_t i = 0; i < p->n_written; i++) advance_diagonals(p, s->source, s->n_source, p->now.to[i]);
    return false;
}

/* A substitution that is expected on the best diagonal decides as an equal token does. */
static bool is_expected_change(const struct sk_place *p, const struct step *s, int32_t token) {
    bool doubted;
    const size_t at = p->at + passed(p);
    if (p->runs[p->best] == 0 || at >= s->n_source || s->source[at] == token) return false;
    const struct sk_substitution *change =
        sk_substitutions_find(&s->changes->table, s->source, s->n_source, at, true, &doubted);
    return change && change->n_to && change->to[0] == token;
}

static void feed_unsure(struct sk_place *p, const struct step *s, int32_t token) {
    if (p->n_unexplained && is_expected_change(p, s, token)) {
        decide(p, s);
        feed_copying(p, s, token);
        return;
    }
    advance_diagonals(p, s->source, s->n_source, token);
    if (is_decided(p))
        decide(p, s);
    else if (p->n_unexplained == SK_EDIT_OUTPUT)
        p->state = SK_NOWHERE;
}

void sk_place_feed(struct sk_place *p, const int32_t *source, size_t n_source, int32_t token, struct sk_changes *c,
                   bool teaches) {
    const struct step s = {source, n_source, c, teaches};
    if (p->state == SK_COPYING) {
        if (feed_copying(p, &s, token)) return;
        if (p->support < LITTLE_SUPPORT)
            p->state = SK_NOWHERE;
        else
            become_unsure(p);
    } else if (p->state == SK_SUBSTITUTING && feed_substituting(p, &s, token)) {
        return;
    }
    if (p->state == SK_UNSURE) feed_unsure(p, &s, token);
}
