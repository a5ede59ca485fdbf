/* race.c - see race.h. */
#include "tuning/race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SELECTION        0.6  /* part of the budget */
#define SINGLES          0.45 /* part of it, where combinations follow */
#define STAGES_MOST      8
#define ROUNDS_LEAST     6  /* without which nothing is confirmed */
#define CONFIRM_FIRST    10 /* rounds before the first look */
#define LOOKS_MOST       3
#define FAULTS_SAVED     0.5 /* a ratio of page faults below which a configuration has at least so many rounds: */
#define ROUNDS_OF_SAVERS 3
#define NO_GAIN_FROM     0.998 /* the best one's estimate from which it is not worth to be confirmed */

/* Rounds of each stage, where the budget is large enough. */
static const size_t stage_rounds[STAGES_MOST] = {2, 3, 4, 6, 8, 10, 12, 12};

struct racing {
    struct hw_race *race;
    const struct hw_race_source *source;
    struct hw_error *error;
    size_t of[HW_RACE_MOST], count; /* those in the race, without the plain one */
};

static double spent_s(const struct racing *racing)
{
    return racing->source->now_s(racing->source->closure) - racing->race->begin_s;
}

static void exclude(struct racing *racing, size_t index, const char *problem)
{
    struct hw_entrant *entrant = &racing->race->of[index];
    size_t kept = 0;
    entrant->state = HW_RACE_EXCLUDED;
    memcpy(entrant->problem, problem, sizeof entrant->problem);
    for (size_t i = 0; i < racing->count; i++)
        if (racing->of[i] != index)
            racing->of[kept++] = racing->of[i];
    racing->count = kept;
}

/* Notes the pair of the round's plain trial and that of INDEX. */
static void note_pair(struct hw_entrant *entrant, const struct hw_race_trial *plain, const struct hw_race_trial *trial,
                      bool deciding)
{
    struct hw_pairs *pairs = deciding ? &entrant->confirmation : &entrant->selection;
    if (pairs->count == HW_PAIRS_MOST)
        return;
    (deciding ? entrant->base_again : entrant->base)[pairs->count] = plain->score;
    (deciding ? entrant->score_again : entrant->score)[pairs->count] = trial->score;
    hw_pairs_add(pairs, &plain->cost, &trial->cost);
}

/* One round: the plain configuration and all in the race, in an order drawn by lot. A round counts only as a whole. */
static bool run_round(struct racing *racing, struct hw_race_trial *trials, bool deciding)
{
    struct hw_race *race = racing->race;
    size_t order[HW_RACE_MOST], indices[HW_RACE_MOST];
    const size_t count = racing->count + 1;
    indices[0] = HW_RACE_PLAIN;
    memcpy(indices + 1, racing->of, racing->count * sizeof *indices);
    hw_random_order(&race->random, order, count);
    for (size_t i = 0; i < count; i++) {
        const size_t index = indices[order[i]];
        struct hw_race_trial *trial = &trials[index];
        memset(trial, 0, sizeof *trial);
        if (!racing->source->run(racing->source->closure, index, trial, racing->error))
            return false;
        race->trials++;
        if (index == HW_RACE_PLAIN && trial->problem[0]) {
            hw_error_set(racing->error, "the program as it is does not do the same each time: %s", trial->problem);
            return false;
        }
    }
    for (size_t i = 1; i < count; i++) {
        const size_t index = indices[i];
        if (trials[index].problem[0])
            exclude(racing, index, trials[index].problem);
        else
            note_pair(&race->of[index], &trials[HW_RACE_PLAIN], &trials[index], deciding);
    }
    race->trial_s = spent_s(racing) / (double)race->trials;
    return true;
}

static bool run_rounds(struct racing *racing, size_t rounds, bool deciding, const char *what)
{
    static struct hw_race_trial trials[HW_RACE_MOST];
    for (size_t round = 0; round < rounds && racing->count > 0; round++) {
        if (racing->source->progress)
            racing->source->progress(racing->source->closure, what, round, rounds, racing->count);
        if (!run_round(racing, trials, deciding))
            return false;
    }
    return true;
}

/* ---- selection ---- */

static const struct hw_race *sorted_race;

static int by_selection(const void *a, const void *b)
{
    const size_t one = *(const size_t *)a, other = *(const size_t *)b;
    const double x = sorted_race->of[one].selected.value, y = sorted_race->of[other].selected.value;
    if ((x > 0) != (y > 0)) /* without a round is last */
        return x > 0 ? -1 : 1;
    return x != y ? (x > y) - (x < y) : (one > other) - (one < other);
}

