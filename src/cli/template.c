/* skipstone template: messages through a chat template. */
#include <stdio.h>
#include <time.h>

#include "commands.h"
#include "setup.h"

static sk_status load_json(const char *path, json_t **out, struct sk_error *err) {
    struct sk_buf text = {0};
    json_error_t e;
    sk_status st = read_file(path, &text, err);
    if (!st && !(*out = json_loadb(text.data ? text.data : "", text.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &e)))
        st = sk_fail(err, SK_EFORMAT, "'%s' is not JSON: line %d, column %d: %s", path, e.line, e.column, e.text);
    sk_buf_free(&text);
    return st;
}

/* The messages alone, or an object that holds them among other variables. */
static sk_status globals_of(json_t *messages, json_t *tools, bool add_generation_prompt, json_t **out,
                            struct sk_error *err) {
    json_t *g = json_is_object(messages) ? json_deep_copy(messages) : json_object();
    *out = g;
    if (json_is_array(messages)) json_object_set(g, "messages", messages);
    if (tools) json_object_set(g, "tools", tools);
    if (add_generation_prompt || !json_object_get(g, "add_generation_prompt"))
        json_object_set_new(g, "add_generation_prompt", json_boolean(add_generation_prompt));
    if (!json_is_array(json_object_get(g, "messages")))
        return sk_fail(err, SK_EINVAL,
                       "--messages must hold a JSON array of messages, or an object with one as 'messages'");
    return SK_OK;
}

static void set_token(json_t *globals, const char *key, const char *given, const struct model *m, int32_t id) {
    const struct sk_str text = m->tokenizer ? sk_token_text(m->tokenizer, id) : (struct sk_str){"", 0};
    if (given)
        json_object_set_new(globals, key, json_string(given));
    else if (!json_object_get(globals, key))
        json_object_set_new(globals, key, json_stringn(text.p, text.n));
}

int command_template(int argc, char **argv) {
    struct model_options mo = {0};
    const char *messages_file = NULL, *tools_file = NULL, *bos = NULL, *eos = NULL;
    bool add_generation_prompt = false, help;
    size_t n_positional;
    const struct option options[] = {
        {"model", 'm', OPTION_STRING, &mo.model, "FILE", "use this model's template and tokens"},
        {"template", 0, OPTION_STRING, &mo.template_file, "FILE", "use this template"},
        {"messages", 0, OPTION_STRING, &messages_file, "FILE",
         "JSON: an array of messages, or an object of variables with 'messages'; - is stdin"},
        {"tools", 0, OPTION_STRING, &tools_file, "FILE", "JSON: an array of tools"},
        {"add-generation-prompt", 0, OPTION_FLAG, &add_generation_prompt, NULL, "open the assistant's turn at the end"},
        {"bos", 0, OPTION_STRING, &bos, "TEXT", "bos_token (default: the model's)"},
        {"eos", 0, OPTION_STRING, &eos, "TEXT", "eos_token (default: the model's)"},
        {0}};
    struct sk_error err = {0};
    if (options_parse(options, argc, argv, NULL, 0, &n_positional, &help, &err)) return fail_command(&err) + 1;
    if (help) {
        options_help("template (-m MODEL | --template FILE) --messages FILE [options]",
                     "Prints the rendered text and nothing else.", options);
        return 0;
    }
    struct model m = {0};
    struct sk_buf text = {0};
    json_t *messages = NULL, *tools = NULL, *globals = NULL;
    sk_status st = SK_OK;
    if (!mo.model && !mo.template_file)
        st = sk_fail(&err, SK_EINVAL, "no template was given: -m MODEL or --template FILE");
    if (!st && !messages_file) st = sk_fail(&err, SK_EINVAL, "no messages were given: --messages FILE");
    if (!st && mo.model && !(st = setup_file(&m, &mo, &err))) {
        /* With a template of its own the tokenizer only names BOS and EOS: a model without one will do. */
        mo.allow_unknown_pretokenizer = true;
        st = setup_tokenizer(&m, &mo, &err);
        if (st && mo.template_file) st = SK_OK;
    }
    if (!st) st = setup_template(&m, mo.template_file, &err);
    if (!st && !m.template)
        st = sk_fail(&err, SK_EINVAL, "'%s' has no chat template: --template FILE gives one", mo.model);
    if (!st) st = load_json(messages_file, &messages, &err);
    if (!st && tools_file) st = load_json(tools_file, &tools, &err);
    if (!st) st = globals_of(messages, tools, add_generation_prompt, &globals, &err);
    if (!st) {
        set_token(globals, "bos_token", bos, &m, m.tokenizer ? sk_tokenizer_bos(m.tokenizer) : SK_NO_TOKEN);
        set_token(globals, "eos_token", eos, &m, m.tokenizer ? sk_tokenizer_eos(m.tokenizer) : SK_NO_TOKEN);
        st = sk_template_render(m.template, globals, (int64_t)time(NULL), &text, &err);
    }
    if (!st && text.len) fwrite(text.data, 1, text.len, stdout);
    json_decref(messages);
    json_decref(tools);
    json_decref(globals);
    sk_buf_free(&text);
    setup_free(&m);
    return st ? fail_command(&err) : 0;
}
