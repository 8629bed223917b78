/* skipstone run: one prompt, one answer. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "commands.h"
#include "sampling.h"

static void print_text(struct sk_str text, enum sk_proposer_kind origin) {
    (void)origin;
    fwrite(text.p, 1, text.n, stdout);
    fflush(stdout);
}

static json_t *token_array(const struct sk_tokens *t) {
    json_t *a = json_array();
    for (size_t i = 0; i < t->n; i++) json_array_append_new(a, json_integer(t->ids[i]));
    return a;
}

/* The life of the command, in parts that do not overlap. */
struct clock {
    uint64_t start, mark;
    double load_s, prompt_s; /* all that is opened; the prompt read, rendered and tokenized */
};

/* Seconds since the last mark, which is now. */
static double lap(struct clock *c) {
    const uint64_t before = c->mark;
    c->mark = sk_now_ns();
    return (double)(c->mark - before) * 1e-9;
}

static json_t *timings_json(const struct answer *a, const struct clock *c) {
    const struct sk_generation_stats *s = &a->stats;
    const double total = sk_seconds_since(c->start);
    const double other = total - c->load_s - c->prompt_s - s->prefill_s - s->decode_s - s->commit_s;
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "load_s", c->load_s, "prompt_s", c->prompt_s,
                     "prefill_s", s->prefill_s, "decode_s", s->decode_s, "commit_s", s->commit_s, "other_s", other,
                     "total_s", total, "prefill_tokens_per_s", prefill_rate(s), "decode_tokens_per_s", decode_rate(s),
                     "windows", (json_int_t)s->n_windows);
}

static void print_json(const struct answer *a, const struct sampling_options *so, const struct spec_options *spec,
                       const struct clock *clock) {
    const struct sk_generation_stats *s = &a->stats;
    json_t *o = json_object();
    json_object_set_new(o, "tokens", token_array(&a->tokens));
    json_object_set_new(o, "text", json_stringn(a->text.data ? a->text.data : "", a->text.len));
    json_object_set_new(o, "finish_reason", json_string(sk_finish_name(a->finish)));
    json_object_set_new(o, "seed", json_integer((json_int_t)so->params.seed));
    json_object_set_new(o, "usage",
                        json_pack("{s:I, s:I, s:I}", "prompt_tokens", (json_int_t)s->n_prompt, "completion_tokens",
                                  (json_int_t)s->n_output, "total_tokens", (json_int_t)(s->n_prompt + s->n_output)));
    json_object_set_new(o, "sampling", sampling_json(so));
    json_t *timings = timings_json(a, clock), *speculation = spec_json(&a->speculation);
    json_object_set_new(speculation, "unavailable", spec_unavailable_json(spec));
    json_object_set_new(timings, "speculation", speculation);
    json_object_set_new(o, "timings", timings);
    json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(o);
}

/* The prompt's tokens: through the chat template, unless raw or the model has none. */
static sk_status make_prompt(struct model *m, struct sk_str prompt, const char *system, bool raw, struct sk_tokens *out,
                             struct sk_error *err) {
    if (!raw && !m->template)
        fprintf(stderr, "skipstone: the model has no chat template; the prompt is used as it is\n");
    if (raw || !m->template) return tokenize_prompt(m, prompt, !raw, out, err);
    if (sk_utf8_valid_prefix(prompt.p, prompt.n) < prompt.n)
        return sk_fail(err, SK_EINVAL, "the prompt is not valid UTF-8; --raw takes any bytes");
    if (system && sk_utf8_valid_prefix(system, strlen(system)) < strlen(system))
        return sk_fail(err, SK_EINVAL, "the system message is not valid UTF-8");
    json_t *messages = json_array();
    struct sk_buf text = {0};
    if (system) json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", system));
    json_array_append_new(messages, json_pack("{s:s, s:s%}", "role", "user", "content", prompt.p, prompt.n));
    sk_status st = render_messages(m, messages, NULL, true, &text, err);
    if (!st) st = tokenize_prompt(m, sk_buf_view(&text), true, out, err);
    json_decref(messages);
    sk_buf_free(&text);
    return st;
}

