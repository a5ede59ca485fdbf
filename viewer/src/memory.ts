/* memory.ts - what resident memory is made of: its parts over time, stacked, and at the moments that have names; below,
 * who mapped it, with the call stacks of mmap. Parts and kinds are those of the report, in its order. */
import uPlot from 'uplot';
import { add, h, name, replace, select, themed } from './dom';
import * as format from './format';
import { baseName, type Moment, type Profile } from './model';
import type { StackFrame } from './report';
import { onTheme } from './shell';
import * as state from './state';
import { stripes } from './timeline';
import type { Page, View } from './view';

/* Heapwise's own memory is striped everywhere: it does not count. */
const own = 'heapwise';
const colors = ['part0', 'part5', 'part6', 'part7', 'part1', 'part2', 'part3', 'part8', 'part9', 'part10', 'part11', 'part12'];

export interface Part {
    key: string;
    title: string;
    color: string; // class, and variable of the theme
}

type Values = Record<string, number>;

export function valuesOf(moment: Moment): Values | null {
    const counts = (moment['sampled'] ?? moment) as { parts?: Values };
    return counts.parts ?? null;
}

/* The parts that are there at some moment, with colours, which are the same everywhere. Empty: the profile does not have them. */
export function partsOf(profile: Profile, moments: Moment[]): Part[] {
    let color = 0;
    return (profile.report.memory_parts ?? [])
        .map(({ part, title }) => ({ key: part, title, color: part === own ? 'part4' : colors[color++ % colors.length]! }))
        .filter(({ key }) => moments.some((each) => valuesOf(each)?.[key]));
}

/* What is resident of each part: what is below zero is taken from the parts before it. */
export function residentOf(moment: Moment, parts: Part[]): number[] {
    const values = valuesOf(moment) ?? {};
    const resident = parts.map(({ key }) => values[key] ?? 0);
    resident.forEach((value, index) => {
        let over = Math.max(0, -value);
        for (let before = index - 1; before >= 0 && over > 0; before--) {
            const taken = Math.min(over, Math.max(0, resident[before]!));
            resident[before]! -= taken;
            over -= taken;
        }
        resident[index] = Math.max(0, value);
    });
    return resident;
}

/* Every moment at which RSS was taken apart. */
function allMoments(profile: Profile): Moment[] {
    const named = profile.moments().filter((each) => valuesOf(each));
    const over = profile.overTime().filter((each) => valuesOf(each) && !named.some(({ time }) => time === each.time));
    return [...named, ...over].sort((a, b) => a.time - b.time);
}

/* RSS is read at intervals: the moment may be before the peak. */
export function nameOf(profile: Profile, moment: string): string {
    const live = profile.moments().find((each) => each.moment === moment)?.live ?? null;
    const near = live !== null && live < 0.98 * (profile.counts.peak_bytes ?? 0);
    const names: Record<string, string> = { peak: near ? 'near the peak' : 'at the peak', end: 'at the end', dump: 'at the dump' };
    return names[moment] ?? moment;
}

/* ---- over time ---- */

function plotOptions(parts: Part[], resident: number[][], width: number): uPlot.Options {
    const axis = { stroke: themed('--faint'), grid: { stroke: themed('--line'), width: 1 }, ticks: { stroke: themed('--line'), width: 1 }, font: '12px system-ui, sans-serif' };
    const top = parts.length;
    return {
        width, height: 280,
        scales: { x: { time: false }, y: { range: (_plot, _least, most) => [0, (most || 1) * 1.05] } },
        legend: { live: true, markers: { fill: (_plot, series) => {
            const part = parts[top - series];
            return part?.key === own ? `repeating-linear-gradient(135deg, ${themed('--part4')} 0 3px, ${themed('--paper')} 3px 6px)` : part ? themed(`--${part.color}`) : '';
        } } },
        cursor: { drag: { x: false, y: false }, points: { show: false } },
        axes: [
            { ...axis, values: (_plot, splits) => splits.map((value) => format.axis(format.duration(value))), space: 90 },
            { ...axis, values: (_plot, splits) => splits.map((value) => format.axis(format.bytes(value))), size: 78, incrs: format.byteSteps },
        ],
        /* The greatest sum is drawn first: those below cover it. */
        series: [
            { label: 'time', value: (_plot, value) => (value === null ? '–' : format.duration(value)) },
            ...parts.map((_part, index): uPlot.Series => {
                const { key, title, color } = parts[top - 1 - index]!;
                return {
                    label: title, stroke: themed('--paper'), width: 1, fill: key === own ? stripes(themed('--paper')) : themed(`--${color}`), points: { show: resident.length < 3 },
                    value: (_plot, _value, _series, at) => (at === null || at === undefined ? '–' : format.bytes(resident[at]![top - 1 - index]!)),
                };
            }),
        ],
    };
}