/* Where page faults are saved but a run was slow, the run is more likely to have been disturbed than the configuration
 * to be bad. */
static bool deserves_more_rounds(const struct hw_entrant *entrant)
{
    const double faults = hw_race_ratio(entrant, HW_METRIC_FAULTS).value;
    return entrant->selection.count < ROUNDS_OF_SAVERS && faults > 0 && faults < FAULTS_SAVED;
}

/* Those in the race, best first; at most MOST stay, and none that is far worse than the plain one. With PATIENCE more
 * stay that deserve more rounds. */
static void keep_best(struct racing *racing, size_t most, size_t stage, bool patience)
{
    struct hw_race *race = racing->race;
    size_t kept = 0;
    for (size_t i = 0; i < racing->count; i++) {
        struct hw_entrant *entrant = &race->of[racing->of[i]];
        entrant->selected = hw_ratio_of_pairs(entrant->base, entrant->score, entrant->selection.count, HW_CONFIDENCE);
    }
    sorted_race = race;
    qsort(racing->of, racing->count, sizeof *racing->of, by_selection);
    for (size_t i = 0; i < racing->count; i++) {
        struct hw_entrant *entrant = &race->of[racing->of[i]];
        if ((i < most && (i == 0 || entrant->selected.value <= HW_RACE_FAR)) ||
            (patience && deserves_more_rounds(entrant))) {
            racing->of[kept++] = racing->of[i];
        } else {
            entrant->state = HW_RACE_LEFT;
            entrant->stage = stage;
        }
    }
    racing->count = kept;
}

static size_t stages_for(size_t count)
{
    size_t stages = 0;
    for (; count > HW_RACE_FINAL; count = (count + 1) / 2)
        stages++;
    return stages ? stages : 1;
}

/* How many rounds of RACING and the plain one SECONDS are enough for. */
static size_t rounds_for(const struct racing *racing, double seconds)
{
    const double round = (double)(racing->count + 1) * racing->race->trial_s;
    const double rounds = round > 0 ? seconds / round : HW_PAIRS_MOST;
    return rounds >= HW_PAIRS_MOST ? HW_PAIRS_MOST : rounds >= 1 ? (size_t)rounds : 0;
}

/* How long one round in each of the stages takes that halve COUNT configurations to the finalists. */
static double stages_s(const struct racing *racing)
{
    size_t trials = racing->count + 1;
    for (size_t count = (racing->count + 1) / 2; count > HW_RACE_FINAL; count = (count + 1) / 2)
        trials += count + 1;
    return (double)trials * racing->race->trial_s;
}

/* Rounds of the next stage. 0: so little time is left that it is of more use to fewer configurations. */
static size_t rounds_of_stage(const struct racing *racing, double part, size_t stage)
{
    const struct hw_race *race = racing->race;
    const double seconds = race->budget_s * part - spent_s(racing);
    const size_t usual = stage_rounds[stage - 1 < STAGES_MOST ? stage - 1 : STAGES_MOST - 1];
    const size_t rounds = rounds_for(racing, seconds / (double)stages_for(racing->count));
    if (rounds > 0)
        return rounds < usual ? rounds : usual;
    return race->trials == 1 || seconds >= stages_s(racing);
}

/* Selects from those in the race until PART of the budget is used. FIRST: the stage that they begin with, which says
 * how many rounds there are. */
static bool select_finalists(struct racing *racing, double part, size_t first, const char *what)
{
    for (size_t stage = 1; racing->count > 0; stage++) {
        const size_t rounds = rounds_of_stage(racing, part, first + stage);
        if (!run_rounds(racing, rounds, false, what))
            return false;
        const bool last = racing->count <= 2 * HW_RACE_FINAL;
        keep_best(racing, last ? HW_RACE_FINAL : (racing->count + 1) / 2, first + stage, !last && rounds > 0);
        if (last)
            return true;
    }
    return true;
}

static bool is_combination(const struct hw_race *race, size_t index)
{
    return index >= race->single_count;
}

/* The combinations join the finalists, and are selected from. If one of the best two is a combination, it is the first
 * finalist, and the other one is the best of the others, which it has to beat. */
