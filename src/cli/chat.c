/* skipstone chat: a conversation on the terminal. The session is kept between turns, so that only what is new is run.
 */
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "commands.h"
#include "sampling.h"

static const char help_text[] =
    "  /help          this text\n"
    "  /reset         forget the conversation\n"
    "  /stats         what it took so far\n"
    "  /save FILE     write the conversation as JSON\n"
    "  /colors        color tokens by whose guess they were, or stop it\n"
    "  /quit          leave (so does Ctrl-D)\n"
    "A line that ends with \\ goes on in the next; a line \"\"\" opens and closes a block of lines.\n"
    "Ctrl-C stops an answer.\n";

struct chat {
    struct model m;
    struct sampling_options so;
    struct spec_options spec;
    bool colors;
    int64_t max_tokens;
    json_t *messages;
    struct sk_target_session *session; /* NULL until the first turn and after an error */
    struct sk_tokens run;              /* what the session holds */
    size_t n_turns, n_output, n_prompt, n_kept;
    double decode_s;
    const char *system;
    EditLine *editor; /* NULL if stdin is no terminal */
    History *history;
};

/* ---- reading ------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t line_interrupted;
static void on_interrupt(int n) {
    (void)n;
    line_interrupted = 1;
}

static char prompts[2][3] = {"> ", ". "}; /* libedit wants them writable, and writes nothing */
static char *prompt_first(EditLine *e) {
    (void)e;
    return prompts[0];
}
static char *prompt_more(EditLine *e) {
    (void)e;
    return prompts[1];
}

/* One line without its newline. False at the end of input; an interrupted line is empty. */
static bool read_line(struct chat *c, bool more, struct sk_buf *out) {
    out->len = 0;
    if (!c->editor) {
        int ch;
        while ((ch = getchar()) != EOF && ch != '\n') sk_buf_putc(out, (char)ch);
        return ch != EOF || out->len;
    }
    int n = 0;
    struct sigaction handler = {.sa_handler = on_interrupt}, before;
    line_interrupted = 0;
    sigaction(SIGINT, &handler, &before);
    el_set(c->editor, EL_PROMPT, more ? prompt_more : prompt_first);
    const char *line = el_gets(c->editor, &n);
    sigaction(SIGINT, &before, NULL);
    if (line_interrupted) {
        el_reset(c->editor);
        putchar('\n');
        return true;
    }
    if (!line || n <= 0) return false;
    sk_buf_append(out, line, (size_t)n - (line[n - 1] == '\n'));
    return true;
}

/* One message, of one line or several. */
static bool read_message(struct chat *c, struct sk_buf *out) {
    struct sk_buf line = {0};
    bool block = false, go_on = true, any = false;
    out->len = 0;
    while (go_on) {
        if (!read_line(c, any, &line)) break;
        struct sk_str s = sk_buf_view(&line);
        if (sk_str_is(s, "\"\"\"")) {
            block = !block;
            go_on = any = block;
            continue;
        }
        if (any && out->len) sk_buf_putc(out, '\n');
        go_on = block || (s.n && s.p[s.n - 1] == '\\');
        if (!block && go_on) s.n--;
        sk_buf_str(out, s);
        any = true;
        if (line_interrupted) out->len = 0, go_on = false;
    }
    const bool have = any || !go_on;
    sk_buf_free(&line);
    if (have && c->history && out->len) {
        HistEvent e;
        history(c->history, &e, H_ENTER, out->data);
    }
    return have;
}

/* ---- answering ----------------------------------------------------------------------------------------- */

static void drop_session(struct chat *c) {
    if (c->session) c->m.target->ops->close(c->m.target, c->session);
    c->session = NULL;
    c->run.n = 0;
}

/* SGR codes by origin of the token: the target's own stays as it is. */
static const char *const origin_colors[SK_N_PROPOSERS + 1] = {"35", "36", "33", "34", "96", "32", "92", "0"};

static void print_text(struct sk_str text, enum sk_proposer_kind origin) {
    (void)origin;
    fwrite(text.p, 1, text.n, stdout);
    fflush(stdout);
}
static void print_colored(struct sk_str text, enum sk_proposer_kind origin) {
    printf("\033[%sm", origin_colors[origin]);
    fwrite(text.p, 1, text.n, stdout);
    fputs("\033[0m", stdout);
    fflush(stdout);
}

/* Tokens at the start of the prompt that the session holds already; at least one is left to run. */
static size_t common_prefix(const struct sk_tokens *a, const struct sk_tokens *b) {
    size_t n = 0;
    while (n < a->n && n < b->n && a->ids[n] == b->ids[n]) n++;
    return n == b->n ? n - 1 : n;
}

/* Puts the session at the part of the prompt that it shares. One that cannot go back so far is given up; the prompt is
 * run anew. */
