/* The rules of speculation (docs/SPECULATION.md), each with the tests that hold it, here unless a file is named.
 *
 * R1  verdict
 *     - test_verdict_table, test_verdict_equals_the_serial_walk
 *     - test_predictions_that_end_too_early_are_an_error
 * R2  budget
 *     - test_proposals_never_overrun_budget_context_or_window
 * R3  commit, stop
 *     - test_engine.c: test_a_stop_inside_a_window_commits_up_to_it
 *     - test_engine.c: test_cancellation_is_looked_at_before_each_token
 * R4  repair first
 *     - test_engine.c: test_a_failed_trim_drops_the_session_and_fails_the_request
 *     - test_engine.c: test_a_stop_inside_a_window_commits_up_to_it
 * R5  base
 *     - test_engine.c: test_a_wrong_position_after_the_pass_fails_the_request
 * R6  samplers follow
 *     - exact --spec with penalties
 *     - test_engine.c: test_random_windows_leave_the_serial_session
 * R7  same noise
 *     - test_sampling.c: test_coupled_draws_agree_as_often_as_theory_says
 *     - exact --spec at temperatures 0, 0.7, 1.2
 * R8  one order
 *     - test_engine.c: test_a_result_of_another_window_fails_the_request
 * R9  untrusted
 *     - test_out_of_range_drafts_are_cut_counted_and_switched_off, test_failures_switch_a_proposer_off
 *     - exact --spec with hostile proposers
 *     - tests/e2e/test_speculation.py: test_a_hostile_plugin_costs_speed_only
 * R10 isolation
 *     - test_engine.c: test_one_generations_failure_leaves_the_others_alone
 */
#include "harness.h"

#include "base/clock.h"
#include "speculate/speculation.h"
#include "speculate/verdict.h"

enum { END = 99 };
static bool ends(const void *ctx, int32_t token) {
    (void)ctx;
    return token == END;
}

/* ---- R1, R2 -------------------------------------------------------------------------------------------- */

static void test_verdict_table(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t proposals[4];
        size_t k;
        int32_t predicted[5];
        size_t n_predicted, budget, accepted, commit;
        bool rejected, ended;
    } cases[] = {
        {"empty proposal", {0}, 0, {7}, 1, 10, 0, 1, false, false},
        {"empty proposal, end of generation", {0}, 0, {END}, 1, 10, 0, 1, false, true},
        {"empty proposal, budget 1", {0}, 0, {7}, 1, 1, 0, 1, false, true},
        {"all accepted, boundary token", {1, 2, 3}, 3, {1, 2, 3, 4}, 4, 10, 3, 4, false, false},
        {"all accepted, boundary ends", {1, 2, 3}, 3, {1, 2, 3, END}, 4, 10, 3, 4, false, true},
        {"mismatch at 0", {1, 2, 3}, 3, {9}, 1, 10, 0, 1, true, false},
        {"mismatch at 1", {1, 2, 3}, 3, {1, 9}, 2, 10, 1, 2, true, false},
        {"mismatch at 2", {1, 2, 3}, 3, {1, 2, 9}, 3, 10, 2, 3, true, false},
        {"later predictions do not count", {1, 2, 3}, 3, {1, 9, 3, 4}, 4, 10, 1, 2, true, false},
        {"correction ends", {1, 2}, 2, {1, END}, 2, 10, 1, 2, true, true},
        {"end inside an accepted prefix", {1, END, 3}, 3, {1, END, 3, 4}, 4, 10, 2, 2, false, true},
        {"end exactly at the last proposal", {1, 2, END}, 3, {1, 2, END}, 3, 10, 3, 3, false, true},
        {"end proposed, not predicted", {END, 2}, 2, {1}, 1, 10, 0, 1, true, false},
        {"budget reached inside", {1, 2, 3}, 3, {1, 2, 3, 4}, 4, 2, 2, 2, false, true},
        {"budget reached by the boundary token", {1, 2}, 2, {1, 2, 3}, 3, 3, 2, 3, false, true},
        {"budget reached by the correction", {1, 2}, 2, {1, 9}, 2, 2, 1, 2, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sk_verdict v;
        struct sk_error err = {0};
        assert_sk_ok(sk_verdict(cases[i].proposals, cases[i].k, cases[i].predicted, cases[i].n_predicted,
                                cases[i].budget, ends, NULL, &v, &err));
        if (v.accepted != cases[i].accepted || v.commit != cases[i].commit || v.rejected != cases[i].rejected ||
            v.ended != cases[i].ended)
            fail_msg("%s: accepted %zu, commit %zu, rejected %d, ended %d", cases[i].name, v.accepted, v.commit,
                     v.rejected, v.ended);
    }
}

