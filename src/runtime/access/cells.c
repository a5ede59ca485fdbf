/* cells.c - the cells of a range of memory, in all planes: summing, taking, clearing and moving them.
 *
 * Long ranges are gone through by pages of the shadow that are there at all; those are given back afterwards. */
#include "base/abi.h"
#include "runtime/access/cells.h"
#include "runtime/access/counting.h"

#define LANE_LOW  0x0101010101010101ull
#define LANE_HIGH 0x8080808080808080ull

/* ---- summing ---- */

static inline void share(struct hw_cell_sum *sum, uint32_t users, uint32_t writers)
{
    if (users > 1) {
        sum->shared++;
        sum->shared_written += writers > 0;
        sum->shared_writers += writers > 1;
    }
}

/* What was in the cells of one plane. */
struct seen {
    uintptr_t plane;
    uint64_t reads, writes; /* of words: a byte for each */
};

/* SEEN as the words of a line; granules of 64 bytes are one word. */
static void unpack(const struct seen *seen, uint32_t count, unsigned words, struct hw_line_use *uses)
{
    for (uint32_t i = 0; i < count; i++) {
        uses[i] = (struct hw_line_use){.plane = seen[i].plane};
        for (unsigned word = 0; word < words; word++) {
            uses[i].reads[word] = (uint32_t)(words == 1 ? seen[i].reads : seen[i].reads >> 8 * word & 255);
            uses[i].writes[word] = (uint32_t)(words == 1 ? seen[i].writes : seen[i].writes >> 8 * word & 255);
        }
    }
}

/* A line that several threads use, and some writes; of granules of 64 bytes: that several write. */
static __attribute__((noinline)) void add_shared_line(uintptr_t line, const struct seen *seen, uint32_t count,
                                                      unsigned words, struct hw_cell_sum *sum)
{
    struct hw_line_use uses[HW_LINE_USERS];
    uint64_t more[2];
    count = count < HW_LINE_USERS ? count : HW_LINE_USERS;
    unpack(seen, count, words, uses);
    for (uint32_t i = 0; hw_unlikely(hw_shadow.carried) && words == 1 && i < count; i++)
        if (hw_shadow_side(seen[i].plane + (line << 3), seen[i].plane + (line << 3) + 8, false, more)) {
            uses[i].reads[0] = more[0] ? UINT32_MAX : uses[i].reads[0];
            uses[i].writes[0] = more[1] ? UINT32_MAX : uses[i].writes[0];
        }
    hw_line_add(sum, line << 6, uses, count, words);
}

static inline void scan_granule_64(const struct hw_plane_list *list, uintptr_t granule, bool take,
                                   struct hw_cell_sum *sum)
{
    struct seen seen[HW_LINE_USERS];
    uint32_t users = 0, writers = 0;
    bool touched = false;
    for (uint32_t i = 0; i < list->count; i++) {
        cell_64 *cell = (cell_64 *)(list->plane[i] + (granule << 3));
        uint64_t value = *cell;
        if (!value)
            continue;
        if (take)
            *cell = 0;
        sum->reads += (uint32_t)value;
        sum->writes += value >> 32;
        if (users < HW_LINE_USERS)
            seen[users] = (struct seen){list->plane[i], (uint32_t)value, value >> 32};
        users++;
        writers += value >> 32 != 0;
    }
    if (hw_unlikely(list->memprof != 0)) {
        cell_64 *cell = (cell_64 *)(list->memprof + (granule << 3));
        uint64_t value = *cell;
        if (value && take)
            *cell = 0;
        sum->unsplit += value;
        touched = value != 0;
    }
    if (users || touched)
        sum->touched++;
    share(sum, users, writers);
    if (hw_unlikely(writers > 1))
        add_shared_line(granule, seen, users, 1, sum);
}

static void scan_64(const struct hw_plane_list *list, uintptr_t start, uintptr_t end, bool take,
                    struct hw_cell_sum *sum)
{
    uintptr_t first = start >> 6, last = (end - 1) >> 6;
    sum->granules += last - first + 1;
    for (uintptr_t granule = first; granule <= last; granule++)
        scan_granule_64(list, granule, take, sum);
    if (hw_unlikely(hw_shadow.carried))
        for (uint32_t i = 0; i < list->count; i++) {
            uint64_t more[2];
            uintptr_t plane = list->plane[i];
            if (hw_shadow_side(plane + (first << 3), plane + ((last + 1) << 3), take, more)) {
                sum->reads += more[0];
                sum->writes += more[1];
            }
        }
}

