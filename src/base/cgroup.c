/* cgroup.c - see cgroup.h. Files and their meaning: Documentation/admin-guide/cgroup-v2.rst and
 * cgroup-v1/memory.rst of the kernel. */
#include "base/cgroup.h"

#include "base/sys.h"

#define UNLIMITED (1ul << 60) /* limits from here on are none: cgroup v1 has the greatest multiple of a page */

/* The names of files and keys, which differ. */
static const struct names {
    const char *current, *peak, *limit, *high, *files_key, *kills, *kills_key;
} all_names[] = {
    {"memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.limit_in_bytes", NULL, "total_inactive_file ",
     "memory.oom_control", "oom_kill "},
    {"memory.current", "memory.peak", "memory.max", "memory.high", "inactive_file ", "memory.events", "oom_kill "},
};

/* ---- where it is ---- */

/* "0::/path" (v2), "4:memory:/path" (v1), which is preferred: where both are there, memory is v1's. */
static bool take_group(void *closure, const char *line)
{
    struct hw_cgroup *cgroup = closure;
    const char *second = hw_starts_with(line, "0::") ? line + 3 : NULL, *c = line;
    while (*c && *c != ':')
        c++;
    bool first = false; /* a controller may be mounted together with others: "4:cpu,memory:/path" */
    if (*c == ':')
        for (c++; *c && *c != ':';) {
            first |= hw_starts_with(c, "memory") && (c[6] == ':' || c[6] == ',');
            while (*c && *c != ':' && *c != ',')
                c++;
            c += *c == ',';
        }
    if (*c != ':' || (!first && (!second || cgroup->group[0])))
        return true;
    cgroup->second = !first;
    hw_text_join(cgroup->group, sizeof cgroup->group, c + 1);
    return true;
}

static size_t field_length(const char *text)
{
    size_t length = 0;
    while (text[length] && text[length] != ' ')
        length++;
    return length;
}

/* "31 23 0:28 ROOT MOUNT_POINT options … - TYPE source options" */
static bool take_mount(void *closure, const char *line)
{
    struct hw_cgroup *cgroup = closure;
    const char *root = hw_skip_fields(line, 3), *point = hw_skip_fields(line, 4), *type = point;
    while (*type && !hw_starts_with(type, " - "))
        type++;
    if (!*type || !hw_starts_with(type + 3, cgroup->second ? "cgroup2 " : "cgroup ") ||
        (!cgroup->second && !hw_contains(hw_skip_fields(type + 3, 2), "memory")))
        return true;
    const size_t root_length = field_length(root), point_length = field_length(point);
    const char *rest = cgroup->group;
    if (root_length > 1) { /* a part of the tree is mounted, as in containers */
        size_t i = 0;
        while (i < root_length && rest[i] == root[i])
            i++;
        rest = i == root_length && (!rest[i] || rest[i] == '/') ? rest + i : "";
    }
    struct hw_text text;
    hw_text_init(&text, cgroup->directory, sizeof cgroup->directory);
    for (size_t i = 0; i < point_length; i++)
        hw_text_char(&text, point[i]);
    cgroup->top = text.used;
    hw_text_string(&text, rest);
    while (text.used > cgroup->top && cgroup->directory[text.used - 1] == '/')
        cgroup->directory[--text.used] = 0;
    return false;
}

bool hw_cgroup_find(struct hw_cgroup *cgroup, const char *process)
{
    cgroup->directory[0] = cgroup->group[0] = 0;
    cgroup->top = 0;
    hw_text_join(cgroup->path, sizeof cgroup->path, process, "/cgroup");
    hw_lines_in(cgroup->path, cgroup->text, sizeof cgroup->text, take_group, cgroup);
    if (!cgroup->group[0] || hw_starts_with(cgroup->group, "/..")) /* outside of what this namespace shows */
        return false;
    hw_text_join(cgroup->path, sizeof cgroup->path, process, "/mountinfo");
    hw_lines_in(cgroup->path, cgroup->text, sizeof cgroup->text, take_mount, cgroup);
    return cgroup->directory[0];
}