static bool select_combinations(struct racing *racing)
{
    struct hw_race *race = racing->race;
    const size_t single = racing->of[0], before = race->count;
    const double seconds = race->budget_s * SELECTION - spent_s(racing);
    const double round_s = (double)(racing->count + HW_RACE_COMBINED + 1) * race->trial_s;
    if (seconds < 4 * round_s)
        return true;
    const size_t count = racing->source->combine(racing->source->closure, race);
    if (count <= before || count > HW_RACE_MOST)
        return true;
    struct hw_entrant *more = realloc(race->of, count * sizeof *more);
    if (!more) {
        hw_error_set(racing->error, "not enough memory");
        return false;
    }
    race->of = more;
    memset(race->of + before, 0, (count - before) * sizeof *more);
    race->count = count;
    for (size_t i = before; i < count; i++)
        racing->of[racing->count++] = i;
    if (!select_finalists(racing, SELECTION, 2, "combining"))
        return false;
    if (racing->count > 0 && is_combination(race, racing->of[0]) && race->of[single].state != HW_RACE_EXCLUDED &&
        (racing->count == 1 || racing->of[1] != single)) {
        if (racing->count > 1) {
            race->of[racing->of[1]].state = HW_RACE_LEFT;
            race->of[racing->of[1]].stage = STAGES_MOST;
        }
        race->of[single].state = HW_RACE_IN;
        race->of[single].stage = 0;
        racing->of[1] = single;
        racing->count = 2;
    } else if (racing->count > 1 && is_combination(race, racing->of[1])) {
        const size_t combination = racing->of[1];
        racing->of[1] = racing->of[0];
        racing->of[0] = combination;
    }
    return true;
}

/* ---- the rounds that decide ---- */

/* The numbers of rounds after which LOOKS of them are judged. */
static size_t looks_of(size_t rounds, size_t looks[LOOKS_MOST])
{
    size_t count = 0;
    if (rounds > HW_RACE_CONFIRM)
        rounds = HW_RACE_CONFIRM;
    for (size_t at = CONFIRM_FIRST; at * 2 <= rounds && count < LOOKS_MOST - 1; at *= 2)
        looks[count++] = at;
    looks[count++] = rounds;
    return count;
}

/* What all rounds say of a finalist, for the choice between two that are both confirmed. */
static double estimate_of(const struct hw_entrant *entrant)
{
    const double selection = (double)entrant->selection.count, deciding = (double)entrant->confirmation.count;
    return exp((selection * log(entrant->selected.value) + deciding * log(entrant->confirmed.value)) /
               (selection + deciding));
}

/* Whether the first finalist is a combination, and the other one is still there. */
static bool has_to_beat_single(const struct hw_race *race)
{
    return race->finalist_count > 1 && is_combination(race, race->finalists[0]) &&
           race->of[race->finalists[1]].state != HW_RACE_EXCLUDED;
}

/* A combination's ratio to the other finalist, in the deciding rounds that both had. */
static struct hw_ratio ratio_over_single(const struct hw_race *race, double confidence)
{
    const struct hw_entrant *combination = &race->of[race->finalists[0]], *single = &race->of[race->finalists[1]];
    const size_t count = combination->confirmation.count < single->confirmation.count ? combination->confirmation.count
                                                                                      : single->confirmation.count;
    return hw_ratio_of_pairs(single->score_again, combination->score_again, count, confidence);
}

/* Judges the deciding rounds so far, the LAST ones or not. True: the best of the finalists is better beyond the noise
 * and the winner, or no finalist seems to be better at all. */
static bool judge(struct racing *racing, double confidence, bool last)
{
    struct hw_race *race = racing->race;
    bool hopeless = true, confirmed = false;
    double best = INFINITY;
    for (size_t i = 0; i < race->finalist_count; i++) {
        struct hw_entrant *entrant = &race->of[race->finalists[i]];
        if (entrant->state == HW_RACE_EXCLUDED)
            continue;
        entrant->confirmed =
            hw_ratio_of_pairs(entrant->base_again, entrant->score_again, entrant->confirmation.count, confidence);
        const struct hw_ratio *ratio = &entrant->confirmed;
        bool better = ratio->known && ratio->high < HW_RACE_EFFECT;
        if (i == 0 && has_to_beat_single(race)) {
            race->over_single = ratio_over_single(race, confidence);
            better = better && race->over_single.known && race->over_single.high < 1;
        }
        const double estimate = estimate_of(entrant);
        hopeless &= ratio->known && (ratio->value >= 1 || ratio->low > HW_RACE_EFFECT);
        if ((last && !better) || estimate >= best)
            continue;
        best = estimate;
        confirmed = better;
        race->winner = race->finalists[i];
    }
    if (!confirmed)
        race->winner = HW_RACE_PLAIN;
    return hopeless || confirmed;
}