static void test_predictions_that_end_too_early_are_an_error(void **state) {
    (void)state;
    struct sk_verdict v;
    struct sk_error err = {0};
    const int32_t proposals[] = {1, 2}, predicted[] = {1, 2, 3};
    for (size_t n = 0; n < 3; n++)
        assert_int_equal(sk_verdict(proposals, 2, predicted, n, 10, ends, NULL, &v, &err), SK_EINVAL);
    assert_sk_ok(sk_verdict(proposals, 2, predicted, 3, 10, ends, NULL, &v, &err));
}

/* Against a walk written in another way: commit tokens one by one as a serial decoder would, as long as the proposals
 * agree. */
static void test_verdict_equals_the_serial_walk(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 200000; round++) {
        int32_t truth[9], proposals[8];
        const size_t k = random_below(&seed, 9), budget = 1 + random_below(&seed, 10);
        for (size_t i = 0; i <= k; i++) truth[i] = random_below(&seed, 12) ? (int32_t)random_below(&seed, 3) : END;
        for (size_t i = 0; i < k; i++)
            proposals[i] = random_below(&seed, 4) ? truth[i] : (int32_t)random_below(&seed, 3);
        size_t committed = 0, accepted = 0;
        bool ended = false;
        for (size_t row = 0; row <= k && !ended; row++) {
            if (row && proposals[row - 1] != truth[row - 1]) break;
            accepted = row;
            committed++;
            ended = truth[row] == END || committed == budget;
            if (ended && row < k && proposals[row] == truth[row]) accepted++;
        }
        struct sk_verdict v;
        struct sk_error err = {0};
        assert_sk_ok(sk_verdict(proposals, k, truth, k + 1, budget, ends, NULL, &v, &err));
        assert_int_equal(v.commit, committed);
        assert_int_equal(v.accepted, accepted);
    }
}

static void test_proposals_never_overrun_budget_context_or_window(void **state) {
    (void)state;
    assert_int_equal(sk_proposal_limit(1, 10, 100, 64), 0);
    assert_int_equal(sk_proposal_limit(5, 10, 100, 64), 4);
    assert_int_equal(sk_proposal_limit(50, 97, 100, 64), 2);
    assert_int_equal(sk_proposal_limit(50, 99, 100, 64), 0);
    assert_int_equal(sk_proposal_limit(50, 10, 100, 8), 7);
    assert_int_equal(sk_proposal_limit(50, 10, 100, 0), 0);
    assert_int_equal(sk_proposal_limit(0, 10, 100, 64), 0);
}

/* ---- proposers ----------------------------------------------------------------------------------------- */

static size_t ask(struct sk_proposer *p, const int32_t *tokens, size_t n, size_t limit, struct sk_draft *out) {
    const struct sk_proposal_request r = {tokens, n, n, limit};
    return p->ops->propose(p, &r, out);
}

static void test_suffix_takes_the_longest_match_and_the_latest_among_equals(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    struct sk_proposer *p = sk_suffix_proposer_create();
    /* "1 2 3" was followed by 10, later by 20; "9 1 2 3" by 10 alone. */
    const int32_t a[] = {9, 1, 2, 3, 10, 8, 1, 2, 3, 20, 7, 1, 2, 3};
    assert_true(ask(p, a, 14, 1, out) == 1 && out[0].token == 20);
    p->ops->destroy(p);
    p = sk_suffix_proposer_create();
    const int32_t b[] = {9, 1, 2, 3, 10, 8, 1, 2, 3, 20, 9, 1, 2, 3};
    assert_true(ask(p, b, 14, 3, out) == 3 && out[0].token == 10 && out[1].token == 8 && out[2].token == 1);
    p->ops->destroy(p);
}

static void test_suffix_is_silent_without_a_match_of_three(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    struct sk_proposer *p = sk_suffix_proposer_create();
    const int32_t a[] = {1, 2, 5, 6, 1, 2};
    assert_int_equal(ask(p, a, 0, 8, out), 0);
    assert_int_equal(ask(p, a, 2, 8, out), 0);
    assert_int_equal(ask(p, a, 6, 8, out), 0);
    p->ops->destroy(p);
}

static void test_suffix_goes_on_with_a_repetition(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    struct sk_proposer *p = sk_suffix_proposer_create();
    const int32_t a[] = {4, 5, 6, 7, 4, 5, 6, 7, 4, 5};
    const size_t n = ask(p, a, 10, 9, out);
    assert_int_equal(n, 9);
    for (size_t i = 0; i < n; i++) assert_int_equal(out[i].token, (int32_t)(4 + (i + 2) % 4));
    p->ops->destroy(p);
}

