/* make_forms.c - writes forms.inc: what each instruction of x86-64 does to memory, as Zydis knows it. Runs when
 * Heapwise is built.
 *
 * The decoder of the runtime (decode.c) may neither allocate nor drag a library into the program. So it parses prefixes
 * and addresses itself, which is regular, and looks up in these tables what is not: which opcodes have operands in
 * memory, how wide they are, whether they are read or written, and how many bytes of immediate follow.
 *
 * Every opcode is decoded once with every combination of what can change the answer: see decode.h for the pages. */
#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arch/x86_64/decode.h"

#define FORMS_MOST 4096
#define ROWS_MOST  65536

static ZydisDecoder decoder;
static struct hw_form forms[FORMS_MOST];
static unsigned form_count = 1; /* form 0: not an instruction that is known */
static uint16_t rows[ROWS_MOST][8];
static unsigned row_count;
static uint16_t pages[HW_FORM_PAGES][256];
static unsigned page_count;
static uint16_t page_index[HW_FORM_PAGES];

static unsigned log2_of(unsigned value)
{
    unsigned log = 0;
    while (value > 1) {
        value >>= 1;
        log++;
    }
    return log;
}

struct encoding {
    unsigned char bytes[16];
    unsigned length; /* up to and with the opcode */
};

static bool decode(const struct encoding *encoding, const unsigned char *tail, ZydisDecodedInstruction *instruction,
                   ZydisDecodedOperand *operands)
{
    unsigned char bytes[40] = {0};
    memcpy(bytes, encoding->bytes, encoding->length);
    memcpy(bytes + encoding->length, tail, 7);
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, ZYDIS_MAX_INSTRUCTION_LENGTH, instruction, operands));
}

static bool is_hidden_stack(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
           (operand->mem.base == ZYDIS_REGISTER_RSP || operand->mem.base == ZYDIS_REGISTER_RBP);
}

static void describe_memory(struct hw_form *form, const ZydisDecodedInstruction *instruction,
                            const ZydisDecodedOperand *operand)
{
    bool touches = operand->mem.type == ZYDIS_MEMOP_TYPE_MEM || operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
    /* Hints and address arithmetic touch nothing that a program can notice. */
    switch (instruction->meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLDEMOTE:
    case ZYDIS_CATEGORY_CLFLUSHOPT:
    case ZYDIS_CATEGORY_CLWB:
        touches = false;
        break;
    default:
        break;
    }
    if (instruction->mnemonic == ZYDIS_MNEMONIC_CLFLUSH || instruction->mnemonic == ZYDIS_MNEMONIC_INVLPG)
        touches = false;
    if (!touches)
        return;
    form->flags |= HW_FORM_MEMORY;
    if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
        form->flags |= HW_FORM_READ;
    if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
        form->flags |= HW_FORM_WRITE;
    form->size = (uint16_t)(operand->size / 8);
    if (form->size == 0) /* of the state that xsave and its kin keep, the part that is always there */
        form->size =
            instruction->meta.category == ZYDIS_CATEGORY_XSAVE || instruction->meta.category == ZYDIS_CATEGORY_XSAVEOPT
                ? 576
                : 1;
    form->element = (uint8_t)(operand->element_size / 8);
    if (operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
        form->flags |= HW_FORM_VSIB;
        /* vgatherQPD, vpscatterDQ: how wide indexes are (d 4, q 8), then elements (ps and d 4, pd and q 8). */
        const char *name = ZydisMnemonicGetString(instruction->mnemonic);
        size_t length = strlen(name);
        bool integers = name[1] == 'p';
        if (instruction->meta.category == ZYDIS_CATEGORY_GATHER ||
            instruction->meta.category == ZYDIS_CATEGORY_SCATTER ||
            instruction->meta.category == ZYDIS_CATEGORY_AVX2GATHER) {
            form->index = name[length - (integers ? 2 : 3)] == 'd' ? 4 : 8;
            form->element = name[length - 1] == (integers ? 'd' : 's') ? 4 : 8;
        } else {
            form->flags &= (uint8_t)~HW_FORM_MEMORY; /* prefetches */
        }
    }
}

