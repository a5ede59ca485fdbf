/* export_pprof.c - profile.proto (github.com/google/pprof/proto), gzip'd: what `pprof` and its many readers take.
 *
 * Every measure that is known is a sample type. Locations carry their inline chains, mappings their build ids, so that
 * nothing needs to be looked up again. Sampled runs are written with scaled values; `period` says how they were
 * sampled. Addresses are those in memory of the first place where a module was mapped. */
#include "report/export/export.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "report/view/intern.h"
#include "base/index.h"
#include "report/export/protobuf.h"

void hw_protobuf_varint(struct hw_buffer *out, uint64_t value)
{
    char bytes[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (char)(value | 0x80);
    bytes[size++] = (char)value;
    hw_buffer_bytes(out, bytes, size);
}

/* Field numbers. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_MAPPING,
    PROFILE_LOCATION,
    PROFILE_FUNCTION,
    PROFILE_STRING,
    PROFILE_TIME = 9,
    PROFILE_DURATION,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_COMMENT,
    PROFILE_DEFAULT_TYPE,
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT };
enum {
    MAPPING_ID = 1,
    MAPPING_START,
    MAPPING_LIMIT,
    MAPPING_OFFSET,
    MAPPING_FILE,
    MAPPING_BUILD_ID,
    MAPPING_FUNCTIONS,
    MAPPING_FILES,
    MAPPING_LINES,
    MAPPING_INLINED,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE, LINE_COLUMN };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_START };

struct encoder {
    const struct hw_view *view;
    struct hw_buffer out; /* the profile but its strings */
    struct hw_intern strings;
    struct hw_buffer message; /* being made */
    struct hw_buffer part;    /* of it */
    struct hw_buffer text;    /* a name, cleaned */
    struct hw_index functions;
    uint32_t function_count;
    bool failed;
};

/* ---- strings ---- */

/* The number of a string of valid UTF-8. */
static uint32_t string(struct encoder *encoder, const char *text)
{
    return hw_intern(&encoder->strings, text);
}

/* The same of any text; NULL is "". */
static uint32_t foreign(struct encoder *encoder, const char *text)
{
    hw_buffer_clear(&encoder->text);
    hw_buffer_clean(&encoder->text, text ? text : "", HW_CLEAN_UTF8);
    return string(encoder, hw_buffer_text(&encoder->text));
}

/* ---- what is measured ---- */

static void value_type(struct encoder *encoder, unsigned field, const char *type, const char *unit)
{
    hw_protobuf_count(&encoder->message, TYPE_TYPE, string(encoder, type));
    hw_protobuf_count(&encoder->message, TYPE_UNIT, string(encoder, unit));
    hw_protobuf_message(&encoder->out, field, &encoder->message);
}

static void sample_types(struct encoder *encoder)
{
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++)
        if (!hw_measure_unknown(encoder->view, id))
            value_type(encoder, PROFILE_SAMPLE_TYPE, hw_measures[id].name, hw_measure_unit_name(hw_measures[id].unit));
}

/* ---- modules ---- */

static void mapping(struct encoder *encoder, size_t index)
{
    const struct hw_view_module *module = &encoder->view->modules[index];
    const struct hw_map_entry *map =
        module->map < encoder->view->profile->map_count ? &encoder->view->profile->maps[module->map] : NULL;
    struct hw_buffer *message = &encoder->message;
    char hex[2 * sizeof map->build_id + 1] = "";
    for (uint32_t i = 0; i < module->build_id_size; i++)
        for (int k = 0; k < 2; k++)
            hex[2 * i + k] = "0123456789abcdef"[module->build_id[i] >> (k ? 0 : 4) & 15];
    hw_protobuf_count(message, MAPPING_ID, index + 1);
    hw_protobuf_count(message, MAPPING_START, map ? map->start : 0);
    hw_protobuf_count(message, MAPPING_LIMIT, map ? map->end : 0);
    hw_protobuf_count(message, MAPPING_OFFSET, map ? map->offset : 0);
    hw_protobuf_count(message, MAPPING_FILE,
                      foreign(encoder, module->path && *module->path ? module->path : "[generated code]"));
    hw_protobuf_count(message, MAPPING_BUILD_ID, string(encoder, hex));
    hw_protobuf_count(message, MAPPING_FUNCTIONS, true); /* what can be known was looked for: nothing is to be added */
    hw_protobuf_count(message, MAPPING_FILES, module->has_debug_info);
    hw_protobuf_count(message, MAPPING_LINES, module->has_debug_info);
    hw_protobuf_count(message, MAPPING_INLINED, module->has_debug_info);
    hw_protobuf_message(&encoder->out, PROFILE_MAPPING, message);
}