/* Against a search through the whole context, on texts with much repetition. */
static void test_suffix_equals_a_plain_search(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 200; round++) {
        int32_t tokens[300];
        struct sk_draft out[SK_MAX_PROPOSAL];
        struct sk_proposer *p = sk_suffix_proposer_create();
        const size_t alphabet = 2 + random_below(&seed, 60);
        for (size_t i = 0; i < 300; i++)
            tokens[i] = i > 20 && random_below(&seed, 5) ? tokens[i - 17] : (int32_t)random_below(&seed, alphabet);
        for (size_t n = 1; n < 300; n += 1 + random_below(&seed, 3)) {
            size_t best = 0, place = 0, candidates = 0;
            for (size_t e = n - 1; e >= 1; e--) {
                size_t length = 0;
                while (length < 64 && length < e && tokens[e - 1 - length] == tokens[n - 1 - length]) length++;
                if (length >= 3 && candidates++ < 64 && length > best) best = length, place = e;
            }
            const size_t got = ask(p, tokens, n, 4, out);
            if (candidates > 64 || best >= 64) continue; /* the proposer looks at no more */
            if (best == 0)
                assert_int_equal(got, 0);
            else
                assert_true(got == 4 && out[0].token == tokens[place]);
        }
        p->ops->destroy(p);
    }
}

static void test_suffix_never_learns_from_drafts(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    struct sk_proposer *p = sk_suffix_proposer_create();
    const int32_t a[] = {1, 2, 3, 4, 9, 9, 1, 2, 3, 4}; /* the last two are drafts */
    const struct sk_proposal_request r = {a, 8, 10, 4};
    assert_true(p->ops->propose(p, &r, out) == 4 && out[0].token == 9);
    const int32_t b[] = {1, 2, 3, 4, 9, 9, 1, 2, 7, 7, 5, 1, 2, 3};
    assert_true(ask(p, b, 14, 2, out) == 2 && out[0].token == 4);
    p->ops->destroy(p);
}

static void test_suffix_is_fast_on_a_long_context(void **state) {
    (void)state;
    const size_t n = 1 << 17;
    int32_t *tokens = calloc(n, sizeof *tokens);
    struct sk_draft out[SK_MAX_PROPOSAL];
    uint64_t seed = 5;
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < n; i++)
            tokens[i] = kind == 0   ? 1
                        : kind == 1 ? (int32_t)random_below(&seed, 4)
                                    : (int32_t)random_below(&seed, 30000);
        struct sk_proposer *p = sk_suffix_proposer_create();
        const uint64_t start = sk_now_ns();
        for (size_t i = n / 2; i < n; i += 16) ask(p, tokens, i, 32, out);
        print_message("suffix, kind %d: %.2f us per proposal, learning 16 tokens included\n", kind,
                      sk_seconds_since(start) * 1e6 / (double)(n / 32));
        p->ops->destroy(p);
    }
    free(tokens);
}

static void test_cache_proposes_what_followed_most(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    struct sk_proposer *p = sk_cache_proposer_create();
    const int32_t a[] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4};
    assert_true(ask(p, a, 14, 3, out) == 3 && out[0].token == 5 && out[1].token == 1 && out[2].token == 2);
    const int32_t b[] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 77};
    assert_int_equal(ask(p, b, 15, 3, out), 0);
    p->ops->destroy(p);
}

/* ---- the controller ------------------------------------------------------------------------------------ */

/* A proposer that says what it is told. */
struct scripted {
    struct sk_proposer proposer;
    struct sk_proposer_ops ops;
    struct sk_draft drafts[32];
    size_t n; /* or SK_PROPOSE_FAILED */
    size_t asked;
};
static size_t scripted_propose(struct sk_proposer *p, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct scripted *s = (struct scripted *)p;
    s->asked++;
    if (s->n == SK_PROPOSE_FAILED) return s->n;
    const size_t n = s->n < r->limit ? s->n : r->limit;
    memcpy(out, s->drafts, n * sizeof *out);
    return n;
}
static void scripted_destroy(struct sk_proposer *p) {
    (void)p;
}
static struct scripted scripted_of(enum sk_proposer_kind kind, int32_t first, size_t n) {
    struct scripted s = {.ops = {kind, scripted_propose, NULL, scripted_destroy}, .n = n};
    for (size_t i = 0; i < n && n <= 32; i++) s.drafts[i] = (struct sk_draft){first + (int32_t)i, 0, 0};
    return s;
}

static struct sk_speculation *controller(struct sk_speculation_options o, struct scripted *s) {
    struct sk_speculation *c = sk_speculation_create(&o, 100, NULL);
    if (!s) return c;
    s->proposer.ops = &s->ops;
    sk_speculation_add(c, &s->proposer);
    return c;
}

static struct sk_cost_model flat_cost(void) {
    struct sk_cost_model c;
    sk_cost_init(&c, 0.1);
    for (size_t i = 1; i <= SK_MAX_WINDOW; i++) sk_cost_observe(&c, i, 1.0);
    return c;
}

