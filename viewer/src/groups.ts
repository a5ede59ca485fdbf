/* groups.ts - contexts put together for tables: each by itself, by place, type and size, or by what stands on their
 * stacks. A group has the sum of its contexts; ratios are those of sums. */
import type { Column } from './decode';
import * as format from './format';
import { cum, framesBy, places, type FrameKey, type Frames } from './functions';
import type { Measure } from './measures';
import { foldedOf } from './stacks';
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
] as const;

export type GroupKey = (typeof groupings)[number][0];

export const words: Record<GroupKey, string> = {
    place: 'place', stack: 'call stack', function: 'function', file: 'source file', line: 'source line', module: 'module', type: 'type', size: 'size class',
};

export interface Groups {
    key: GroupKey;
    count: number;
    of: Int32Array | null; // by context: its group; null: each is its own
    title: (group: number) => string;
    where: (group: number) => string;
    frames: Frames | null; // of what is on stacks: groups have cum, too
    first: (group: number) => number; // a context that stands for it
    contexts: (group: number) => number[]; // with the frame itself; of groups without frames all
}

const classOf = (size: number) => (size > 0 ? Math.max(3, Math.ceil(Math.log2(size))) : 0);

function sizeClass(power: number): string {
    return power ? `${power > 3 ? format.bytes(2 ** (power - 1) + 1) : '1 B'} to ${format.bytes(2 ** power)}` : '(no size)';
}

/* Numbers from 0 on for values, in the order in which they come. */
function renumber(values: ArrayLike<number>): { of: Int32Array; first: number[] } {
    const numbers = new Map<number, number>();
    const first: number[] = [];
    const of = Int32Array.from(values, (value, context) => {
        let number = numbers.get(value);
        if (number === undefined)
            numbers.set(value, (number = first.push(context) - 1));
        return number;
    });
    return { of, first };
}

function lister(of: Int32Array): (group: number) => number[] {
    let lists: number[][] | null = null;
    return (group) => {
        if (!lists) {
            lists = [];
            of.forEach((each, context) => { if (each >= 0) (lists![each] ??= []).push(context); });
        }
        return lists[group] ?? [];
    };
}

function make(profile: Profile, key: GroupKey): Groups {
    const each: Groups = { key, count: profile.count, of: null, title: (i) => profile.title(i), where: (i) => profile.place(i), frames: null, first: (i) => i, contexts: (i) => [i] };
    if (key === 'stack')
        return each;
    if (key === 'function' || key === 'file' || key === 'line' || key === 'module') {
        const frames = framesBy(profile, key satisfies FrameKey);
        const of = frames.stacks.leaf[0]!.map((leaf) => frames.of[leaf]!);
        const list = lister(of);
        return { key, count: frames.count, of, title: frames.title, where: frames.where, frames, first: (group) => list(group)[0] ?? 0, contexts: list };
    }
    if (key === 'place') {
        const { of, first } = renumber(foldedOf(profile).place);
        if (first.length === profile.count)
            return each;
        const bytes = profile.column('bytes');
        const largest = Int32Array.from(first);
        of.forEach((group, context) => { if ((bytes?.[context] ?? 0) > (bytes?.[largest[group]!] ?? 0)) largest[group] = context; });
        const list = lister(of);
        const ordered = (group: number) => [largest[group]!, ...list(group).filter((context) => context !== largest[group])];
        return { key, count: first.length, of, title: (group) => profile.title(largest[group]!), where: (group) => profile.place(largest[group]!), frames: null, first: (group) => largest[group]!, contexts: ordered };
    }
    const values = key === 'type' ? profile.column('type') ?? new Float64Array(profile.count)
        : Float64Array.from({ length: profile.count }, (_, i) => classOf((profile.column('bytes')?.[i] ?? 0) / (profile.column('allocations')?.[i] || 1)));
    const { of, first } = renumber(values);
    const title = (group: number) => (key === 'type' ? profile.type(first[group]!) || '(type not known)' : sizeClass(values[first[group]!]!));
    return { key, count: first.length, of, title, where: () => '', frames: null, first: (group) => first[group]!, contexts: lister(of) };
}

const known = new WeakMap<Profile, Map<GroupKey, Groups>>();

export function groupsBy(profile: Profile, key: GroupKey): Groups {
    const all = known.get(profile) ?? new Map<GroupKey, Groups>();
    known.set(profile, all);
    const groups = all.get(key) ?? make(profile, key);
    all.set(key, groups);
    return groups;
}

/* Pools are parts of other blocks: in no sum. */
function countedOf(profile: Profile, mask: Uint8Array | null): Uint8Array | null {
    const pool = profile.column('pool');
    return pool?.some((each) => each > 0) ? Uint8Array.from(pool, (each, i) => (each || (mask && !mask[i]) ? 0 : 1)) : mask;
}

function sums(groups: Groups, values: Column, mask: Uint8Array | null): Float64Array {
    const found = new Float64Array(groups.count);
    groups.of!.forEach((group, context) => { if (group >= 0 && (!mask || mask[context])) found[group]! += values[context]!; });
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
const asked = new WeakMap<Groups, Map<string, Float64Array>>();

function remember(groups: Groups, what: string, mask: Uint8Array | null, make: () => Float64Array): Float64Array {
    if (mask)
        return make();
    const all = asked.get(groups) ?? new Map<string, Float64Array>();
    asked.set(groups, all);
    const values = all.get(what) ?? make();
    all.set(what, values);
    return values;
}

/* MEASURE by group, of contexts with a MASK. With all that is called from there: WHOLE; null where that adds up to
 * nothing. */
export function valuesOf(profile: Profile, groups: Groups, measure: Measure, mask: Uint8Array | null, whole: boolean): Float64Array | null {
    const values = measure.values(profile);
    if (!values)
        return null;
    if (!groups.of)
        return values;
    if (measure.together && whole)
        return null;
    return remember(groups, `${whole ? 'cum:' : ''}${measure.key}`, mask, () => compute(profile, groups, measure, mask, whole));
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

/* By group: how many contexts of a MASK it has, anywhere on their stacks. */
export function sizes(profile: Profile, groups: Groups, mask: Uint8Array | null): Float64Array {
    return remember(groups, 'contexts', mask, () => groups.frames ? places(groups.frames, mask) : groups.of ? sums(groups, new Float64Array(profile.count).fill(1), mask) : Float64Array.from({ length: groups.count }, (_, i) => (!mask || mask[i] ? 1 : 0)));
}
