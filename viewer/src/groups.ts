/* groups.ts - contexts put together for tables: each by itself, by place, type and size, or by what stands on their
 * stacks. A group has the sum of its contexts; ratios are those of sums. */
import type { Column } from './decode';
import * as format from './format';
import { cum, framesBy, places, type FrameKey, type Frames } from './functions';
import type { Measure } from './measures';
import { foldedOf } from './stacks';
import { placeOf, titleOf } from './threads';
import type { Profile } from './model';

export const groupings = [
    ['place', 'place', 'a call stack; those that differ only in recursion are one place'],
    ['stack', 'call stack', 'every call stack by itself'],
    ['function', 'function', 'self: allocated by the function itself; cum: with all that it calls'],
    ['file', 'source file', 'self: allocated by code of the file itself; cum: with all that it calls'],
    ['line', 'source line', 'self: allocated by the line itself; cum: with all that it calls'],
    ['module', 'module', 'self: allocated by code of the program or library itself; cum: with all that it calls'],
    ['type', 'type', 'what the blocks hold'],
    ['size', 'size class', 'by the mean size of a block'],
    ['thread', 'thread', 'the thread that allocated'],
] as const;

export type GroupKey = (typeof groupings)[number][0];

export const words: Record<GroupKey, string> = {
    place: 'place', stack: 'call stack', function: 'function', file: 'source file', line: 'source line', module: 'module', type: 'type', size: 'size class', thread: 'thread',
};

export interface Groups {
    key: GroupKey;
    count: number;
    of: Int32Array | null; // by context: its group; null: each is its own
    title: (group: number) => string;
    where: (group: number) => string;
    frames: Frames | null; // of what is on stacks: groups have cum, too
    rows: ThreadRows | null; // by thread: what a context has of each group
    first: (group: number) => number; // a context that stands for it
    contexts: (group: number) => number[]; // with the frame itself; of groups without frames all
}

const leastClass = 4; // up to 16 bytes, as in the terminal
const classOf = (size: number) => (size > 0 ? Math.max(leastClass, Math.ceil(Math.log2(size))) : 0);

function sizeClass(power: number): string {
    return power ? `${power > leastClass ? format.bytes(2 ** (power - 1) + 1) : '1 B'} to ${format.bytes(2 ** power)}` : '(no size)';
}

/* Numbers from 0 on for values, whole ones, in the order in which they come. */
function renumber(values: Int32Array | Float64Array): { of: Int32Array; first: number[] } {
    let most = 0;
    for (let context = 0; context < values.length; context++)
        most = Math.max(most, values[context]!);
    const numbers = new Int32Array(most + 1); // from 1 on; 0: none yet
    const first: number[] = [];
    const of = new Int32Array(values.length);
    for (let context = 0; context < values.length; context++)
        of[context] = (numbers[values[context]!] ||= first.push(context)) - 1;
    return { of, first };
}

/* ---- by thread: a context is in several groups ---- */

export interface ThreadRows {
    context: Column; // ascending
    of: Int32Array; // the group
    others: Column; // other threads freed blocks of the context: what is live is not known
    columns: Map<string, Column>; // by key of a measure
    own: (key: string, group: number) => number | null; // the thread's own number, of all its blocks; null: not known
}

const threadKeys: Record<string, string> = { peak: 'peak_bytes', bytes: 'bytes', count: 'allocations', leaked: 'live_bytes', frees: 'frees' };

/* Whether KEY is a number that is kept by place and thread. */
export function keptByThread(key: string): boolean {
    return key in threadKeys;
}

/* Whether places are known by thread, of the whole run. */
export function hasThreads(profile: Profile): boolean {
    return profile.unknown === null && profile.table('by_thread.context') !== null && profile.report.threads != null;
}

function byThread(profile: Profile): Groups {
    const threads = profile.report.threads ?? [];
    const context = profile.table('by_thread.context')!;
    const rows: ThreadRows = { context, of: new Int32Array(0), others: profile.table('by_thread.others')!, columns: new Map(Object.entries(threadKeys).map(([key, name]) => [key, profile.table(`by_thread.${name}`)!])), own: () => null };
    const { of, first } = renumber(profile.table('by_thread.thread')!);
    rows.of = of;
    const several = new Uint8Array(first.length);
    profile.table('by_thread.several')!.forEach((each, row) => (several[of[row]!]! |= each));
    const main = threads.find((each) => each.kind === 'main')?.name ?? undefined;
    const thread = (group: number) => threads[profile.table('by_thread.thread')![first[group]!]!];
    rows.own = (key, group) => {
        const known = thread(group);
        const counts = known?.sampled ?? known;
        const own = key === 'peak' ? counts?.peak_bytes : key === 'leaked' ? counts?.live_bytes : null;
        return several[group] || profile.leftOut.length ? null : own ?? null;
    };
    const contexts = lister(of, first.length);
    return {
        key: 'thread', count: first.length, of: null, frames: null, rows,
        title: (group) => `${thread(group) ? titleOf(thread(group)!, main) : '(not known)'}${several[group] ? ', and others with its start function' : ''}`,
        where: (group) => (thread(group) ? placeOf(thread(group)!) : ''),
        first: (group) => context[contexts(group)[0]!]!,
        contexts: (group) => contexts(group).map((row) => context[row]!),
    };
}