/* What the instruction with this opcode and ModRM.reg does; true when there is such an instruction. */
static bool describe(const struct encoding *encoding, unsigned reg, struct hw_form *form)
{
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT], nearer[ZYDIS_MAX_OPERAND_COUNT];
    unsigned char tail[7] = {(unsigned char)(reg << 3)};
    bool sib = false;
    if (!decode(encoding, tail, &instruction, operands)) {
        tail[0] = (unsigned char)(reg << 3 | 4);
        sib = true;
        bool found = false;
        for (unsigned index = 1; index < 4 && !found; index++) {
            tail[1] = (unsigned char)(index << 3);
            found = decode(encoding, tail, &instruction, operands);
        }
        if (!found) { /* only with registers? then it touches no memory, but there may be an immediate */
            tail[0] = (unsigned char)(0xc0 | reg << 3 | (reg ? 0 : 1));
            tail[1] = 0;
            sib = false;
            if (!decode(encoding, tail, &instruction, operands))
                return false;
        }
    }
    memset(form, 0, sizeof *form);
    form->flags = HW_FORM_VALID;
    unsigned body = encoding->length;
    if (instruction.attributes & ZYDIS_ATTRIB_HAS_MODRM) {
        form->flags |= HW_FORM_MODRM;
        body += 1 + (sib ? 1 : 0);
    }
    const ZydisDecodedOperand *memory = NULL;
    for (unsigned i = 0; i < instruction.operand_count; i++) {
        const ZydisDecodedOperand *operand = &operands[i];
        if (is_hidden_stack(operand)) {
            if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
                form->stack |= HW_FORM_STACK_READ;
            if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
                form->stack |= HW_FORM_STACK_WRITE;
        } else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
                   operand->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
                   operand->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM && (tail[0] & 0xc0) == 0 && !memory) {
            memory = operand;
        }
    }
    if (memory)
        describe_memory(form, &instruction, memory);
    form->immediate = (uint8_t)(instruction.length > body ? instruction.length - body : 0);
    /* Compressed displacements of EVEX: what one of 1 means. */
    if (memory && instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
        unsigned char near_tail[7] = {(unsigned char)(0x40 | tail[0]), 1};
        if (sib) {
            near_tail[1] = tail[1];
            near_tail[2] = 1;
        }
        if (decode(encoding, near_tail, &instruction, nearer))
            for (unsigned i = 0; i < instruction.operand_count; i++)
                if (nearer[i].type == ZYDIS_OPERAND_TYPE_MEMORY && nearer[i].mem.disp.value > 0)
                    form->scale = (uint8_t)log2_of((unsigned)nearer[i].mem.disp.value);
    }
    return true;
}

static uint16_t form_index(const struct hw_form *form)
{
    for (unsigned i = 1; i < form_count; i++)
        if (memcmp(&forms[i], form, sizeof *form) == 0)
            return (uint16_t)i;
    if (form_count == FORMS_MOST)
        exit(1);
    forms[form_count] = *form;
    return (uint16_t)form_count++;
}

static uint16_t row_index(const uint16_t row[8])
{
    for (unsigned i = 0; i < row_count; i++)
        if (memcmp(rows[i], row, sizeof rows[i]) == 0)
            return (uint16_t)i;
    if (row_count == ROWS_MOST)
        exit(1);
    memcpy(rows[row_count], row, sizeof rows[row_count]);
    return (uint16_t)row_count++;
}

static void add_page(unsigned number, const uint16_t page[256])
{
    for (unsigned i = 0; i < page_count; i++)
        if (memcmp(pages[i], page, sizeof pages[i]) == 0) {
            page_index[number] = (uint16_t)i;
            return;
        }
    memcpy(pages[page_count], page, sizeof pages[page_count]);
    page_index[number] = (uint16_t)page_count++;
}

static bool is_prefix(unsigned map, unsigned opcode)
{
    static const unsigned char prefixes[] = {0x0f, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66,
                                             0x67, 0xf0, 0xf2, 0xf3, 0xc4, 0xc5, 0x62};
    if (map == 1)
        return opcode == 0x38 || opcode == 0x3a;
    return map == 0 && (memchr(prefixes, (int)opcode, sizeof prefixes) || (opcode & 0xf0) == 0x40);
}

static void legacy_pages(void)
{
    for (unsigned map = 0; map < 4; map++)
        for (unsigned size = 0; size < 2; size++)
            for (unsigned repeat = 0; repeat < 3; repeat++)
                for (unsigned wide = 0; wide < 2; wide++) {
                    uint16_t page[256];
                    for (unsigned opcode = 0; opcode < 256; opcode++) {
                        struct encoding e = {{0}, 0};
                        uint16_t row[8] = {0};
                        if (size)
                            e.bytes[e.length++] = 0x66;
                        if (repeat)
                            e.bytes[e.length++] = repeat == 1 ? 0xf3 : 0xf2;
                        e.bytes[e.length++] = wide ? 0x48 : 0x40;
                        if (map)
                            e.bytes[e.length++] = 0x0f;
                        if (map >= 2)
                            e.bytes[e.length++] = map == 2 ? 0x38 : 0x3a;
                        e.bytes[e.length++] = (unsigned char)opcode;
                        for (unsigned reg = 0; reg < 8 && !is_prefix(map, opcode); reg++) {
                            struct hw_form form;
                            if (describe(&e, reg, &form))
                                row[reg] = form_index(&form);
                        }
                        page[opcode] = row_index(row);
                    }
                    add_page(hw_form_page_legacy(map, size, repeat, wide), page);
                }
}

