/* order.ts - sorting as many numbers as a profile has places: by radix, since a comparing function called millions of times
 * is what a click would wait for. */

const digits = 1 << 16;

/* The latest one of VALUES: the same again when a view is shown again. */
const latest = new WeakMap<Float64Array, { count: Float64Array; up: boolean; order: Uint32Array }>();

/* Indices of VALUES that have any of COUNT: greatest value first, or least (UP); equal ones as they are. Neither VALUES
 * nor COUNT may change afterwards, nor may the result. */
export function ordered(values: Float64Array, count: Float64Array, up: boolean): Uint32Array {
    let known = latest.get(values);
    if (known?.count !== count || known.up !== up)
        latest.set(values, (known = { count, up, order: sorted(values, count, up) }));
    return known.order;
}

function sorted(values: Float64Array, count: Float64Array, up: boolean): Uint32Array {
    const wanted = new Uint32Array(count.length);
    let length = 0;
    for (let i = 0; i < count.length; i++)
        if (count[i])
            wanted[length++] = i;
    /* Bits of a number in the order of numbers: those below 0 turned around, the sign of the others set. */
    const low = new Uint32Array(length);
    const high = new Uint32Array(length);
    const number = new Float64Array(1);
    const bits = new Uint32Array(number.buffer); // x86 and ARM: the low half first
    for (let i = 0; i < length; i++) {
        number[0] = values[wanted[i]!]! + 0; // no -0
        const turned = (bits[1]! & 0x80000000 ? 0xffffffff : 0) ^ (up ? 0 : 0xffffffff);
        low[i] = bits[0]! ^ turned;
        high[i] = (bits[1]! ^ turned ^ (bits[1]! & 0x80000000 ? 0 : 0x80000000)) >>> 0;
    }
    let order = new Uint32Array(length);
    for (let i = 0; i < length; i++)
        order[i] = i;
    let next = new Uint32Array(length);
    const at = new Uint32Array(digits);
    for (const [half, shift] of [[low, 0], [low, 16], [high, 0], [high, 16]] as const) {
        at.fill(0);
        for (let i = 0; i < length; i++)
            at[(half[i]! >>> shift) & (digits - 1)]!++;
        if (length && at[(half[0]! >>> shift) & (digits - 1)] === length)
            continue; // all the same
        for (let digit = 0, sum = 0; digit < digits; digit++) {
            const size = at[digit]!;
            at[digit] = sum;
            sum += size;
        }
        for (let i = 0; i < length; i++) {
            const each = order[i]!;
            next[at[(half[each]! >>> shift) & (digits - 1)]!++] = each;
        }
        [order, next] = [next, order];
    }
    for (let i = 0; i < length; i++)
        order[i] = wanted[order[i]!]!;
    return order;
}