static size_t next(struct sk_speculation *c, size_t limit, struct sk_draft *out) {
    static const int32_t tokens[] = {1, 2, 3};
    const struct sk_cost_model cost = flat_cost();
    const struct sk_next n = {.tokens = tokens, .n_tokens = 3, .limit = limit, .cost = &cost};
    return sk_speculation_next(c, &n, out);
}

/* What the engine would say of a window whose first `accepted` drafts were right. */
static void answer(struct sk_speculation *c, const struct sk_draft *drafts, size_t n, size_t accepted,
                   int32_t next_token, bool stopped) {
    int32_t predicted[SK_MAX_WINDOW];
    for (size_t i = 0; i < accepted; i++) predicted[i] = drafts[i].token;
    predicted[accepted] = next_token;
    const struct sk_receipt r = {.disposition = stopped        ? SK_STOPPED
                                                : accepted < n ? SK_FIRST_MISMATCH
                                                               : SK_FULL_ACCEPT,
                                 .proposal = drafts,
                                 .n_proposal = n,
                                 .n_rows = n + 1,
                                 .n_accepted = accepted,
                                 .n_committed = accepted + 1,
                                 .predicted = predicted,
                                 .n_predicted = accepted + 1,
                                 .next_token = stopped ? -1 : next_token,
                                 .trimmed_rows = n - accepted};
    sk_speculation_observe(c, &r);
}

static struct sk_speculation_options fixed(size_t width) {
    struct sk_speculation_options o = sk_speculation_defaults();
    o.mode = SK_WIDTH_FIXED;
    o.width = width;
    return o;
}

static void test_a_long_proposal_is_consumed_window_by_window(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct scripted s = scripted_of(SK_PLUGIN, 10, 9);
    struct sk_speculation *c = controller(fixed(3), &s);
    assert_int_equal(next(c, 20, d), 3);
    assert_int_equal(d[0].token, 10);
    assert_int_equal(sk_speculation_buffered(c), 6);
    answer(c, d, 3, 3, 13, false); /* the boundary token is the next draft: taken */
    assert_int_equal(next(c, 20, d), 3);
    assert_int_equal(d[0].token, 14);
    assert_int_equal(s.asked, 1);
    answer(c, d, 3, 3, 50, false); /* another one: the rest is dropped */
    assert_int_equal(sk_speculation_buffered(c), 0);
    assert_int_equal(sk_speculation_stats(c)->buffered_hits, 1);
    assert_int_equal(sk_speculation_stats(c)->buffered_misses, 1);
    next(c, 20, d);
    assert_int_equal(s.asked, 2);
    answer(c, d, 3, 1, 50, false); /* a rejection drops it too */
    assert_int_equal(sk_speculation_buffered(c), 0);
    next(c, 20, d);
    answer(c, d, 3, 1, 50, true); /* and so does a stop */
    assert_int_equal(sk_speculation_buffered(c), 0);
    sk_speculation_free(c);
}

static void test_the_limit_binds_whatever_is_buffered(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct scripted s = scripted_of(SK_PLUGIN, 10, 9);
    struct sk_speculation *c = controller(fixed(8), &s);
    assert_int_equal(next(c, 2, d), 2);
    answer(c, d, 2, 2, 12, false);
    assert_int_equal(next(c, 0, d), 0);
    sk_speculation_free(c);
}

static void offer(struct sk_speculation *c, int32_t first, size_t n) {
    struct sk_draft d[8];
    for (size_t i = 0; i < n; i++) d[i] = (struct sk_draft){first + (int32_t)i, SK_MTP, 15};
    sk_speculation_offer_mtp(c, d, n);
}

static void test_mtp_rejection_cools_down_and_a_tail_rejection_does_not(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct scripted s = scripted_of(SK_SUFFIX, 20, 8);
    struct sk_speculation_options o = fixed(16);
    o.mtp_cooldown = 3;
    struct sk_speculation *c = controller(o, &s);
    offer(c, 20, 2);
    assert_int_equal(next(c, 20, d), 4); /* 20, 21 and a tail of two */
    assert_true(d[1].kind == SK_MTP && d[2].kind == SK_SUFFIX && d[2].token == 22);
    assert_int_equal(sk_speculation_mtp_wanted(c), 4);
    answer(c, d, 4, 3, 50, false); /* in the tail */
    assert_int_equal(sk_speculation_stats(c)->tail_rejections, 1);
    assert_int_equal(sk_speculation_stats(c)->mtp_cooldowns, 0);
    offer(c, 20, 2);
    assert_int_equal(next(c, 20, d), 2); /* the tail pauses */
    answer(c, d, 2, 1, 50, false);       /* in the MTP prefix */
    assert_int_equal(sk_speculation_stats(c)->mtp_cooldowns, 1);
    assert_int_equal(sk_speculation_mtp_wanted(c), 0);
    offer(c, 20, 2);
    assert_int_equal(next(c, 20, d), 8); /* no MTP now: pure n-gram keeps the full limit */
    assert_int_equal(d[0].kind, SK_SUFFIX);
    answer(c, d, 8, 8, 28, false); /* nine tokens: the cooldown is over */
    assert_int_equal(sk_speculation_mtp_wanted(c), 4);
    sk_speculation_free(c);
}

