/* launcher.c - see launcher.h. Inside the profiled process, and in heapwise record: no libc. */
#include "base/launcher.h"

#include "base/sys.h"

void hw_executable_name(char *name, size_t size, const char *path)
{
    static const char deleted[] = " (deleted)", memory[] = "memfd:";
    const char *base = path;
    for (const char *c = path; *c; c++)
        if (*c == '/')
            base = c + 1;
    if (hw_starts_with(base, memory))
        base += sizeof memory - 1;
    struct hw_text text;
    hw_text_init(&text, name, size);
    for (const char *c = base; *c && !hw_streq(c, deleted); c++)
        hw_text_char(&text, *c);
    if (!*name)
        hw_text_string(&text, "program");
}

void hw_expand_name(char *name, size_t size, const char *pattern, const struct hw_name_parts *parts, unsigned attempt)
{
    struct hw_text text;
    hw_text_init(&text, name, size);
    bool numbered = false, has_pid = false;
    for (const char *c = pattern; *c; c++) {
        if (*c != '%' || !c[1]) {
            hw_text_char(&text, *c);
            continue;
        }
        switch (*++c) {
        case 'e':
            hw_text_string(&text, parts->executable);
            break;
        case 'p':
            hw_text_u64(&text, parts->pid);
            has_pid = true;
            break;
        case 'h':
            hw_text_string(&text, parts->host);
            break;
        case 'n':
            hw_text_u64(&text, attempt);
            numbered = true;
            break;
        case 'c':
            hw_text_char(&text, ':');
            break;
        default:
            hw_text_char(&text, *c);
        }
    }
    if (attempt == 0 || numbered)
        return;
    /* Put ".PID" or ".PID.N" before the extension of the last component; ".N" if the name has PID. N is 2, 3 … */
    size_t dot = text.used;
    for (size_t i = text.used; i > 0 && name[i - 1] != '/'; i--)
        if (name[i - 1] == '.' && i > 1 && name[i - 2] != '/') {
            dot = i - 1;
            break;
        }
    char extension[64];
    hw_text_join(extension, sizeof extension, name + dot);
    text.used = dot;
    name[dot] = 0;
    if (!has_pid) {
        hw_text_char(&text, '.');
        hw_text_u64(&text, parts->pid);
    }
    if (has_pid || attempt > 1) {
        hw_text_char(&text, '.');
        hw_text_u64(&text, attempt + has_pid);
    }
    hw_text_string(&text, extension);
}

size_t hw_launcher_name(char *address, size_t size, uint64_t number, bool abstract)
{
    struct hw_text text;
    hw_text_init(&text, address, size);
    if (abstract)
        hw_text_char(&text, 0);
    else
        hw_text_string(&text, HW_LAUNCHER_FOLDER);
    hw_text_string(&text, HW_LAUNCHER_PREFIX);
    for (int shift = 60; shift >= 0; shift -= 4)
        hw_text_char(&text, "0123456789abcdef"[number >> shift & 15]);
    return text.used;
}
