/* protobuf.h - fields of protocol buffers, as far as export_pprof.c writes them
 * (protobuf.dev/programming-guides/encoding).
 *
 * Fields are appended to a buffer; a field that is 0 is left out, as proto3 does. */
#ifndef HW_REPORT_EXPORT_PROTOBUF_H
#define HW_REPORT_EXPORT_PROTOBUF_H

#include <stdint.h>

#include "report/buffer.h"

void hw_protobuf_varint(struct hw_buffer *out, uint64_t value);

static inline void hw_protobuf_count(struct hw_buffer *out, unsigned field, uint64_t value)
{
    if (!value)
        return;
    hw_protobuf_varint(out, field << 3);
    hw_protobuf_varint(out, value);
}

/* A string, bytes, a message that is encoded already, or packed numbers. */
static inline void hw_protobuf_bytes(struct hw_buffer *out, unsigned field, const char *data, size_t size)
{
    hw_protobuf_varint(out, field << 3 | 2);
    hw_protobuf_varint(out, size);
    hw_buffer_bytes(out, data, size);
}

/* MESSAGE, which is cleared for the next one. */
static inline void hw_protobuf_message(struct hw_buffer *out, unsigned field, struct hw_buffer *message)
{
    hw_protobuf_bytes(out, field, hw_buffer_text(message), message->used);
    out->failed |= message->failed;
    hw_buffer_clear(message);
}

#endif
