/* measures.ts - the values that a context has: for sorting, columns, areas and widths. Which ones: measures.def. */
import { old, rows } from '../../src/report/view/measures.def';
import * as format from './format';
import type { Profile } from './model';
import type { Column } from './decode';

type Values = (profile: Profile) => Column | null;

export interface Measure {
    key: string;
    title: string;
    short: string; // heading of a column
    hint: string;
    format: (value: number) => string;
    /* Adds up over contexts; else it is a ratio of two that do. */
    additive: boolean;
    /* NULL: this profile does not have it. Computed once. */
    values: Values;
    /* Of a ratio: what is divided by what. */
    parts?: [Values, Values];
}

const at = (profile: Profile, name: string, index: number) => profile.column(name)?.[index] ?? 0;
const positive = (profile: Profile, name: string, index: number) => Math.max(0, at(profile, name, index));

/* Columns that are made of others, and the one without which they are not known. */
const made: Record<string, [string, (profile: Profile, index: number) => number]> = {
    live_at_peak: ['peak_bytes', (profile, i) => (at(profile, 'pool', i) ? 0 : positive(profile, 'peak_bytes', i))],
    not_freed: ['live_bytes', (profile, i) => positive(profile, 'live_bytes', i)],
    lifetimes: ['lifetime_ns', (profile, i) => at(profile, at(profile, 'frees', i) ? 'lifetime_ns' : 'live_age_ns', i)],
    lives: ['lifetime_ns', (profile, i) => at(profile, 'frees', i) || positive(profile, 'live_blocks', i)],
};

function once(values: Values): Values {
    const known = new WeakMap<Profile, Column | null>();
    return (profile) => {
        if (!known.has(profile))
            known.set(profile, values(profile));
        return known.get(profile)!;
    };
}

/* Columns added up, "reads+writes"; not known without the first one. */
function sum(columns: string): Values {
    const names = columns.split('+');
    const needed = made[names[0]!]?.[0] ?? names[0]!;
    if (columns === needed)
        return (profile) => profile.column(columns);
    return once((profile) => profile.column(needed) && Float64Array.from({ length: profile.count }, (_, i) =>
        names.reduce((total, name) => total + (made[name]?.[1](profile, i) ?? at(profile, name, i)), 0)));
}

function ratio(top: Values, bottom: Values): Values {
    return once((profile) => {
        const [over, under] = [top(profile), bottom(profile)];
        return over && under && over.map((value, i) => (under[i] ? value / under[i]! : 0));
    });
}

const formats = { BYTES: format.bytes, COUNT: format.count, NS: format.duration, RATIO: format.ratio, SHARE: (value: number) => `${(value * 100).toFixed(0)} %` };

export const measures: Measure[] = rows.map(({ key, title, short, hint, unit, sum: top, by }) => {
    const parts: [Values, Values] | undefined = by ? [sum(top), sum(by)] : undefined;
    const additive = !parts && key !== 'threads'; // they may be the same ones
    return { key, title, short, hint, format: formats[unit], additive, parts, values: parts ? ratio(...parts) : sum(top) };
});

const byKey = new Map(measures.map((measure) => [measure.key, measure]));

export function measure(key: string): Measure | undefined {
    return byKey.get(newKey(key) ?? key);
}

/* What KEY is called now, where that is something else. */
export function newKey(key: string): string | undefined {
    return old.get(key);
}

/* Those that PROFILE has, with anything above zero. */
export function told(profile: Profile): Measure[] {
    return measures.filter((each) => each.values(profile)?.some((value) => value > 0));
}

/* What is shown first. */
export function usual(profile: Profile): Measure {
    return told(profile)[0] ?? measures[1]!;
}