static void rewind_session(struct chat *c, const struct sk_tokens *prompt) {
    struct sk_error ignored;
    if (c->session &&
        c->m.target->ops->settle(c->m.target, c->session, (uint32_t)common_prefix(&c->run, prompt), &ignored))
        drop_session(c);
}

/* What the session holds after an answer: all but the last token, which was never run. */
static bool remember_tokens(struct chat *c, const struct sk_tokens *prompt, const struct sk_tokens *output) {
    const size_t held = c->m.target->ops->position(c->m.target, c->session);
    c->run.n = 0;
    for (size_t i = 0; i < held; i++)
        if (!sk_tokens_push(&c->run, i < prompt->n ? prompt->ids[i] : output->ids[i - prompt->n])) return false;
    return true;
}

static sk_status answer_turn(struct chat *c, struct sk_error *err) {
    struct sk_buf text = {0};
    struct sk_tokens prompt = {0};
    struct answer a = {0};
    struct sk_str stops[64];
    char line[512];
    sk_status st = render_messages(&c->m, c->messages, NULL, true, &text, err);
    if (!st) st = tokenize_prompt(&c->m, sk_buf_view(&text), true, &prompt, err);
    if (!st) {
        rewind_session(c, &prompt);
        for (size_t i = 0; i < c->so.stops.n; i++) stops[i] = sk_str_of(c->so.stops.items[i]);
        const struct sk_request r = {.prompt = prompt.ids,
                                     .n_prompt = prompt.n,
                                     .max_tokens = c->max_tokens < 0 ? INT32_MAX : (size_t)c->max_tokens,
                                     .sampling = c->so.params,
                                     .stops = stops,
                                     .n_stops = c->so.stops.n};
        st = answer_run(&c->m, c->session, &r, &c->spec, c->colors ? print_colored : print_text, &a, err);
        c->session = a.session;
        if (!c->session || !remember_tokens(c, &prompt, &a.tokens)) drop_session(c);
    }
    if (!st) {
        if (a.text.len == 0 || a.text.data[a.text.len - 1] != '\n') putchar('\n');
        fflush(stdout);
        answer_line(&a, c->so.params.seed, c->so.params.temperature > 0.0f, line, sizeof line);
        const bool dim = isatty(STDERR_FILENO);
        fprintf(stderr, "%s%s%s\n", dim ? "\033[2m" : "", line, dim ? "\033[0m" : "");
        json_array_append_new(c->messages, json_pack("{s:s, s:o}", "role", "assistant", "content",
                                                     json_stringn(a.text.data ? a.text.data : "", a.text.len)));
        c->n_turns++;
        c->n_output += a.stats.n_output;
        c->n_prompt += a.stats.n_prompt;
        c->n_kept += a.stats.n_kept;
        c->decode_s += a.stats.decode_s;
    } else {
        json_array_remove(c->messages, json_array_size(c->messages) - 1); /* the turn that could not be answered */
    }
    answer_free(&a);
    sk_tokens_free(&prompt);
    sk_buf_free(&text);
    return st;
}

/* ---- commands ------------------------------------------------------------------------------------------ */

static void reset(struct chat *c) {
    json_array_clear(c->messages);
    if (c->system) json_array_append_new(c->messages, json_pack("{s:s, s:s}", "role", "system", "content", c->system));
    drop_session(c);
}

static void print_sampling(const struct chat *c) {
    char line[512];
    sampling_line(&c->so, line, sizeof line);
    printf("sampling: %s\n", line);
}

static void print_stats(const struct chat *c) {
    const size_t context = c->m.target->ops->context(c->m.target);
    printf("%zu %s, %zu %s at %.1f tokens/s; prompts %zu tokens, %zu of them kept from earlier turns; context "
           "%zu of %zu\n",
           c->n_turns, plural(c->n_turns, "answer", "answers"), c->n_output, plural(c->n_output, "token", "tokens"),
           per_second(c->n_output, c->decode_s), c->n_prompt, c->n_kept, c->run.n, context);
    print_sampling(c);
}

static void save(const struct chat *c, const char *path) {
    if (!*path)
        printf("/save needs a file name\n");
    else if (json_dump_file(c->messages, path, JSON_INDENT(2)))
        printf("cannot write '%s': %s\n", path, strerror(errno));
    else
        printf("%zu messages saved to '%s'\n", json_array_size(c->messages), path);
}

static void toggle_colors(struct chat *c) {
    c->colors = !c->colors;
    printf("colors are %s", c->colors ? "on:" : "off");
    for (size_t k = 0; k < SK_N_PROPOSERS && c->colors; k++)
        printf(" \033[%sm%s\033[0m", origin_colors[k], sk_proposer_name((enum sk_proposer_kind)k));
    putchar('\n');
}

