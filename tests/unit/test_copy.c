/* The copy proposer and what it is made of: the index, substitutions, places, and all of them over edited texts. */
#include "harness.h"

#include "base/clock.h"
#include "speculate/aligner.h"

static size_t ask(struct sk_proposer *p, const int32_t *tokens, size_t n, size_t limit, struct sk_draft *out) {
    const struct sk_proposal_request r = {tokens, n, n, limit};
    return p->ops->propose(p, &r, out);
}

static void expect(const struct sk_draft *drafts, size_t n, const char *want) {
    char got[512] = "";
    for (size_t i = 0, at = 0; i < n && at + 16 < sizeof got; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%d", i ? " " : "", drafts[i].token);
    assert_string_equal(got, want);
}

/* ---- substitutions ------------------------------------------------------------------------------------- */

static const struct sk_substitution *find(const struct sk_substitutions *t, const int32_t *source, size_t n,
                                          size_t at) {
    bool doubted;
    return sk_substitutions_find(t, source, n, at, true, &doubted);
}

static void test_a_substitution_is_expected_again(void **state) {
    (void)state;
    static struct sk_substitutions t;
    const int32_t source[] = {1, 5, 2, 3, 5, 4, 5}, to[] = {8, 9};
    memset(&t, 0, sizeof t);
    assert_null(find(&t, source, 7, 1));
    sk_substitutions_learn(&t, source, 7, 1, 1, to, 2);
    for (size_t at = 0; at < 7; at++) {
        const struct sk_substitution *s = find(&t, source, 7, at);
        assert_true((s != NULL) == (source[at] == 5));
        if (s) assert_true(s->n_from == 1 && s->n_to == 2 && s->to[0] == 8 && s->to[1] == 9);
    }
}

static void test_where_it_does_not_happen_it_is_not_expected(void **state) {
    (void)state;
    static struct sk_substitutions t;
    const int32_t source[] = {1, 5, 2, 3, 5, 4, 1, 5, 2, 3, 5, 4}, to[] = {8};
    memset(&t, 0, sizeof t);
    for (int i = 0; i < 3; i++) sk_substitutions_learn(&t, source, 12, 1, 1, to, 1);
    sk_substitutions_deny(&t, source, 12, 4, find(&t, source, 12, 4)); /* between 3 and 4 it stays */
    assert_null(find(&t, source, 12, 4));
    assert_null(find(&t, source, 12, 10));
    assert_non_null(find(&t, source, 12, 7));
}

static void test_the_longer_and_the_later_substitution_wins(void **state) {
    (void)state;
    static struct sk_substitutions t;
    const int32_t source[] = {1, 5, 6, 2, 5, 3}, one[] = {8}, two[] = {9}, other[] = {10};
    memset(&t, 0, sizeof t);
    sk_substitutions_learn(&t, source, 6, 4, 1, one, 1);
    sk_substitutions_learn(&t, source, 6, 1, 2, two, 1);
    assert_true(find(&t, source, 6, 1)->to[0] == 9 && find(&t, source, 6, 4)->to[0] == 8);
    for (int i = 0; i < 3; i++) sk_substitutions_learn(&t, source, 6, 4, 1, other, 1); /* the name is another now */
    assert_int_equal(find(&t, source, 6, 4)->to[0], 10);
}

static void test_insertions_and_deletions(void **state) {
    (void)state;
    static struct sk_substitutions t;
    const int32_t source[] = {1, 5, 2, 1, 5, 2, 7, 5, 6}, to[] = {8, 9};
    bool doubted;
    memset(&t, 0, sizeof t);
    sk_substitutions_learn(&t, source, 9, 1, 0, to, 2); /* after 1, before 5 */
    const struct sk_substitution *s = find(&t, source, 9, 4);
    assert_true(s && s->n_from == 0 && s->n_to == 2);
    assert_null(sk_substitutions_find(&t, source, 9, 4, false, &doubted));
    assert_null(find(&t, source, 9, 7));
    sk_substitutions_learn(&t, source, 9, 2, 1, NULL, 0); /* 2 is left out */
    s = find(&t, source, 9, 5);
    assert_true(s && s->n_from == 1 && s->n_to == 0);
}

static void test_the_table_is_bounded_and_keeps_what_repeats(void **state) {
    (void)state;
    static struct sk_substitutions t;
    int32_t source[3] = {1, 5, 2};
    const int32_t to[] = {8};
    memset(&t, 0, sizeof t);
    for (int i = 0; i < 4; i++) sk_substitutions_learn(&t, source, 3, 1, 1, to, 1);
    for (int32_t k = 100; k < 20000; k++) {
        source[1] = k;
        sk_substitutions_learn(&t, source, 3, 1, 1, to, 1);
    }
    source[1] = 5;
    assert_non_null(find(&t, source, 3, 1));
    sk_substitutions_learn(&t, source, 3, 1, 5, to, 1); /* too long, or outside: nothing happens */
    sk_substitutions_learn(&t, source, 3, 3, 1, to, 1);
    sk_substitutions_learn(&t, source, 3, 3, 0, to, 0);
}

/* ---- the proposer -------------------------------------------------------------------------------------- */

/* A text of 40 different tokens but 5, which comes every fourth; then the same with 5 replaced. */
enum { TEXT = 40 };
static size_t make_text(int32_t *out) {
    for (int32_t i = 0; i < TEXT; i++) out[i] = i % 4 == 3 ? 5 : 100 + i;
    return TEXT;
}

static void test_a_replaced_token_is_learnt_and_proposed(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    int32_t text[2 * TEXT + 1];
    size_t n = make_text(text);
    text[n++] = 99; /* between the two */
    struct sk_proposer *p = sk_copy_proposer_create();
    for (size_t i = 0; i < 10; i++) {
        text[n] = text[i] == 5 ? 77 : text[i];
        n++;
    }
    expect(out, ask(p, text, n, 8, out), "110 77 112 113 114 77 116 117");
    p->ops->destroy(p);
}

/* Replacements of other lengths, an insertion and a deletion: after three examples the rest is foreseen. */
static void test_edits_of_every_shape_are_followed(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t to[4];
        size_t n_to;
    } cases[] = {
        {"one by one", {77}, 1}, {"one by three", {77, 78, 79}, 3}, {"left out", {0}, 0}, {"one added", {5, 77}, 2}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int32_t text[4 * TEXT], answer[4 * TEXT];
        struct sk_draft out[SK_MAX_PROPOSAL];
        size_t n = make_text(text), n_answer = 0, passes = 0, last = 0;
        for (size_t i = 0; i < TEXT; i++) {
            if (text[i] != 5) answer[n_answer++] = text[i];
            for (size_t k = 0; text[i] == 5 && k < cases[c].n_to; k++) answer[n_answer++] = cases[c].to[k];
        }
        text[n++] = 99;
        struct sk_proposer *p = sk_copy_proposer_create();
        for (size_t i = 0; i < n_answer; passes++) {
            const size_t k = ask(p, text, n, n_answer - i - 1, out);
            size_t right = 0;
            while (right < k && out[right].token == answer[i + right]) right++;
            for (size_t j = 0; j <= right; j++) text[n++] = answer[i++];
            last = right;
        }
        if (passes > 12 || last < 12) fail_msg("%s: %zu windows, the last with %zu right", cases[c].name, passes, last);
        p->ops->destroy(p);
    }
}

