/* The loop, over a target that can be made to fail, and over real (tiny) models. The rules' names:
 * tests/unit/test_speculate.c. */
#include "harness.h"

#include "base/memory.h"
#include "cache/kv.h"
#include "engine/engine.h"
#include "engine/stops.h"

/* ---- a target without a model -------------------------------------------------------------------------- */

struct sk_target_session {
    uint32_t position;
    bool closed;
};

/* The next token is a fixed function of the one before: 10, 11, … 19, 10, … Faults are switched on by the tests. */
struct fake {
    struct sk_target target;
    struct sk_window windows[8];
    size_t n_windows, n_open, n_passes;
    int32_t predicted[8][SK_MAX_WINDOW + 1];
    bool fail_settle, wrong_settle, wrong_position, wrong_id, short_predictions;
    bool no_room_for_drafts;
    int fail_window; /* index in the batch; -1 = none */
};

static int32_t successor(int32_t token) {
    return token == 19 ? 10 : token + 1;
}

static sk_status fake_open(struct sk_target *t, struct sk_target_session **out, struct sk_error *err) {
    (void)err;
    ((struct fake *)t)->n_open++;
    *out = calloc(1, sizeof **out);
    return SK_OK;
}
static sk_status fake_submit(struct sk_target *t, const struct sk_window *w, size_t n, struct sk_error *err) {
    struct fake *f = (struct fake *)t;
    (void)err;
    for (size_t i = 0; i < n; i++) f->windows[f->n_windows++] = w[i];
    return SK_OK;
}
static size_t fake_poll(struct sk_target *t, struct sk_result *results, size_t max) {
    struct fake *f = (struct fake *)t;
    const size_t n = f->n_windows < max ? f->n_windows : max;
    f->n_passes++;
    for (size_t i = 0; i < n; i++) {
        const struct sk_window *w = &f->windows[i];
        results[i] = (struct sk_result){.id = w->id + f->wrong_id, .predicted = f->predicted[i]};
        if ((int)i == f->fail_window) {
            results[i].status = sk_fail(&results[i].error, SK_EIO, "the fake target fails this window");
            continue;
        }
        if (f->no_room_for_drafts && w->n_rows > w->n_committed) {
            results[i].status = sk_fail(&results[i].error, SK_ENOMEM, "the fake target has no room");
            continue;
        }
        assert_int_equal(w->start, w->session->position);
        w->session->position += (uint32_t)w->n_rows;
        results[i].position = w->session->position + f->wrong_position;
        for (size_t r = w->n_committed - 1; w->predict && r < w->n_rows; r++) {
            f->predicted[i][results[i].n_predicted++] = successor(w->sequence[w->start + r]);
            if (r + 1 < w->n_rows && successor(w->sequence[w->start + r]) != w->sequence[w->start + r + 1]) break;
        }
        if (f->short_predictions) results[i].n_predicted = 0;
    }
    f->n_windows = 0;
    return n;
}
static sk_status fake_settle(struct sk_target *t, struct sk_target_session *s, uint32_t position,
                             struct sk_error *err) {
    const struct fake *f = (struct fake *)t;
    if (f->fail_settle) return sk_fail(err, SK_EIO, "the fake target cannot trim");
    assert_true(position <= s->position);
    s->position = position - (f->wrong_settle && position);
    return SK_OK;
}
static uint32_t fake_position(const struct sk_target *t, const struct sk_target_session *s) {
    (void)t;
    return s->position;
}
static void fake_close(struct sk_target *t, struct sk_target_session *s) {
    ((struct fake *)t)->n_open--;
    free(s);
}
static size_t fake_context(const struct sk_target *t) {
    return (void)t, 1000;
}
static size_t fake_max_rows(const struct sk_target *t) {
    return (void)t, 64;
}
static size_t fake_n_vocab(const struct sk_target *t) {
    return (void)t, 100;
}
static bool fake_has_drafts(const struct sk_target *t) {
    return (void)t, false;
}
static double fake_row_cost(const struct sk_target *t) {
    return (void)t, 0.2;
}
static void fake_destroy(struct sk_target *t) {
    (void)t;
}
static const struct sk_target_ops fake_ops = {fake_open,     fake_submit,     fake_poll,     fake_settle,
                                              fake_position, fake_close,      fake_context,  fake_max_rows,
                                              fake_n_vocab,  fake_has_drafts, fake_row_cost, fake_destroy};