/* The program comes first: it is the profile's main binary. */
static void mappings(struct encoder *encoder, const bool *used)
{
    const struct hw_view *view = encoder->view;
    bool *needed = calloc(view->module_count + 1, sizeof *needed);
    if (!needed) {
        encoder->failed = true;
        return;
    }
    for (size_t i = 0; i < view->location_count; i++)
        if (used[i] && view->locations[i].module != HW_NONE)
            needed[view->locations[i].module] = true;
    for (int program = 1; program >= 0; program--)
        for (size_t i = 0; i < view->module_count; i++) {
            const bool main = view->modules[i].flags & HW_MAP_MAIN;
            if (main == program && (main || needed[i]))
                mapping(encoder, i);
        }
    free(needed);
}

/* ---- functions and locations ---- */

/* A function of a frame, written when it is met first. Symbols are interned, so pointers are compared; code without a
 * name is a function at each address. */
static uint32_t function(struct encoder *encoder, uint32_t location, uint32_t index)
{
    const struct hw_frame *symbol = &encoder->view->locations[location].frames.frame[index];
    const uint64_t name = symbol->linkage_name ? (uintptr_t)symbol->linkage_name
                          : symbol->function   ? (uintptr_t)symbol->function
                                               : (uint64_t)1 << 63 | location;
    hw_buffer_clear(&encoder->text);
    hw_export_function(&encoder->text, encoder->view, &encoder->view->locations[location], index, HW_CLEAN_UTF8);
    const uint32_t readable = string(encoder, hw_buffer_text(&encoder->text));
    const uint32_t file = foreign(encoder, symbol->file);
    bool new;
    const uint32_t id =
        hw_index_intern(&encoder->functions, (struct hw_key){name, file}, encoder->function_count + 1, &new);
    if (!new)
        return id;
    encoder->function_count++;
    struct hw_buffer message = {0};
    hw_protobuf_count(&message, FUNCTION_ID, id);
    hw_protobuf_count(&message, FUNCTION_NAME, readable);
    hw_protobuf_count(&message, FUNCTION_SYSTEM_NAME,
                      symbol->linkage_name ? foreign(encoder, symbol->linkage_name) : readable);
    hw_protobuf_count(&message, FUNCTION_FILE, file);
    hw_protobuf_count(&message, FUNCTION_START, symbol->start_line);
    hw_protobuf_message(&encoder->out, PROFILE_FUNCTION, &message);
    hw_buffer_free(&message);
    return id;
}

static void location(struct encoder *encoder, uint32_t index)
{
    const struct hw_view *view = encoder->view;
    const struct hw_view_location *of = &view->locations[index];
    const bool address = !hw_view_llvm_frame(view, of), mapped = of->module != HW_NONE;
    const uint64_t bias =
        mapped && !(view->modules[of->module].flags & HW_MAP_ANONYMOUS) ? view->modules[of->module].bias : 0;
    hw_protobuf_count(&encoder->message, LOCATION_ID, (uint64_t)index + 1);
    hw_protobuf_count(&encoder->message, LOCATION_MAPPING, mapped ? (uint64_t)of->module + 1 : 0);
    hw_protobuf_count(&encoder->message, LOCATION_ADDRESS, address ? of->address + bias : 0);
    for (uint32_t i = 0; i < of->frames.count; i++) {
        hw_protobuf_count(&encoder->part, LINE_FUNCTION, function(encoder, index, i));
        hw_protobuf_count(&encoder->part, LINE_LINE, of->frames.frame[i].line);
        hw_protobuf_count(&encoder->part, LINE_COLUMN, of->frames.frame[i].column);
        hw_protobuf_message(&encoder->message, LOCATION_LINE, &encoder->part);
    }
    hw_protobuf_message(&encoder->out, PROFILE_LOCATION, &encoder->message);
}

