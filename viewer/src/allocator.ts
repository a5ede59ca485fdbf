/* allocator.ts - is it the allocator? Times of operations, where its memory goes, what happens inside it, predictions.
 * Known parts are drawn; parts that this page does not know are shown as tables, so that nothing is left out. */
import uPlot from 'uplot';
import { add, h, name, svg, themed } from './dom';
import * as format from './format';
import type { Profile } from './model';
import type { Allocator, Operation } from './report';
import { prediction } from './prediction';
import { onTheme } from './shell';
import * as state from './state';
import type { Page, View } from './view';

type Row = Record<string, unknown>;

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value);
const isRows = (value: unknown): value is Row[] => Array.isArray(value) && value.length > 0 && value.every(isRow);
const words = (key: string) => (({ time_ns: 'time', cycles: 'cycles', by_phase: 'while how many threads live', by_kind: 'in which operations' }) as Record<string, string>)[key] ?? key.replaceAll('_', ' ');
const phases: Record<string, string> = { serial: 'one thread', parallel: 'several threads' };

/* "a ‹ b ‹ c": the innermost functions of a call stack. */
function stackText(frames: Row[]): string {
    const names = frames.map((frame) => (typeof frame['function'] === 'string' ? frame['function'] : `${String(frame['module'] ?? '?').split('/').pop()}+${Number(frame['offset'] ?? 0).toString(16)}`));
    return names.slice(0, 6).join(' ‹ ') + (names.length > 6 ? ' ‹ …' : '');
}

/* A value whose key contains its unit. */
function say(key: string, value: unknown): string {
    if (value === null || value === undefined)
        return '–';
    if (isRows(value) && 'function' in value[0]!)
        return stackText(value);
    if (typeof value === 'boolean')
        return value ? 'yes' : 'no';
    if (typeof value === 'number') {
        if (/(_|^)ns$/.test(key))
            return format.duration(value);
        if (/_s$/.test(key))
            return format.duration(value * 1e9);
        if (/bytes|^(total|real|internal|external|blowup|absent|free|resident|resident_elsewhere|usable_least|usable_most|least|most|size)$|threshold/.test(key) && !/percent|ratio/.test(key))
            return format.bytes(value);
        if (/percent/.test(key))
            return `${value.toFixed(1)} %`;
        if (/speedup|^low$|^high$|ratio/.test(key))
            return `${value.toFixed(2)}×`;
        return Number.isInteger(value) ? format.count(value) : format.ratio(value);
    }
    if (Array.isArray(value))
        return value.every((each) => !isRow(each)) ? value.slice(0, 40).map((each) => say(key, each)).join(', ') + (value.length > 40 ? ', …' : '') : format.plural(value.length, 'entry').replace('entrys', 'entries');
    if (!isRow(value))
        return String(value);
    /* By what: the numbers of calls alone, where there are any. */
    const parts = Object.entries(value).map(([part, each]) => [part, isRow(each) && 'count' in each ? each['count'] : each] as const).filter(([, each]) => each !== 0);
    return parts.map(([part, each]) => `${phases[part] ?? words(part)} ${say(part, each)}`).join(', ') || '–';
}

function facts(row: Row): HTMLElement {
    return h('dl', { class: 'facts wide' }, Object.entries(row).filter(([, value]) => !isRows(value)).flatMap(([key, value]) => [h('dt', null, words(key)), h('dd', { title: say(key, value) }, typeof value === 'string' ? h('bdi', null, value) : say(key, value))]));
}

/* What stands in a table; a context is a link to its place. */
function cell(key: string, value: unknown, profile: Profile): Node | string {
    if ((key === 'context' || key === 'other') && typeof value === 'number' && profile.contextOf(value) >= 0)
        return h('a', { href: state.link('contexts', { at: value }) }, name(profile.title(profile.contextOf(value))));
    return isRows(value) || typeof value === 'string' ? h('bdi', { class: isRows(value) ? 'name' : null }, say(key, value)) : say(key, value);
}

const mostRows = 40;

