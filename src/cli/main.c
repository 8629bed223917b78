/* skipstone: the commands, by name. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "habits.h"

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run", "answer one prompt", command_run},
    {"chat", "talk to a model on the terminal", command_chat},
    {"inspect", "show what a GGUF file holds", command_inspect},
    {"tokenize", "text to token ids", command_tokenize},
    {"template", "render a chat template", command_template},
    {"bench", "measure a model's speed here", command_bench},
    {"perplexity", "measure how well a model predicts a text", command_perplexity},
    {"exact", "check that every way of computing gives the same bits", command_exact},
    {"export-hidden", "answer many prompts and write hidden states, to train an MTP block", command_export_hidden},
};

static void usage(FILE *out) {
    fprintf(out, "usage: skipstone COMMAND [options]\n\nAn LLM server that speculates without changing a single "
                 "token.\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-14s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n'skipstone COMMAND --help' explains a command; 'skipstone --version' names the version.\n");
}

/* NULL if none is near. */
static const char *nearest_command(const char *word) {
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const size_t d = word_distance(word, strlen(word), commands[i].name);
        if (d < least) least = d, nearest = commands[i].name;
    }
    return may_be_slip(least, strlen(word)) ? nearest : NULL;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of a write, not a death */
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("skipstone %s\n", SK_VERSION);
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    const char *nearest = nearest_command(argv[1]);
    if (nearest)
        fprintf(stderr, "skipstone: '%s' is not a command; is '%s' meant?\n", argv[1], nearest);
    else
        fprintf(stderr, "skipstone: '%s' is not a command; 'skipstone --help' lists them\n", argv[1]);
    return 2;
}
