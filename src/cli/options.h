/* options.h - a verb's options: one table says how they are written, what they take and where it is kept. */
#ifndef HW_CLI_OPTIONS_H
#define HW_CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_option {
    const char *name; /* without "--"; NULL: behind the last */
    char letter;      /* 0: none */
    int value;        /* no_argument, required_argument or optional_argument */
    /* AT: in the verb's command. False, with a message, when VALUE is wrong. NULL: the option prints the help. */
    bool (*take)(void *at, const char *value, const struct hw_option *option);
    size_t at;
    uint64_t least, most; /* of numbers */
};

bool hw_take_flag(void *at, const char *value, const struct hw_option *option);
bool hw_take_text(void *at, const char *value, const struct hw_option *option);
bool hw_take_number(void *at, const char *value, const struct hw_option *option);
bool hw_take_output(void *at, const char *value, const struct hw_option *option); /* text; "-" is NULL */
bool hw_take_percentage(void *at, const char *value, const struct hw_option *option); /* a double from 0: "5", "0.5%" */

/* Messages for takers, "heapwise: VERB: --NAME …"; they return false.
 * "… does not know 'VALUE' (CHOICES)", with the nearest one of CHOICES, which are separated by ", ". */
bool hw_option_unknown(const struct hw_option *option, const char *value, const char *choices);
/* "… takes WHAT, not 'VALUE'". */
__attribute__((format(printf, 3, 4))) bool hw_option_needs(const struct hw_option *option, const char *value,
                                                           const char *what, ...);
/* Whose options are being taken: for verbs that do so on their own. */
void hw_options_of(const char *verb);

/* The place of MEMBER in a command, which must be of type KEPT. */
#define HW_OPTION_AT(kept, type, member)                                                                               \
    (offsetof(type, member) + 0 * sizeof(1 ? &((type *)NULL)->member : (kept *)NULL))

/* Rows. HW_OPTION_CALL: TAKER gets the command itself. */
#define HW_OPTION_FLAG(name_, letter_, type, member)                                                                   \
    {                                                                                                                  \
        .name = (name_), .letter = (letter_), .take = hw_take_flag, .at = HW_OPTION_AT(bool, type, member)             \
    }
#define HW_OPTION_KEPT(name_, letter_, taker, kept, type, member)                                                      \
    {                                                                                                                  \
        .name = (name_), .letter = (letter_), .value = required_argument, .take = (taker),                             \
        .at = HW_OPTION_AT(kept, type, member)                                                                         \
    }
#define HW_OPTION_TEXT(name, letter, type, member)                                                                     \
    HW_OPTION_KEPT(name, letter, hw_take_text, const char *, type, member)
#define HW_OPTION_OUTPUT(name, letter, type, member)                                                                   \
    HW_OPTION_KEPT(name, letter, hw_take_output, const char *, type, member)
#define HW_OPTION_NUMBER(name_, letter_, type, member, least_, most_)                                                  \
    {                                                                                                                  \
        .name = (name_), .letter = (letter_), .value = required_argument, .take = hw_take_number,                      \
        .at = HW_OPTION_AT(uint64_t, type, member), .least = (least_), .most = (most_)                                 \
    }
#define HW_OPTION_CALL(name_, letter_, taker)                                                                          \
    {                                                                                                                  \
        .name = (name_), .letter = (letter_), .value = required_argument, .take = (taker)                              \
    }
#define HW_OPTION_HELP(letter_)                                                                                        \
    {                                                                                                                  \
        .name = "help", .letter = (letter_)                                                                            \
    }

/* Takes all options of the command line; the rest begins at optind. IN_ORDER: the first operand ends the options.
 * HW_VERB_FINE to go on, HW_VERB_USAGE with a message, or -1 when HELP was printed. */
int hw_options_take(const struct hw_option *options, bool in_order, const char *help, int argc, char **argv,
                    void *command);

#endif
