#include "speculate/speculation.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const double FIRST_WORTH = 0.3, WORTH_STEP = 0.12, RATE_DECAY = 0.9;
enum { MOST_PAUSE = 32 };
enum { MAX_PROPOSERS = 8, STRIKES = 3, MAX_BACKOFF = 32, FIRST_PROBE = 8, PROBE_EVERY = 128 };

/* Whether drafts of the model's own head are worth what they take. In tokens: what a window with them gained, less what
 * the same time gives otherwise. */
struct mtp_worth {
    double value;           /* mean of the last offers */
    double row, draft;      /* tokens that the time of a row more, of a draft gives otherwise */
    size_t n_offered;       /* drafts of the offer that the current window may use */
    size_t pause, backoff;  /* windows without drafts: now, and next time */
    double tokens, seconds; /* of the last windows, decayed */
};

/* A tail's limit grows with success and falls back with a pause after a failure. */
struct tail_control {
    size_t limit, pause;
};

struct sk_speculation {
    struct sk_speculation_options o;
    size_t n_vocab;
    struct sk_proposer *proposers[MAX_PROPOSERS];
    size_t n_proposers;
    unsigned strikes[SK_N_PROPOSERS];
    struct sk_draft
        buffer[SK_MAX_PROPOSAL]; /* what is proposed next, its first n_window drafts being in the current window */
    size_t n_buffer, n_window;
    struct sk_draft mtp[SK_MAX_PROPOSAL];
    size_t n_mtp;
    enum sk_draft_origin mtp_origin;
    size_t last_width;  /* of the window before */
    size_t since_plain; /* windows with drafts since the last without */
    size_t cooldown;    /* tokens left without MTP */
    struct tail_control tail;
    bool has_tail; /* the buffered proposal came from MTP and has, or had, an n-gram tail */
    struct sk_adaptive_width adaptive;
    struct sk_acceptance acceptance;
    struct mtp_worth worth;
    size_t skips, backoff; /* costly proposers whose drafts nobody wanted are asked less often */
    struct sk_speculation_stats stats;
};

const char *sk_proposer_name(enum sk_proposer_kind kind) {
    static const char *const names[] = {"mtp", "prediction", "plugin", "draft", "copy", "suffix", "cache", "none"};
    return names[kind];
}

const char *sk_draft_origin_name(enum sk_draft_origin o) {
    static const char *const names[] = {"initial_serial", "serial_after_gap", "verify_next"};
    return names[o];
}

const char *sk_disposition_name(enum sk_disposition d) {
    static const char *const names[] = {"full_accept", "first_mismatch", "stopped"};
    return names[d];
}

struct sk_speculation_options sk_speculation_defaults(void) {
    return (struct sk_speculation_options){.proposers = (1u << SK_N_PROPOSERS) - 1u,
                                           .mode = SK_WIDTH_GOODPUT,
                                           .width = 4,
                                           .min_width = 0,
                                           .max_width = 31,
                                           .mtp_max = 4,
                                           .mtp_min = 1,
                                           .tail_start = 2,
                                           .tail_max = 16,
                                           .tail_pause = 2};
}

struct sk_speculation *sk_speculation_create(const struct sk_speculation_options *o, size_t n_vocab,
                                             const struct sk_acceptance *start) {
    struct sk_speculation *s = sk_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->o = *o;
    if (s->o.max_width > SK_MAX_WINDOW - 1) s->o.max_width = SK_MAX_WINDOW - 1;
    if (s->o.width > SK_MAX_WINDOW - 1) s->o.width = SK_MAX_WINDOW - 1;
    if (s->o.mtp_max > SK_MAX_WINDOW - 1) s->o.mtp_max = SK_MAX_WINDOW - 1;
    s->n_vocab = n_vocab;
    s->tail.limit = o->tail_start;
    s->worth.value = FIRST_WORTH;
    sk_adaptive_init(&s->adaptive, s->o.min_width, s->o.max_width);
    if (start) s->acceptance = *start;
    return s;
}

