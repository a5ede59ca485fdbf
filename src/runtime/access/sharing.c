/* sharing.c - who uses lines that threads share: which threads (by role: started with the same routine by the same call
 * stack), at which bytes of the blocks, and, where accesses are sampled, by which code.
 *
 * Lines that are shared and written are found when the cells of a block are added up (cells.c, word_cells.c), or when a
 * sample falls on one (samples.c). They are few: each fact has an entry in the file, found by a table that never grows;
 * what finds no room is dropped. Entries are found without a lock and made under it. */
#include "runtime/access/cells.h"
#include "runtime/access/counting.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/core/threads.h"

__thread uint32_t hw_self_role = HW_ROLE_UNKNOWN;

/* ---- roles ---- */

#define ROLES_MOST 1000u

static struct hw_thread_role *role_at(uint32_t role)
{
    return HW_ENTRY(HW_POOL_ROLES, struct hw_thread_role, role);
}

/* Lock held. */
static uint32_t find_role(const struct hw_thread_role *key)
{
    uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_ROLES);
    for (uint32_t i = HW_ROLE_FIRST; i < count; i++) {
        const struct hw_thread_role *role = role_at(i);
        if (role->map == key->map && role->routine == key->routine && role->context == key->context)
            return i;
    }
    uint32_t role = count < ROLES_MOST ? hw_pool_take(HW_POOL_ROLES, 1) : HW_NONE;
    if (role == HW_NONE)
        return HW_ROLE_UNKNOWN;
    *role_at(role) = *key;
    hw_pool_publish(HW_POOL_ROLES);
    return role;
}

uint32_t hw_role_of(uintptr_t routine, uint32_t context)
{
    if (!hw_pools[HW_POOL_ROLES].base || !HW_ENTRIES(HW_POOL_ROLES))
        return HW_ROLE_UNKNOWN;
    const struct hw_module *module = hw_module_find(routine);
    struct hw_thread_role key = {.map = HW_NONE, .context = context};
    if (module) {
        key.map = module->map;
        key.routine = routine - module->bias;
    }
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const uint32_t role = find_role(&key);
    hw_lock_drop(&hw_runtime.lock, old);
    return role;
}

void hw_role_begin(uint32_t role)
{
    hw_self_role = role;
    if (hw_pools[HW_POOL_ROLES].base && role < HW_ENTRIES(HW_POOL_ROLES))
        __atomic_fetch_add(&role_at(role)->threads, 1, __ATOMIC_RELAXED);
}

/* ---- what they do ---- */

#define SLOTS        65536u /* of a table: two for each entry that there may be */
#define EXACT_BYTES  2048u  /* of a block; from here on positions are kept by page */
#define ENTRIES_MOST (SLOTS / 2)

static struct table {
    enum hw_pool_id pool;
    uint32_t *slots; /* entry + 1, 0 empty */
} tables[2] = {{.pool = HW_POOL_SIDES}, {.pool = HW_POOL_SIDES_LIVE}};

