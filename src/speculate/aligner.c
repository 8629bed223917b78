#include "speculate/aligner.h"

enum { MUCH_SUPPORT = 32, LONG_RUN = 16 };

void sk_aligner_init(struct sk_aligner *a, bool at_start) {
    *a = (struct sk_aligner){.changes.trust = 1.0f};
    if (!at_start) return;
    sk_place_begin(&a->places[0], 0, LONG_RUN, MUCH_SUPPORT);
    a->places[0].edited = true;
}

void sk_aligner_free(struct sk_aligner *a) {
    sk_index_free(&a->index);
}

/* ---- following ----------------------------------------------------------------------------------------- */

static size_t strongest(const struct sk_aligner *a) {
    size_t best = 0, most = 0;
    for (size_t i = 0; i < SK_PLACES; i++) {
        const size_t strength = sk_place_strength(&a->places[i]);
        if (strength > most) most = strength, best = i;
    }
    return best;
}

/* A match beside what is followed takes the weakest place, if it is the stronger. */
static void add_place(struct sk_aligner *a, const struct sk_match *m) {
    size_t weakest = 0, least = SIZE_MAX;
    for (size_t i = 0; i < SK_PLACES; i++) {
        const struct sk_place *p = &a->places[i];
        if (p->state == SK_COPYING && p->at == m->place) return;
        const size_t strength = sk_place_strength(p);
        if (strength < least) least = strength, weakest = i;
    }
    if (8 * m->length > least) sk_place_begin(&a->places[weakest], m->place, m->length, m->length);
}

void sk_aligner_feed(struct sk_aligner *a, const int32_t *source, size_t n_source, int32_t token) {
    const size_t teacher = strongest(a);
    for (size_t i = 0; i < SK_PLACES; i++)
        sk_place_feed(&a->places[i], source, n_source, token, &a->changes, i == teacher);
}

void sk_aligner_search(struct sk_aligner *a, const int32_t *source, size_t n_source, const int32_t *end, size_t n_end) {
    const struct sk_place *best = &a->places[strongest(a)];
    if (best->state == SK_COPYING && best->support >= MUCH_SUPPORT) return;
    const struct sk_match m = sk_index_find(&a->index, source, n_source, end, n_end);
    if (m.length) add_place(a, &m);
}

/* ---- drafting ------------------------------------------------------------------------------------------ */

/* While expected substitutions mostly do not come only those that came so often are drafted. */
enum { SURE_COUNT = 3 };
/* A draft ends after so many tokens that might have been changed: it need not be long then, and must not take long. */
enum { MOST_ASKED = 40 };
static const float LEAST_TRUST = 0.5f;

struct walk {
    size_t at, run, inserted, asked;
    bool unsure, edited, young;
};

static enum sk_copy_evidence evidence_of(const struct walk *w, bool doubted) {
    static const enum sk_copy_evidence unsure[2][2] = {{SK_UNSURE_1, SK_UNSURE_2}, {SK_UNSURE_YOUNG, SK_UNSURE_1}};
    if (doubted) return SK_CHANGED_MIXED;
    if (w->unsure && w->run < 3) return w->run == 0 ? SK_UNSURE_0 : unsure[w->young][w->run - 1];
    if (w->run >= LONG_RUN) return SK_RUN_16;
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

static const struct sk_substitution *change_at(const struct sk_aligner *a, const int32_t *source, size_t n_source,
                                               struct walk *w, bool *doubted) {
    *doubted = false;
    if (!sk_substitutions_may_change(&a->changes.table, source, n_source, w->at)) return NULL;
    w->asked++;
    const struct sk_substitution *s =
        sk_substitutions_find(&a->changes.table, source, n_source, w->at, w->inserted != w->at, doubted);
    return s && (a->changes.trust >= LEAST_TRUST || s->yes >= SURE_COUNT) ? s : NULL;
}

size_t sk_aligner_draft(const struct sk_aligner *a, const int32_t *source, size_t n_source, bool grows,
                        enum sk_proposer_kind kind, size_t limit, struct sk_draft *out) {
    const struct sk_place *p = &a->places[strongest(a)];
    size_t n = 0;
    if (sk_place_strength(p) == 0) return 0;
    struct walk w = {.inserted = p->inserted,
                     .unsure = p->state == SK_UNSURE,
                     .edited = p->edited || p->state == SK_UNSURE,
                     .young = p->support < MUCH_SUPPORT};
    w.at = sk_place_next(p, &w.run);
    if (p->state == SK_SUBSTITUTING) n = write_change(&w, &p->now, p->n_written, out, limit);
    while (n < limit && w.asked < MOST_ASKED) {
        bool doubted;
        const struct sk_substitution *s = change_at(a, source, n_source, &w, &doubted);
        if (s) {
            n += write_change(&w, s, 0, out + n, limit - n);
            continue;
        }
        if (w.at >= n_source && !(grows && !w.unsure && w.at - n_source < n)) break;
        const int32_t token = w.at < n_source ? source[w.at] : out[w.at - n_source].token;
        out[n++] = (struct sk_draft){token, 0, (uint8_t)evidence_of(&w, doubted)};
        w.at++, w.run++;
    }
    for (size_t i = 0; i < n; i++) out[i].kind = (uint8_t)kind;
    return n;
}
