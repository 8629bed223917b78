#include "setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "sidecar.h"

static void show_progress(void *ctx, double fraction) {
    int *last = ctx;
    const int percent = (int)(fraction * 100.0);
    if (percent == *last) return;
    *last = percent;
    char bar[41];
    memset(bar, ' ', 40);
    memset(bar, '=', (size_t)(percent * 40 / 100));
    bar[40] = '\0';
    fprintf(stderr, "\rloading [%s] %3d%%", bar, percent);
    if (percent >= 100) fprintf(stderr, "\r%60s\r", "");
    fflush(stderr);
}

void model_option_rows(struct option_list *list, struct model_options *o) {
    const struct option rows[] = {
        {"model", 'm', OPTION_STRING, &o->model, "FILE", "the model, a GGUF file (of a split one, the first part)"},
        {"threads", 't', OPTION_SIZE, &o->n_threads, "N", "compute threads (default: physical cores)"},
        {"context", 'c', OPTION_SIZE, &o->context, "N", "positions of context (default: the model's, at most 8192)"},
        {"mtp", 0, OPTION_STRING, &o->mtp_file, "FILE", "a GGUF with a multi-token-prediction block for this model; none = without (default: found by the model)"},
        {"isa", 0, OPTION_STRING, &o->isa, "NAME", "kernels: scalar, avx2, avx512 (default: the fastest here)"},
        {"allow-unknown-pretokenizer", 0, OPTION_FLAG, &o->allow_unknown_pretokenizer, NULL,
         "go on with an unknown pre-tokenizer, using gpt-2's"},
        {0},
    };
    options_add(list, rows);
}

sk_status setup_file(struct model *m, const struct model_options *o, struct sk_error *err) {
    if (!o->model) return sk_fail(err, SK_EINVAL, "no model was given: -m FILE names one");
    return sk_gguf_open(o->model, &m->gguf, err);
}

sk_status setup_tokenizer(struct model *m, const struct model_options *o, struct sk_error *err) {
    const struct sk_tokenizer_options options = {o->allow_unknown_pretokenizer};
    const sk_status st = sk_tokenizer_open(m->gguf, &options, &m->tokenizer, err);
    return st ? sk_fail_within(err, "%s", o->model) : SK_OK;
}

static bool has_no_mtp(const struct model_options *o) {
    return o->mtp_file && strcmp(o->mtp_file, "none") == 0;
}

/* The file that --mtp names, or one that is found for this model. One that is named is opened even where no draft is
 * wanted: it may be the wrong one. */
static sk_status open_sidecar(struct model *m, const struct model_options *o, struct sk_error *err) {
    if (has_no_mtp(o)) return SK_OK;
    if (o->mtp_file)
        m->mtp_path = strdup(o->mtp_file);
    else if (o->drafts_natively && !sidecar_is_needless(m->gguf))
        m->mtp_path = sidecar_find(m->gguf, o->model);
    return m->mtp_path ? sk_gguf_open(m->mtp_path, &m->mtp, err) : SK_OK;
}

sk_status setup_runtime(struct model *m, const struct model_options *o, struct sk_error *err) {
    const uint64_t start = sk_now_ns();
    int percent = -1;
    const bool bar = isatty(STDERR_FILENO) && !o->quiet;
    sk_status st = open_sidecar(m, o, err);
    if (st) return st;
    const struct sk_runtime_options options = {.n_threads = o->n_threads,
                                               .n_positions = o->context,
                                               .isa = o->isa,
                                               .mtp_file = m->mtp,
                                               .without_mtp = !o->drafts_natively || has_no_mtp(o),
                                               .progress = bar ? show_progress : NULL,
                                               .progress_ctx = &percent};
    st = sk_runtime_create(m->gguf, &options, &m->runtime, err);
    m->load_s = sk_seconds_since(start);
    return st ? sk_fail_within(err, "%s", o->model) : SK_OK;
}

sk_status setup_engine(struct model *m, const struct model_options *o, struct sk_error *err) {
    sk_status st;
    if ((st = setup_file(m, o, err)) || (st = setup_tokenizer(m, o, err)) || (st = setup_runtime(m, o, err))) return st;
    if ((st = sk_local_target_create(m->runtime, &m->target, err))) return st;
    return sk_engine_create(m->target, m->tokenizer, &m->engine, err);
}

sk_status setup_template(struct model *m, const char *file, struct sk_error *err) {
    struct sk_buf text = {0};
    struct sk_str source = {"", 0};
    sk_status st =
        file ? read_file(file, &text, err) : sk_gguf_string(m->gguf, "tokenizer.chat_template", source, &source, err);
    if (file) source = sk_buf_view(&text);
    if (!st && (source.n || file)) {
        st = sk_template_compile(source, &m->template, err);
        if (st) sk_fail_within(err, "%s", file ? file : "the model's chat template");
    }
    sk_buf_free(&text);
    return st;
}

void setup_free(struct model *m) {
    sk_engine_free(m->engine);
    if (m->target) m->target->ops->destroy(m->target);
    sk_runtime_free(m->runtime);
    sk_template_free(m->template);
    sk_tokenizer_close(m->tokenizer);
    sk_gguf_close(m->gguf);
    sk_gguf_close(m->mtp);
    free(m->mtp_path);
    *m = (struct model){0};
}

static json_t *token_json(const struct model *m, int32_t id) {
    const struct sk_str text = m->tokenizer ? sk_token_text(m->tokenizer, id) : (struct sk_str){"", 0};
    return json_stringn(text.p, text.n);
}

sk_status render_messages(const struct model *m, json_t *messages, json_t *tools, bool add_generation_prompt,
                          struct sk_buf *out, struct sk_error *err) {
    json_t *globals = json_object();
    json_object_set(globals, "messages", messages);
    if (tools) json_object_set(globals, "tools", tools);
    json_object_set_new(globals, "add_generation_prompt", json_boolean(add_generation_prompt));
    json_object_set_new(globals, "bos_token", token_json(m, sk_tokenizer_bos(m->tokenizer)));
    json_object_set_new(globals, "eos_token", token_json(m, sk_tokenizer_eos(m->tokenizer)));
    const sk_status st = sk_template_render(m->template, globals, (int64_t)time(NULL), out, err);
    json_decref(globals);
    return st ? sk_fail_within(err, "the chat template") : SK_OK;
}

sk_status tokenize_prompt(const struct model *m, struct sk_str text, bool parse_special, struct sk_tokens *out,
                          struct sk_error *err) {
    const struct sk_str bos = sk_token_text(m->tokenizer, sk_tokenizer_bos(m->tokenizer));
    const bool has_bos = parse_special && bos.n && text.n >= bos.n && memcmp(text.p, bos.p, bos.n) == 0;
    return sk_tokenize(m->tokenizer, text, !has_bos, parse_special, out, err);
}

sk_status read_file(const char *path, struct sk_buf *out, struct sk_error *err) {
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
    char chunk[65536];
    size_t n;
    if (!f) return sk_fail(err, SK_EIO, "cannot open '%s': %s", path, strerror(errno));
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0) sk_buf_append(out, chunk, n);
    const bool bad = ferror(f) != 0;
    const int saved = errno;
    if (f != stdin) fclose(f);
    if (bad) return sk_fail(err, SK_EIO, "cannot read '%s': %s", path, strerror(saved));
    return out->failed ? sk_fail_memory(err, out->len, path) : SK_OK;
}

const char *plural(uint64_t n, const char *one, const char *several) {
    return n == 1 ? one : several;
}
