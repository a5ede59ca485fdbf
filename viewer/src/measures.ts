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

function addTo(total: Column, column: Column | null): void {
    for (let i = 0; column && i < total.length; i++)
        total[i]! += column[i]!;
}

/* What is above zero, of contexts without any UNLESS. */
function addPositive(total: Column, column: Column | null, unless: Column | null): void {
    for (let i = 0; column && i < total.length; i++)
        if (column[i]! > 0 && !unless?.[i])
            total[i]! += column[i]!;
}

/* Columns that are made of others, and the one without which they are not known. */
const made: Record<string, [string, (profile: Profile, total: Column) => void]> = {
    live_at_peak: ['peak_bytes', (profile, total) => addPositive(total, profile.column('peak_bytes'), profile.column('pool'))],
    not_freed: ['live_bytes', (profile, total) => addPositive(total, profile.column('live_bytes'), null)],
    lifetimes: ['lifetime_ns', (profile, total) => {
        const [frees, freed, age] = [profile.column('frees'), profile.column('lifetime_ns'), profile.column('live_age_ns')];
        for (let i = 0; i < total.length; i++)
            total[i]! += (frees?.[i] ? freed?.[i] : age?.[i]) ?? 0;
    }],
    lives: ['lifetime_ns', (profile, total) => {
        addTo(total, profile.column('frees'));
        addPositive(total, profile.column('live_blocks'), profile.column('frees'));
    }],
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
    return once((profile) => {
        if (!profile.column(needed))
            return null;
        const total = new Float64Array(profile.count);
        for (const name of names)
            made[name] ? made[name][1](profile, total) : addTo(total, profile.column(name));
        return total;
    });
}

function ratio(top: Values, bottom: Values): Values {
    return once((profile) => {
        const [over, under] = [top(profile), bottom(profile)];
        return over && under && over.map((value, i) => (under[i] ? value / under[i]! : 0));
    });
}

const formats = { BYTES: format.bytes, COUNT: format.count, NS: format.duration, RATIO: format.ratio, SHARE: (value: number) => `${(value * 100).toFixed(0)} %` };

/* Of a part of the run (time.ts): columns that nothing else has. */
function ofTime(key: string, title: string, short: string, column: string, hint: string, said: (value: number) => string): Measure {
    return { key, title, short, hint, format: said, additive: true, values: (profile) => (profile.unknown ? profile.column(column) : null) };
}

const then: Measure[] = [
    ofTime('live-then', 'Live then', 'live then', 'then_bytes', 'Bytes live at the chosen moment', format.bytes),
    ofTime('blocks-then', 'Blocks live then', 'blocks then', 'then_blocks', 'Blocks live at the chosen moment', format.count),
];
const during: Measure[] = [
    ofTime('grown', 'More live at the end of the range', 'grown', 'grown', 'Bytes by which more was live at the end of the range than at its beginning', format.bytes),
    ofTime('shrunk', 'Less live at the end of the range', 'shrunk', 'shrunk', 'Bytes by which less was live at the end of the range than at its beginning', format.bytes),
];

export const measures: Measure[] = rows.map(({ key, title, short, hint, unit, sum: top, by }) => {
    const parts: [Values, Values] | undefined = by ? [sum(top), sum(by)] : undefined;
    const additive = !parts && key !== 'threads'; // they may be the same ones
    const together = parts || additive ? undefined : { least: false, of: null };
    return { key, title, short, hint, format: formats[unit], additive, parts, together, values: parts ? ratio(...parts) : sum(top) };
});
measures.unshift(...then);
measures.push(...during);

/* What else is kept for a context: columns that no measure shows as they are. */
const shown = new Set(rows.flatMap(({ sum: top, by }) => (by ? [] : [top])));
const signed: Record<string, string> = { live_bytes: 'not_freed', peak_bytes: 'live_at_peak' };

const formatsOfNumbers: Record<string, (value: number) => string> = {
    BYTES: format.bytes, NS: format.duration, THOUSANDTHS: (value) => format.ratio(value / 1000), CENTIPERCENT: (value) => `${(value / 100).toFixed(1)} %`,
};

function numberOf(row: (typeof numberRows)[number]): Measure {
    const { column, unit, of, adds, sentence } = row;
    const text = column.replace(/_ns$/, '').replaceAll('_', ' ');
    const additive = adds === 'SUM' || adds === 'SIGNED';
    const values: Values = adds === 'SIGNED' ? once((profile) => profile.column(column)?.map((value) => Math.max(0, value)) ?? null) : (profile) => profile.column(column);
    return {
        key: column.replaceAll('_', '-'), title: sentence, short: text, hint: sentence, additive, values,
        format: formatsOfNumbers[unit] ?? format.count,
        together: additive ? undefined : { least: adds === 'LEAST' || adds === 'FIRST', of: of ? (profile) => profile.column(of) : null },
    };
}

const keysOfMeasures = new Set(measures.map((each) => each.key));
export const numbers: Measure[] = numberRows
    .filter(({ column, unit, adds }) => (unit !== 'THOUSANDTHS' || adds !== 'SUM') && !shown.has(column) && !shown.has(signed[column] ?? '') && !keysOfMeasures.has(column.replaceAll('_', '-')) && !old.has(column.replaceAll('_', '-')))
    .map(numberOf);

const byKey = new Map([...numbers, ...measures].map((measure) => [measure.key, measure]));

export function measure(key: string): Measure | undefined {
    return byKey.get(newKey(key) ?? key);
}

/* What KEY is called now, where that is something else. */
export function newKey(key: string): string | undefined {
    return old.get(key);
}

function has(profile: Profile, measure: Measure): boolean {
    const values = measure.values(profile);
    if (!values)
        return false;
    for (let i = 0; i < values.length; i++)
        if (profile.unknown !== null || values[i]! > 0)
            return true;
    return false;
}

function having(list: Measure[]): (profile: Profile) => Measure[] {
    const known = new WeakMap<Profile, Measure[]>();
    return (profile) => {
        const found = known.get(profile) ?? list.filter((each) => has(profile, each));
        known.set(profile, found);
        return found;
    };
}

/* Those that PROFILE has, with anything above zero; of a part of the run all. */
export const told = having(measures);
const toldOthers = having(numbers);

/* These and all other numbers: for tables. */
export function toldNumbers(profile: Profile): Measure[] {
    return [...told(profile), ...toldOthers(profile)];
}

/* What is shown first. */
const usualOf = new WeakMap<Profile, Measure>();

export function usual(profile: Profile): Measure {
    const known = usualOf.get(profile) ?? measures.find((each) => has(profile, each)) ?? measures.find((each) => each.values(profile)) ?? measures[then.length + 1]!;
    usualOf.set(profile, known);
    return known;
}

const totals: Record<string, 'peak_bytes' | 'bytes_allocated' | 'allocations' | 'live_bytes' | 'temporary_allocations' | 'reallocations'> = {
    peak: 'peak_bytes', bytes: 'bytes_allocated', count: 'allocations', leaked: 'live_bytes', temporary: 'temporary_allocations', realloc: 'reallocations',
};

/* What shares are of: the program's total, also of what rules leave out; or the sum of all places. */
export function wholeOf(profile: Profile, measure: Measure): number {
    const pool = profile.column('pool');
    const values = measure.values(profile);
    let sum = 0;
    for (let context = 0; values && context < values.length; context++)
        sum += pool?.[context] ? 0 : values[context]!;
    const key = profile.unknown ? undefined : totals[measure.key];
    return Math.max(sum, (key && profile.counts[key]) || 0);
}
