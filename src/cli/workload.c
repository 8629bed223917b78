#include "workload.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static sk_status tokens_of(const struct model *m, bool raw, json_t *prompt, struct sk_tokens *out,
                           struct sk_error *err) {
    if (raw || !m->template)
        return tokenize_prompt(m, (struct sk_str){json_string_value(prompt), json_string_length(prompt)}, false, out,
                               err);
    struct sk_buf text = {0};
    json_t *messages = json_pack("[{s:s, s:O}]", "role", "user", "content", prompt);
    sk_status st = render_messages(m, messages, NULL, true, &text, err);
    if (!st) st = tokenize_prompt(m, sk_buf_view(&text), true, out, err);
    json_decref(messages);
    sk_buf_free(&text);
    return st;
}

static sk_status add_line(struct workload *w, const struct model *m, struct sk_str line, size_t max_tokens,
                          struct sk_error *err) {
    json_error_t e;
    json_t *o = json_loadb(line.p, line.n, 0, &e), *prompt = json_object_get(o, "prompt");
    sk_status st = SK_OK;
    if (!json_is_string(prompt))
        st = sk_fail(err, SK_EFORMAT, "line %zu of workload '%s' is no object with a \"prompt\"", w->n + 1, w->name);
    if (!st && !sk_grow(&w->prompts, &w->cap, w->n + 1, sizeof *w->prompts))
        st = sk_fail_memory(err, line.n, "a workload");
    if (!st) {
        struct workload_prompt *p = &w->prompts[w->n++];
        struct sk_tokens *t = &p->tokens;
        *p = (struct workload_prompt){.temperature = (float)json_number_value(json_object_get(o, "temperature")),
                                      .raw = json_is_true(json_object_get(o, "raw")),
                                      .text = strdup(json_string_value(prompt))};
        if (!p->text) st = sk_fail_memory(err, line.n, "a workload");
        if (json_string_value(json_object_get(o, "stop")))
            snprintf(p->stop, sizeof p->stop, "%s", json_string_value(json_object_get(o, "stop")));
        if (!st) st = tokens_of(m, p->raw, prompt, t, err);
        if (t->n > max_tokens) { /* the end of a chat prompt opens the answer: the middle can be missed */
            const size_t tail = max_tokens / 2;
            memmove(t->ids + max_tokens - tail, t->ids + t->n - tail, tail * sizeof *t->ids);
            t->n = max_tokens;
        }
    }
    json_decref(o);
    return st;
}

static sk_status load_one(const char *path, const struct model *m, size_t max_prompts, size_t max_tokens,
                          struct workload *w, struct sk_error *err) {
    struct sk_buf text = {0};
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    snprintf(w->name, sizeof w->name, "%.*s", (int)strcspn(name, "."), name);
    sk_status st = read_file(path, &text, err);
    for (size_t at = 0; at < text.len && w->n < max_prompts && !st;) {
        const char *line = text.data + at, *end = memchr(line, '\n', text.len - at);
        const size_t n = end ? (size_t)(end - line) : text.len - at;
        if (n) st = add_line(w, m, (struct sk_str){line, n}, max_tokens, err);
        at += n + 1;
    }
    sk_buf_free(&text);
    return st;
}

sk_status workloads_load(const char *folder, const struct model *m, size_t max_prompts, size_t max_tokens,
                         struct workloads *out, struct sk_error *err) {
    char pattern[4096];
    glob_t found;
    sk_status st = SK_OK;
    snprintf(pattern, sizeof pattern, "%s/*.jsonl", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return sk_fail(err, SK_EIO, "there are no workloads (*.jsonl) in '%s'", folder);
    for (size_t i = 0; i < found.gl_pathc && !st; i++) {
        if (!sk_grow(&out->items, &out->cap, out->n + 1, sizeof *out->items)) {
            st = sk_fail_memory(err, sizeof *out->items, "workloads");
            break;
        }
        out->items[out->n] = (struct workload){0};
        st = load_one(found.gl_pathv[i], m, max_prompts, max_tokens, &out->items[out->n++], err);
    }
    globfree(&found);
    return st;
}

void workloads_free(struct workloads *w) {
    for (size_t i = 0; i < w->n; i++) {
        for (size_t k = 0; k < w->items[i].n; k++) {
            sk_tokens_free(&w->items[i].prompts[k].tokens);
            free(w->items[i].prompts[k].text);
        }
        free(w->items[i].prompts);
    }
    free(w->items);
    *w = (struct workloads){0};
}