/* What is added once (eight tokens, none of them known) does not lose the place. */
static void test_a_long_insertion_does_not_lose_the_place(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    int32_t text[3 * TEXT];
    size_t n = 0;
    for (int32_t i = 0; i < TEXT; i++) text[n++] = 100 + i;
    text[n++] = 99;
    for (int32_t i = 0; i < 20; i++) text[n++] = 100 + i;
    for (int32_t i = 0; i < 8; i++) text[n++] = 500 + i;
    text[n++] = 120;
    struct sk_proposer *p = sk_copy_proposer_create();
    assert_true(ask(p, text, n, 5, out) == 5); /* one token agrees: a match of three would find nothing */
    expect(out, 5, "121 122 123 124 125");
    p->ops->destroy(p);
}

/* Random texts with repetition, random edits: whatever is asked, drafts are tokens of the text or of substitutions, and
 * never learnt from drafts. */
static void test_random_texts_and_windows(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (int round = 0; round < 300; round++) {
        int32_t text[600];
        size_t n = 0;
        struct sk_draft out[SK_MAX_PROPOSAL], again[SK_MAX_PROPOSAL];
        struct sk_proposer *p = sk_copy_proposer_create(), *q = sk_copy_proposer_create();
        const size_t alphabet = 2 + random_below(&seed, 200), period = 5 + random_below(&seed, 150);
        while (n < 500) {
            text[n] = n > period && random_below(&seed, 12) ? text[n - period] : (int32_t)random_below(&seed, alphabet);
            n++;
        }
        for (size_t at = 1; at < n; at += 1 + random_below(&seed, 9)) {
            const size_t limit = 1 + random_below(&seed, 70), k = ask(p, text, at, limit, out);
            assert_true(k <= limit);
            for (size_t i = 0; i < k; i++)
                assert_true(out[i].token >= 0 && out[i].token < (int32_t)alphabet && out[i].kind == SK_COPY &&
                            out[i].evidence < SK_EVIDENCE_CLASSES);
            if (random_below(&seed, 3) == 0) continue;
            const size_t m =
                ask(q, text, at, 1 + random_below(&seed, 70), again); /* asked less often, for another length */
            for (size_t i = 0; i < m; i++) assert_true(again[i].token >= 0 && again[i].token < (int32_t)alphabet);
        }
        p->ops->destroy(p);
        q->ops->destroy(q);
    }
}