static void test_every_mismatch_index_of_prefix_and_tail(void **state) {
    (void)state;
    for (size_t wrong = 0; wrong <= 4; wrong++) {
        struct sk_draft d[SK_MAX_WINDOW];
        struct scripted s = scripted_of(SK_SUFFIX, 20, 8);
        struct sk_speculation_options o = fixed(16);
        o.mtp_cooldown = 5;
        struct sk_speculation *c = controller(o, &s);
        offer(c, 20, 2);
        assert_int_equal(next(c, 20, d), 4);
        answer(c, d, 4, wrong, wrong == 4 ? 24 : 50, false);
        const struct sk_speculation_stats *st = sk_speculation_stats(c);
        assert_int_equal(st->mtp_cooldowns, wrong < 2);
        assert_int_equal(st->tail_rejections, wrong == 2 || wrong == 3);
        assert_int_equal(st->full_accepts, wrong == 4);
        assert_int_equal(st->by[SK_MTP].accepted, wrong < 2 ? wrong : 2);
        assert_int_equal(st->by[SK_SUFFIX].accepted, wrong < 2 ? 0 : wrong - 2);
        sk_speculation_free(c);
    }
}

static void test_a_tail_needs_a_match_that_predicts_the_prefix(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct scripted s = scripted_of(SK_SUFFIX, 20, 8);
    struct sk_speculation *c = controller(fixed(16), &s);
    offer(c, 30, 2);
    assert_int_equal(next(c, 20, d), 2);
    assert_int_equal(sk_speculation_stats(c)->prefix_disagreements, 1);
    answer(c, d, 2, 2, 50, false);
    s.n = 3; /* agrees, but a tail of one is not worth its row */
    offer(c, 20, 2);
    assert_int_equal(next(c, 20, d), 2);
    assert_int_equal(sk_speculation_stats(c)->prefix_agreements, 1);
    sk_speculation_free(c);
}

static void test_a_tail_grows_with_success(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct scripted s = scripted_of(SK_SUFFIX, 20, 30);
    struct sk_speculation *c = controller(fixed(30), &s);
    for (size_t i = 0; i < 4; i++) {
        offer(c, 20, 2);
        assert_int_equal(next(c, 40, d), 4 + i);
        answer(c, d, 4 + i, 4 + i, 90, false);
    }
    sk_speculation_free(c);
}

static void test_drafts_of_the_models_head_carry_their_origin(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct sk_speculation *c = controller(fixed(2), NULL);
    answer(c, d, 0, 0, 10, false); /* the prompt's last window: the first token */
    offer(c, 20, 2);
    assert_int_equal(next(c, 20, d), 2);
    answer(c, d, 2, 2, 22, false);
    offer(c, 23, 2); /* with a window's predictions */
    assert_int_equal(next(c, 20, d), 2);
    answer(c, d, 2, 0, 50, false);
    offer(c, 30, 0); /* nothing to say */
    assert_int_equal(next(c, 20, d), 0);
    answer(c, d, 0, 0, 31, false);
    offer(c, 32, 2); /* after a plain step */
    assert_int_equal(next(c, 20, d), 2);
    const struct sk_speculation_stats *s = sk_speculation_stats(c);
    for (size_t i = 0; i < SK_N_DRAFT_ORIGINS; i++) assert_true(s->mtp_offered[i] == 1 && s->mtp_adopted[i] == 1);
    sk_speculation_free(c);
}

static void test_a_draft_is_not_adopted_while_the_buffer_holds_more(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct sk_speculation_options o = fixed(2);
    o.mtp_max = 6;
    struct sk_speculation *c = controller(o, NULL);
    offer(c, 20, 6);
    assert_int_equal(next(c, 20, d), 2);
    assert_int_equal(sk_speculation_mtp_wanted(c), 0);
    answer(c, d, 2, 2, 22, false);
    offer(c, 60, 4);
    assert_int_equal(next(c, 20, d), 2);
    assert_int_equal(d[0].token, 23); /* the buffer first */
    sk_speculation_free(c);
}

