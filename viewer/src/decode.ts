/* decode.ts - the streams of profiles in the page: base64, zlib, named parts (src/report/page/page_data.h). */

export type Column = Float64Array;

/* Columns by name; undefined: this kind of profile has none of it. */
export interface Columns {
    get(name: string): Column | undefined;
    has(name: string): boolean;
}

export interface Parts {
    texts: Map<string, string>;
    columns: Stored;
    strings: string[];
}

const enum Kind {
    Text,
    Strings,
    Numbers,
    Signed,
    Steps,
}

/* Control characters, and those that change the direction of text: names come from the profiled program, and nothing
 * of it may pretend to be something else. */
const hostile = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/* Makes what cannot be seen visible. */
export function visible(text: string): string {
    return text.replace(hostile, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
    const decoder = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
    if (decoder.fromBase64)
        return decoder.fromBase64(text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++)
        bytes[i] = binary.charCodeAt(i);
    return bytes;
}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
    const inflater = new DecompressionStream('deflate');
    const writer = inflater.writable.getWriter();
    void writer.write(bytes).catch(() => {}); // the reader gets the error, too
    void writer.close().catch(() => {});
    return new Uint8Array(await new Response(inflater.readable).arrayBuffer());
}

class Reader {
    at = 0;
    constructor(readonly bytes: Uint8Array) {}

    number(): number {
        let value = 0;
        let scale = 1;
        for (;;) {
            const byte = this.bytes[this.at++];
            if (byte === undefined)
                throw new Error('the profile in this page is cut short');
            value += (byte & 127) * scale;
            if (byte < 128)
                return value;
            scale *= 128;
        }
    }

    take(size: number): Uint8Array {
        if (size > this.bytes.length - this.at)
            throw new Error('the profile in this page is cut short');
        this.at += size;
        return this.bytes.subarray(this.at - size, this.at);
    }
}

/* Numbers above 2^53 lose their last digits: nobody reads those. */
function numbers(bytes: Uint8Array, kind: Kind): Column {
    let count = 0;
    for (let i = 0; i < bytes.length; i++)
        count += (bytes[i]! >> 7) ^ 1;
    const column = new Float64Array(count);
    let at = 0;
    let last = 0;
    for (let i = 0; i < count; i++) {
        let byte = bytes[at++]!;
        let value = byte;
        if (byte >= 128) { // most numbers have at most four bytes
            value &= 127;
            for (let shift = 7; byte >= 128 && shift < 28; shift += 7) {
                byte = bytes[at++]!;
                value |= (byte & 127) << shift;
            }
            for (let scale = 2 ** 28; byte >= 128; scale *= 128) {
                byte = bytes[at++]!;
                value += (byte & 127) * scale;
            }
        }
        if (kind !== Kind.Numbers)
            value = value < 2 ** 31 ? (value >>> 1) ^ -(value & 1) : value % 2 ? -(value + 1) / 2 : value / 2;
        column[i] = kind === Kind.Steps ? (last += value) : value;
    }
    return column;
}

/* Columns as they are stored: made into numbers when they are asked for. */
export class Stored implements Columns {
    private readonly stored = new Map<string, { bytes: Uint8Array; kind: Kind }>();
    private readonly made = new Map<string, Column>();
    toCome: Set<string> | null = null; // not all is read yet: columns of contexts that are to come, as any other ones may be

    put(name: string, bytes: Uint8Array, kind: Kind): void {
        this.stored.set(name, { bytes, kind });
    }

    /* Whether NAME may be in what is not read yet. */
    awaits(name: string): boolean {
        return this.toCome !== null && !this.made.has(name) && !this.stored.has(name) && (this.toCome.has(name) || !name.startsWith('context.'));
    }

    has(name: string): boolean {
        return this.made.has(name) || this.stored.has(name) || (this.toCome?.has(name) ?? false);
    }

    get(name: string): Column | undefined {
        const known = this.made.get(name);
        if (known)
            return known;
        const found = this.stored.get(name);
        if (!found) {
            if (this.awaits(name))
                throw new Error(`${name} is not read yet`);
            return undefined;
        }
        const column = numbers(found.bytes, found.kind);
        this.stored.delete(name);
        this.made.set(name, column);
        return column;
    }
}

/* The parts of a stream; those of another one of the same profile as well. */
export async function decode(base64: string, parts: Parts = { texts: new Map(), columns: new Stored(), strings: [] }): Promise<Parts> {
    const reader = new Reader(await inflate(fromBase64(base64)));
    const text = new TextDecoder();
    while (reader.at < reader.bytes.length) {
        const name = text.decode(reader.take(reader.number()));
        const kind = reader.take(1)[0] as Kind;
        const bytes = reader.take(reader.number());
        if (kind === Kind.Text)
            parts.texts.set(name, text.decode(bytes));
        else if (kind === Kind.Strings)
            parts.strings = parts.strings.concat(text.decode(bytes).split('\0').slice(0, -1).map(visible));
        else if (kind <= Kind.Steps)
            parts.columns.put(name, bytes, kind);
    }
    return parts;
}