static void test_it_is_fast_on_a_long_context(void **state) {
    (void)state;
    const size_t n = 1 << 17;
    int32_t *tokens = calloc(n, sizeof *tokens);
    struct sk_draft out[SK_MAX_PROPOSAL];
    static const char *const kinds[] = {"one token", "four tokens", "no repetition", "a text edited again and again"};
    uint64_t seed = 5;
    for (size_t kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < n; i++)
            tokens[i] = kind == 0                                         ? 1
                        : kind == 1                                       ? (int32_t)random_below(&seed, 4)
                        : kind == 3 && i > 999 && random_below(&seed, 10) ? tokens[i - 1000]
                                                                          : (int32_t)random_below(&seed, 30000);
        struct sk_proposer *p = sk_copy_proposer_create();
        ask(p, tokens, n / 2, 32, out);
        const uint64_t start = sk_now_ns();
        for (size_t i = n / 2; i < n; i += 4) ask(p, tokens, i, 32, out);
        print_message("copy, %s: %.2f us per proposal, following 4 tokens included\n", kinds[kind],
                      sk_seconds_since(start) * 1e6 / (double)(n / 8));
        p->ops->destroy(p);
    }
    free(tokens);
}

/* ---- the prediction proposer --------------------------------------------------------------------------- */

static void test_prediction_goes_on_after_a_mismatch(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    const int32_t predicted[] = {10, 11, 12, 13, 14, 15, 16, 17};
    struct sk_proposer *p = sk_prediction_proposer_create(predicted, 8, 2);
    const int32_t context[] = {1, 2, 10, 11, 50, 51, 14, 15};
    expect(out, ask(p, context, 2, 3, out), "10 11 12");
    expect(out, ask(p, context, 4, 9, out), "12 13 14 15 16 17");
    expect(out, ask(p, context, 5, 9, out), "13 14 15 16 17"); /* as if 50 stood for 12 */
    expect(out, ask(p, context, 6, 9, out), "14 15 16 17");
    expect(out, ask(p, context, 8, 9, out), "16 17");
    p->ops->destroy(p);
}

static void test_prediction_skips_and_goes_back(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    int32_t predicted[200], context[64] = {1};
    for (int32_t i = 0; i < 200; i++) predicted[i] = 10 + i;
    struct sk_proposer *p = sk_prediction_proposer_create(predicted, 200, 1);
    for (int32_t i = 0; i < 5; i++) context[1 + i] = 160 + i; /* far ahead */
    expect(out, ask(p, context, 6, 3, out), "165 166 167");
    for (int32_t i = 0; i < 5; i++) context[6 + i] = 40 + i; /* and back */
    expect(out, ask(p, context, 11, 3, out), "45 46 47");
    p->ops->destroy(p);
}

static void test_an_empty_prediction_says_nothing(void **state) {
    (void)state;
    struct sk_draft out[SK_MAX_PROPOSAL];
    const int32_t context[] = {1, 2, 3, 4, 5, 6};
    struct sk_proposer *p = sk_prediction_proposer_create(NULL, 0, 2);
    for (size_t n = 0; n <= 6; n++) assert_int_equal(ask(p, context, n, 8, out), 0);
    p->ops->destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_substitution_is_expected_again),
        cmocka_unit_test(test_where_it_does_not_happen_it_is_not_expected),
        cmocka_unit_test(test_the_longer_and_the_later_substitution_wins),
        cmocka_unit_test(test_insertions_and_deletions),
        cmocka_unit_test(test_the_table_is_bounded_and_keeps_what_repeats),
        cmocka_unit_test(test_a_replaced_token_is_learnt_and_proposed),
        cmocka_unit_test(test_edits_of_every_shape_are_followed),
        cmocka_unit_test(test_a_long_insertion_does_not_lose_the_place),
        cmocka_unit_test(test_random_texts_and_windows),
        cmocka_unit_test(test_it_is_fast_on_a_long_context),
        cmocka_unit_test(test_prediction_goes_on_after_a_mismatch),
        cmocka_unit_test(test_prediction_skips_and_goes_back),
        cmocka_unit_test(test_an_empty_prediction_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