static inline uint64_t lanes_set(uint64_t value) /* 0xff in each byte that is not 0 */
{
    uint64_t low = (value & ~LANE_HIGH) + ~LANE_HIGH;
    return (((low | value) & LANE_HIGH) >> 7) * 255;
}

static inline uint32_t lane_count(uint64_t value) /* bytes that are not 0 */
{
    return (uint32_t)((lanes_set(value) & LANE_LOW) * LANE_LOW >> 56);
}

static inline uint64_t lane_sum(uint64_t value)
{
    uint64_t pairs = (value & 0x00ff00ff00ff00ffull) + (value >> 8 & 0x00ff00ff00ff00ffull);
    return pairs * 0x0001000100010001ull >> 48;
}

static inline uint64_t saturated_lanes(uint64_t value)
{
    return ~lanes_set(~value);
}

/* The 8 words of one 64-byte line, of which MASK selects those of the block. */
static void scan_line_8(const struct hw_plane_list *list, uintptr_t line, uint64_t mask, bool take,
                        struct hw_cell_sum *sum, struct hw_histogram_target *histogram)
{
    uint64_t touched = 0, twice = 0, written = 0, written_twice = 0, saturated = 0;
    struct seen seen[HW_LINE_USERS];
    uint32_t users = 0, writers = 0;
    uint32_t counts[8] = {0};
    bool keep_counts = histogram != NULL;
    for (uint32_t i = 0; i <= list->count; i++) {
        bool memprof = i == list->count;
        uintptr_t plane = memprof ? list->memprof : list->plane[i];
        if (!plane)
            continue;
        cell_64 *reads_cell = (cell_64 *)(plane + (line << 3));
        cell_64 *writes_cell = (cell_64 *)((uintptr_t)reads_cell + HW_ABI_WRITES_OFFSET);
        uint64_t reads = *reads_cell & mask, writes = memprof ? 0 : *writes_cell & mask;
        if (!(reads | writes))
            continue;
        if (take) {
            if (reads)
                *reads_cell &= ~mask;
            if (writes)
                *writes_cell &= ~mask;
        }
        *(memprof ? &sum->unsplit : &sum->reads) += lane_sum(reads);
        sum->writes += lane_sum(writes);
        uint64_t full_reads = saturated_lanes(reads), full_writes = saturated_lanes(writes);
        sum->saturated += lane_count(full_reads) + lane_count(full_writes);
        saturated |= full_reads | full_writes;
        uint64_t set = lanes_set(reads | writes), set_writes = lanes_set(writes);
        if (!memprof) {
            twice |= touched & set;
            written_twice |= written & set_writes;
            written |= set_writes;
            if (users < HW_LINE_USERS)
                seen[users] = (struct seen){plane, reads, writes};
            users++;
            writers += writes != 0;
        }
        touched |= set;
        if (keep_counts)
            for (int word = 0; word < 8; word++)
                counts[word] += (reads >> 8 * word & 255) + (writes >> 8 * word & 255);
    }
    if (!touched)
        return;
    sum->touched += lane_count(touched);
    sum->shared += lane_count(twice);
    sum->shared_written += lane_count(twice & written);
    sum->shared_writers += lane_count(written_twice);
    if (hw_unlikely(users > 1 && writers))
        add_shared_line(line, seen, users, 8, sum);
    for (int word = 0; keep_counts && word < 8; word++)
        if (counts[word])
            hw_histogram_add(histogram, (line << 6) + 8 * (uintptr_t)word, counts[word],
                             (saturated >> 8 * word & 255) != 0);
}

/* The first line from LINE on, but not behind LAST, in which something may have been counted: large blocks are mostly
 * not used everywhere. */
