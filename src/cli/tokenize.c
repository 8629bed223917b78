/* skipstone tokenize: stdin to token ids. */
#include <stdio.h>

#include "commands.h"
#include "setup.h"

int command_tokenize(int argc, char **argv) {
    struct model_options mo = {0};
    bool no_special = false, add_bos = false, json = false, help;
    size_t n_positional;
    const struct option options[] = {
        {"model", 'm', OPTION_STRING, &mo.model, "FILE", "a GGUF file; a vocabulary alone will do"},
        {"no-special", 0, OPTION_FLAG, &no_special, NULL, "control tokens written in the text are text"},
        {"add-bos", 0, OPTION_FLAG, &add_bos, NULL, "add BOS (and EOS) where the model's rules do"},
        {"json", 0, OPTION_FLAG, &json, NULL, "print a JSON array"},
        {"allow-unknown-pretokenizer", 0, OPTION_FLAG, &mo.allow_unknown_pretokenizer, NULL,
         "go on with an unknown pre-tokenizer, using gpt-2's"},
        {0}};
    struct sk_error err = {0};
    if (options_parse(options, argc, argv, NULL, 0, &n_positional, &help, &err)) return fail_command(&err) + 1;
    if (help) {
        options_help("tokenize -m MODEL [options] < TEXT",
                     "Prints the token ids of what is read from stdin, every byte of it.", options);
        return 0;
    }
    struct model m = {0};
    struct sk_buf text = {0};
    struct sk_tokens tokens = {0};
    sk_status st;
    if (!(st = setup_file(&m, &mo, &err)) && !(st = setup_tokenizer(&m, &mo, &err)) &&
        !(st = read_file("-", &text, &err)))
        st = sk_tokenize(m.tokenizer, sk_buf_view(&text), add_bos, !no_special, &tokens, &err);
    for (size_t i = 0; i < tokens.n && !st; i++)
        printf("%s%d", i ? (json ? ", " : " ") : (json ? "[" : ""), tokens.ids[i]);
    if (!st) printf("%s\n", json ? (tokens.n ? "]" : "[]") : "");
    sk_tokens_free(&tokens);
    sk_buf_free(&text);
    setup_free(&m);
    return st ? fail_command(&err) : 0;
}