/* ---- what it says ---- */

/* A file of the cgroup whose directory is the first LENGTH characters. */
static bool read_text(struct hw_cgroup *cgroup, size_t length, const char *name)
{
    struct hw_text path;
    hw_text_init(&path, cgroup->path, sizeof cgroup->path);
    for (size_t i = 0; i < length; i++)
        hw_text_char(&path, cgroup->directory[i]);
    hw_text_char(&path, '/');
    hw_text_string(&path, name);
    return hw_read_file(cgroup->path, cgroup->text, sizeof cgroup->text) > 0;
}

/* "max" is UNLIMITED. */
static bool read_number(struct hw_cgroup *cgroup, size_t length, const char *name, uint64_t *value)
{
    const char *cursor = cgroup->text;
    if (!name || !read_text(cgroup, length, name))
        return false;
    *value = hw_starts_with(cgroup->text, "max") ? UNLIMITED : hw_parse_u64(&cursor, 10);
    return true;
}

/* "key value" in a line of its own. */
static bool read_key(struct hw_cgroup *cgroup, size_t length, const char *name, const char *key, uint64_t *value)
{
    if (!read_text(cgroup, length, name))
        return false;
    for (const char *line = cgroup->text; *line; line += *line == '\n') {
        if (hw_starts_with(line, key)) {
            line += hw_strlen(key);
            *value = hw_parse_u64(&line, 10);
            return true;
        }
        while (*line && *line != '\n')
            line++;
    }
    return false;
}

/* In parts of 65536. */
static uint64_t share_of(uint64_t used, uint64_t limit)
{
    return limit >> 16 ? used / (limit >> 16) : used ? UINT64_MAX : 0;
}

/* Whether the limits of the cgroup in the first LENGTH characters are nearer. */
static void read_limits(struct hw_cgroup *cgroup, size_t length, unsigned from, struct hw_cgroup_memory *memory)
{
    const struct names *names = &all_names[cgroup->second];
    const size_t own = hw_strlen(cgroup->directory);
    uint64_t limit = UNLIMITED, high = UNLIMITED, used = memory->bytes, files = 0;
    read_number(cgroup, length, names->limit, &limit);
    read_number(cgroup, length, names->high, &high);
    const bool is_high = high < limit;
    if (is_high)
        limit = high;
    if (limit >= UNLIMITED || (length != own && !read_number(cgroup, length, names->current, &used)))
        return;
    if (share_of(used, limit) >= from * 65536ull / 100 &&
        read_key(cgroup, length, "memory.stat", names->files_key, &files))
        used -= files < used ? files : used;
    if (memory->limit && share_of(used, limit) <= share_of(memory->used, memory->limit))
        return;
    memory->limit = limit;
    memory->used = used;
    memory->high = is_high;
    memory->around = length != own;
}

bool hw_cgroup_read(struct hw_cgroup *cgroup, unsigned from, struct hw_cgroup_memory *memory)
{
    const struct names *names = &all_names[cgroup->second];
    size_t length = hw_strlen(cgroup->directory);
    *memory = (struct hw_cgroup_memory){0};
    if (!length || !read_number(cgroup, length, names->current, &memory->bytes))
        return false;
    read_number(cgroup, length, names->peak, &memory->peak);
    for (;;) {
        read_limits(cgroup, length, from, memory);
        if (length <= cgroup->top)
            return true;
        do
            length--;
        while (length > cgroup->top && cgroup->directory[length] != '/');
    }
}

bool hw_cgroup_oom_kills(struct hw_cgroup *cgroup, uint64_t *kills)
{
    const struct names *names = &all_names[cgroup->second];
    return cgroup->directory[0] &&
           read_key(cgroup, hw_strlen(cgroup->directory), names->kills, names->kills_key, kills);
}