/* A plot of all moments; nothing where there is only one. */
function course(moments: Moment[], known: Part[], root: HTMLElement): () => void {
    if (moments.length < 2)
        return () => {};
    const all = moments.map((each) => residentOf(each, known));
    const there = known.map((_part, index) => all.some((values) => values[index]! > 0));
    const parts = known.filter((_part, index) => there[index]);
    const resident = all.map((values) => values.filter((_value, index) => there[index]));
    const sums = resident.map((values) => values.map((_value, index) => values.slice(0, index + 1).reduce((sum, each) => sum + each, 0)));
    const data: uPlot.AlignedData = [moments.map(({ time }) => time), ...parts.map((_part, index) => sums.map((each) => each[parts.length - 1 - index]!))];
    const most = moments.reduce((best, each) => (each.rss > best.rss ? each : best));
    const holder = h('div', { class: 'plot', role: 'img', 'aria-label': `Parts of resident memory at ${format.count(moments.length)} moments, stacked: ${format.bytes(most.rss)} at most, ${format.duration(most.time)} into the run. The table below has the numbers.` });
    let plot: uPlot | null = null;
    const width = () => Math.max(320, holder.clientWidth || root.clientWidth || 900);
    const make = () => {
        plot?.destroy();
        plot = new uPlot(plotOptions(parts, resident, width()), data, holder);
    };
    add(root, h('section', null, h('h3', null, 'Resident memory over time, by part'), holder));
    const size = new ResizeObserver(() => (plot ? plot.setSize({ width: width(), height: 280 }) : make()));
    size.observe(holder);
    const themeOff = onTheme(make);
    return () => {
        size.disconnect();
        themeOff();
        plot?.destroy();
    };
}

/* ---- at moments ---- */

function partsTable(profile: Profile, moments: Moment[], parts: Part[]): HTMLElement {
    const line = (title: (HTMLElement | string)[], value: (moment: Moment) => number, sum = false) =>
        h('tr', { class: sum ? 'sum' : null }, h('td', null, title), moments.map((each) => h('td', { class: 'number' }, format.bytes(value(each)))));
    const beside: [string, string][] = [['Beside RSS: page tables', 'page_table_bytes'], ['Swapped out', 'swap_bytes'], ['Pss (shared pages count in parts)', 'pss_bytes'], ['In transparent huge pages (a part of RSS)', 'huge_page_bytes'],
        ['The whole cgroup', 'cgroup_bytes'], ['The whole cgroup, at most', 'cgroup_peak_bytes'], ['Limit of the cgroup', 'cgroup_limit_bytes']];
    return h('section', null, h('h3', null, 'Parts of resident memory'), h('div', { class: 'wide' }, h('table', { class: 'parts' },
        h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'part'), moments.map((each) => h('th', { scope: 'col', class: 'number', title: `${format.duration(each.time)} into the run` }, nameOf(profile, each.moment))))),
        h('tbody', null,
            parts.map(({ key, title, color }) => line([h('i', { class: key === own ? `${color} own` : color }), title], (each) => valuesOf(each)?.[key] ?? 0)),
            line(['Resident memory (RSS)'], (each) => each.rss, true),
            beside.filter(([, key]) => moments.some((each) => each[key])).map(([title, key]) => line([title], (each) => Number(each[key] ?? 0)))))));
}

/* ---- who mapped it ---- */

const shown = 40;

function fileOf({ file, line, module }: StackFrame): string {
    return file ? `${baseName(file)}${line ? `:${line}` : ''}` : module ? baseName(module) : '';
}

function frameName({ function: called, module, offset }: StackFrame): string {
    return called ?? (module ? `${baseName(module)}+0x${(offset ?? 0).toString(16)}` : 'code without a name');
}

/* A title, with the call stack below it when it is opened. */
function withStack(title: (HTMLElement | string)[], stack: StackFrame[], headline: number): (HTMLElement | string)[] {
    if (!stack.length)
        return title;
    return [h('details', null, h('summary', null, title), h('ol', { class: 'stack' }, stack.map((frame, index) => h('li', { class: index === headline ? 'head' : null },
        h('a', { href: state.link('sandwich', { f: frameName(frame) }), title: 'callers and callees' }, name(frameName(frame))), h('span', { class: 'place', title: frame.file ?? frame.module ?? null }, h('bdi', null, fileOf(frame)))))))];
}

function headOf(stack: StackFrame[], headline: number): (HTMLElement | string)[] {
    const frame = stack[headline];
    return frame ? [name(frameName(frame)), h('span', { class: 'place' }, ` ${fileOf(frame)}`)] : ['(unknown stack)'];
}