function table(rows: Row[], profile: Profile): HTMLElement {
    const keys = [...new Set(rows.slice(0, mostRows).flatMap((row) => Object.keys(row)))].filter((key) => !rows.every((row) => row[key] === null || row[key] === undefined));
    keys.sort((a, b) => Number(isRows(rows[0]![a])) - Number(isRows(rows[0]![b]))); // stacks last: they are long
    const isNumber = (key: string) => rows.some((row) => typeof row[key] === 'number');
    return h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Table' }, h('table', { class: 'auto' },
        h('thead', null, h('tr', null, keys.map((key) => h('th', { scope: 'col', class: isNumber(key) ? 'number' : 'text' }, words(key))))),
        h('tbody', null, rows.slice(0, mostRows).map((row) => h('tr', null, keys.map((key) => h('td', { class: isNumber(key) ? 'number' : 'text' }, cell(key, row[key], profile))))))),
        rows.length > mostRows ? h('p', { class: 'summary' }, `… and ${format.count(rows.length - mostRows)} more`) : null);
}

/* Anything, as well as it can be shown. */
function anything(value: unknown, profile: Profile, depth = 0): HTMLElement {
    if (isRows(value))
        return table(value, profile);
    if (!isRow(value))
        return h('p', null, say('', value));
    /* Calls by their name ({waits: {name, count …}, wakes: …}): rows of a table. Rows say what happened. */
    const rows = Object.values(value);
    if (rows.length > 1 && rows.every((each) => isRow(each) && 'count' in each && 'name' in each))
        return rows.some((each) => (each as Row)['count']) ? table(rows.filter((each) => (each as Row)['count']) as Row[], profile) : h('p', null, 'None.');
    const parts = Object.entries(value).filter(([, each]) => isRows(each) && depth < 3);
    return h('div', null, facts(Object.fromEntries(Object.entries(value).filter(([key]) => !parts.some(([part]) => part === key)))), parts.map(([key, each]) => [h('h4', null, words(key)), anything(each, profile, depth + 1)]).flat());
}

function section(title: string, ...children: (HTMLElement | SVGElement | null)[]): HTMLElement {
    return h('section', null, h('h3', null, title), children);
}

/* ---- operations ---- */

interface Bin { least: number; end: number; count: number }

/* How many operations took from `least` up to `end` cycles, where the profile says so; the last bin may be open. */
function histogramOf(operation: Operation): Bin[] {
    const given = operation.cycles?.histogram;
    if (!isRows(given))
        return [];
    return given.map((each) => {
        const least = Number(each['least'] ?? 0);
        return { least, end: typeof each['most'] === 'number' ? each['most'] + 1 : Math.max(least, operation.cycles!.max ?? 0) + 1, count: Number(each['count'] ?? 0) };
    }).filter(({ least, end, count }) => least >= 0 && end > least && count > 0);
}