/* A place for stacks that are not known: without it they would be hung below nothing, which readers leave out. */
static uint64_t unknown_location(struct encoder *encoder)
{
    const uint64_t id = encoder->view->location_count + 1;
    const uint32_t function = ++encoder->function_count;
    hw_protobuf_count(&encoder->message, FUNCTION_ID, function);
    hw_protobuf_count(&encoder->message, FUNCTION_NAME, string(encoder, "[stack not known]"));
    hw_protobuf_message(&encoder->out, PROFILE_FUNCTION, &encoder->message);
    hw_protobuf_count(&encoder->part, LINE_FUNCTION, function);
    hw_protobuf_count(&encoder->message, LOCATION_ID, id);
    hw_protobuf_message(&encoder->message, LOCATION_LINE, &encoder->part);
    hw_protobuf_message(&encoder->out, PROFILE_LOCATION, &encoder->message);
    return id;
}

/* ---- samples ---- */

/* The type of the blocks, and their size where all have the same. */
static void labels(struct encoder *encoder, const struct hw_profile_context *sum)
{
    const char *type = hw_view_type(encoder->view, sum);
    if (type) {
        hw_protobuf_count(&encoder->part, LABEL_KEY, string(encoder, "type"));
        hw_protobuf_count(&encoder->part, LABEL_TEXT, foreign(encoder, type));
        hw_protobuf_message(&encoder->message, SAMPLE_LABEL, &encoder->part);
    }
    if (sum->size_min == sum->size_max && sum->size_max && hw_view_measured(encoder->view, HW_MEASURED_SIZE_RANGE)) {
        hw_protobuf_count(&encoder->part, LABEL_KEY, string(encoder, "bytes"));
        hw_protobuf_count(&encoder->part, LABEL_NUMBER, sum->size_max);
        hw_protobuf_count(&encoder->part, LABEL_UNIT, string(encoder, "bytes"));
        hw_protobuf_message(&encoder->message, SAMPLE_LABEL, &encoder->part);
    }
}

static void sample(struct encoder *encoder, const struct hw_view_context *context, uint64_t unknown)
{
    const struct hw_view *view = encoder->view;
    for (uint32_t node = context->sum.leaf; node; node = view->nodes[node].parent)
        hw_protobuf_varint(&encoder->part, (uint64_t)view->nodes[node].location + 1);
    if (!context->sum.leaf)
        hw_protobuf_varint(&encoder->part, unknown);
    hw_protobuf_message(&encoder->message, SAMPLE_LOCATION, &encoder->part);
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++) {
        if (hw_measure_unknown(view, id))
            continue;
        const uint64_t value = hw_measure_value(view, id, context);
        hw_protobuf_varint(&encoder->part, value < INT64_MAX ? value : INT64_MAX);
    }
    hw_protobuf_message(&encoder->message, SAMPLE_VALUE, &encoder->part);
    labels(encoder, &context->sum);
    hw_protobuf_message(&encoder->out, PROFILE_SAMPLE, &encoder->message);
}

/* ---- the rest ---- */

