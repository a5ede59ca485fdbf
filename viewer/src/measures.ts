/* measures.ts - the values that a context has: for sorting, columns, areas and widths. Which ones: measures.def; columns
 * of tables may also be any number of numbers.def. */
import { rows as numberRows } from '../../src/profile/numbers.def';
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
    /* What several contexts have together, if neither their sum nor a ratio. OF: those without any do not count. */
    together?: { least: boolean; of: Values | null };
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
    const together = parts || additive ? undefined : { least: false, of: null };
    return { key, title, short, hint, format: formats[unit], additive, parts, together, values: parts ? ratio(...parts) : sum(top) };
});

/* What else is kept for a context: columns that no measure shows as they are. */
const shown = new Set(rows.flatMap(({ sum: top, by }) => (by ? [] : [top])));
const signed: Record<string, string> = { live_bytes: 'not_freed', peak_bytes: 'live_at_peak' };

function numberOf(row: (typeof numberRows)[number]): Measure {
    const { column, unit, of, adds, sentence } = row;
    const text = column.replace(/_ns$/, '').replaceAll('_', ' ');
    const additive = adds === 'SUM' || adds === 'SIGNED';
    const values: Values = adds === 'SIGNED' ? once((profile) => profile.column(column)?.map((value) => Math.max(0, value)) ?? null) : (profile) => profile.column(column);
    return {
        key: column.replaceAll('_', '-'), title: sentence, short: text, hint: sentence, additive, values,
        format: unit === 'BYTES' ? format.bytes : unit === 'NS' ? format.duration : format.count,
        together: additive ? undefined : { least: adds === 'LEAST' || adds === 'FIRST', of: of ? (profile) => profile.column(of) : null },
    };
}

const keysOfMeasures = new Set(measures.map((each) => each.key));
export const numbers: Measure[] = numberRows
    .filter(({ column, unit }) => unit !== 'THOUSANDTHS' && !shown.has(column) && !shown.has(signed[column] ?? '') && !keysOfMeasures.has(column.replaceAll('_', '-')) && !old.has(column.replaceAll('_', '-')))
    .map(numberOf);

const byKey = new Map([...numbers, ...measures].map((measure) => [measure.key, measure]));

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

/* These and all other numbers: for tables. */
export function toldNumbers(profile: Profile): Measure[] {
    return [...told(profile), ...numbers.filter((each) => each.values(profile)?.some((value) => value > 0))];
}

/* What is shown first. */
export function usual(profile: Profile): Measure {
    return told(profile)[0] ?? measures[1]!;
}