function sumRows(rows: ThreadRows, count: number, values: Column | null, mask: Uint8Array | null, some: Column | null = null): Float64Array {
    const found = new Float64Array(count);
    for (let row = 0; row < rows.of.length; row++)
        if ((!mask || mask[rows.context[row]!]) && (!some || some[row]))
            found[rows.of[row]!]! += values ? values[row]! : 1;
    return found.map((value) => Math.max(0, value)); // estimates may be below
}

/* How many contexts with a MASK are not known by thread, of groups that are threads. Blocks of pools have none. */
export function withoutRows({ rows }: Groups, mask: Uint8Array | null, pool: Column | null, count: number): number {
    if (!rows)
        return 0;
    const known = new Uint8Array(count);
    for (const context of rows.context)
        known[context] = 1;
    return known.reduce((sum, each, context) => (each || (mask && !mask[context]) || pool?.[context] ? sum : sum + 1), 0);
}

/* The contexts of a group, in their order. */
function lister(of: Int32Array, count: number): (group: number) => number[] {
    let starts: Uint32Array | null = null;
    let all = new Uint32Array(0);
    return (group) => {
        if (!starts) {
            starts = new Uint32Array(count + 1);
            for (const each of of)
                if (each >= 0)
                    starts[each + 1]!++;
            for (let i = 0; i < count; i++)
                starts[i + 1]! += starts[i]!;
            const at = starts.slice();
            all = new Uint32Array(starts[count]!);
            for (let context = 0; context < of.length; context++)
                if (of[context]! >= 0)
                    all[at[of[context]!]!++] = context;
        }
        return Array.from(all.subarray(starts[group], starts[group + 1]));
    };
}

function make(profile: Profile, key: GroupKey): Groups {
    const each: Groups = { key, count: profile.count, of: null, title: (i) => profile.title(i), where: (i) => profile.place(i), frames: null, rows: null, first: (i) => i, contexts: (i) => [i] };
    if (key === 'stack')
        return each;
    if (key === 'thread')
        return byThread(profile);
    if (key === 'function' || key === 'file' || key === 'line' || key === 'module') {
        const frames = framesBy(profile, key satisfies FrameKey);
        const of = new Int32Array(frames.heads.length);
        for (let context = 0; context < of.length; context++)
            of[context] = frames.of[frames.heads[context]!]!;
        const list = lister(of, frames.count);
        return { key, count: frames.count, of, title: frames.title, where: frames.where, frames, rows: null, first: (group) => list(group)[0] ?? 0, contexts: list };
    }
    if (key === 'place') {
        const { of, first } = renumber(foldedOf(profile).place);
        if (first.length === profile.count)
            return each;
        const bytes = profile.column('bytes');
        const largest = Int32Array.from(first);
        for (let context = 0; bytes && context < of.length; context++)
            if (bytes[context]! > bytes[largest[of[context]!]!]!)
                largest[of[context]!] = context;
        const list = lister(of, first.length);
        const ordered = (group: number) => [largest[group]!, ...list(group).filter((context) => context !== largest[group])];
        return { key, count: first.length, of, title: (group) => profile.title(largest[group]!), where: (group) => profile.place(largest[group]!), frames: null, rows: null, first: (group) => largest[group]!, contexts: ordered };
    }
    const values = key === 'type' ? profile.column('type') ?? new Float64Array(profile.count)
        : Float64Array.from({ length: profile.count }, (_, i) => classOf((profile.column('bytes')?.[i] ?? 0) / (profile.column('allocations')?.[i] || 1)));
    const { of, first } = renumber(values);
    const title = (group: number) => (key === 'type' ? profile.type(first[group]!) || '(type not known)' : sizeClass(values[first[group]!]!));
    return { key, count: first.length, of, title, where: () => '', frames: null, rows: null, first: (group) => first[group]!, contexts: lister(of, first.length) };
}

const known = new WeakMap<Profile, Map<GroupKey, Groups>>();

export function groupsBy({ whole: profile }: Profile, key: GroupKey): Groups {
    const all = known.get(profile) ?? new Map<GroupKey, Groups>();
    known.set(profile, all);
    const groups = all.get(key) ?? make(profile, key);
    all.set(key, groups);
    return groups;
}

const withoutPools = new WeakMap<Column, Uint8Array | null>();