function times(operations: Operation[]): HTMLElement | null {
    const timed = operations.filter((each) => each.cycles && (each.cycles.p50 || each.cycles.mean || histogramOf(each).length));
    if (!timed.length)
        return null;
    const greatest = Math.max(...timed.map((each) => Math.max(each.cycles!.max ?? 0, each.cycles!.p99 ?? 0, each.cycles!.mean ?? 0, ...histogramOf(each).map(({ least }) => least))));
    const decades = Math.ceil(Math.log10(Math.max(100, greatest)));
    const x = (cycles: number) => (Math.log10(Math.max(1, cycles)) / decades) * 600;
    const row = (each: Operation) => {
        const { p50, p90, p99, max, mean } = each.cycles!;
        const shape = histogramOf(each);
        const most = Math.max(1, ...shape.map(({ count }) => count));
        const picture = svg('svg', { viewBox: '0 0 600 26', class: 'times', role: 'img', 'aria-label': `${each.kind} ${each.size ?? ''}: median ${say('', p50)} cycles, 99 % ${say('', p99)}, at most ${say('', max)}`, preserveAspectRatio: 'none' },
            Array.from({ length: decades + 1 }, (_, decade) => svg('line', { x1: x(10 ** decade), x2: x(10 ** decade), y1: 0, y2: 26, class: 'grid' })),
            shape.map(({ least, end, count }) => svg('rect', { x: x(least), width: Math.max(1, x(end) - x(least)), y: 24 - 22 * (count / most), height: 22 * (count / most), class: 'bar' },
                svg('title', {}, `${format.count(least)} to ${format.count(end - 1)} cycles: ${format.count(count)}`))),
            shape.length || !p50 ? null : svg('rect', { x: x(p50), width: Math.max(2, x(p90 ?? p99 ?? p50) - x(p50)), y: 6, height: 14, class: 'bar' }),
            p99 && p90 && !shape.length ? svg('rect', { x: x(p90), width: Math.max(1, x(p99) - x(p90)), y: 9, height: 8, class: 'bar faint' }) : null,
            max && p99 ? svg('line', { x1: x(p99), x2: x(max), y1: 13, y2: 13, class: 'whisker' }) : null,
            mean ? svg('line', { x1: x(mean), x2: x(mean), y1: 3, y2: 23, class: 'mean' }) : null);
        return h('tr', null, h('td', { class: 'text' }, `${each.kind}${each.size ? `, ${each.size}` : ''}`), h('td', { class: 'text' }, each.phase), h('td', { class: 'number' }, format.count(each.count)),
            [mean, p50, p90, p99, max].map((value) => h('td', { class: 'number' }, value ? format.short(value) : '–')), h('td', { class: 'picture' }, picture));
    };
    return section('How long operations take (cycles)',
        h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Operation times' }, h('table', { class: 'operations' },
            h('thead', null, h('tr', null, h('th', { scope: 'col', class: 'text' }, 'operation'), h('th', { scope: 'col', class: 'text' }, 'phase'), ['count', 'mean', 'median', '90 %', '99 %', 'most'].map((text) => h('th', { scope: 'col', class: 'number' }, text)), h('th', { scope: 'col', class: 'text' }, `1 to ${format.count(10 ** decades)} cycles, logarithmic`))),
            h('tbody', null, [...timed].sort((a, b) => b.count * (b.cycles!.mean ?? 1) - a.count * (a.cycles!.mean ?? 1)).map(row)))),
        h('p', { class: 'summary' }, `${timed.some((each) => histogramOf(each).length) ? 'Bars show how many operations took this long' : 'The bar is the time from the median to 90 %, paler to 99 %'}; the line goes ${timed.some((each) => histogramOf(each).length) ? 'from 99 % ' : ''}to the slowest; the tick is the mean. The most expensive operations come first.`));
}

function counts(operations: Operation[], profile: Profile): HTMLElement {
    const sums = new Map<string, [number, number]>();
    for (const each of operations) {
        const sum = sums.get(each.kind) ?? [0, 0];
        sum[each.phase === 'parallel' ? 1 : 0] += each.count;
        sums.set(each.kind, sum);
    }
    const all = operations.reduce((sum, each) => sum + each.count, 0);
    return section(`Operations: ${format.count(all)}`, table([...sums].map(([operation, [serial, parallel]]) => ({ operation, 'one thread alive': serial, 'several threads': parallel, share: format.percent(serial + parallel, all) })), profile));
}

/* ---- memory ---- */

const kinds = [['real', 'requested and touched'], ['internal', 'rounding up'], ['blowup', 'freed, kept'], ['external', 'between and around']] as const;

