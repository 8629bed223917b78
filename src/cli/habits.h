/* What people bring along from other programs: names of options, and slips of the finger. */
#ifndef SK_CLI_HABITS_H
#define SK_CLI_HABITS_H

#include <stddef.h>

/* Our name for the option that another program calls so (without dashes, n bytes); NULL if it is none we know. */
const char *habit_option(const char *word, size_t n);
/* The name of ours whose name elsewhere is nearest to a word, and how near. */
const char *habit_nearest(const char *word, size_t n, size_t *distance);
/* Why an option of another program cannot be had here: the end of a sentence that starts with its name; else NULL. */
const char *habit_refusal(const char *word, size_t n);

/* Letters to insert, delete, replace or swap with their neighbour that make one word of the other (optimal string
 * alignment; Boytsov 2011). Words longer than 40 bytes are as far from everything as can be. */
size_t word_distance(const char *a, size_t n_a, const char *b);
/* Whether a word so far from one that exists may be a slip for it. */
int may_be_slip(size_t distance, size_t n);

#endif
