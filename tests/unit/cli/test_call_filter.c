/* test_call_filter.c - filters of system calls, run by call_filter.c and by the kernel: both decide the same. */
#include "support/check.h"

#include "cli/call_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILTERS 400
#define CALLS   6
#define NUMBER  SYS_getpriority /* any call: none is made, each gets an error number */

static uint64_t seed;

static uint32_t random_number(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 32);
}

struct filter {
    struct sock_filter code[128];
    size_t count;
};

static void add(struct filter *filter, unsigned code, uint32_t k, unsigned jt, unsigned jf)
{
    filter->code[filter->count++] = (struct sock_filter){(uint16_t)code, (uint8_t)jt, (uint8_t)jf, k};
}

/* A number that says something: small, or with few bits, or any. */
static uint32_t constant(void)
{
    const uint32_t number = random_number();
    return number % 3 == 0 ? number >> 28 : number % 3 == 1 ? 1u << (number >> 27) : random_number();
}

static uint32_t offset_that_is_known(void)
{
    const uint32_t word = random_number() % 14;
    return 4 * (word < 2 ? word : word + 2); /* not the address of the instruction */
}

static void add_calculation(struct filter *filter)
{
    static const unsigned operations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
                                          BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG};
    const unsigned operation = operations[random_number() % 10];
    const bool shifts = operation == BPF_LSH || operation == BPF_RSH;
    uint32_t number = constant();
    number = shifts ? number & 31 : operation == BPF_DIV && !number ? 7 : number;
    if (operation == BPF_NEG)
        add(filter, BPF_ALU | BPF_NEG, 0, 0, 0);
    else if (random_number() % 2)
        add(filter, BPF_ALU | operation | BPF_K, number, 0, 0);
    else
        add(filter, BPF_ALU | operation | BPF_X, 0, 0, 0);
}