static void test_a_plain_step_is_taken_now_and_then(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct scripted s = scripted_of(SK_SUFFIX, 10, 4);
    struct sk_speculation *c = controller(sk_speculation_defaults(), &s);
    size_t plain = 0;
    for (size_t i = 0; i < 400; i++) {
        const size_t n = next(c, 20, d);
        plain += n == 0;
        answer(c, d, n, n, n < 4 ? 10 + (int32_t)n : 50, false);
    }
    assert_in_range(plain, 1, 4);
    assert_true(sk_speculation_stats(c)->probes == plain);
    sk_speculation_free(c);
}

static void test_a_short_mtp_draft_is_not_used(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct sk_speculation_options o = fixed(8);
    o.mtp_min = 2;
    struct sk_speculation *c = controller(o, NULL);
    offer(c, 20, 1);
    assert_int_equal(next(c, 20, d), 0);
    offer(c, 20, 2);
    assert_int_equal(next(c, 20, d), 2);
    sk_speculation_free(c);
}

static void test_out_of_range_drafts_are_cut_counted_and_switched_off(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct scripted s = scripted_of(SK_PLUGIN, 10, 4);
    s.drafts[2].token = 100; /* the vocabulary has 100 */
    struct sk_speculation *c = controller(fixed(8), &s);
    for (size_t i = 0; i < 5; i++) {
        const size_t n = next(c, 20, d);
        assert_int_equal(n, i < 3 ? 2 : 0);
        answer(c, d, n, 0, 50, false);
    }
    assert_int_equal(s.asked, 3);
    assert_int_equal(sk_speculation_stats(c)->by[SK_PLUGIN].invalid, 3);
    assert_true(sk_speculation_stats(c)->by[SK_PLUGIN].off);
    sk_speculation_free(c);
}

static void test_failures_switch_a_proposer_off(void **state) {
    (void)state;
    struct sk_draft d[SK_MAX_WINDOW];
    struct scripted s = scripted_of(SK_PLUGIN, 10, SK_PROPOSE_FAILED);
    struct sk_speculation *c = controller(fixed(8), &s);
    for (size_t i = 0; i < 6; i++) {
        if (i == 2) s.n = 1, s.drafts[0].token = 10; /* one good answer forgives */
        if (i == 3) s.n = SK_PROPOSE_FAILED;
        const size_t n = next(c, 20, d);
        answer(c, d, n, 0, 50, false);
    }
    assert_true(sk_speculation_stats(c)->by[SK_PLUGIN].off);
    assert_int_equal(sk_speculation_stats(c)->by[SK_PLUGIN].failures, 5);
    next(c, 20, d);
    assert_int_equal(s.asked, 6);
    sk_speculation_free(c);
}

/* ---- widths -------------------------------------------------------------------------------------------- */

static void test_adaptive_width_walks_by_one(void **state) {
    (void)state;
    struct sk_adaptive_width w;
    sk_adaptive_init(&w, 1, 4);
    assert_int_equal(w.now, 2);
    static const bool verdicts[] = {true, true, true, false, false, false, false, true};
    static const size_t want[] = {3, 4, 4, 3, 2, 1, 1, 2};
    for (size_t i = 0; i < 8; i++) {
        sk_adaptive_observe(&w, verdicts[i]);
        assert_int_equal(w.now, want[i]);
    }
    sk_adaptive_init(&w, 1, 1);
    assert_int_equal(w.now, 1);
}

static struct sk_cost_model linear_cost(double first, double further) {
    struct sk_cost_model c;
    sk_cost_init(&c, 0.1);
    for (size_t round = 0; round < 10; round++)
        for (size_t i = 1; i <= SK_MAX_WINDOW; i *= 2) sk_cost_observe(&c, i, first + further * (double)(i - 1));
    return c;
}

static void test_goodput_width_is_the_best_of_all_widths(void **state) {
    (void)state;
    struct sk_draft d[32];
    for (size_t i = 0; i < 32; i++) d[i] = (struct sk_draft){0, SK_SUFFIX, 0};
    for (double rate = 0.05; rate < 1.0; rate += 0.05)
        for (double further = 0.02; further < 1.2; further *= 1.7) {
            struct sk_acceptance a = {0};
            a.total[SK_SUFFIX][0] = 1e6f;
            a.accepted[SK_SUFFIX][0] = (float)(1e6 * rate);
            const struct sk_cost_model c = linear_cost(1.0, further);
            const size_t k = sk_goodput_width(&a, &c, d, 32, 0, 0.0);
            double best = 0.0, chosen = 0.0, tokens = 1.0, reach = 1.0;
            for (size_t w = 0; w <= 32; w++) {
                const double speed = tokens / (1.0 + further * (double)w);
                if (speed > best) best = speed;
                if (w == k) chosen = speed;
                tokens += reach *= rate;
            }
            if (chosen < best * 0.975)
                fail_msg("acceptance %g, cost %g: width %zu gives %g, the best %g", rate, further, k, chosen, best);
        }
}

