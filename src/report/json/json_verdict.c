/* json_verdict.c - the member "verdict" of "allocator": is it the allocator, why, and what to do. */
#include "report/json/json.h"

#include "report/view/verdict_numbers.h"

static json_t *cause_value(struct json_writer *writer, const struct hw_view_verdict *of,
                           const struct hw_verdict_finding *finding, struct hw_advice *words)
{
    json_t *object = json_object();
    struct hw_buffer site = {0};
    writer->failed |= !hw_view_verdict_site(writer->view, finding, HW_CLEAN_JSON, &site) || site.failed;
    hw_verdict_finding_words(words, finding, &of->input, hw_buffer_text(&site));
    set_text(writer, object, "cause", hw_verdict_cause_names[finding->cause]);
    set_number(writer, object, "share", finding->share);
    set_number(writer, object, "seconds", finding->seconds);
    set_number(writer, object, "gain_seconds", finding->gain);
    set_number(writer, object, "gain_least_seconds", finding->gain_least);
    set_number(writer, object, "bytes", finding->bytes);
    set_number(writer, object, "since_seconds", finding->when.since);
    set_number(writer, object, "until_seconds", finding->when.until);
    set_nonzero(writer, object, "looked_at_moments", finding->when.looks);
    set_text(writer, object, "site", known(hw_buffer_text(&site)));
    set_advice(writer, object, words);
    set_text(writer, object, "setting", known(finding->tunable));
    hw_buffer_free(&site);
    return object;
}

json_t *hw_json_verdict(struct json_writer *writer)
{
    struct hw_view_verdict of;
    struct hw_advice words = {0};
    struct hw_buffer summary = {0};
    if (!hw_view_verdict(&of, writer->view))
        return json_null();
    json_t *object = json_object(), *causes = json_array();
    hw_verdict_summary(&summary, &of.verdict, &of.input);
    set_text(writer, object, "summary", hw_buffer_text(&summary));
    set_text(writer, object, "time", hw_verdict_answer_names[of.verdict.time]);
    set_text(writer, object, "memory", hw_verdict_answer_names[of.verdict.memory]);
    set_number(writer, object, "time_share", of.verdict.time_share);
    set_number(writer, object, "memory_share", of.verdict.memory_share);
    if (of.input.runs > 1 && of.verdict.memory != HW_VERDICT_NOT_KNOWN)
        set_count(writer, object, "memory_runs", of.input.memory_runs);
    set_number(writer, object, "run_seconds", of.input.run);
    set_number(writer, object, "seconds_on_critical_way", of.input.critical);
    set_number(writer, object, "own_seconds", of.input.own);
    set_number(writer, object, "runnable_seconds", of.input.runnable);
    set_number(writer, object, "memory_at_seconds", of.input.memory_at);
    set_number(writer, object, "seconds_in_operations", of.input.operations);
    set_number(writer, object, "relative_error", of.input.error);
    for (size_t i = 0; i < of.verdict.finding_count; i++)
        append(writer, causes, cause_value(writer, &of, &of.verdict.findings[i], &words));
    set(writer, object, "causes", causes);
    set_text(writer, object, "another_allocator", of.verdict.another ? of.input.best : NULL);
    writer->failed |= !hw_advice_free(&words) || summary.failed;
    hw_buffer_free(&summary);
    return object;
}
