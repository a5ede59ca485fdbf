/* verdict_words.h - the verdict on an allocator as sentences. Text and JSON say the same. */
#ifndef HW_REPORT_WORDS_VERDICT_WORDS_H
#define HW_REPORT_WORDS_VERDICT_WORDS_H

#include "analysis/verdict.h"
#include "report/buffer.h"

/* Is it the allocator? One paragraph, appended. */
void hw_verdict_summary(struct hw_buffer *out, const struct hw_verdict *verdict, const struct hw_verdict_input *input);
/* Clears and fills WORDS. SITE: the place of the program that the finding names, "" when it names none; clean text. */
void hw_verdict_finding_words(struct hw_advice *words, const struct hw_verdict_finding *finding,
                              const struct hw_verdict_input *input, const char *site);

#endif