static uint32_t hash_of(const struct hw_side *side)
{
    uint64_t hash = (uint64_t)side->context << 32 | side->map;
    hash = (hash ^ side->code * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
    hash ^= hash >> 32;
    hash = (hash ^ side->offset << 20 ^ side->role << 4 ^ (uint64_t)side->kind << 2 ^ side->sharing) *
           0x9e3779b97f4a7c15ull;
    return (uint32_t)(hash >> 40);
}

static bool is_same(const struct hw_side *a, const struct hw_side *b)
{
    return a->context == b->context && a->role == b->role && a->kind == b->kind && a->sharing == b->sharing &&
           a->map == b->map && a->code == b->code && a->offset == b->offset && a->bytes == b->bytes;
}

/* The entry of KEY, or the empty slot in *AT. */
static struct hw_side *find_side(const struct table *table, const struct hw_side *key, uint32_t *at)
{
    for (;; *at = (*at + 1) % SLOTS) {
        uint32_t slot = __atomic_load_n(&table->slots[*at], __ATOMIC_ACQUIRE);
        if (!slot)
            return NULL;
        struct hw_side *side = HW_ENTRY(table->pool, struct hw_side, slot - 1);
        if (is_same(side, key))
            return side;
    }
}

/* Lock held. NULL when there is no room. */
static struct hw_side *make_side(struct table *table, const struct hw_side *key, uint32_t at)
{
    struct hw_side *side = find_side(table, key, &at); /* another thread may have made it */
    if (side)
        return side;
    uint32_t index = HW_ENTRIES(table->pool) < ENTRIES_MOST ? hw_pool_take(table->pool, 1) : HW_NONE;
    if (index == HW_NONE)
        return NULL;
    side = HW_ENTRY(table->pool, struct hw_side, index);
    *side = *key;
    side->reads = side->writes = side->lines = 0;
    hw_pool_publish(table->pool);
    __atomic_store_n(&table->slots[at], index + 1, __ATOMIC_RELEASE);
    return side;
}

void hw_side_note(const struct hw_side *from, bool live, bool locked)
{
    struct table *table = &tables[live];
    struct hw_side key = *from;
    if (!table->slots)
        return;
    if (key.offset >= EXACT_BYTES) {
        const uint64_t page = key.offset & ~(uint64_t)(HW_PAGE - 1);
        key.offset = page < EXACT_BYTES ? EXACT_BYTES : page;
        key.bytes = (uint32_t)(page + HW_PAGE - key.offset);
    }
    uint32_t at = hash_of(&key) % SLOTS;
    struct hw_side *side = find_side(table, &key, &at);
    if (!side) {
        hw_sigset old = locked ? 0 : hw_lock_take(&hw_runtime.lock);
        side = make_side(table, &key, at);
        if (!locked)
            hw_lock_drop(&hw_runtime.lock, old);
    }
    if (!side)
        return;
    __atomic_fetch_add(&side->reads, key.reads, __ATOMIC_RELAXED);
    __atomic_fetch_add(&side->writes, key.writes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&side->lines, key.lines, __ATOMIC_RELAXED);
}

/* ---- lines ---- */

#define SELDOM 16 /* uses of one thread for one of another's that is not counted */

/* What counts of a word mean, by granule. */
struct grain {
    uint32_t once;  /* who goes through all its bytes reads and writes no more than that */
    uint32_t limit; /* a lower bound from here on */
    uint32_t often; /* how often the line is used is not known from here on */
};

static struct grain grain_of(unsigned words)
{
    return words == 1   ? (struct grain){64, UINT32_MAX, UINT32_MAX}
           : words == 8 ? (struct grain){8, 255, 255}
                        : (struct grain){2, UINT32_MAX, 3}; /* periods: a pass may see the end of one and the begin of
                                                               the next */
}

static inline uint64_t uses_of(const struct hw_line_use *use, unsigned word)
{
    return (uint64_t)use->reads[word] + use->writes[word];
}

static bool reaches(const struct hw_line_use *use, unsigned word, uint32_t count)
{
    return use->reads[word] >= count || use->writes[word] >= count;
}

/* A user of the line, over all its words. */
struct user {
    uint64_t most, all; /* uses of a word, of all words */
    bool once;          /* no word more often than that */
    bool limit, often;  /* some word as often as that */
};

static bool is_once(const struct hw_line_use *use, unsigned word, struct grain grain)
{
    return use->reads[word] <= grain.once && use->writes[word] <= grain.once;
}

static struct user user_of(const struct hw_line_use *use, unsigned words, struct grain grain)
{
    struct user user = {.once = true};
    for (unsigned i = 0; i < words; i++) {
        user.all += uses_of(use, i);
        user.most = uses_of(use, i) > user.most ? uses_of(use, i) : user.most;
        user.once &= is_once(use, i, grain);
        user.limit |= reaches(use, i, grain.limit);
        user.often |= reaches(use, i, grain.often);
    }
    return user;
}

/* Is some word of user I used by another one of SET? */
static bool overlaps(const struct hw_line_use *uses, uint32_t i, uint32_t set, unsigned words)
{
    for (uint32_t left = set & ~(1u << i); left; left &= left - 1)
        for (unsigned word = 0; word < words; word++)
            if (uses_of(&uses[i], word) && uses_of(&uses[__builtin_ctz(left)], word))
                return true;
    return false;
}

/* Those that count: see judge. Of several that only go through the line the one that does so most stays. */
static uint32_t counting_of(const struct hw_line_use *uses, const struct user *users, uint32_t count, unsigned words)
{
    uint64_t most = 0;
    uint32_t set = 0;
    for (uint32_t i = 0; i < count; i++)
        most = users[i].most > most ? users[i].most : most;
    for (uint32_t i = 0; i < count; i++)
        set |= (uint32_t)(users[i].most * SELDOM >= most && most) << i;
    for (;;) {
        uint32_t least = count;
        for (uint32_t i = 0; i < count; i++)
            if (set >> i & 1 && users[i].once && (least == count || users[i].most < users[least].most) &&
                overlaps(uses, i, set, words))
                least = i;
        if (least == count)
            return set;
        set &= ~(1u << least);
    }
}

/* How the threads of COUNTING share the line. Who works elsewhere in it does not share a word that he has gone through
 * once. Where a thread's count of a word is at its limit, what another one does there that has such a word elsewhere is
 * next to nothing. */
static enum hw_side_sharing sharing_of(const struct hw_line_use *uses, const struct user *users, uint32_t counting,
                                       unsigned words, struct grain grain)
{
    bool written = false, together = false;
    for (unsigned word = 0; word < words; word++) {
        uint64_t greatest = 0;
        unsigned of_word = 0;
        bool here = false, limit = false;
        for (uint32_t left = counting; left; left &= left - 1) {
            const struct hw_line_use *use = &uses[__builtin_ctz(left)];
            greatest = uses_of(use, word) > greatest ? uses_of(use, word) : greatest;
            limit |= reaches(use, word, grain.limit);
        }
        for (uint32_t left = counting; left; left &= left - 1) {
            const uint32_t i = (uint32_t)__builtin_ctz(left);
            const uint64_t uses_here = uses_of(&uses[i], word);
            if (!uses_here || uses_here * SELDOM < greatest || (!users[i].once && is_once(&uses[i], word, grain)) ||
                (limit && users[i].limit && !reaches(&uses[i], word, grain.limit)))
                continue;
            of_word++;
            here |= uses[i].writes[word] != 0;
        }
        written |= here;
        together |= here && of_word > 1;
    }
    return !written ? 0 : words == 1 ? HW_SHARING_UNTOLD : together ? HW_SHARING_TRUE : HW_SHARING_FALSE;
}

/* What several threads do in one line that some of them write. */
struct line_verdict {
    enum hw_side_sharing sharing; /* 0: they do not share it */
    bool handed;                  /* one thread uses it, others only fill it or go through it */
    bool hot;          /* falsely shared, and how often is not known: two threads' counts are at their limit */
    uint64_t passes;   /* shared falsely, or in an unknown way: so often, at most, it went to another thread */
    uint32_t counting; /* uses that count, a bit each */
};
/* Judges the line, of WORDS words (1, 8 or 16: granules of 64, 8 and 4 bytes). A thread counts if it uses some word of
 * the line at least a sixteenth as often as another thread uses some word, and does more than pass once over words that
 * others use: a thread that fills the block, or reads once what another one has filled, does not share it. The same for
 * each word. */
static struct line_verdict judge(const struct hw_line_use *uses, uint32_t count, unsigned words)
{
    const struct grain grain = grain_of(words);
    struct user users[HW_LINE_USERS];
    uint64_t all = 0, most = 0;
    unsigned often = 0;
    for (uint32_t i = 0; i < count; i++) {
        users[i] = user_of(&uses[i], words, grain);
        all += users[i].all;
        most = users[i].all > most ? users[i].all : most;
    }
    struct line_verdict verdict = {.counting = counting_of(uses, users, count, words)};
    verdict.handed = !(verdict.counting & (verdict.counting - 1));
    if (verdict.handed)
        return verdict;
    verdict.sharing = sharing_of(uses, users, verdict.counting, words, grain);
    if (!verdict.sharing || verdict.sharing == HW_SHARING_TRUE)
        return verdict;
    for (uint32_t i = 0; i < count; i++)
        often += verdict.counting >> i & 1 && users[i].often;
    verdict.hot = often > 1;
    /* The line goes away from the thread that uses it most once for each use by another, and comes back as often. */
    verdict.passes = 2 * (all - most) < all ? 2 * (all - most) : all;
    return verdict;
}

static void tell(const struct hw_cell_owner *owner, uintptr_t address, const struct hw_line_use *uses,
                 const struct line_verdict *verdict, unsigned words)
{
    const unsigned bytes = 64 / words;
    uint64_t most = 0;
    for (uint32_t left = verdict->counting; left; left &= left - 1)
        for (unsigned word = 0; word < words; word++)
            if (uses_of(&uses[__builtin_ctz(left)], word) > most)
                most = uses_of(&uses[__builtin_ctz(left)], word);
    for (uint32_t left = verdict->counting; left; left &= left - 1) {
        const struct hw_line_use *use = &uses[__builtin_ctz(left)];
        for (unsigned word = 0; word < words; word++) {
            const uint64_t reads = use->reads[word], writes = use->writes[word];
            const uintptr_t at = address + (uintptr_t)word * bytes;
            struct hw_side side = {.context = owner->context,
                                   .role = hw_shadow_role(use->plane),
                                   .kind = HW_SIDE_COUNTED,
                                   .sharing = (uint16_t)verdict->sharing,
                                   .map = HW_NONE,
                                   .offset = at < owner->start ? 0 : at - owner->start,
                                   .bytes = bytes,
                                   .reads = reads * SELDOM >= most ? reads : 0,
                                   .writes = writes * SELDOM >= most ? writes : 0,
                                   .lines = 1};
            if (side.reads | side.writes)
                hw_side_note(&side, owner->live, owner->live);
        }
    }
}

void hw_line_add(struct hw_cell_sum *sum, uintptr_t address, const struct hw_line_use *uses, uint32_t count,
                 unsigned words)
{
    const struct line_verdict verdict = judge(uses, count, words);
    sum->lines_true += verdict.sharing == HW_SHARING_TRUE;
    sum->lines_false += verdict.sharing == HW_SHARING_FALSE;
    /* Of granules of 64 bytes those that several threads write are in a sum by themselves: here is what is not shared.
     */
    sum->lines_handed += words == 1 ? !verdict.sharing : verdict.handed;
    sum->lines_hot += verdict.hot;
    sum->passes += verdict.passes;
    if (verdict.sharing && verdict.sharing != HW_SHARING_TRUE && sum->owner.start)
        tell(&sum->owner, address, uses, &verdict, words);
}

/* ---- start, fork, reset ---- */

void hw_sharing_start(void)
{
    if (!hw_pools[HW_POOL_ROLES].base)
        return;
    for (int i = 0; i < 2; i++)
        if (!tables[i].slots)
            tables[i].slots = hw_own_pages(SLOTS * sizeof *tables[i].slots, true);
    if (HW_ENTRIES(HW_POOL_ROLES))
        return;
    uint32_t first = hw_pool_take(HW_POOL_ROLES, HW_ROLE_FIRST);
    if (first == HW_NONE)
        return;
    for (uint32_t i = 0; i < HW_ROLE_FIRST; i++)
        *role_at(i) = (struct hw_thread_role){.map = HW_NONE, .context = HW_NONE, .threads = i == HW_ROLE_MAIN};
    hw_pool_publish(HW_POOL_ROLES);
    if (hw_gettid() == hw_getpid())
        hw_self_role = HW_ROLE_MAIN;
}

/* The thread that called fork is what it was; the tables read as zero. */
void hw_sharing_fork(void)
{
    if (!hw_pools[HW_POOL_ROLES].base)
        return;
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_ROLES); i++)
        role_at(i)->threads = i == hw_self_role;
    hw_sharing_start();
}

void hw_sharing_forget_harvest(void)
{
    struct table *table = &tables[1];
    if (!table->slots || !hw_pools[table->pool].base || !hw_pools[table->pool].used)
        return;
    __builtin_memset(table->slots, 0, SLOTS * sizeof *table->slots);
    hw_pool_set_count(table->pool, 0);
}

void hw_sharing_reset(void)
{
    if (!hw_pools[HW_POOL_SIDES].base)
        return;
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_SIDES); i++) {
        struct hw_side *side = HW_ENTRY(HW_POOL_SIDES, struct hw_side, i);
        side->reads = side->writes = side->lines = 0;
    }
}