void sk_speculation_add(struct sk_speculation *s, struct sk_proposer *p) {
    if (!p) return;
    if (s->n_proposers == MAX_PROPOSERS || !(s->o.proposers & (1u << p->ops->kind)))
        p->ops->destroy(p);
    else
        s->proposers[s->n_proposers++] = p;
}

void sk_speculation_free(struct sk_speculation *s) {
    if (!s) return;
    for (size_t i = 0; i < s->n_proposers; i++) s->proposers[i]->ops->destroy(s->proposers[i]);
    free(s);
}

const struct sk_speculation_stats *sk_speculation_stats(const struct sk_speculation *s) {
    return &s->stats;
}
const struct sk_acceptance *sk_speculation_acceptance(const struct sk_speculation *s) {
    return &s->acceptance;
}
size_t sk_speculation_buffered(const struct sk_speculation *s) {
    return s->n_buffer - s->n_window;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

void sk_speculation_offer_mtp(struct sk_speculation *s, const struct sk_draft *drafts, size_t n) {
    s->n_mtp = n < SK_MAX_PROPOSAL ? n : SK_MAX_PROPOSAL;
    if (s->n_mtp) memcpy(s->mtp, drafts, s->n_mtp * sizeof *drafts);
    s->mtp_origin = s->stats.windows <= 1 ? SK_INITIAL_SERIAL
                    : s->last_width == 0  ? SK_SERIAL_AFTER_GAP
                                          : SK_VERIFY_NEXT;
    s->stats.mtp_offered[s->mtp_origin] += n > 0;
    s->worth.n_offered = n;
}

size_t sk_speculation_mtp_wanted(const struct sk_speculation *s) {
    const bool may = (s->o.proposers & (1u << SK_MTP)) && !s->stats.by[SK_MTP].off && s->cooldown == 0 &&
                     sk_speculation_buffered(s) == 0;
    return may ? s->o.mtp_max : 0;
}

/* How often a draft is accepted, over what was seen of all classes; a start of six drafts. */
static double mean_acceptance(const struct sk_acceptance *a) {
    double yes = 6 * 0.55, all = 6;
    for (size_t c = 0; c < SK_EVIDENCE_CLASSES; c++)
        yes += (double)a->accepted[SK_MTP][c], all += (double)a->total[SK_MTP][c];
    return yes / all;
}

struct sk_mtp_plan sk_speculation_plan_mtp(struct sk_speculation *s, const struct sk_cost_model *cost) {
    struct sk_mtp_plan plan = {.wanted = sk_speculation_mtp_wanted(s)};
    struct mtp_worth *w = &s->worth;
    for (size_t c = 0; c < SK_EVIDENCE_CLASSES; c++)
        plan.acceptance[c] = (float)sk_acceptance_of(&s->acceptance, &(struct sk_draft){0, SK_MTP, (uint8_t)c});
    if (plan.wanted == 0 || s->o.mode != SK_WIDTH_GOODPUT) return plan;
    const double one = sk_cost_of(cost, 1), plainly = 1.0 / one;
    const double now = w->seconds > 0.0 ? w->tokens / w->seconds : plainly;
    const double rate = now > plainly ? now : plainly;
    w->row = rate * (sk_cost_of(cost, 2) - one);
    w->draft = rate * sk_cost_of_draft(cost);
    plan.min_reach = (float)((w->row + w->draft) / mean_acceptance(&s->acceptance));
    if (plan.min_reach > 1.0f) plan.wanted = plan.wanted < 1 ? plan.wanted : 1;
    if (w->pause) {
        w->pause--;
        s->stats.mtp_pauses++;
        plan.wanted = 0;
    }
    return plan;
}

/* What the drafts that were made for this window have brought. */
static void weigh_drafts(struct sk_speculation *s, const struct sk_receipt *r) {
    struct mtp_worth *w = &s->worth;
    w->tokens = w->tokens * RATE_DECAY + (double)r->n_committed;
    w->seconds = w->seconds * RATE_DECAY + r->propose_s + r->verify_s + r->repair_s;
    if (w->n_offered == 0) return;
    double value = -w->draft * (double)w->n_offered;
    for (size_t i = 0; i < r->n_proposal && r->proposal[i].kind == SK_MTP; i++)
        value += (i < r->n_accepted ? 1.0 : 0.0) - w->row;
    w->n_offered = 0;
    w->value += WORTH_STEP * (value - w->value);
    if (w->value >= 0.0) {
        w->backoff = 0;
        return;
    }
    w->backoff = w->backoff == 0 ? 1 : w->backoff * 2 < MOST_PAUSE ? w->backoff * 2 : MOST_PAUSE;
    w->pause = w->backoff;
}

/* What a proposer does again and again, three times in a row, switches it off. */
static void strike(struct sk_speculation *s, enum sk_proposer_kind kind) {
    if (++s->strikes[kind] >= STRIKES) s->stats.by[kind].off = true;
}

/* Drafts up to the first that is no token (R9). */
static size_t cut_at_invalid(struct sk_speculation *s, enum sk_proposer_kind kind, const struct sk_draft *drafts,
                             size_t n) {
    size_t good = 0;
    while (good < n && drafts[good].token >= 0 && (size_t)drafts[good].token < s->n_vocab) good++;
    if (good == n) {
        if (n) s->strikes[kind] = 0;
        return n;
    }
    s->stats.by[kind].invalid++;
    strike(s, kind);
    return good;
}

static size_t ask(struct sk_speculation *s, struct sk_proposer *p, const struct sk_next *next,
                  struct sk_proposal_request *r, struct sk_draft *out) {
    const enum sk_proposer_kind kind = p->ops->kind;
    if (s->stats.by[kind].off || r->limit == 0) return 0;
    const double start = next->now ? next->now(next->ctx) : 0.0;
    size_t n = p->ops->propose(p, r, out);
    if (next->now) s->stats.by[kind].seconds += next->now(next->ctx) - start;
    if (n == SK_PROPOSE_FAILED) {
        s->stats.by[kind].attempts++;
        s->stats.by[kind].failures++;
        strike(s, kind);
        return 0;
    }
    n = cut_at_invalid(s, kind, out, n < r->limit ? n : r->limit);
    for (size_t i = 0; i < n; i++) {
        out[i].kind = (uint8_t)kind;
        if (out[i].evidence >= SK_EVIDENCE_CLASSES) out[i].evidence = 0;
    }
    s->stats.by[kind].attempts++;
    s->stats.by[kind].hits += n > 0;
    return n;
}

static double expected_tokens(const struct sk_speculation *s, const struct sk_draft *drafts, size_t n) {
    double reach = 1.0, sum = 0.0;
    for (size_t i = 0; i < n && reach > 0.01; i++) sum += reach *= sk_acceptance_of(&s->acceptance, &drafts[i]);
    return sum;
}

static bool is_costly(enum sk_proposer_kind kind) {
    return kind == SK_DRAFT || kind == SK_PLUGIN;
}

static size_t fill_mtp(struct sk_speculation *s, size_t limit) {
    size_t n = s->n_mtp < s->o.mtp_max ? s->n_mtp : s->o.mtp_max;
    s->n_mtp = 0; /* good for one place only */
    if (n > limit) n = limit;
    if (s->cooldown || n == 0 || n < s->o.mtp_min) return 0;
    n = cut_at_invalid(s, SK_MTP, s->mtp, n);
    memcpy(s->buffer, s->mtp, n * sizeof *s->buffer);
    s->stats.by[SK_MTP].attempts++;
    s->stats.by[SK_MTP].hits += n > 0;
    return n;
}

/* An n-gram tail may follow MTP drafts that the match itself predicts. */
static size_t fill_tail(struct sk_speculation *s, const struct sk_next *next, size_t n_mtp, size_t limit) {
    struct sk_draft drafts[SK_MAX_PROPOSAL];
    if (s->tail.pause) {
        s->tail.pause--;
        return 0;
    }
    for (size_t i = 0; i < s->n_proposers; i++) {
        if (s->proposers[i]->ops->kind != SK_SUFFIX) continue;
        size_t want = n_mtp + s->tail.limit;
        struct sk_proposal_request r = {next->tokens, next->n_tokens, next->n_tokens, want < limit ? want : limit};
        const size_t n = ask(s, s->proposers[i], next, &r, drafts);
        if (n == 0) return 0;
        for (size_t k = 0; k < n_mtp; k++)
            if (k >= n || drafts[k].token != s->buffer[k].token) {
                s->stats.prefix_disagreements++;
                return 0;
            }
        s->stats.prefix_agreements++;
        if (n < n_mtp + 2) return 0; /* a shorter tail is not worth its row */
        memcpy(s->buffer + n_mtp, drafts + n_mtp, (n - n_mtp) * sizeof *drafts);
        return n - n_mtp;
    }
    return 0;
}

/* Replaces what is buffered by the proposal that promises most. */
static void fill_from_proposers(struct sk_speculation *s, const struct sk_next *next, size_t limit) {
    struct sk_draft drafts[SK_MAX_PROPOSAL];
    const bool has_mtp = s->n_buffer > 0, pausing = !has_mtp && s->skips > 0, skip_costly = has_mtp || pausing;
    double best = expected_tokens(s, s->buffer, s->n_buffer);
    s->skips -= pausing;
    for (size_t i = 0; i < s->n_proposers; i++) {
        if (skip_costly && is_costly(s->proposers[i]->ops->kind)) continue;
        struct sk_proposal_request r = {next->tokens, next->n_tokens, next->n_tokens, limit};
        const size_t n = ask(s, s->proposers[i], next, &r, drafts);
        const double expected = expected_tokens(s, drafts, n);
        if (n == 0 || (s->n_buffer && expected <= best)) continue;
        best = expected;
        memcpy(s->buffer, drafts, n * sizeof *drafts);
        s->n_buffer = n;
    }
}

static void fill_buffer(struct sk_speculation *s, const struct sk_next *next) {
    const size_t room = next->limit < SK_MAX_PROPOSAL ? next->limit : SK_MAX_PROPOSAL;
    const size_t n_mtp = fill_mtp(s, room), tail = n_mtp ? fill_tail(s, next, n_mtp, room) : 0;
    s->n_buffer = n_mtp + tail;
    fill_from_proposers(s, next, room);
    const bool is_mtp = s->n_buffer && s->buffer[0].kind == SK_MTP;
    s->has_tail = is_mtp && tail > 0;
    s->stats.mtp_adopted[s->mtp_origin] += is_mtp;
}

static size_t choose_width(struct sk_speculation *s, const struct sk_next *next) {
    size_t n = s->n_buffer < next->limit ? s->n_buffer : next->limit, width = 0;
    const bool free_mode = s->o.mode != SK_WIDTH_FIXED;
    if (n > SK_MAX_WINDOW - 1) n = SK_MAX_WINDOW - 1;
    if (free_mode && n > s->o.max_width) n = s->o.max_width;
    if (s->o.mode == SK_WIDTH_FIXED) return n < s->o.width ? n : s->o.width;
    if (s->o.mode == SK_WIDTH_ADAPTIVE) return n < s->adaptive.now ? n : s->adaptive.now;
    width = sk_goodput_width(&s->acceptance, next->cost, s->buffer, n, next->other_rows, next->other_tokens);
    /* What a plain step costs cannot be seen while none is taken. */
    if (width && s->since_plain >= (sk_cost_knows_one_row(next->cost) ? PROBE_EVERY : FIRST_PROBE)) {
        s->stats.probes++;
        return 0;
    }
    return width < s->o.min_width && s->o.min_width <= n ? s->o.min_width : width;
}

size_t sk_speculation_next(struct sk_speculation *s, const struct sk_next *next, struct sk_draft out[SK_MAX_WINDOW]) {
    if (s->n_buffer == 0 && next->limit) fill_buffer(s, next);
    s->n_window = choose_width(s, next);
    /* What goodput leaves of an MTP chain is worth less than the next draft, made from what is then known. */
    if (s->o.mode == SK_WIDTH_GOODPUT && s->n_window && !s->has_tail && s->buffer[0].kind == SK_MTP)
        s->n_buffer = s->n_window;
    if (s->n_buffer && is_costly((enum sk_proposer_kind)s->buffer[0].kind)) {
        s->backoff = s->n_window ? 0 : (s->backoff ? (s->backoff < MAX_BACKOFF ? s->backoff * 2 : MAX_BACKOFF) : 1);
        s->skips = s->backoff;
    }
    memcpy(out, s->buffer, s->n_window * sizeof *out);
    return s->n_window;
}

/* ---- learning ------------------------------------------------------------------------------------------ */

static void drop_buffer(struct sk_speculation *s) {
    s->n_buffer = 0;
    s->has_tail = false;
}

void sk_speculation_discard(struct sk_speculation *s) {
    drop_buffer(s);
    s->n_window = 0;
}

static void reject(struct sk_speculation *s, const struct sk_draft *d) {
    if (d->kind == SK_MTP) {
        s->cooldown = s->o.mtp_cooldown;
        s->stats.mtp_cooldowns += s->cooldown > 0;
    } else if (s->has_tail) {
        s->stats.tail_rejections++;
        s->tail = (struct tail_control){s->o.tail_start, s->o.tail_pause};
    }
    drop_buffer(s);
}

/* The last drafts of a tail were accepted. */
static void finish_tail(struct sk_speculation *s) {
    if (s->has_tail && s->n_buffer == 0 && s->tail.limit < s->o.tail_max) s->tail.limit++;
    if (s->n_buffer == 0) s->has_tail = false;
}

static void take_from_buffer(struct sk_speculation *s, size_t n) {
    s->n_buffer -= n;
    memmove(s->buffer, s->buffer + n, s->n_buffer * sizeof *s->buffer);
}

static void count(struct sk_speculation *s, const struct sk_receipt *r) {
    s->stats.windows++;
    s->last_width = r->n_proposal;
    s->since_plain = r->n_proposal ? s->since_plain + 1 : 0;
    s->stats.width_histogram[r->n_proposal < SK_MAX_WINDOW ? r->n_proposal : SK_MAX_WINDOW - 1]++;
    s->stats.committed += r->n_committed;
    s->stats.full_accepts += r->disposition == SK_FULL_ACCEPT && r->n_proposal > 0;
    *(r->trimmed_rows ? &s->stats.trims : &s->stats.retires) += 1;
    for (size_t i = 0; i < r->n_proposal; i++) {
        s->stats.by[r->proposal[i].kind].proposed++;
        s->stats.by[r->proposal[i].kind].accepted += i < r->n_accepted;
        if (i <= r->n_accepted && (i < r->n_accepted || r->disposition == SK_FIRST_MISMATCH))
            sk_acceptance_observe(&s->acceptance, &r->proposal[i], i < r->n_accepted);
    }
    if (r->disposition != SK_FIRST_MISMATCH) return;
    s->stats.rejections++;
    s->stats.rejected_at[r->n_accepted < SK_MAX_WINDOW ? r->n_accepted : SK_MAX_WINDOW - 1]++;
}

void sk_speculation_observe(struct sk_speculation *s, const struct sk_receipt *r) {
    count(s, r);
    weigh_drafts(s, r);
    s->cooldown -= r->n_committed < s->cooldown ? r->n_committed : s->cooldown;
    if (r->n_proposal) sk_adaptive_observe(&s->adaptive, r->disposition == SK_FULL_ACCEPT);
    if (r->disposition == SK_STOPPED) {
        drop_buffer(s);
    } else if (r->disposition == SK_FIRST_MISMATCH) {
        reject(s, &r->proposal[r->n_accepted]);
    } else {
        take_from_buffer(s, s->n_window < s->n_buffer ? s->n_window : s->n_buffer);
        if (s->n_buffer) { /* the boundary token is the verdict on the next draft, for nothing */
            const struct sk_draft d = s->buffer[0];
            const bool hit = d.token == r->next_token;
            sk_acceptance_observe(&s->acceptance, &d, hit);
            *(hit ? &s->stats.buffered_hits : &s->stats.buffered_misses) += 1;
            if (hit)
                take_from_buffer(s, 1);
            else
                reject(s, &d);
        }
        finish_tail(s);
    }
    s->n_window = 0;
    for (size_t i = 0; i < s->n_proposers; i++)
        if (s->proposers[i]->ops->observe) s->proposers[i]->ops->observe(s->proposers[i], r);
}