int command_run(int argc, char **argv) {
    struct model_options mo = {0};
    struct clock clock = {.start = sk_now_ns()};
    struct sampling_options so = sampling_unset();
    struct spec_options spec = spec_defaults();
    const char *prompt = NULL, *file = NULL, *system = NULL;
    size_t n_positional, chunk = 0;
    int64_t max_tokens = 256;
    bool raw = false, json = false, help, ignore_end = false;
    const struct option own[] = {
        {"prompt", 'p', OPTION_STRING, &prompt, "TEXT", "what to answer"},
        {"file", 'f', OPTION_STRING, &file, "FILE", "the prompt from a file; - is stdin"},
        {"system", 0, OPTION_STRING, &system, "TEXT", "a system message"},
        {"max-tokens", 'n', OPTION_LIMIT, &max_tokens, "N", "at most so many tokens; -1 = all that fit (default 256)"},
        {"raw", 0, OPTION_FLAG, &raw, NULL, "no chat template: continue the prompt as it is"},
        {"chat-template", 0, OPTION_STRING, &mo.template_file, "FILE", "instead of the model's own"},
        {"json", 0, OPTION_FLAG, &json, NULL, "print one JSON object instead of text"},
        {"ignore-end", 0, OPTION_FLAG, &ignore_end, NULL, "go on past end-of-generation tokens"},
        {"prefill-chunk", 0, OPTION_SIZE, &chunk, "N", "prompt tokens per pass (default: as many as fit)"},
        {0}};
    struct option_list options = {0};
    options_add(&options, own);
    model_option_rows(&options, &mo);
    sampling_option_rows(&options, &so);
    spec_option_rows(&options, &spec);

    struct sk_error err = {0};
    if (options_parse(options.items, argc, argv, NULL, 0, &n_positional, &help, &err)) return fail_command(&err) + 1;
    if (help) {
        options_help("run -m MODEL -p TEXT [options]",
                     "Answers one prompt. Text goes to stdout, one line of statistics to stderr.", options.items);
        return 0;
    }
    struct model m = {0};
    struct answer a = {0};
    struct sk_tokens tokens = {0};
    struct sk_buf from_file = {0};
    struct sk_logit_bias bias[64];
    struct sk_str stops[64];
    sk_status st = SK_OK;
    mo.quiet = json;
    if (!prompt && !file) st = sk_fail(&err, SK_EINVAL, "no prompt was given: -p TEXT or -f FILE");
    clock.mark = clock.start;
    if (!st && file) st = read_file(file, &from_file, &err);
    clock.prompt_s = lap(&clock);
    if (!st) st = sampling_prepare(&so, bias, &err);
    if (!st) st = spec_prepare(&spec, &err);
    mo.drafts_natively = spec_drafts_natively(&spec);
    if (!st) st = setup_engine(&m, &mo, &err);
    if (!st) sampling_from_file(&so, m.gguf, mo.model);
    if (!st) st = spec_open(&spec, m.tokenizer, m.runtime, &err);
    if (!st && !raw) st = setup_template(&m, mo.template_file, &err);
    clock.load_s = lap(&clock);
    if (!st) st = make_prompt(&m, file ? sk_buf_view(&from_file) : sk_str_of(prompt), system, raw, &tokens, &err);
    clock.prompt_s += lap(&clock);
    for (size_t i = 0; i < so.stops.n; i++) stops[i] = sk_str_of(so.stops.items[i]);
    if (!st) {
        const struct sk_request r = {.prompt = tokens.ids,
                                     .n_prompt = tokens.n,
                                     .max_tokens = max_tokens < 0 ? INT32_MAX : (size_t)max_tokens,
                                     .sampling = so.params,
                                     .stops = stops,
                                     .n_stops = so.stops.n,
                                     .ignore_end = ignore_end,
                                     .prefill_chunk = chunk};
        st = answer_run(&m, NULL, &r, &spec, json ? NULL : print_text, &a, &err);
        if (a.session) m.target->ops->close(m.target, a.session);
    }
    if (!st && json) print_json(&a, &so, &spec, &clock);
    if (!st && !json) {
        char line[512];
        if (a.text.len && a.text.data[a.text.len - 1] != '\n') putchar('\n');
        fflush(stdout);
        answer_line(&a, so.params.seed, so.params.temperature > 0.0f, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
    spec_finish(&spec);
    answer_free(&a);
    sk_tokens_free(&tokens);
    sk_buf_free(&from_file);
    setup_free(&m);
    if (st) return fail_command(&err);
    return a.finish == SK_FINISH_CANCELLED ? 130 : 0;
}
