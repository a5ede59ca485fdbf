/* measures.ts - the values that a context has: for sorting, columns, areas and widths. */
import * as format from './format';
import type { Profile } from './model';
import type { Column } from './decode';

export interface Measure {
    key: string;
    title: string;
    short: string; // heading of a column
    hint: string;
    format: (value: number) => string;
    /* Adds up over contexts; else it is a ratio of two that do. */
    additive: boolean;
    /* NULL: this profile does not have it. Computed once. */
    values: (profile: Profile) => Column | null;
    /* Of a ratio: what is divided by what. */
    parts?: [string, string];
}

type Source = (profile: Profile, index: number) => number;

function column(name: string): Measure['values'] {
    return (profile) => profile.column(name);
}

/* Made of columns that have to be there. */
function made(needs: string[], value: Source): Measure['values'] {
    const known = new WeakMap<Profile, Column | null>();
    return (profile) => {
        let values = known.get(profile);
        if (values === undefined) {
            const there = needs.every((name) => profile.column(name));
            values = there ? Float64Array.from({ length: profile.count }, (_, i) => value(profile, i)) : null;
            known.set(profile, values);
        }
        return values;
    };
}

const at = (profile: Profile, name: string, index: number) => profile.column(name)?.[index] ?? 0;
const over = (a: number, b: number) => (b ? a / b : 0);
const accesses: Source = (p, i) => at(p, 'reads', i) + at(p, 'writes', i) + at(p, 'unsplit', i);
const sampled: Source = (p, i) => at(p, 'sampled_reads', i) + at(p, 'sampled_writes', i);

export const measures: Measure[] = [
    { key: 'peak', title: 'Live at peak', short: 'at peak', hint: 'bytes that were live when the heap was largest', format: format.bytes, additive: true, values: made(['peak_bytes'], (p, i) => (at(p, 'pool', i) ? 0 : Math.max(0, at(p, 'peak_bytes', i)))) },
    { key: 'bytes', title: 'Bytes allocated', short: 'bytes', hint: 'sum of all sizes over the whole run', format: format.bytes, additive: true, values: column('bytes') },
    { key: 'count', title: 'Allocations', short: 'allocations', hint: 'number of blocks over the whole run', format: format.count, additive: true, values: column('allocations') },
    { key: 'leaked', title: 'Not freed', short: 'not freed', hint: 'bytes that were not freed when the profile ends; they may still be reachable', format: format.bytes, additive: true, values: made(['live_bytes'], (p, i) => Math.max(0, at(p, 'live_bytes', i))) },
    { key: 'temporary', title: 'Temporary blocks', short: 'temporary', hint: 'blocks freed before their thread allocated again', format: format.count, additive: true, values: column('temporary') },
    { key: 'realloc', title: 'Reallocations', short: 'reallocs', hint: 'number of calls of realloc on blocks of this place', format: format.count, additive: true, values: column('reallocations') },
    { key: 'lifetime-or-age', title: 'Mean lifetime', short: 'lifetime', hint: 'mean over freed blocks; for places that free nothing, the mean age at the end', format: format.duration, additive: false, parts: ['lifetime_sum', 'lives'], values: made(['lifetime_ns'], (p, i) => over(lifetime(p, i), lives(p, i))) },
    { key: 'accesses', title: 'Accesses', short: 'accesses', hint: 'reads and writes of the blocks; with 4-byte words the periods in which words were used', format: format.count, additive: true, values: made(['reads'], accesses) },
    { key: 'reads', title: 'Reads', short: 'reads', hint: 'reads of the blocks', format: format.count, additive: true, values: column('reads') },
    { key: 'writes', title: 'Writes', short: 'writes', hint: 'writes to the blocks', format: format.count, additive: true, values: column('writes') },
    { key: 'accesses-per-byte', title: 'Accesses per byte', short: 'acc./byte', hint: 'accesses divided by the bytes allocated', format: format.ratio, additive: false, parts: ['accesses', 'bytes'], values: made(['reads', 'bytes'], (p, i) => over(accesses(p, i), at(p, 'bytes', i))) },
    { key: 'samples', title: 'Sampled accesses', short: 'samples', hint: 'samples of accesses that fell into the blocks: an estimate of their share', format: format.count, additive: true, values: made(['sampled_reads'], sampled) },
    { key: 'utilization', title: 'Used parts of blocks', short: 'used', hint: 'share of the blocks’ granules that were ever touched', format: (value) => `${(value * 100).toFixed(0)} %`, additive: false, parts: ['touched', 'granules'], values: made(['granules'], (p, i) => over(at(p, 'granules_touched', i), at(p, 'granules', i))) },
    { key: 'never-accessed', title: 'Blocks never accessed', short: 'never acc.', hint: 'blocks that were neither read nor written', format: format.count, additive: true, values: column('never_accessed') },
    { key: 'false-sharing', title: 'Lines falsely shared', short: 'false sh.', hint: 'cache lines in which threads use different words', format: format.count, additive: true, values: column('lines_false_shared') },
    { key: 'size', title: 'Mean size', short: 'size', hint: 'mean size of a block', format: format.bytes, additive: false, parts: ['bytes', 'count'], values: made([], (p, i) => over(at(p, 'bytes', i), at(p, 'allocations', i))) },
    { key: 'threads', title: 'Threads', short: 'threads', hint: 'threads that allocated here', format: format.count, additive: false, values: column('threads') },
];

/* Sums behind ratios, which are not shown by themselves. */
const parts: Record<string, Measure['values']> = {
    lifetime_sum: made(['lifetime_ns'], (p, i) => lifetime(p, i)),
    lives: made(['lifetime_ns'], (p, i) => lives(p, i)),
    touched: column('granules_touched'),
    granules: column('granules'),
};

function lifetime(profile: Profile, index: number): number {
    return at(profile, 'frees', index) ? at(profile, 'lifetime_ns', index) : at(profile, 'live_age_ns', index);
}

function lives(profile: Profile, index: number): number {
    return at(profile, 'frees', index) || Math.max(0, at(profile, 'live_blocks', index));
}

const byKey = new Map(measures.map((measure) => [measure.key, measure]));

/* Keys of older versions, which meant other things in reports. */
const renamed = new Map([['lifetime', 'lifetime-or-age'], ['density', 'accesses-per-byte'], ['shared', 'false-sharing']]);

export function measure(key: string): Measure | undefined {
    return byKey.get(renamed.get(key) ?? key);
}

/* What KEY is called now, where that is something else. */
export function newKey(key: string): string | undefined {
    return renamed.get(key);
}

export function partValues(profile: Profile, key: string): Column | null {
    return (parts[key] ?? byKey.get(key)?.values)?.(profile) ?? null;
}

/* Those that PROFILE has, with anything above zero. */
export function told(profile: Profile): Measure[] {
    return measures.filter((each) => each.values(profile)?.some((value) => value > 0));
}

/* What is shown first. */
export function usual(profile: Profile): Measure {
    return told(profile)[0] ?? measures[1]!;
}