static void test_hopeless_drafts_are_not_verified(void **state) {
    (void)state;
    struct sk_acceptance a = {0};
    struct sk_draft d[8];
    const struct sk_cost_model c = linear_cost(1.0, 0.1);
    for (size_t i = 0; i < 8; i++) d[i] = (struct sk_draft){0, SK_SUFFIX, 0};
    for (size_t i = 0; i < 40; i++) sk_acceptance_observe(&a, &d[0], false);
    assert_int_equal(sk_goodput_width(&a, &c, d, 8, 0, 0.0), 0);
    for (size_t i = 0; i < 60; i++) sk_acceptance_observe(&a, &d[0], true); /* the world changed */
    assert_true(sk_goodput_width(&a, &c, d, 8, 0, 0.0) >= 4);
}

static void test_failures_are_a_doubt_about_classes_not_tried_yet(void **state) {
    (void)state;
    static const struct sk_draft tried = {0, SK_SUFFIX, 2}, fresh = {0, SK_SUFFIX, 5}, other = {0, SK_CACHE, 5};
    struct sk_acceptance a = {0};
    const double before = sk_acceptance_of(&a, &fresh), of_other = sk_acceptance_of(&a, &other);
    for (size_t i = 0; i < 5; i++) sk_acceptance_observe(&a, &tried, false);
    const double doubted = sk_acceptance_of(&a, &fresh);
    assert_true(doubted < before - 0.05 && doubted > 0.1);
    assert_true(sk_acceptance_of(&a, &other) == of_other);
    for (size_t i = 0; i < 1000; i++) sk_acceptance_observe(&a, &tried, false);
    for (size_t i = 0; i < 20; i++) sk_acceptance_observe(&a, &tried, true);
    assert_true(sk_acceptance_of(&a, &fresh) == before); /* doubt is bounded, and success says nothing beyond it */
}

static void test_wrong_costs_heal(void **state) {
    (void)state;
    struct sk_cost_model c = linear_cost(1.0, 0.1);
    for (int i = 0; i < 200; i++)
        sk_cost_observe(&c, 4, 2.6); /* everything became twice as slow, and only one width is seen */
    assert_true(sk_cost_of(&c, 1) > 1.3 && sk_cost_of(&c, 4) > 2.5 && sk_cost_of(&c, 4) < 2.7);
    for (int i = 0; i < 300; i++) sk_cost_observe(&c, 1, 2.0), sk_cost_observe(&c, 4, 2.6), sk_cost_observe(&c, 8, 3.4);
    assert_true(sk_cost_of(&c, 1) > 1.9 && sk_cost_of(&c, 1) < 2.1);
    const double before = sk_cost_of(&c, 4);
    sk_cost_observe(&c, 4, 500.0); /* one interruption */
    assert_true(sk_cost_of(&c, 4) < before * 1.3);
}

/* Tokens per one-row pass in windows [from, to) of a generation whose drafts are right with probability `rate`, on a
 * machine where a further row costs `truth` of the first, started with a belief of `prior`. */
static double learnt_speed(double prior, double truth, double rate, size_t from, size_t to) {
    static const int32_t tokens[] = {1, 2, 3};
    struct sk_draft d[SK_MAX_WINDOW];
    struct scripted s = scripted_of(SK_SUFFIX, 10, 31);
    struct sk_cost_model cost;
    struct sk_speculation *c = controller(sk_speculation_defaults(), &s);
    uint64_t seed = 7;
    int32_t front = 10;
    double seconds = 0.0, committed = 0.0;
    sk_cost_init(&cost, prior);
    for (size_t i = 0; i < to; i++) {
        const struct sk_next n = {.tokens = tokens, .n_tokens = 3, .limit = 40, .cost = &cost};
        const size_t width = sk_speculation_next(c, &n, d);
        size_t right = 0;
        while (right < width && (double)random_below(&seed, 1000) < 1000.0 * rate) right++;
        const double took = (1.0 + truth * (double)width) * (0.95 + 0.0001 * (double)random_below(&seed, 1000));
        sk_cost_observe(&cost, width + 1, 0.003 * took);
        if (i >= from) seconds += took, committed += (double)right + 1.0;
        /* The boundary token meets the next buffered draft; drafts count upwards from 10. */
        const bool all = right == width, hit = all && (double)random_below(&seed, 1000) < 1000.0 * rate;
        answer(c, d, width, right, hit ? front + (int32_t)width : 90, false);
        front = hit && sk_speculation_buffered(c) ? front + (int32_t)width + 1 : 10;
    }
    sk_speculation_free(c);
    return committed / seconds;
}