static inline uintptr_t next_used_8(const struct hw_plane_list *list, uintptr_t line, uintptr_t last)
{
    for (; line + 8 <= last; line += 8) {
        uint64_t any = 0;
        for (uint32_t i = 0; i <= list->count; i++) {
            const bool memprof = i == list->count;
            const uintptr_t plane = memprof ? list->memprof : list->plane[i];
            const cell_64 *reads = (const cell_64 *)(plane + (line << 3));
            const cell_64 *writes = (const cell_64 *)((uintptr_t)reads + (memprof ? 0 : HW_ABI_WRITES_OFFSET));
            for (int k = 0; plane && k < 8; k++)
                any |= reads[k] | writes[k];
        }
        if (any)
            break;
    }
    return line;
}

static void scan_8(const struct hw_plane_list *list, uintptr_t start, uintptr_t end, bool take, struct hw_cell_sum *sum,
                   struct hw_histogram_target *histogram)
{
    const uintptr_t first = start >> 6, last = (end - 1) >> 6;
    sum->granules += ((end - 1) >> 3) - (start >> 3) + 1;
    for (uintptr_t line = next_used_8(list, first, last), clear_to = line + 8; line <= last; line++) {
        if (line == clear_to) {
            line = next_used_8(list, line, last);
            clear_to = line + 8;
        }
        uint64_t mask = ~0ull;
        if (line == first)
            mask &= ~0ull << 8 * (start >> 3 & 7);
        if (line == last)
            mask &= ~0ull >> 8 * (7 - ((end - 1) >> 3 & 7));
        scan_line_8(list, line, mask, take, sum, histogram);
    }
}

static inline void scan_cells(const struct hw_plane_list *list, uintptr_t start, uintptr_t end, bool take,
                              struct hw_cell_sum *sum, struct hw_histogram_target *histogram)
{
    if (hw_likely(hw_shadow.granule == 64))
        scan_64(list, start, end, take, sum);
    else if (hw_shadow.granule == 8)
        scan_8(list, start, end, take, sum, histogram);
    else
        hw_words_scan(list, start, end, take, sum, histogram);
}

/* ---- long ranges: by pages of the shadow ---- */

/* START and END are multiples of HW_SHADOW_PAGE. TAKE: the shadow is given back, and reads as zero. */
static void scan_pages(const struct hw_plane_list *list, uintptr_t start, uintptr_t end, bool take,
                       struct hw_cell_sum *sum, struct hw_histogram_target *histogram)
{
    struct hw_shadow_pages pages = hw_shadow_pages_of(list, start, end);
    uintptr_t present[HW_PLANES_MOST];
    bool any = false;
    for (uint64_t page = 0, next;; page = next + 1) {
        next = hw_shadow_pages_next(&pages, page);
        sum->granules += (next - page) * (HW_SHADOW_PAGE / hw_shadow.granule);
        if (next == pages.count)
            break;
        const struct hw_plane_list here = hw_shadow_planes_in(&pages, next, present);
        const uintptr_t from = start + next * HW_SHADOW_PAGE;
        scan_cells(&here, from, from + HW_SHADOW_PAGE, take, sum, histogram);
        any = true;
    }
    if (any && take && !hw_quiet)
        hw_shadow_pages_drop(&pages);
}

void hw_cells_scan(uintptr_t start, uintptr_t end, bool take, struct hw_cell_sum *sum,
                   struct hw_histogram_target *histogram)
{
    struct hw_plane_list list = hw_all_planes();
    if (hw_likely(end - start < HW_CELLS_LONG)) {
        scan_cells(&list, start, end, take, sum, histogram);
        return;
    }
    uintptr_t first = HW_ALIGN_UP(start, HW_SHADOW_PAGE), last = end & ~(HW_SHADOW_PAGE - 1);
    if (start < first)
        scan_cells(&list, start, first, take, sum, histogram);
    scan_pages(&list, first, last, take, sum, histogram);
    if (last < end)
        scan_cells(&list, last, end, take, sum, histogram);
}

/* A block that may share its first and last granule with others: what is counted there stays there, for them. */
void hw_cells_scan_shared(uintptr_t start, uintptr_t end, struct hw_cell_sum *sum,
                          struct hw_histogram_target *histogram)
{
    uintptr_t granule = hw_shadow.granule, first = HW_ALIGN_UP(start, granule), last = end & ~(granule - 1);
    if (first >= last) {
        hw_cells_scan(start, end, false, sum, histogram);
        return;
    }
    if (start < first)
        hw_cells_scan(start, first, false, sum, histogram);
    hw_cells_scan(first, last, true, sum, histogram);
    if (last < end)
        hw_cells_scan(last, end, false, sum, histogram);
}