static void comments(struct encoder *encoder, const struct hw_export_options *options)
{
    struct hw_buffer text = {0};
    hw_buffer_add(&text, "heapwise %s\n", options->version);
    hw_buffer_add(&text, "Command: ");
    hw_export_command(&text, encoder->view, HW_CLEAN_UTF8);
    hw_buffer_add(&text, "\n");
    hw_export_notes(&text, encoder->view);
    encoder->failed |= text.failed;
    for (char *line = text.data, *end; !text.failed && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        hw_protobuf_varint(&encoder->out, PROFILE_COMMENT << 3);
        hw_protobuf_varint(&encoder->out, string(encoder, line));
    }
    hw_buffer_free(&text);
}

static void encode(struct encoder *encoder, const struct hw_export_options *options, const bool *used)
{
    const struct hw_view *view = encoder->view;
    const struct hw_profile *profile = view->profile;
    sample_types(encoder);
    mappings(encoder, used);
    for (size_t i = 0; i < view->location_count; i++)
        if (used[i])
            location(encoder, (uint32_t)i);
    const uint64_t unknown = unknown_location(encoder);
    for (size_t i = 0; i < view->context_count; i++)
        sample(encoder, &view->contexts[i], unknown);
    hw_protobuf_count(&encoder->out, PROFILE_TIME, profile->process.start_realtime_ns);
    hw_protobuf_count(&encoder->out, PROFILE_DURATION, profile->duration_ns);
    if (profile->process.sample_bytes) {
        value_type(encoder, PROFILE_PERIOD_TYPE, "space", "bytes");
        hw_protobuf_count(&encoder->out, PROFILE_PERIOD, profile->process.sample_bytes);
    }
    comments(encoder, options);
    hw_protobuf_count(&encoder->out, PROFILE_DEFAULT_TYPE,
                      string(encoder, hw_measures[hw_export_value(view, options)].name));
}

/* ---- gzip ---- */

#define GZIP (15 + 16)

/* IN as a gzip member, without a time: the same profile is the same file. */
static bool compress_bytes(const struct hw_buffer *in, struct hw_buffer *out)
{
    z_stream stream = {0};
    unsigned char block[64 * 1024];
    int state = Z_OK;
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    for (size_t done = 0; state != Z_STREAM_END && state >= 0;) {
        const size_t rest = in->used - done;
        stream.next_in = (unsigned char *)(uintptr_t)hw_buffer_text(in) + done;
        stream.avail_in = rest < 1u << 30 ? (uInt)rest : 1u << 30;
        done += stream.avail_in;
        do {
            stream.next_out = block;
            stream.avail_out = sizeof block;
            state = deflate(&stream, done == in->used ? Z_FINISH : Z_NO_FLUSH);
            hw_buffer_bytes(out, (char *)block, sizeof block - stream.avail_out);
        } while (stream.avail_out == 0 && state != Z_STREAM_END);
    }
    deflateEnd(&stream);
    return state == Z_STREAM_END;
}

bool hw_export_pprof(const struct hw_view *view, const struct hw_export_options *options, struct hw_buffer *out,
                     struct hw_error *error)
{
    struct encoder encoder = {.view = view};
    bool *used = hw_export_used(view);
    size_t frames = 0;
    for (size_t i = 0; i < view->location_count; i++)
        frames += view->locations[i].frames.count;
    bool fine = used && hw_index_make(&encoder.functions, frames + 1);
    if (fine) {
        encode(&encoder, options, used);
        for (uint32_t i = 0; !encoder.strings.failed && i <= encoder.strings.count; i++) {
            const char *each = hw_interned(&encoder.strings, i);
            hw_protobuf_bytes(&encoder.out, PROFILE_STRING, each, strlen(each));
        }
        fine = !encoder.failed && !encoder.out.failed && !encoder.strings.failed && !encoder.text.failed &&
               compress_bytes(&encoder.out, out) && !out->failed;
        hw_index_free(&encoder.functions);
    }
    free(used);
    hw_buffer_free(&encoder.out);
    hw_intern_free(&encoder.strings);
    hw_buffer_free(&encoder.message);
    hw_buffer_free(&encoder.part);
    hw_buffer_free(&encoder.text);
    return hw_export_done(view, fine, error);
}