/* Rows of a table, the first of them at once. */
function rowsOf(rows: HTMLElement[], body: HTMLElement): HTMLElement | null {
    replace(body, rows.slice(0, shown));
    const more = h('button', { type: 'button', class: 'more-rows', onclick: () => {
        add(body, rows.slice(shown));
        more.remove();
    } }, `${format.count(rows.length - shown)} more`);
    return rows.length > shown ? more : null;
}

function owners(profile: Profile): HTMLElement | null {
    const all = profile.report.ledger ?? [];
    const known = ['peak', 'dump', 'end'].filter((each) => all.some(({ moment }) => moment === each));
    if (!known.length)
        return null;
    const body = h('tbody'), button = h('div');
    const fill = (moment: string) => {
        const rows = all.filter((row) => row.moment === moment && row.resident_bytes).sort((a, b) => b.resident_bytes - a.resident_bytes);
        const most = rows[0]?.resident_bytes ?? 1;
        replace(button, rowsOf(rows.map((row) => {
            const bar = h('div', { class: 'fill' });
            bar.style.width = `${(row.resident_bytes / most) * 100}%`;
            const title = row.kind === 'mapped' ? ['mapped in ', ...headOf(row.stack, row.headline ?? 0)] : [name(row.title)];
            return h('tr', null, h('td', { class: 'number' }, format.bytes(row.resident_bytes)), h('td', { class: 'number' }, format.bytes(row.private_bytes)), h('td', { class: 'number' }, format.bytes(row.bytes)), h('td', { class: 'number' }, format.count(row.mappings)),
                h('td', { class: 'share', 'aria-hidden': 'true' }, bar), h('td', null, withStack(title, row.stack, row.headline ?? 0)));
        }), body));
    };
    const wanted = known.includes(state.get('moment_of')) ? state.get('moment_of') : known[0]!;
    fill(wanted);
    const column = (title: string, hint: string) => h('th', { scope: 'col', title: hint }, title);
    return h('section', { class: 'owners' }, h('h3', null, 'Resident memory by who mapped it'),
        known.length > 1 ? select('Moment', known.map((each) => [each, nameOf(profile, each)] as const), wanted, (moment) => { state.note({ moment_of: moment }); fill(moment); }) : h('p', { class: 'summary' }, nameOf(profile, known[0]!)),
        h('div', { class: 'wide' }, h('table', { class: 'functions' }, h('thead', null, h('tr', null, column('resident', 'Bytes of RSS'), column('private', 'Of these: in no other process'), column('mapped', 'Bytes of address space'), column('mappings', 'Ranges of address space'), h('td', { class: 'share' }), column('owner', 'Who mapped it; where the program did, the call stack of mmap opens'))), body)), button);
}

function mappings(profile: Profile): HTMLElement | null {
    const all = [...(profile.report.mappings ?? [])].sort((a, b) => b.peak_bytes - a.peak_bytes || b.bytes - a.bytes);
    if (!all.length)
        return null;
    const body = h('tbody');
    const column = (title: string, hint: string) => h('th', { scope: 'col', title: hint }, title);
    const more = rowsOf(all.map(({ stack, headline, calls, bytes, mapped_bytes, peak_bytes }) => h('tr', null, [peak_bytes, mapped_bytes, bytes].map((each) => h('td', { class: 'number' }, format.bytes(each))), h('td', { class: 'number' }, format.count(calls)),
        h('td', null, withStack(headOf(stack, headline ?? 0), stack, headline ?? 0)))), body);
    return h('section', { class: 'owners' }, h('h3', null, 'Mapped by the program over the run'),
        h('p', { class: 'summary' }, 'Address space by the call stack of mmap, mremap or sbrk; not all of it was resident.'),
        h('div', { class: 'wide' }, h('table', { class: 'functions' }, h('thead', null, h('tr', null, column('at most', 'Bytes mapped at once'), column('at the end', 'Bytes still mapped'), column('in all', 'Bytes over the whole run'), column('calls', 'Of mmap, mremap or sbrk'), column('mapped in', 'The call stack opens'))), body)), more);
}

export const memory: View = {
    key: 'memory',
    title: 'Memory',
    missing: (page: Page) => (allMoments(page.profile.whole).length ? null : 'What resident memory is made of was not recorded: heapwise record brings it, except for sums of several runs.'),
    show: (page: Page, root: HTMLElement) => {
        const profile = page.profile.whole;
        const all = allMoments(profile), named = profile.moments().filter((each) => valuesOf(each));
        const parts = partsOf(profile, all);
        const end = course(all, parts, root);
        add(root, named.length ? partsTable(profile, named, parts) : null, owners(profile), mappings(profile));
        return end;
    },
};