/* Too few rounds for two finalists are better spent on one, the best one stays; not a combination, which has to beat
 * another. */
static void keep_one(struct racing *racing)
{
    struct hw_race *race = racing->race;
    const size_t leaves = is_combination(race, racing->of[0]) ? 0 : 1;
    race->of[racing->of[leaves]].state = HW_RACE_LEFT;
    race->of[racing->of[leaves]].stage = STAGES_MOST;
    racing->of[0] = racing->of[1 - leaves];
    racing->count = 1;
}

static bool confirm(struct racing *racing)
{
    struct hw_race *race = racing->race;
    size_t looks[LOOKS_MOST], done = 0;
    const double seconds = race->budget_s - spent_s(racing);
    size_t rounds = rounds_for(racing, seconds);
    if (rounds < 2 * CONFIRM_FIRST && racing->count > 1) {
        keep_one(racing);
        rounds = rounds_for(racing, seconds);
    }
    memcpy(race->finalists, racing->of, racing->count * sizeof *racing->of);
    race->finalist_count = racing->count;
    if (rounds < ROUNDS_LEAST) {
        race->end = HW_RACE_NO_TIME;
        return true;
    }
    const size_t count = looks_of(rounds, looks);
    const size_t comparisons = race->finalist_count + is_combination(race, race->finalists[0]);
    const double confidence = 1 - (1 - HW_CONFIDENCE) / (double)(count * comparisons);
    if (hw_pairs_least(confidence) > looks[count - 1]) {
        race->end = HW_RACE_NO_TIME;
        return true;
    }
    race->end = HW_RACE_NO_GAIN;
    for (size_t look = 0; look < count && racing->count > 0; look++) {
        if (!run_rounds(racing, looks[look] - done, true, "confirming"))
            return false;
        done = looks[look];
        if (judge(racing, confidence, look + 1 == count))
            break;
    }
    if (race->winner != HW_RACE_PLAIN)
        race->end = HW_RACE_WINNER;
    else if (racing->count == 0)
        race->end = HW_RACE_NONE;
    return true;
}

bool hw_race_run(struct hw_race *race, const struct hw_race_source *source, struct hw_error *error)
{
    struct racing racing = {.race = race, .source = source, .error = error};
    race->end = HW_RACE_UNFINISHED;
    race->single_count = race->count;
    race->of = calloc(race->count, sizeof *race->of);
    if (!race->of) {
        hw_error_set(error, "not enough memory");
        return false;
    }
    for (size_t i = 1; i < race->count; i++)
        racing.of[racing.count++] = i;
    race->begin_s = source->now_s(source->closure);
    struct hw_race_trial first = {.score = 0}; /* it says how long a trial takes, and fills caches */
    if (!source->run(source->closure, HW_RACE_PLAIN, &first, error))
        return false;
    race->trials++;
    race->trial_s = spent_s(&racing);
    if (first.problem[0]) {
        hw_error_set(error, "the program as it is fails: %s", first.problem);
        return false;
    }
    if (!select_finalists(&racing, source->combine ? SINGLES : SELECTION, 0, "selecting") ||
        (racing.count > 0 && source->combine && !select_combinations(&racing)))
        return false;
    if (racing.count == 0) {
        race->end = HW_RACE_NONE;
        return true;
    }
    if (race->of[racing.of[0]].selected.value > NO_GAIN_FROM) {
        race->end = HW_RACE_NO_GAIN;
        return true;
    }
    if (confirm(&racing))
        return true;
    race->end = HW_RACE_UNFINISHED;
    race->winner = HW_RACE_PLAIN;
    return false;
}

void hw_race_free(struct hw_race *race)
{
    free(race->of);
    race->of = NULL;
}

struct hw_ratio hw_race_ratio(const struct hw_entrant *entrant, enum hw_metric metric)
{
    const struct hw_pairs *pairs = entrant->confirmation.count ? &entrant->confirmation : &entrant->selection;
    return hw_pairs_change(pairs, metric, 0).ratio;
}