/* ---- helpers ------------------------------------------------------------------------------------------- */

struct sink {
    int32_t tokens[256];
    size_t n, stop_at, cancel_at; /* 0 = never */
    struct sk_generation *generation;
    size_t n_windows;
    struct sk_receipt last; /* pointers in it are stale */
};
static bool take_token(void *ctx, const struct sk_token_event *e) {
    struct sink *s = ctx;
    s->tokens[s->n++] = e->token;
    if (s->n == s->cancel_at) sk_generation_cancel(s->generation);
    return s->n != s->stop_at;
}
static void take_window(void *ctx, const struct sk_window_event *e) {
    struct sink *s = ctx;
    s->n_windows++;
    s->last = *e->receipt;
}

static const int32_t prompt[] = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 10, 11};

static struct sk_request request_of(struct sink *s, const struct sk_speculation_options *o) {
    return (struct sk_request){.prompt = prompt,
                               .n_prompt = 12,
                               .max_tokens = 40,
                               .sampling = sk_sampling_defaults(),
                               .speculation = o,
                               .on_token = take_token,
                               .on_window = take_window,
                               .ctx = s};
}

struct bench {
    struct fake fake;
    struct sk_engine *engine;
    struct sk_speculation_options options;
};
static void start(struct bench *b) {
    struct sk_error err = {0};
    *b = (struct bench){.fake = {.target = {&fake_ops}, .fail_window = -1}, .options = sk_speculation_defaults()};
    b->options.mode = SK_WIDTH_FIXED;
    b->options.width = 7;
    assert_sk_ok(sk_engine_create(&b->fake.target, NULL, &b->engine, &err));
}
static void finish(struct bench *b) {
    sk_engine_free(b->engine);
    assert_int_equal(b->fake.n_open, 0); /* every session was closed */
}
static void add(struct bench *b, struct sink *s, const struct sk_request *r) {
    struct sk_error err = {0};
    assert_sk_ok(sk_engine_add(b->engine, r, &s->generation, &err));
}
static void run(struct bench *b) {
    while (sk_engine_step(b->engine)) {
    }
}
static void expect_tokens(const struct sink *s, size_t n) {
    assert_int_equal(s->n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(s->tokens[i], (int32_t)(12 + i) > 19 ? 10 + (int32_t)(2 + i) % 10 : (int32_t)(12 + i));
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void test_speculation_gives_the_plain_tokens_in_fewer_passes(void **state) {
    (void)state;
    struct bench b;
    size_t passes[2];
    for (int on = 0; on < 2; on++) {
        struct sink s = {0};
        start(&b);
        const struct sk_request r = request_of(&s, on ? &b.options : NULL);
        add(&b, &s, &r);
        assert_int_equal(b.fake.n_passes, 0); /* nothing is run that the request does not ask for */
        run(&b);
        expect_tokens(&s, 40);
        assert_int_equal(s.generation->finish, SK_FINISH_LENGTH);
        assert_int_equal(b.fake.target.ops->position(&b.fake.target, s.generation->session), 12 + 39);
        passes[on] = b.fake.n_passes;
        finish(&b);
    }
    assert_int_equal(passes[0], 40);
    assert_true(passes[1] <= 8);
}

static void test_a_stop_inside_a_window_commits_up_to_it(void **state) {
    (void)state;
    for (size_t at = 1; at < 30; at++) {
        struct bench b;
        struct sink s = {.stop_at = at};
        start(&b);
        const struct sk_request r = request_of(&s, &b.options);
        add(&b, &s, &r);
        run(&b);
        expect_tokens(&s, at);
        assert_int_equal(s.generation->finish, SK_FINISH_CANCELLED);
        assert_int_equal(s.last.disposition, SK_STOPPED);
        assert_int_equal(s.last.next_token, -1);
        assert_int_equal(s.generation->session->position, 12 + at - 1); /* repaired, whatever the window held */
        finish(&b);
    }
}

static void test_cancellation_is_looked_at_before_each_token(void **state) {
    (void)state;
    for (size_t at = 1; at < 30; at++) {
        struct bench b;
        struct sink s = {.cancel_at = at};
        start(&b);
        const struct sk_request r = request_of(&s, &b.options);
        add(&b, &s, &r);
        run(&b);
        expect_tokens(&s, at);
        assert_int_equal(s.generation->finish, SK_FINISH_CANCELLED);
        const uint32_t position = s.generation->session->position;
        assert_true(position == 12 + at - 1 ||
                    position == 12 + at); /* a canonical prefix: all of it run, or all but the last */
        finish(&b);
    }
}

static void test_a_failed_trim_drops_the_session_and_fails_the_request(void **state) {
    (void)state;
    struct bench b;
    struct sink s = {0};
    start(&b);
    const struct sk_request r = request_of(&s, &b.options);
    add(&b, &s, &r);
    sk_engine_step(b.engine);
    b.fake.fail_settle = true;
    run(&b);
    assert_int_equal(s.generation->finish, SK_FINISH_ERROR);
    assert_non_null(strstr(s.generation->error.message, "cannot trim"));
    assert_null(s.generation->session);
    b.fake.fail_settle = false;
    finish(&b);
    start(&b);
    s = (struct sink){0};
    const struct sk_request again = request_of(&s, &b.options);
    add(&b, &s, &again);
    b.fake.wrong_settle = true; /* says it went well, and is elsewhere */
    run(&b);
    assert_int_equal(s.generation->finish, SK_FINISH_ERROR);
    assert_non_null(strstr(s.generation->error.message, "given up"));
    assert_null(s.generation->session);
    finish(&b);
}

static void expect_failure(void (*break_it)(struct fake *f), const char *words) {
    struct bench b;
    struct sink s = {0};
    start(&b);
    const struct sk_request r = request_of(&s, &b.options);
    add(&b, &s, &r);
    sk_engine_step(b.engine);
    break_it(&b.fake);
    run(&b);
    assert_int_equal(s.generation->finish, SK_FINISH_ERROR);
    if (!strstr(s.generation->error.message, words))
        fail_msg("'%s' does not say '%s'", s.generation->error.message, words);
    assert_null(s.generation->session);
    finish(&b);
}
static void break_position(struct fake *f) {
    f->wrong_position = true;
}
static void break_id(struct fake *f) {
    f->wrong_id = true;
}
static void break_predictions(struct fake *f) {
    f->short_predictions = true;
}
static void test_a_wrong_position_after_the_pass_fails_the_request(void **state) {
    (void)state;
    expect_failure(break_position, "position");
}
static void test_a_result_of_another_window_fails_the_request(void **state) {
    (void)state;
    expect_failure(break_id, "came back as");
}
static void test_predictions_that_stop_before_the_verdict_fail_the_request(void **state) {
    (void)state;
    expect_failure(break_predictions, "before its verdict");
}

static void test_one_generations_failure_leaves_the_others_alone(void **state) {
    (void)state;
    struct bench b;
    struct sink s[3] = {0};
    start(&b);
    for (size_t i = 0; i < 3; i++) {
        const struct sk_request r = request_of(&s[i], &b.options);
        add(&b, &s[i], &r);
    }
    sk_engine_step(b.engine);
    sk_engine_step(b.engine);
    b.fake.fail_window = 1;
    sk_engine_step(b.engine);
    b.fake.fail_window = -1;
    run(&b);
    size_t failed = 0;
    for (size_t i = 0; i < 3; i++) {
        failed += s[i].generation->finish == SK_FINISH_ERROR;
        if (s[i].generation->finish != SK_FINISH_ERROR) expect_tokens(&s[i], 40);
    }
    assert_int_equal(failed, 1);
    finish(&b);
}

static void test_no_room_for_drafts_costs_the_drafts_only(void **state) {
    (void)state;
    struct bench b;
    struct sink s = {0};
    start(&b);
    const struct sk_request r = request_of(&s, &b.options);
    add(&b, &s, &r);
    b.fake.no_room_for_drafts = true;
    run(&b);
    expect_tokens(&s, 40);
    assert_int_equal(s.generation->finish, SK_FINISH_LENGTH);
    finish(&b);
}

static void test_requests_that_cannot_be_served_are_refused(void **state) {
    (void)state;
    struct bench b;
    struct sink s = {0};
    struct sk_error err = {0};
    start(&b);
    struct sk_request r = request_of(&s, NULL);
    r.n_prompt = 0;
    assert_int_equal(sk_engine_add(b.engine, &r, &s.generation, &err), SK_EINVAL);
    r = request_of(&s, NULL);
    r.max_tokens = 0;
    assert_int_equal(sk_engine_add(b.engine, &r, &s.generation, &err), SK_EINVAL);
    r = request_of(&s, NULL);
    r.sampling.top_p = 0.0f;
    assert_int_equal(sk_engine_add(b.engine, &r, &s.generation, &err), SK_EINVAL);
    finish(&b);
}

static void test_stop_strings_hold_back_what_may_become_one(void **state) {
    (void)state;
    const struct sk_str stops[] = {{"END", 3}, {"\n\n", 2}};
    struct sk_stop_matcher m = {.stops = stops, .n = 2};
    struct sk_str out;
    assert_false(sk_stops_feed(&m, sk_str_of("one E"), &out));
    assert_true(sk_str_is(out, "one "));
    assert_false(sk_stops_feed(&m, sk_str_of("N"), &out));
    assert_true(sk_str_is(out, ""));
    assert_false(sk_stops_feed(&m, sk_str_of("T"), &out));
    assert_true(sk_str_is(out, "ENT"));
    assert_false(sk_stops_feed(&m, sk_str_of("\n"), &out));
    assert_true(sk_stops_feed(&m, sk_str_of("\nEND"), &out));
    assert_true(sk_str_is(out, ""));
    sk_stops_free(&m);
}

/* ---- real models --------------------------------------------------------------------------------------- */

struct real {
    struct sk_gguf *gguf;
    struct sk_runtime *rt;
    struct sk_target *target;
    struct sk_engine *engine;
};
static struct real open_real(const char *path) {
    struct real r;
    struct sk_error err = {0};
    const struct sk_runtime_options options = {.n_threads = 2};
    assert_sk_ok(sk_gguf_open(repo_path(path), &r.gguf, &err));
    assert_sk_ok(sk_runtime_create(r.gguf, &options, &r.rt, &err));
    assert_sk_ok(sk_local_target_create(r.rt, &r.target, &err));
    assert_sk_ok(sk_engine_create(r.target, NULL, &r.engine, &err));
    return r;
}
static void close_real(struct real *r) {
    sk_engine_free(r->engine);
    r->target->ops->destroy(r->target);
    sk_runtime_free(r->rt);
    sk_gguf_close(r->gguf);
}

/* Random guesses, widths, stops and cancellations; the session must equal one that ran the same tokens one by one. */
static void random_windows(const char *path, int rounds) {
    struct real m = open_real(path);
    struct sk_error err = {0};
    uint64_t seed = 77;
    for (int round = 0; round < rounds; round++) {
        struct sink s = {.stop_at = random_below(&seed, 3) ? 0 : 1 + random_below(&seed, 30),
                         .cancel_at = random_below(&seed, 3) ? 0 : 1 + random_below(&seed, 30)};
        int32_t tokens[64];
        const size_t n_prompt = 2 + random_below(&seed, 40);
        for (size_t i = 0; i < n_prompt; i++)
            tokens[i] = i > 6 && random_below(&seed, 3) ? tokens[i - 5] : 3 + (int32_t)random_below(&seed, 250);
        struct sk_speculation_options o = sk_speculation_defaults();
        o.mode = (enum sk_width_mode)random_below(&seed, 3);
        o.width = random_below(&seed, 20);
        o.mtp_max = 1 + random_below(&seed, 6);
        o.mtp_cooldown = random_below(&seed, 4);
        struct sk_request r = {.prompt = tokens,
                               .n_prompt = n_prompt,
                               .max_tokens = 1 + random_below(&seed, 40),
                               .sampling = sk_sampling_defaults(),
                               .speculation = &o,
                               .on_token = take_token,
                               .ctx = &s,
                               .prefill_chunk = random_below(&seed, 9)};
        r.sampling.temperature = (float)random_below(&seed, 3) * 0.6f;
        r.sampling.repetition_penalty = random_below(&seed, 2) ? 1.0f : 1.2f;
        r.sampling.seed = next_random(&seed);
        assert_sk_ok(sk_engine_add(m.engine, &r, &s.generation, &err));
        while (sk_engine_step(m.engine)) {
        }
        assert_int_not_equal(s.generation->finish, SK_FINISH_ERROR);
        const struct sk_session *got = sk_local_target_session(s.generation->session);
        struct sk_session *want;
        assert_sk_ok(sk_session_open(m.rt->kv, &want, &err));
        assert_true(got->position >= n_prompt && got->position <= n_prompt + s.n);
        for (size_t i = 0; i < got->position; i++) {
            const struct sk_row row = {want, i < n_prompt ? tokens[i] : s.tokens[i - n_prompt], false};
            assert_sk_ok(sk_runtime_run(m.rt, &row, 1, NULL, &err));
        }
        assert_true(sk_session_equal(got, want));
        assert_int_equal(sk_session_hash(got), sk_session_hash(want));
        sk_session_close(want);
        sk_engine_close(m.engine, s.generation);
    }
    close_real(&m);
}

static void test_random_windows_leave_the_serial_session(void **state) {
    (void)state;
    random_windows("tests/oracle/models/q4_1.gguf", 60);
    random_windows("tests/oracle/models/mtp.gguf", 60);
}
static void test_random_windows_leave_the_serial_running_state(void **state) {
    (void)state;
    random_windows("tests/oracle/models/toy.gguf", 80);
}

static void test_trim_restores_recurrent_state_bit_for_bit(void **state) {
    (void)state;
    struct real m = open_real("tests/oracle/models/toy.gguf");
    struct sk_error err = {0};
    struct sk_session *s;
    uint64_t hashes[301], seed = 5;
    int32_t tokens[300];
    assert_sk_ok(sk_session_open(m.rt->kv, &s, &err));
    for (size_t i = 0; i < 300; i++) {
        tokens[i] = 3 + (int32_t)random_below(&seed, 250);
        const struct sk_row row = {s, tokens[i], false};
        hashes[i] = sk_session_hash(s);
        assert_sk_ok(sk_runtime_run(m.rt, &row, 1, NULL, &err));
        assert_sk_ok(sk_session_trim(s, s->position, &err));
    }
    hashes[300] = sk_session_hash(s);
    for (size_t back = 1; back <= SK_RECURRENT_KEPT; back += 7) {
        struct sk_row rows[SK_RECURRENT_KEPT];
        assert_sk_ok(sk_session_trim(s, (uint32_t)(300 - back), &err));
        assert_int_equal(sk_session_hash(s), hashes[300 - back]);
        for (size_t i = 0; i < back; i++) rows[i] = (struct sk_row){s, tokens[300 - back + i], false};
        assert_sk_ok(sk_runtime_run(m.rt, rows, back, NULL, &err));
        assert_int_equal(sk_session_hash(s), hashes[300]);
    }
    assert_int_equal(sk_session_trim(s, 10, &err), SK_EINVAL); /* too far: refused, and nothing changed */
    assert_int_equal(sk_session_hash(s), hashes[300]);
    sk_session_close(s);
    close_real(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speculation_gives_the_plain_tokens_in_fewer_passes),
        cmocka_unit_test(test_a_stop_inside_a_window_commits_up_to_it),
        cmocka_unit_test(test_cancellation_is_looked_at_before_each_token),
        cmocka_unit_test(test_a_failed_trim_drops_the_session_and_fails_the_request),
        cmocka_unit_test(test_a_wrong_position_after_the_pass_fails_the_request),
        cmocka_unit_test(test_a_result_of_another_window_fails_the_request),
        cmocka_unit_test(test_predictions_that_stop_before_the_verdict_fail_the_request),
        cmocka_unit_test(test_one_generations_failure_leaves_the_others_alone),
        cmocka_unit_test(test_no_room_for_drafts_costs_the_drafts_only),
        cmocka_unit_test(test_requests_that_cannot_be_served_are_refused),
        cmocka_unit_test(test_stop_strings_hold_back_what_may_become_one),
        cmocka_unit_test(test_random_windows_leave_the_serial_session),
        cmocka_unit_test(test_random_windows_leave_the_serial_running_state),
        cmocka_unit_test(test_trim_restores_recurrent_state_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
