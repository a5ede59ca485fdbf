/* hostile.c - a program whose functions have the worst of names. Built by clang: gcc does not quote symbols. */
#include <stdlib.h>

void *markup(void) __asm__("</script><img src=x onerror=alert(1)><script>alert(2)</script>");
void *turned(void) __asm__("safe\xe2\x80\xaegnp.exe\xe2\x81\xa6");
void *attribute(void) __asm__("\" onmouseover=alert(3) x=\"' & <b>bold</b> ${alert(4)} {{7*7}}");
void *prototype(void) __asm__("__proto__");

#define TEN(x)     x x x x x x x x x x
#define HUNDRED(x) TEN(TEN(x))
void *endless(void) __asm__("long_" HUNDRED("name_and_on_and_on_") HUNDRED("<i>"));

static void *volatile kept[8];

__attribute__((noinline)) void *markup(void)
{
    return kept[0] = malloc(1000);
}
__attribute__((noinline)) void *turned(void)
{
    return kept[1] = malloc(2000);
}
__attribute__((noinline)) void *attribute(void)
{
    return kept[2] = malloc(3000);
}
__attribute__((noinline)) void *prototype(void)
{
    return kept[3] = malloc(4000);
}
__attribute__((noinline)) void *endless(void)
{
    return kept[4] = malloc(5000);
}

int main(void)
{
    for (int i = 0; i < 3; i++) {
        markup();
        turned();
        attribute();
        prototype();
        endless();
    }
    return 0;
}