function partsOf(memory: Row, title: string): HTMLElement {
    const given = (key: string) => memory[key] ?? memory[`${key}_bytes`];
    const known = kinds.filter(([key]) => typeof given(key) === 'number');
    /* Requested is what is resident of it: parts that were never touched take no memory. */
    const value = (key: string) => Math.max(0, Number(given(key) ?? 0) - (key === 'real' ? Number(given('absent') ?? 0) : 0));
    const sum = known.reduce((total, [key]) => total + value(key), 0);
    const all = value('total') || sum || 1;
    const index = (key: string) => kinds.findIndex((each) => each[0] === key);
    const strip = h('div', { class: 'strip', 'aria-hidden': 'true' }, known.map(([key]) => {
        const piece = h('div', { class: `part${index(key)}` });
        piece.style.width = `${(value(key) / all) * 100}%`;
        return piece;
    }));
    const unknown = kinds.filter(([key]) => typeof given(key) !== 'number').map(([, text]) => text);
    return section(`${title}: ${unknown.length ? 'at least ' : ''}${format.bytes(all)}`, h('div', { class: 'moment' }, strip,
        h('ul', { class: 'legend' }, known.map(([key, text]) => h('li', null, h('i', { class: `part${index(key)}` }), `${text} ${format.bytes(value(key))} (${format.percent(value(key), all) || '0 %'})`)),
            unknown.length ? h('li', null, `not known: ${unknown.join(', ')}`) : null)));
}

/* The waste of every moment, stacked upon what was requested: any list of points with times. */
function overTime(points: Row[], root: HTMLElement): () => void {
    const known = (point: Row, keys: string[]) => { const value = keys.map((key) => point[key]).find((each) => typeof each === 'number'); return value === undefined ? null : Math.max(0, Number(value)); };
    const read = (point: Row, keys: string[]) => known(point, keys) ?? 0;
    /* What is known at some points only (between and around: where the resident heap was read) stays until the next
     * one. */
    const carried = (values: (number | null)[]) => { let last = values.find((value) => value !== null) ?? 0; return values.map((value) => (last = value ?? last)); };
    const layers = [['requested', ['requested_bytes', 'real', 'real_bytes', 'live_bytes']], ['rounding up', ['internal_bytes', 'internal']], ['freed, kept', ['blowup_bytes', 'blowup']], ['between and around', ['external_bytes', 'external']]] as const;
    const times = points.map((point) => Number(point['time_ns'] ?? 0));
    const sums: number[][] = [];
    for (const [, keys] of layers)
        sums.push(carried(points.map((point) => known(point, [...keys]))).map((value, i) => (sums[sums.length - 1]?.[i] ?? 0) + value));
    const resident = points.map((point) => { const value = read(point, ['resident', 'resident_bytes', 'total', 'total_bytes', 'rss_bytes']); return value || null; });
    const holder = h('div', { class: 'plot', role: 'img', 'aria-label': 'Waste over time, stacked' });
    root.append(section('Memory over time: requested memory, with waste on top', holder));
    let plot: uPlot | null = null;
    const make = () => {
        plot?.destroy();
        const axis = { stroke: themed('--faint'), grid: { stroke: themed('--line'), width: 1 }, font: '12px system-ui, sans-serif' };
        const shown = (own: number) => (_plot: uPlot, _value: number, _series: number, index: number | null) => {
            if (index === null)
                return '–';
            return format.bytes(own < 0 ? resident[index] ?? 0 : sums[own]![index]! - (sums[own - 1]?.[index] ?? 0)) ;
        };
        plot = new uPlot({
            width: Math.max(320, holder.clientWidth), height: 240, scales: { x: { time: false }, y: { range: (_plot, _least, most) => [0, most * 1.05 || 1] } },
            axes: [{ ...axis, values: (_p, splits) => splits.map((value) => format.axis(format.duration(value))), space: 90 }, { ...axis, values: (_p, splits) => splits.map((value) => format.axis(format.bytes(value))), size: 78, incrs: format.byteSteps }],
            series: [{ label: 'time', value: (_p, value) => (value === null ? '–' : format.duration(value)) },
                ...[...layers.keys()].reverse().map((index) => ({ label: layers[index]![0], stroke: themed(`--part${index}`), fill: themed(`--part${index}`), width: 1, value: shown(index) })),
                { label: 'resident', stroke: themed('--ink'), width: 1.5, dash: [4, 3], spanGaps: true, value: shown(-1) }],
        }, [times, ...[...sums].reverse(), resident], holder);
    };
    const size = new ResizeObserver(() => (plot ? plot.setSize({ width: Math.max(320, holder.clientWidth), height: 240 }) : make()));
    size.observe(holder);
    const themeOff = onTheme(make);
    return () => { size.disconnect(); themeOff(); plot?.destroy(); };
}