/* Pools are parts of other blocks: in no sum. */
function countedOf(profile: Profile, mask: Uint8Array | null): Uint8Array | null {
    const pool = profile.column('pool');
    if (!pool)
        return mask;
    let counted = withoutPools.get(pool);
    if (counted === undefined)
        withoutPools.set(pool, (counted = pool.some((each) => each > 0) ? Uint8Array.from(pool, (each) => (each ? 0 : 1)) : null));
    return counted && mask ? counted.map((each, i) => each & mask[i]!) : counted ?? mask;
}

function sums(groups: Groups, values: Column, mask: Uint8Array | null): Float64Array {
    const found = new Float64Array(groups.count);
    const of = groups.of!;
    for (let context = 0; context < of.length; context++)
        if (of[context]! >= 0 && (!mask || mask[context]))
            found[of[context]!]! += values[context]!;
    return found;
}

function extremes(groups: Groups, values: Column, mask: Uint8Array | null, least: boolean, of: Column | null): Float64Array {
    const found = new Float64Array(groups.count).fill(NaN);
    groups.of!.forEach((group, context) => {
        const value = values[context]!;
        if (group >= 0 && (!mask || mask[context]) && (!of || of[context]) && !(least ? value >= found[group]! : value <= found[group]!))
            found[group] = value;
    });
    return found.map((value) => value || 0);
}

/* Of all contexts, by groups and what was asked for: the same again with every click. */
const asked = new WeakMap<Profile, Map<string, Float64Array>>();

function remember(profile: Profile, groups: Groups, what: string, mask: Uint8Array | null, make: () => Float64Array): Float64Array {
    if (mask)
        return make();
    const all = asked.get(profile) ?? new Map<string, Float64Array>();
    asked.set(profile, all);
    const values = all.get(`${groups.key} ${what}`) ?? make();
    all.set(`${groups.key} ${what}`, values);
    return values;
}

/* MEASURE by group, of contexts with a MASK. With all that is called from there: WHOLE; null where that adds up to
 * nothing. */
export function valuesOf(profile: Profile, groups: Groups, measure: Measure, mask: Uint8Array | null, whole: boolean): Float64Array | null {
    const values = measure.values(profile);
    if (!values)
        return null;
    const { rows } = groups;
    if (rows)
        return remember(profile, groups, measure.key, mask, () => sumRows(rows, groups.count, rows.columns.get(measure.key)!, mask).map((value, group) => Math.max(0, (mask ? null : rows.own(measure.key, group)) ?? value)));
    if (!groups.of)
        return values;
    if (measure.together && whole)
        return null;
    return remember(profile, groups, `${whole ? 'cum:' : ''}${measure.key}`, mask, () => compute(profile, groups, measure, mask, whole));
}

function compute(profile: Profile, groups: Groups, measure: Measure, mask: Uint8Array | null, whole: boolean): Float64Array {
    const values = measure.values(profile)!;
    const counted = groups.key === 'place' ? mask : countedOf(profile, mask);
    if (measure.together)
        return extremes(groups, values, counted, measure.together.least, measure.together.of?.(profile) ?? null);
    const add = (column: Column) => (whole ? cum(groups.frames!, column, counted) : sums(groups, column, counted));
    if (!measure.parts)
        return add(values);
    const [top, bottom] = measure.parts.map((part) => add(part(profile)!)) as [Float64Array, Float64Array];
    return top.map((value, group) => (bottom[group] ? value / bottom[group]! : 0));
}

/* By group: of how many of its contexts MEASURE is not known; null: it is of all. */
export function unknownOf(profile: Profile, groups: Groups, measure: Measure, mask: Uint8Array | null, whole: boolean): Float64Array | null {
    const { unknown } = profile;
    const { rows } = groups;
    if (rows)
        return measure.key === 'peak' || measure.key === 'leaked' ? remember(profile, groups, `others ${measure.key}`, mask, () => sumRows(rows, groups.count, null, mask, rows.others).map((value, group) => (!mask && rows.own(measure.key, group) !== null ? 0 : value))) : null;
    if (!unknown?.some((each) => each > 0))
        return null;
    const ones = Float64Array.from(unknown);
    if (!groups.of)
        return ones;
    return remember(profile, groups, whole ? 'cum unknown' : 'unknown', mask, () => (whole && groups.frames ? cum(groups.frames, ones, mask) : sums(groups, ones, mask)));
}

/* By group: how many contexts of a MASK it has, anywhere on their stacks. */
export function sizes(profile: Profile, groups: Groups, mask: Uint8Array | null): Float64Array {
    return remember(profile, groups, 'contexts', mask, () => groups.rows ? sumRows(groups.rows, groups.count, null, mask) : groups.frames ? places(groups.frames, mask) : groups.of ? sums(groups, new Float64Array(profile.count).fill(1), mask) : Float64Array.from({ length: groups.count }, (_, i) => (!mask || mask[i] ? 1 : 0)));
}
