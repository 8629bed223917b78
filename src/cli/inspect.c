/* skipstone inspect: what a GGUF file holds, and what running it would take. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/kv.h"
#include "commands.h"
#include "models/mtp.h"
#include "sampling.h"
#include "setup.h"

struct type_count {
    uint32_t type;
    size_t n_tensors;
    uint64_t n_elements, n_bytes;
};

/* What the file would take in memory; only if the architecture is known. */
struct needs {
    bool known;
    struct sk_error why_not;
    struct sk_hparams h;
    size_t weight_bytes, kv_bytes, context;
};

static size_t count_types(const struct sk_gguf *g, struct type_count *out, size_t max) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct sk_gguf_tensor *t = &g->tensors[i];
        size_t at = 0;
        while (at < n && out[at].type != t->type) at++;
        if (at == max) continue;
        if (at == n) out[n++] = (struct type_count){.type = t->type};
        out[at].n_tensors++;
        out[at].n_elements += t->n_elements;
        out[at].n_bytes += t->n_bytes;
    }
    return n;
}

static void find_needs(const struct sk_gguf *g, size_t context, struct needs *out) {
    struct sk_model *m = NULL;
    const struct sk_load_options all = {0};
    if (sk_model_plan(g, &all, &m, &out->why_not)) return;
    const struct sk_kv_layout kv = sk_model_kv_layout(m);
    out->known = true;
    out->h = m->h;
    out->weight_bytes = m->weight_bytes;
    out->context = context ? context : sk_default_positions(&m->h);
    out->kv_bytes = (out->context + SK_TILE - 1) / SK_TILE * sk_kv_page_bytes(&kv);
    sk_model_free(m);
}

static struct sk_str string_of(const struct sk_gguf *g, const char *key) {
    struct sk_str s = {"", 0};
    sk_gguf_string(g, key, s, &s, NULL);
    return s;
}

static const char *type_name(uint32_t type) {
    const struct sk_tensor_type_info *info = sk_tensor_type_info(type);
    return info ? info->name : "unknown";
}

static uint64_t parameters(const struct type_count *types, size_t n) {
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) total += types[i].n_elements;
    return total;
}

static void print_sampling(const struct sk_gguf *g) {
    json_t *keys = sampling_file_json(g), *value;
    const char *key;
    json_object_foreach(keys, key, value) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(7));
        printf("  sampling      %s = %s%s\n", key, text ? text : "?", sampling_uses_key(key) ? "" : " (not used here)");
        free(text);
    }
    json_decref(keys);
}

static void print_human(const char *path, const struct sk_gguf *g, const struct type_count *types, size_t n_types,
                        const struct needs *needs) {
    const struct sk_str arch = string_of(g, "general.architecture"), name = string_of(g, "general.name");
    printf("%s: GGUF v%u, %zu %s, %.1f MB\n", path, g->version, g->n_files, plural(g->n_files, "file", "files"),
           (double)g->file_bytes / 1e6);
    printf("  architecture  %.*s\n", (int)arch.n, arch.p);
    if (name.n) printf("  name          %.*s\n", (int)name.n, name.p);
    printf("  parameters    %.1f M in %zu tensors\n", (double)parameters(types, n_types) / 1e6, g->n_tensors);
    printf("  metadata      %zu keys\n", g->n_values);
    for (size_t i = 0; i < n_types; i++)
        printf("  %-12s  %zu tensors, %.1f MB%s\n", type_name(types[i].type), types[i].n_tensors,
               (double)types[i].n_bytes / 1e6, sk_format_for_type(types[i].type) ? "" : " (not supported yet)");
    print_sampling(g);
    if (!needs->known) {
        printf("  cannot be run: %s\n", needs->why_not.message);
        return;
    }
    const struct sk_hparams *h = &needs->h;
    printf("  shape         %u layers, embedding %u, feed-forward %u, %u heads of %u (%u for keys and values), "
           "vocabulary %u\n",
           h->n_layers, h->n_embd, h->n_ff, h->n_heads, h->head_dim, h->n_kv_heads, h->n_vocab);
    printf("  trained for   %u positions\n", h->n_ctx_train);
    printf("  memory        %.1f MB of weights, %.1f MB of keys and values at %zu positions\n",
           (double)needs->weight_bytes / 1e6, (double)needs->kv_bytes / 1e6, needs->context);
}

static json_t *text_json(struct sk_str s) {
    json_t *t = json_stringn(s.p, s.n);
    return t ? t : json_null(); /* not UTF-8 */
}