/* False to leave. */
static bool obey(struct chat *c, const char *command) {
    if (strcmp(command, "/quit") == 0 || strcmp(command, "/exit") == 0) return false;
    if (strcmp(command, "/reset") == 0)
        reset(c), printf("the conversation is forgotten\n");
    else if (strcmp(command, "/stats") == 0)
        print_stats(c);
    else if (strncmp(command, "/save", 5) == 0 && (command[5] == ' ' || !command[5]))
        save(c, command[5] ? command + 6 : "");
    else if (strcmp(command, "/colors") == 0)
        toggle_colors(c);
    else if (strcmp(command, "/help") == 0)
        fputs(help_text, stdout);
    else
        printf("'%s' is not a command; /help lists them\n", command);
    return true;
}

static bool take_message(struct chat *c, const struct sk_buf *text) {
    struct sk_error err = {0};
    if (text->len == 0) return true;
    if (text->data[0] == '/') return obey(c, text->data);
    json_t *content = json_stringn(text->data, text->len);
    if (!content) {
        printf("that is not valid UTF-8\n");
        return true;
    }
    json_array_append_new(c->messages, json_pack("{s:s, s:o}", "role", "user", "content", content));
    if (answer_turn(c, &err)) fail_command(&err);
    return true;
}

static void open_editor(struct chat *c) {
    HistEvent e;
    if (!isatty(STDIN_FILENO)) return;
    c->editor = el_init("skipstone", stdin, stdout, stderr);
    c->history = history_init();
    if (!c->editor || !c->history) return;
    history(c->history, &e, H_SETSIZE, 500);
    el_set(c->editor, EL_HIST, history, c->history);
    el_set(c->editor, EL_EDITOR, "emacs");
    el_source(c->editor, NULL);
}

static void converse(struct chat *c) {
    struct sk_buf text = {0};
    open_editor(c);
    if (c->editor) {
        const struct sk_model *model = c->m.runtime->model;
        const size_t n_threads = sk_pool_threads(c->m.runtime->pool);
        printf("%.1f MB of weights, context %zu, %zu %s, %s kernels. /help lists the commands.\n",
               (double)model->weight_bytes / 1e6, c->m.runtime->n_positions, n_threads,
               plural(n_threads, "thread", "threads"), c->m.runtime->ops.kernels->name);
        print_sampling(c);
    }
    while (read_message(c, &text) && take_message(c, &text)) text.len = 0;
    if (c->editor) el_end(c->editor);
    if (c->history) history_end(c->history);
    sk_buf_free(&text);
}

int command_chat(int argc, char **argv) {
    struct chat c = {.so = sampling_unset(), .spec = spec_defaults(), .max_tokens = 2048};
    struct model_options mo = {0};
    size_t n_positional;
    bool help;
    const struct option own[] = {
        {"system", 0, OPTION_STRING, &c.system, "TEXT", "a system message"},
        {"max-tokens", 'n', OPTION_LIMIT, &c.max_tokens, "N",
         "at most so many tokens per answer; -1 = all that fit (default 2048)"},
        {"chat-template", 0, OPTION_STRING, &mo.template_file, "FILE", "instead of the model's own"},
        {0}};
    struct option_list options = {0};
    options_add(&options, own);
    model_option_rows(&options, &mo);
    sampling_option_rows(&options, &c.so);
    spec_option_rows(&options, &c.spec);

    struct sk_error err = {0};
    struct sk_logit_bias bias[64];
    if (options_parse(options.items, argc, argv, NULL, 0, &n_positional, &help, &err)) return fail_command(&err) + 1;
    if (help) {
        options_help("chat -m MODEL [options]",
                     "Talks to a model on the terminal; /help there lists the commands. Reads lines from stdin if that "
                     "is no terminal.",
                     options.items);
        return 0;
    }
    setlocale(LC_CTYPE, "");
    sk_status st = sampling_prepare(&c.so, bias, &err);
    if (!st) st = spec_prepare(&c.spec, &err);
    mo.drafts_natively = spec_drafts_natively(&c.spec);
    if (!st) st = setup_engine(&c.m, &mo, &err);
    if (!st) sampling_from_file(&c.so, c.m.gguf, mo.model);
    if (!st) st = spec_open(&c.spec, c.m.tokenizer, c.m.runtime, &err);
    if (!st) st = setup_template(&c.m, mo.template_file, &err);
    if (!st && !c.m.template)
        st = sk_fail(&err, SK_EINVAL,
                     "'%s' has no chat template: --chat-template FILE gives one, and run --raw needs none", mo.model);
    if (!st) {
        c.messages = json_array();
        reset(&c);
        converse(&c);
        drop_session(&c);
        json_decref(c.messages);
    }
    spec_finish(&c.spec);
    sk_tokens_free(&c.run);
    setup_free(&c.m);
    return st ? fail_command(&err) : 0;
}
