/* test_size.c - sizes as people write them. */
#include "base/size.h"
#include "support/check.h"

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"128k", 128 << 10},
        {"128K", 128 << 10},
        {"128KB", 128 << 10},
        {"128KiB", 128 << 10},
        {"128kib", 128 << 10},
        {"1M", 1 << 20},
        {"2g", 2ull << 30},
        {"2gb", 2ull << 30},
        {"1T", 1ull << 40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t value = 1;
        if (!hw_size_read(cases[i].text, &value) || value != cases[i].value)
            fail_msg("%s is %llu", cases[i].text, (unsigned long long)value);
    }
}

static void test_other_texts(void **state)
{
    static const char *const wrong[] = {
        "",   "-1", " 1", "K", "1X", "1KK", "1.5M", "1KBs", "1 KiB", "0x10", "99999999999999999999", "99999999999T",
        "iB", "1iB"};
    uint64_t value;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (hw_size_read(wrong[i], &value))
            fail_msg("\"%s\" is a size", wrong[i]);
}

TEST_LIST(cmocka_unit_test(test_sizes), cmocka_unit_test(test_other_texts))