static json_t *shape_json(const struct sk_hparams *h) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "layers", (json_int_t)h->n_layers, "embedding",
                     (json_int_t)h->n_embd, "feed_forward", (json_int_t)h->n_ff, "heads", (json_int_t)h->n_heads,
                     "kv_heads", (json_int_t)h->n_kv_heads, "head_dim", (json_int_t)h->head_dim, "vocabulary",
                     (json_int_t)h->n_vocab, "context", (json_int_t)h->n_ctx_train);
}

static void print_json(const struct sk_gguf *g, const struct type_count *types, size_t n_types,
                       const struct needs *needs) {
    json_t *o = json_object(), *by_type = json_object(), *tensors = json_array();
    for (size_t i = 0; i < n_types; i++)
        json_object_set_new(by_type, type_name(types[i].type),
                            json_pack("{s:I, s:I, s:I, s:b}", "tensors", (json_int_t)types[i].n_tensors, "elements",
                                      (json_int_t)types[i].n_elements, "bytes", (json_int_t)types[i].n_bytes,
                                      "supported", sk_format_for_type(types[i].type) != NULL));
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct sk_gguf_tensor *t = &g->tensors[i];
        json_t *shape = json_array(), *entry = json_object();
        for (uint32_t d = 0; d < t->n_dims; d++) json_array_append_new(shape, json_integer((json_int_t)t->ne[d]));
        json_object_set_new(entry, "name", text_json(t->name));
        json_object_set_new(entry, "type", json_string(type_name(t->type)));
        json_object_set_new(entry, "shape", shape);
        json_object_set_new(entry, "bytes", json_integer((json_int_t)t->n_bytes));
        json_array_append_new(tensors, entry);
    }
    json_object_set_new(o, "architecture", text_json(string_of(g, "general.architecture")));
    json_object_set_new(o, "name", text_json(string_of(g, "general.name")));
    json_object_set_new(o, "gguf_version", json_integer(g->version));
    json_object_set_new(o, "files", json_integer((json_int_t)g->n_files));
    json_object_set_new(o, "file_bytes", json_integer((json_int_t)g->file_bytes));
    json_object_set_new(o, "parameters", json_integer((json_int_t)parameters(types, n_types)));
    json_object_set_new(o, "metadata_keys", json_integer((json_int_t)g->n_values));
    json_object_set_new(o, "tensor_types", by_type);
    json_object_set_new(o, "sampling", sampling_file_json(g));
    char fingerprint[17];
    sk_model_fingerprint(g, fingerprint);
    json_object_set_new(o, "fingerprint", json_string(fingerprint));
    json_object_set_new(o, "runnable", json_boolean(needs->known));
    if (needs->known) {
        json_object_set_new(o, "shape", shape_json(&needs->h));
        json_object_set_new(o, "memory",
                            json_pack("{s:I, s:I, s:I}", "weight_bytes", (json_int_t)needs->weight_bytes, "kv_bytes",
                                      (json_int_t)needs->kv_bytes, "kv_positions", (json_int_t)needs->context));
    } else {
        json_object_set_new(o, "why_not", json_string(needs->why_not.message));
    }
    json_object_set_new(o, "tensors", tensors);
    json_dumpf(o, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(o);
}

int command_inspect(int argc, char **argv) {
    bool json = false, help;
    size_t context = 0, n_positional;
    const char *path = NULL;
    struct model_options mo = {0};
    const struct option options[] = {
        {"json", 0, OPTION_FLAG, &json, NULL, "print one JSON object, with every tensor"},
        {"context", 'c', OPTION_SIZE, &context, "N", "positions to count memory for (default: as run would take)"},
        {"model", 'm', OPTION_STRING, &mo.model, "FILE", "the same as FILE"},
        {0}};
    struct sk_error err = {0};
    if (options_parse(options, argc, argv, &path, 1, &n_positional, &help, &err)) return fail_command(&err) + 1;
    if (help) {
        options_help(
            "inspect FILE [--json]",
            "Shows what a GGUF file holds: architecture, sizes, tensors by type, and the memory it would need.",
            options);
        return 0;
    }
    struct model m = {0};
    struct type_count types[64];
    struct needs needs = {0};
    if (n_positional) mo.model = path;
    if (!mo.model) sk_fail(&err, SK_EINVAL, "no file was given: skipstone inspect FILE");
    if (!mo.model || setup_file(&m, &mo, &err)) return fail_command(&err);
    const size_t n_types = count_types(m.gguf, types, sizeof types / sizeof *types);
    find_needs(m.gguf, context, &needs);
    if (json)
        print_json(m.gguf, types, n_types, &needs);
    else
        print_human(mo.model, m.gguf, types, n_types, &needs);
    setup_free(&m);
    return 0;
}