/* ---- the view ---- */

const moments: Record<string, string> = { memory_at_peak: 'Memory of the allocator at the peak', memory_at_end: 'Memory of the allocator at the end' };
/* What is drawn, in this order; the rest follows. */
const first = ['operations', 'memory_at_peak', 'memory_at_end', 'memory_over_time', 'prediction'];
/* Long tables, closed at first. */
const closed = /by_size|by_class|size_classes|lives|stages|timing|pinned/;

const titles: Record<string, string> = {
    locks: 'Locks', syscalls: 'System calls inside the allocator', false_sharing: 'False sharing by placement', futex: 'Waiting', size_classes: 'Size classes',
    operations_by_size: 'Operations by size', pinned: 'Pages that few blocks hold', slowest: 'The slowest operations', call_sites: 'What operations cost, by call stack', contention: 'Contention', lives: 'How long blocks live, in operations', timing: 'How operations were timed', memory_by_class: 'Memory by size class', stages: 'Stages of threads',
};

/* The answer as a paragraph, and what to do about each cause. */
function verdictOf(verdict: Row): HTMLElement {
    const causes = verdict['causes'];
    const line = (text: unknown, kind: string | null = null) => (typeof text === 'string' && text ? h('p', kind ? { class: kind } : null, h('bdi', null, text)) : null);
    const list = isRows(causes)
        ? h('ol', { class: 'findings' }, causes.map((cause) => h('li', null, h('h4', null, h('bdi', null, say('', cause['title']))), line(cause['expected_gain'], 'gain'), line(cause['why']), line(cause['what_to_do'], 'todo'))))
        : null;
    return section('Is it the allocator?', line(verdict['summary'], 'verdict'), list);
}

const isTimes = (value: unknown): value is Row[] => isRows(value) && value.length > 1 && 'time_ns' in value[0]! && Object.keys(value[0]!).some((key) => /requested|internal|blowup|real/.test(key));

function show(profile: Profile, root: HTMLElement): () => void {
    const observed: Allocator = profile.report.allocator ?? {};
    const undo: (() => void)[] = [];
    const plain: Row = {};
    const later: HTMLElement[] = [];
    if (observed.verdict) {
        const verdict = observed.verdict;
        root.append(isRow(verdict) ? verdictOf(verdict) : section('Is it the allocator?', h('p', { class: 'verdict' }, say('', verdict))));
    }
    const drawn = h('div');
    root.append(drawn);
    const keys = [...first.filter((key) => key in observed), ...Object.keys(observed).filter((key) => !first.includes(key))];
    for (const key of keys) {
        const value = observed[key];
        if (value === null || value === undefined || key === 'verdict')
            continue;
        if (key === 'operations' && isRows(value))
            add(drawn, counts(observed.operations!, profile), times(observed.operations!));
        else if (key in moments && isRow(value))
            drawn.append(partsOf(value, moments[key]!));
        else if (isTimes(value))
            undo.push(overTime(value, drawn));
        else if (key === 'prediction' && isRows(value))
            add(drawn, prediction(profile.report));
        else if (isRow(value) || isRows(value))
            later.push(h('details', { class: 'part', open: !closed.test(key) }, h('summary', null, titles[key] ?? words(key)), anything(value, profile)));
        else if (!Array.isArray(value) || value.length)
            plain[key] = value;
    }
    if (profile.report.tried && !isRows(observed.prediction))
        add(drawn, prediction(profile.report));
    if (Object.keys(plain).length)
        drawn.after(section('How it works', facts(plain)));
    add(root, later);
    return () => undo.forEach((each) => each());
}

export const allocator: View = {
    key: 'allocator',
    title: 'Allocator',
    missing: ({ profile }: Page) => (profile.report.allocator || profile.report.tried ? null : 'The allocator was not observed: record with “heapwise record --mode allocator -- PROGRAM”.'),
    show: ({ profile }: Page, root: HTMLElement) => show(profile, root),
};