/* Tries what the operands in vvvv (and the mask) can be: not every instruction has them. */
static bool describe_vector(struct encoding *e, unsigned vvvv_byte, unsigned mask_byte, unsigned reg,
                            struct hw_form *form)
{
    static const unsigned char vvvv[] = {0xf, 0xa};
    for (unsigned mask = 0; mask < (mask_byte ? 2u : 1u); mask++)
        for (unsigned i = 0; i < 2; i++) {
            e->bytes[vvvv_byte] = (unsigned char)((e->bytes[vvvv_byte] & ~0x78) | vvvv[i] << 3);
            if (mask_byte)
                e->bytes[mask_byte] = (unsigned char)((e->bytes[mask_byte] & ~7) | mask);
            if (describe(e, reg, form))
                return true;
        }
    return false;
}

static void vex_pages(void)
{
    for (unsigned map = 1; map < 4; map++)
        for (unsigned pp = 0; pp < 4; pp++)
            for (unsigned wide = 0; wide < 2; wide++)
                for (unsigned length = 0; length < 2; length++) {
                    uint16_t page[256];
                    for (unsigned opcode = 0; opcode < 256; opcode++) {
                        uint16_t row[8] = {0};
                        for (unsigned reg = 0; reg < 8; reg++) {
                            struct encoding e = {{0xc4, (unsigned char)(0xe0 | map),
                                                  (unsigned char)(wide << 7 | 0x78 | length << 2 | pp),
                                                  (unsigned char)opcode},
                                                 4};
                            struct hw_form form;
                            if (describe_vector(&e, 2, 0, reg, &form))
                                row[reg] = form_index(&form);
                        }
                        page[opcode] = row_index(row);
                    }
                    add_page(hw_form_page_vex(map, pp, wide, length), page);
                }
}

static void evex_pages(void)
{
    static const unsigned char maps[] = {1, 2, 3, 5, 6};
    for (unsigned m = 0; m < sizeof maps; m++)
        for (unsigned pp = 0; pp < 4; pp++)
            for (unsigned wide = 0; wide < 2; wide++)
                for (unsigned length = 0; length < 3; length++)
                    for (unsigned broadcast = 0; broadcast < 2; broadcast++) {
                        uint16_t page[256];
                        for (unsigned opcode = 0; opcode < 256; opcode++) {
                            uint16_t row[8] = {0};
                            for (unsigned reg = 0; reg < 8; reg++) {
                                struct encoding e = {
                                    {0x62, (unsigned char)(0xf0 | maps[m]), (unsigned char)(wide << 7 | 0x7c | pp),
                                     (unsigned char)(length << 5 | broadcast << 4 | 0x08), (unsigned char)opcode},
                                    5};
                                struct hw_form form;
                                if (describe_vector(&e, 2, 3, reg, &form))
                                    row[reg] = form_index(&form);
                            }
                            page[opcode] = row_index(row);
                        }
                        add_page(hw_form_page_evex(maps[m], pp, wide, length, broadcast), page);
                    }
}

static void write_tables(FILE *out)
{
    fputs("/* Written by make_forms.c. */\n", out);
    fprintf(out, "static const struct hw_form forms[%u] = {\n", form_count);
    for (unsigned i = 0; i < form_count; i++)
        fprintf(out, "{%u,%u,%u,%u,%u,%u,%u},\n", forms[i].flags, forms[i].stack, forms[i].size, forms[i].immediate,
                forms[i].element, forms[i].index, forms[i].scale);
    fprintf(out, "};\nstatic const uint16_t form_rows[%u][8] = {\n", row_count);
    for (unsigned i = 0; i < row_count; i++) {
        fputc('{', out);
        for (unsigned k = 0; k < 8; k++)
            fprintf(out, "%u,", rows[i][k]);
        fputs("},\n", out);
    }
    fprintf(out, "};\nstatic const uint16_t form_pages[%u][256] = {\n", page_count);
    for (unsigned i = 0; i < page_count; i++) {
        fputc('{', out);
        for (unsigned k = 0; k < 256; k++)
            fprintf(out, "%u,", pages[i][k]);
        fputs("},\n", out);
    }
    fprintf(out, "};\nstatic const uint16_t form_page_index[%u] = {\n", HW_FORM_PAGES);
    for (unsigned i = 0; i < HW_FORM_PAGES; i++)
        fprintf(out, "%u,%s", page_index[i], i % 16 == 15 ? "\n" : "");
    fputs("};\n", out);
}

int main(int argc, char **argv)
{
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        fprintf(stderr, "usage: make_forms OUTPUT\n");
        return 2;
    }
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    legacy_pages();
    vex_pages();
    evex_pages();
    write_tables(out);
    return fclose(out) == 0 ? 0 : 1;
}