/* ---- clearing ---- */

static inline void clear_cells(const struct hw_plane_list *list, uintptr_t start, uintptr_t end)
{
    if (hw_likely(hw_shadow.granule == 64)) {
        for (uint32_t i = 0; i < list->count; i++)
            for (uintptr_t granule = start >> 6; granule <= (end - 1) >> 6; granule++) {
                cell_64 *cell = (cell_64 *)(list->plane[i] + (granule << 3));
                if (hw_unlikely(*cell))
                    *cell = 0;
            }
        if (hw_unlikely(list->memprof != 0))
            for (uintptr_t granule = start >> 6; granule <= (end - 1) >> 6; granule++)
                *(cell_64 *)(list->memprof + (granule << 3)) = 0;
        return;
    }
    struct hw_cell_sum unused = {0};
    if (hw_shadow.granule == 8)
        scan_8(list, start, end, true, &unused, NULL);
    else
        hw_words_clear(list, start, end);
}

void hw_cells_clear(uintptr_t start, uintptr_t end)
{
    struct hw_plane_list list = hw_all_planes();
    if (hw_likely(end - start < HW_CELLS_LONG || hw_quiet)) {
        clear_cells(&list, start, end);
    } else {
        uintptr_t first = HW_ALIGN_UP(start, HW_SHADOW_PAGE), last = end & ~(HW_SHADOW_PAGE - 1);
        if (start < first)
            clear_cells(&list, start, first);
        const struct hw_shadow_pages pages = hw_shadow_pages_of(&list, first, last);
        hw_shadow_pages_drop(&pages);
        if (last < end)
            clear_cells(&list, last, end);
    }
    if (hw_shadow.granule == 4)
        hw_words_clear_carries(start, end);
    uint64_t more[2];
    for (uint32_t i = 0; hw_unlikely(hw_shadow.carried) && i < list.count; i++)
        hw_shadow_side(list.plane[i] + (start >> 6 << 3), list.plane[i] + (((end - 1) >> 6) + 1) * 8, true, more);
}

/* ---- single granules ---- */

static void each_in_page(const struct hw_plane_list *list, uintptr_t start, uintptr_t end, bool take,
                         void (*each)(uintptr_t address, const struct hw_global_granule *counts))
{
    const uintptr_t size = hw_shadow.granule;
    uintptr_t judged = 0;
    struct hw_cell_sum line = {0};            /* of 64 bytes at `judged` */
    uintptr_t hole_end = start, hole = start; /* the blocks of pools that come next; none yet */
    for (uintptr_t at = start & ~(size - 1); at < end; at += size) {
        while (!take && at >= hole_end && hole < end)
            hole = hw_pool_hole(hole_end, end, 0, &hole_end);
        if (at >= hole && at < hole_end)
            continue;                                                 /* reported with them */
        if (size == 8 && list->count > 1 && (at & ~63ul) != judged) { /* before anything is taken from it */
            judged = at & ~63ul;
            line = (struct hw_cell_sum){0};
            scan_cells(list, judged, judged + 64, false, &line, NULL);
        }
        struct hw_cell_sum sum = {0};
        scan_cells(list, at, at + size, take, &sum, NULL);
        if (!sum.touched)
            continue;
        struct hw_global_granule counts = {.reads = sum.reads, .writes = sum.writes, .unsplit = sum.unsplit};
        counts.flags = hw_access_granule_flags(&sum, size == 64 ? &sum : judged == (at & ~63ul) ? &line : NULL);
        each(at, &counts);
    }
}

void hw_cells_each_granule(uintptr_t start, uintptr_t end, bool take,
                           void (*each)(uintptr_t address, const struct hw_global_granule *counts))
{
    const struct hw_plane_list list = hw_all_planes();
    const uintptr_t begin = start & ~(HW_SHADOW_PAGE - 1);
    uintptr_t present[HW_PLANES_MOST];
    struct hw_shadow_pages pages = hw_shadow_pages_of(&list, begin, end);
    for (uint64_t n = 0; (n = hw_shadow_pages_next(&pages, n)) < pages.count; n++) {
        const struct hw_plane_list here = hw_shadow_planes_in(&pages, n, present);
        const uintptr_t page = begin + n * HW_SHADOW_PAGE, behind = page + HW_SHADOW_PAGE;
        (hw_shadow.granule == 4 ? hw_words_each : each_in_page)(&here, page < start ? start : page,
                                                                behind < end ? behind : end, take, each);
    }
}

