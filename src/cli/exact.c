int command_exact(int argc, char **argv); int command_chat(int argc, char **argv);
int command_exact(int argc, char **argv){(void)argc;(void)argv;return 0;} int command_chat(int argc, char **argv){(void)argc;(void)argv;return 0;}
