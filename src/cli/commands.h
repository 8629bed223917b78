/* One function per command; each gives the process's exit status. */
#ifndef SK_CLI_COMMANDS_H
#define SK_CLI_COMMANDS_H

int command_run(int argc, char **argv);
int command_chat(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_tokenize(int argc, char **argv);
int command_template(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_perplexity(int argc, char **argv);
int command_exact(int argc, char **argv);
int command_export_hidden(int argc, char **argv);

#endif