static void test_a_wrong_prior_heals_within_tens_of_windows(void **state) {
    (void)state;
    static const double rates[] = {0.1, 0.5, 0.8, 0.9, 0.97}, truths[] = {0.03, 0.1, 0.3, 1.0};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (size_t t = 0; t < sizeof truths / sizeof *truths; t++) {
            const double right = learnt_speed(truths[t], truths[t], rates[r], 40, 400);
            for (double prior = 0.05; prior < 1.1; prior *= 2.0) {
                const double speed = learnt_speed(prior, truths[t], rates[r], 40, 400) / right;
                if (speed < 0.9)
                    fail_msg("prior %g, truth %g, acceptance %g: %.2f of a right one", prior, truths[t], rates[r],
                             speed);
            }
        }
}

/* Drafts that are never right must not cost more than their trial, whatever the prior. */
static void test_hopeless_drafts_cost_little_from_the_start(void **state) {
    (void)state;
    for (double prior = 0.05; prior < 1.1; prior *= 2.0)
        for (double truth = 0.05; truth < 1.1; truth *= 2.0)
            if (learnt_speed(prior, truth, 0.0, 0, 200) < 0.93)
                fail_msg("prior %g, truth %g: %.2f of plain", prior, truth, learnt_speed(prior, truth, 0.0, 0, 200));
}

/* Only narrow windows were run so far; then everything is accepted. */
static void test_a_width_that_was_never_run_is_tried_when_drafts_are_good(void **state) {
    (void)state;
    struct sk_cost_model c;
    struct sk_acceptance a = {0};
    struct sk_draft d[SK_MAX_WINDOW] = {{0}};
    sk_cost_init(&c, 0.3);
    for (int i = 0; i < 100; i++) {
        sk_cost_observe(&c, 1, 1.0);
        sk_cost_observe(&c, 3, 1.6);
    }
    for (size_t i = 0; i < 32; i++) d[i].kind = SK_SUFFIX;
    for (int i = 0; i < 100; i++) sk_acceptance_observe(&a, &d[0], true);
    const size_t width = sk_goodput_width(&a, &c, d, 31, 0, 0.0);
    if (width < 6) fail_msg("width %zu", width);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict_table),
        cmocka_unit_test(test_predictions_that_end_too_early_are_an_error),
        cmocka_unit_test(test_verdict_equals_the_serial_walk),
        cmocka_unit_test(test_proposals_never_overrun_budget_context_or_window),
        cmocka_unit_test(test_suffix_takes_the_longest_match_and_the_latest_among_equals),
        cmocka_unit_test(test_suffix_is_silent_without_a_match_of_three),
        cmocka_unit_test(test_suffix_goes_on_with_a_repetition),
        cmocka_unit_test(test_suffix_equals_a_plain_search),
        cmocka_unit_test(test_suffix_never_learns_from_drafts),
        cmocka_unit_test(test_suffix_is_fast_on_a_long_context),
        cmocka_unit_test(test_cache_proposes_what_followed_most),
        cmocka_unit_test(test_a_long_proposal_is_consumed_window_by_window),
        cmocka_unit_test(test_the_limit_binds_whatever_is_buffered),
        cmocka_unit_test(test_mtp_rejection_cools_down_and_a_tail_rejection_does_not),
        cmocka_unit_test(test_every_mismatch_index_of_prefix_and_tail),
        cmocka_unit_test(test_a_tail_needs_a_match_that_predicts_the_prefix),
        cmocka_unit_test(test_a_tail_grows_with_success),
        cmocka_unit_test(test_drafts_of_the_models_head_carry_their_origin),
        cmocka_unit_test(test_a_draft_is_not_adopted_while_the_buffer_holds_more),
        cmocka_unit_test(test_a_plain_step_is_taken_now_and_then),
        cmocka_unit_test(test_a_short_mtp_draft_is_not_used),
        cmocka_unit_test(test_out_of_range_drafts_are_cut_counted_and_switched_off),
        cmocka_unit_test(test_failures_switch_a_proposer_off),
        cmocka_unit_test(test_adaptive_width_walks_by_one),
        cmocka_unit_test(test_goodput_width_is_the_best_of_all_widths),
        cmocka_unit_test(test_hopeless_drafts_are_not_verified),
        cmocka_unit_test(test_failures_are_a_doubt_about_classes_not_tried_yet),
        cmocka_unit_test(test_wrong_costs_heal),
        cmocka_unit_test(test_a_wrong_prior_heals_within_tens_of_windows),
        cmocka_unit_test(test_hopeless_drafts_cost_little_from_the_start),
        cmocka_unit_test(test_a_width_that_was_never_run_is_tried_when_drafts_are_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
