/* Tokenizers and the streaming detokenizer. (Ids against other implementations: tests/oracle.) */
#include "harness.h"

#include "base/utf8.h"
#include "text/template.h"
#include "text/tokenizer.h"

static struct sk_gguf *gguf;
static struct sk_tokenizer *open_tokenizer(const char *path) {
    struct sk_error err = {0};
    struct sk_tokenizer *t;
    assert_sk_ok(sk_gguf_open(repo_path(path), &gguf, &err));
    assert_sk_ok(sk_tokenizer_open(gguf, NULL, &t, &err));
    return t;
}
static void close_tokenizer(struct sk_tokenizer *t) {
    sk_tokenizer_close(t);
    sk_gguf_close(gguf);
}

static void check_stream(const struct sk_tokenizer *t, struct sk_str text, const char *want) {
    struct sk_error err = {0};
    struct sk_tokens ids = {0};
    struct sk_buf out = {0};
    struct sk_detokenizer d = {.tokenizer = t,
                               .at_start = sk_tokenizer_adds_bos(t)}; /* of the two files, the SentencePiece one */
    ;
    assert_sk_ok(sk_tokenize(t, text, false, false, &ids, &err));
    for (size_t i = 0; i < ids.n; i++) {
        const struct sk_str piece = sk_detokenize(&d, ids.ids[i]);
        assert_int_equal(sk_utf8_valid_prefix(piece.p, piece.n), piece.n); /* never half a character */
        sk_buf_str(&out, piece);
    }
    sk_buf_str(&out, sk_detokenize_end(&d));
    const struct sk_str got = sk_buf_view(&out);
    if (!sk_str_is(got, want)) fail_msg("'%.*s' instead of '%s'", (int)got.n, got.p, want);
    sk_buf_free(&out);
    sk_detokenizer_free(&d);
    sk_tokens_free(&ids);
}

static void test_text_survives_tokens_character_by_character(void **state) {
    (void)state;
    static const char *const files[] = {"tests/oracle/models/q4_1.gguf", "tests/oracle/spm.gguf"};
    static const char *const texts[] = {
        "Hello, world", "  two spaces ", "né 漢字 😀👩‍👩‍👧", "\n\n\t", "<|im_start|>", "a", ""};
    for (size_t f = 0; f < 2; f++) {
        struct sk_tokenizer *t = open_tokenizer(files[f]);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_stream(t, sk_str_of(texts[i]), texts[i]);
        close_tokenizer(t);
    }
}

static void test_invalid_bytes_come_out_as_replacement_characters(void **state) {
    (void)state;
    struct sk_tokenizer *t = open_tokenizer("tests/oracle/models/q4_1.gguf");
    check_stream(t, sk_str_of("a\xFF"), "a\xEF\xBF\xBD");
    check_stream(t, sk_str_of("\xF0\x9F\x98"), "\xEF\xBF\xBD");
    check_stream(t, sk_str_of("\xF0\x9Fz"), "\xEF\xBF\xBD\xEF\xBF\xBDz"); /* one for each byte */
    close_tokenizer(t);
}

static void test_bos_and_eos_are_added_where_the_model_says(void **state) {
    (void)state;
    struct sk_error err = {0};
    struct sk_tokens ids = {0};
    struct sk_tokenizer *t = open_tokenizer("tests/oracle/spm.gguf");
    assert_sk_ok(sk_tokenize(t, sk_str_of("x"), true, false, &ids, &err));
    assert_int_equal(ids.ids[0], sk_tokenizer_bos(t));
    ids.n = 0;
    assert_sk_ok(sk_tokenize(t, sk_str_of("x"), false, false, &ids, &err));
    assert_int_not_equal(ids.ids[0], sk_tokenizer_bos(t));
    sk_tokens_free(&ids);
    close_tokenizer(t);
}

static void test_a_template_of_random_bytes_never_crashes(void **state) {
    (void)state;
    static const char *const pieces[] = {"{%", "%}",     "{{",     "}}",  "{#",  "#}", " for ", " in ",  "x",
                                         "if", "endif",  "endfor", "set", "=",   "(",  ")",     "[",     "]",
                                         "|",  "length", ".",      "'",   "\"",  "-",  "1",     "macro", "namespace",
                                         "\n", ",",      ":",      "~",   "not", "is"};
    uint64_t seed = 4;
    json_t *globals = json_pack("{s:[i,i,i], s:s}", "x", 1, 2, 3, "y", "text");
    for (int round = 0; round < 20000; round++) {
        struct sk_buf source = {0}, out = {.limit = 1 << 16};
        struct sk_error err = {0};
        struct sk_template *t;
        for (size_t n = random_below(&seed, 20); n; n--)
            sk_buf_puts(&source, pieces[random_below(&seed, sizeof pieces / sizeof *pieces)]);
        if (sk_template_compile(sk_buf_view(&source), &t, &err) == SK_OK) {
            if (sk_template_render(t, globals, 0, &out, &err)) assert_true(err.message[0]);
            sk_template_free(t);
        }
        sk_buf_free(&source);
        sk_buf_free(&out);
    }
    json_decref(globals);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_survives_tokens_character_by_character),
        cmocka_unit_test(test_invalid_bytes_come_out_as_replacement_characters),
        cmocka_unit_test(test_bos_and_eos_are_added_where_the_model_says),
        cmocka_unit_test(test_a_template_of_random_bytes_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