/* ---- moving ---- */

/* Adds the counts of a granule's cell to another one's, in one plane. */
static void move_cell_64(uintptr_t plane, uintptr_t from, uintptr_t to)
{
    cell_64 *source = (cell_64 *)(plane + (from << 3)), *target = (cell_64 *)(plane + (to << 3));
    uint64_t value = *source;
    if (!value)
        return;
    *source = 0;
    if (hw_likely(!*target))
        *target = value;
    else {
        hw_shadow_carry(target, 0, (uint32_t)value);
        hw_shadow_carry(target, 1, value >> 32);
    }
    uint64_t more[2];
    if (hw_unlikely(hw_shadow.carried) && hw_shadow_side((uintptr_t)source, (uintptr_t)source + 8, true, more))
        hw_shadow_side_add((uintptr_t)target, more);
}

static void move_cells_8(const struct hw_plane_list *list, uintptr_t from, uintptr_t to, uintptr_t end)
{
    for (uint32_t i = 0; i < list->count + (list->memprof != 0); i++) {
        const bool memprof = i == list->count;
        for (uintptr_t word = from >> 3; word <= (end - 1) >> 3; word++) {
            uint8_t *source = (uint8_t *)((memprof ? list->memprof : list->plane[i]) + word);
            uint8_t *target = source + (to >> 3) - (from >> 3);
            *target = *source;
            *source = 0;
            if (memprof)
                continue;
            target[HW_ABI_WRITES_OFFSET] = source[HW_ABI_WRITES_OFFSET];
            source[HW_ABI_WRITES_OFFSET] = 0;
        }
    }
}

static void move_cells_64(const struct hw_plane_list *list, uintptr_t from, uintptr_t to, uintptr_t end)
{
    for (uint32_t i = 0; i < list->count + (list->memprof != 0); i++)
        for (uintptr_t granule = from >> 6; granule <= (end - 1) >> 6; granule++) {
            uintptr_t begin = granule << 6 < from ? from : granule << 6;
            move_cell_64(i < list->count ? list->plane[i] : list->memprof, granule, (to + (begin - from)) >> 6);
        }
}

void hw_cells_move(uintptr_t from, uintptr_t to, uintptr_t end)
{
    const struct hw_plane_list list = hw_all_planes();
    void (*const move)(const struct hw_plane_list *, uintptr_t, uintptr_t, uintptr_t) =
        hw_shadow.granule == 4   ? hw_words_move
        : hw_shadow.granule == 8 ? move_cells_8
                                 : move_cells_64;
    if (end - from < HW_CELLS_LONG || (to > from && to < end)) {
        move(&list, from, to, end);
    } else {
        const uintptr_t begin = from & ~(HW_SHADOW_PAGE - 1);
        uintptr_t present[HW_PLANES_MOST];
        struct hw_shadow_pages pages = hw_shadow_pages_of(&list, begin, end);
        for (uint64_t n = 0; (n = hw_shadow_pages_next(&pages, n)) < pages.count; n++) {
            const uintptr_t page = begin + n * HW_SHADOW_PAGE, first = page < from ? from : page;
            const struct hw_plane_list here = hw_shadow_planes_in(&pages, n, present);
            move(&here, first, to + (first - from), page + HW_SHADOW_PAGE < end ? page + HW_SHADOW_PAGE : end);
        }
    }
    if (hw_shadow.granule == 4)
        hw_words_move_carries(from, to, end);
}

bool hw_cells_gather(uintptr_t start, uintptr_t end, uintptr_t to)
{
    struct hw_plane_list list = hw_all_planes();
    if (hw_shadow.granule != 64 || list.memprof || end - start >= HW_CELLS_LONG)
        return false;
    for (uint32_t i = 0; i < list.count; i++)
        for (uintptr_t granule = start >> 6; granule <= (end - 1) >> 6; granule++)
            move_cell_64(list.plane[i], granule, to >> 6);
    return true;
}
