/* Proposers that do everything wrong, for `exact --spec`: they may cost speed, and nothing else. */
#ifndef SK_CLI_HOSTILE_H
#define SK_CLI_HOSTILE_H

#include "speculate/proposal.h"

enum hostile_kind { HOSTILE_RANDOM, HOSTILE_WRONG, HOSTILE_OUT_OF_RANGE, HOSTILE_EMPTY, HOSTILE_TOO_MANY, N_HOSTILE };
const char *hostile_name(enum hostile_kind kind);
struct sk_proposer *hostile_create(enum hostile_kind kind, size_t n_vocab);

#endif