/* LEFT: instructions that follow. */
static void add_jump(struct filter *filter, uint32_t left)
{
    static const unsigned operations[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
    const unsigned operation = operations[random_number() % 4], source = random_number() % 2 ? BPF_X : BPF_K;
    if (random_number() % 8 == 0)
        add(filter, BPF_JMP | BPF_JA, random_number() % (left + 1), 0, 0);
    else
        add(filter, BPF_JMP | operation | source, source == BPF_K ? constant() : 0, random_number() % (left + 1),
            random_number() % (left + 1));
}

static void add_move(struct filter *filter)
{
    const uint32_t place = random_number() % BPF_MEMWORDS;
    switch (random_number() % 12) {
    case 0:
        add(filter, BPF_LD | BPF_W | BPF_LEN, 0, 0, 0);
        break;
    case 1:
        add(filter, BPF_LDX | BPF_W | BPF_LEN, 0, 0, 0);
        break;
    case 2:
        add(filter, BPF_LD | BPF_IMM, constant(), 0, 0);
        break;
    case 3:
        add(filter, BPF_LDX | BPF_IMM, constant(), 0, 0);
        break;
    case 4:
        add(filter, BPF_LD | BPF_MEM, place, 0, 0);
        break;
    case 5:
        add(filter, BPF_LDX | BPF_MEM, place, 0, 0);
        break;
    case 6:
        add(filter, BPF_ST, place, 0, 0);
        break;
    case 7:
        add(filter, BPF_STX, place, 0, 0);
        break;
    case 8:
        add(filter, BPF_MISC | BPF_TAX, 0, 0, 0);
        break;
    case 9:
        add(filter, BPF_MISC | BPF_TXA, 0, 0, 0);
        break;
    default:
        add(filter, BPF_LD | BPF_W | BPF_ABS, offset_that_is_known(), 0, 0);
    }
}

/* Other calls are permitted; for NUMBER it calculates something, and returns it as the error number. */
static struct filter make(void)
{
    struct filter filter = {.count = 0};
    add(&filter, BPF_LD | BPF_W | BPF_ABS, 0, 0, 0);
    add(&filter, BPF_JMP | BPF_JEQ | BPF_K, NUMBER, 1, 0);
    add(&filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    for (uint32_t i = 0; i < BPF_MEMWORDS; i++) /* memory must have been written to */
        add(&filter, BPF_ST, i, 0, 0);
    const uint32_t length = 1 + random_number() % 50;
    for (uint32_t i = 0; i < length; i++) {
        const uint32_t what = random_number() % 10;
        if (what < 4)
            add_calculation(&filter);
        else if (what < 6)
            add_jump(&filter, length - i - 1);
        else
            add_move(&filter);
    }
    add(&filter, BPF_ALU | BPF_XOR | BPF_X, 0, 0, 0);
    add(&filter, BPF_ALU | BPF_AND | BPF_K, 0x7ff, 0, 0);
    add(&filter, BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO, 0, 0);
    add(&filter, BPF_RET | BPF_A, 0, 0, 0);
    return filter;
}

static struct hw_filtered_call call_of(const uint64_t arguments[6])
{
    struct hw_filtered_call call = {.data = {.nr = NUMBER, .arch = AUDIT_ARCH_X86_64}, .unknown = 0xc};
    memcpy(call.data.args, arguments, sizeof call.data.args);
    return call;
}

/* In a child: 0, or the number of what was wrong. *KILLED: it expects to be killed. */
static int compare(const struct filter *filter, volatile bool *killed)
{
    struct sock_filter code[128];
    memcpy(code, filter->code, sizeof code);
    const struct sock_fprog program = {(unsigned short)filter->count, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return errno == EINVAL ? 3 : 2;
    for (int i = 0; i < CALLS; i++) {
        uint64_t arguments[6];
        uint32_t action = 0;
        for (int k = 0; k < 6; k++)
            arguments[k] = (uint64_t)constant() << 32 | constant();
        const struct hw_filtered_call call = call_of(arguments);
        if (!hw_call_filter_run(filter->code, filter->count, &call, &action))
            return 4;
        *killed = action == 0;
        errno = 0;
        const long result =
            syscall(NUMBER, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
        if (*killed || action >> 16 != SECCOMP_RET_ERRNO >> 16 || (result != 0 && result != -1) ||
            (uint32_t)errno != (action & 0xffff))
            return 5;
    }
    return 0;
}

static void test_as_the_kernel(void **state)
{
    (void)state;
    volatile bool *killed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(killed, MAP_FAILED);
    for (uint64_t i = 0; i < FILTERS; i++) {
        seed = i * 7919 + 1;
        const struct filter filter = make();
        *killed = false;
        const pid_t child = fork();
        if (child == 0)
            _exit(compare(&filter, killed));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
            SKIP("filters of system calls cannot be set here");
        if (WIFSIGNALED(status) ? WTERMSIG(status) != SIGSYS || !*killed : WEXITSTATUS(status) != 0)
            fail_msg("filter %d: status %#x", (int)i, (unsigned)status);
    }
    munmap((void *)(uintptr_t)killed, 4096);
}

static void test_what_is_not_known(void **state)
{
    (void)state;
    static const uint64_t arguments[6] = {1, 2, 3, 4, 5, 6};
    struct hw_filtered_call call = call_of(arguments);
    struct filter filter = {.count = 0};
    uint32_t action = 0;
    add(&filter, BPF_LD | BPF_W | BPF_ABS, 32, 0, 0); /* of argument 2 */
    add(&filter, BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 1);
    add(&filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    add(&filter, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
    assert_true(hw_call_filter_run(filter.code, filter.count, &call, &action));
    assert_int_equal(action, SECCOMP_RET_ALLOW);
    call.unknown |= 1u << 8;
    assert_false(hw_call_filter_run(filter.code, filter.count, &call, &action));
    call.unknown = 1u << 9; /* the other half */
    assert_true(hw_call_filter_run(filter.code, filter.count, &call, &action));
    filter.code[0].k = 8; /* the address of the instruction */
    call.unknown = 0xc;
    assert_false(hw_call_filter_run(filter.code, filter.count, &call, &action));
}

static void test_no_filters(void **state)
{
    (void)state;
    static const uint64_t arguments[6] = {0};
    static const struct sock_filter wrong[][2] = {{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 64}, {BPF_RET, 0, 0, 1}},
                                                  {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 2}, {BPF_RET, 0, 0, 1}},
                                                  {{BPF_LD | BPF_B | BPF_ABS, 0, 0, 0}, {BPF_RET, 0, 0, 1}},
                                                  {{BPF_ALU | BPF_MOD | BPF_K, 0, 0, 3}, {BPF_RET, 0, 0, 1}},
                                                  {{BPF_ST, 0, 0, 16}, {BPF_RET, 0, 0, 1}},
                                                  {{BPF_JMP | BPF_JA, 0, 0, 0xffffffff}, {BPF_RET, 0, 0, 1}},
                                                  {{BPF_MISC | BPF_TAX, 0, 0, 0}, {BPF_MISC | BPF_TAX, 0, 0, 0}}};
    const struct hw_filtered_call call = call_of(arguments);
    uint32_t action = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(hw_call_filter_run(wrong[i], 2, &call, &action));
}

/* Rising: from the weakest one. */
static void test_stronger(void **state)
{
    (void)state;
    static const uint32_t actions[] = {SECCOMP_RET_ALLOW,       SECCOMP_RET_LOG,         SECCOMP_RET_TRACE,
                                       SECCOMP_RET_USER_NOTIF,  SECCOMP_RET_ERRNO | 1,   SECCOMP_RET_TRAP,
                                       SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_PROCESS};
    for (size_t i = 0; i + 1 < sizeof actions / sizeof *actions; i++) {
        assert_true(hw_call_filter_stronger(actions[i], actions[i + 1]) == actions[i + 1]);
        assert_true(hw_call_filter_stronger(actions[i + 1], actions[i]) == actions[i + 1]);
    }
    assert_true(hw_call_filter_stronger(SECCOMP_RET_ERRNO | 1, SECCOMP_RET_ERRNO | 2) == (SECCOMP_RET_ERRNO | 2));
}

TEST_LIST(cmocka_unit_test(test_as_the_kernel), cmocka_unit_test(test_what_is_not_known),
          cmocka_unit_test(test_no_filters), cmocka_unit_test(test_stronger))
