/* distributions.ts - sizes and lifetimes as histograms, of everything or of one place. A bar is a link: it lists the
 * places whose blocks are in it. */
import { add, h, name, select } from './dom';
import { detail } from './detail';
import * as format from './format';
import { List } from './list';
import type { Profile } from './model';
import { tell } from './shell';
import * as state from './state';
import type { Page, View } from './view';

/* What is shown of a bar: the columns of the table, and of a context that is one bar. */
interface Value {
    key: string;
    title: string;
    column: string; // "sizes.bytes", and "bytes" of a context
    format: (value: number) => string;
}

const sizeValues: Value[] = [
    { key: 'bytes', title: 'Bytes', column: 'bytes', format: format.bytes },
    { key: 'count', title: 'Allocations', column: 'allocations', format: format.count },
    { key: 'realloc', title: 'Reallocations', column: 'reallocations', format: format.count },
    { key: 'peak', title: 'Bytes at the peak', column: 'peak_bytes', format: format.bytes },
    { key: 'peak-blocks', title: 'Blocks at the peak', column: 'peak_blocks', format: format.count },
    { key: 'live', title: 'Bytes not freed', column: 'live_bytes', format: format.bytes },
    { key: 'live-blocks', title: 'Blocks not freed', column: 'live_blocks', format: format.count },
];
const lifeValues: Value[] = [
    { key: 'count', title: 'Frees', column: 'frees', format: format.count },
    { key: 'bytes', title: 'Bytes', column: 'bytes', format: format.bytes },
];

const kinds = [['sizes', 'Sizes'], ['lifetimes', 'Lifetimes of freed blocks']] as const;
const firstLife = 6; // as base/log_histogram.h has them: bar n begins at 2^n ns, the first one at 0
const unknownLife = 64;
const unknownSize = 191;

/* All bars of all contexts, in no order. */
interface Bars {
    context: number[];
    bar: number[];
    values: Map<string, number[]>;
}

const known = new WeakMap<Profile, Map<string, Bars>>();

function barsOf(profile: Profile, kind: 'sizes' | 'lifetimes'): Bars {
    const made = known.get(profile) ?? new Map<string, Bars>();
    known.set(profile, made);
    const found = made.get(kind);
    if (found)
        return found;
    const column = (key: string) => Array.from(profile.table(`${kind}.${key}`) ?? []);
    const bars: Bars = { context: column('context'), bar: column(kind === 'sizes' ? 'bucket' : 'bar'), values: new Map() };
    const values = kind === 'sizes' ? sizeValues : lifeValues;
    values.forEach((each) => bars.values.set(each.column, column(each.column)));
    if (kind === 'sizes') // of a context with one bar its own numbers are those of the bar
        profile.column('only_size')?.forEach((only, context) => {
            if (!only)
                return;
            bars.context.push(context);
            bars.bar.push(only - 1);
            values.forEach((each) => bars.values.get(each.column)!.push(Math.max(0, profile.column(each.column)?.[context] ?? 0)));
        });
    made.set(kind, bars);
    return bars;
}

/* ---- which bars are one row ---- */

interface Row {
    first: number;
    last: number; // bars
    title: string;
    value: number;
}

/* A limit of a size class: few digits say it exactly. */
function limit(bytes: number): string {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    return `${bytes} ${units[unit]}`;
}

function sizeTitle(limits: ArrayLike<number>, first: number, last: number): string {
    if (last === unknownSize)
        return 'not known';
    const least = first ? limits[first - 1]! + 1 : 0;
    const most = limits[last];
    if (most === undefined)
        return `over ${limit(least - 1)}`;
    return most ? (most <= 1024 ? `${least} to ${most} B` : `over ${limit(least - 1)} to ${limit(most)}`) : '0 B';
}

function lifeTitle(bar: number): string {
    if (bar === unknownLife)
        return 'not known';
    return bar <= firstLife ? `below ${format.duration(2 ** (firstLife + 1))}` : `${format.duration(2 ** bar)} to ${format.duration(2 ** (bar + 1))}`;
}

/* From the first bar with anything in it to the last one; gaps between them are shown. */
function rowsOf(profile: Profile, kind: string, sums: number[], each: boolean): Row[] {
    const rows: Row[] = [];
    const limits = profile.table('size_limits.most') ?? [];
    const most = kind === 'sizes' ? unknownSize : unknownLife;
    for (let first = 0; first <= most; ) {
        let last = first;
        if (kind === 'sizes' && !each && first && first < limits.length) {
            const power = 2 ** Math.ceil(Math.log2(Math.max(16, limits[first]!)));
            while (last + 1 < limits.length && limits[last + 1]! <= power)
                last++;
        }
        let value = 0;
        for (let bar = first; bar <= last; bar++)
            value += sums[bar] ?? 0;
        rows.push({ first, last, value, title: kind === 'sizes' ? sizeTitle(limits, first, last) : lifeTitle(first) });
        first = last + 1;
    }
    const used = rows.filter((row) => row.value > 0 && row.first < (kind === 'sizes' ? limits.length : unknownLife));
    const least = used[0]?.first ?? 0;
    const greatest = used[used.length - 1]?.last ?? -1;
    return rows.filter((row) => row.value > 0 || (row.first >= least && row.last <= greatest));
}

/* ---- the view ---- */

class Histogram {
    private readonly kind: 'sizes' | 'lifetimes';
    private readonly bars: Bars;
    private readonly values: Value[];
    private readonly value: Value;
    private readonly place: number; // a context; -1: all

    constructor(
        private readonly profile: Profile,
        root: HTMLElement,
    ) {
        const kind = state.get('kind', 'sizes');
        this.kind = kind === 'lifetimes' ? 'lifetimes' : 'sizes';
        if (kind !== this.kind)
            tell(`There is no histogram of “${kind}”: sizes are shown.`);
        this.bars = barsOf(profile, this.kind);
        const has = (each: Value) => this.kind === 'lifetimes' || profile.column(each.column) !== null;
        this.values = (this.kind === 'sizes' ? sizeValues : lifeValues).filter(has);
        const wanted = state.get('value');
        this.value = this.values.find((each) => each.key === wanted) ?? this.values[0]!;
        if (wanted && this.value.key !== wanted)
            tell(`This histogram has no value “${wanted}”: ${this.value.title.toLowerCase()} is shown.`);
        const place = state.get('place');
        this.place = place ? profile.contextOf(Number(place)) : -1;
        if (place && this.place < 0)
            tell('The place that this link names is not in this profile: all places are shown.');
        this.show(root);
    }

    private numbers(): number[] {
        return this.bars.values.get(this.value.column)!;
    }

    /* Blocks of pools lie in other blocks: they are shown for their place alone. */
    private sums(): number[] {
        const sums: number[] = [];
        const pool = this.profile.column('pool');
        const values = this.numbers();
        this.bars.context.forEach((context, i) => {
            if (this.place < 0 ? !pool?.[context] : context === this.place)
                sums[this.bars.bar[i]!] = (sums[this.bars.bar[i]!] ?? 0) + values[i]!;
        });
        return sums;
    }

    /* Another choice is a step that Back takes back. */
    private go(changes: Record<string, string>): void {
        state.go('sizes', { ...state.all(), ...changes });
    }

    private show(root: HTMLElement): void {
        const { profile, value, place } = this;
        const each = state.get('steps') === 'each';
        const sums = this.sums();
        const rows = rowsOf(profile, this.kind, sums, each);
        const all = rows.reduce((sum, row) => sum + row.value, 0);
        const most = rows.reduce((greatest, row) => Math.max(greatest, row.value), 0);
        const chosen = state.get('bar');
        add(root, h('div', { class: 'tools' },
            select('Histogram', kinds, this.kind, (kind) => this.go({ kind: kind === 'sizes' ? '' : kind, value: '', bar: '' })),
            select('Value', this.values.map((one) => [one.key, one.title] as const), value.key, (key) => this.go({ value: key === this.values[0]!.key ? '' : key })),
            this.kind === 'sizes' ? select('Steps', [['', 'doublings'], ['each', 'size classes']], each ? 'each' : '', (steps) => this.go({ steps, bar: '' })) : null));
        const summary = h('p', { class: 'summary' },
            `${this.kind === 'sizes' ? 'Sizes of blocks' : 'Lifetimes of freed blocks'}${profile.sampled ? ' (estimated)' : ''}: ${value.title.toLowerCase()} ${value.format(all)} of `,
            place < 0 ? 'all places' : name(profile.title(place)), place < 0 ? '. A bar lists its places.' : '. ',
            place < 0 ? null : h('a', { href: state.link('sizes', { ...state.all(), place: '', bar: '' }) }, 'All places'));
        add(root, summary);
        if (!all) {
            add(root, h('p', { class: 'empty' }, 'There are no such blocks.'));
            return;
        }
        const table = h('ol', { class: 'histogram', 'aria-label': this.kind === 'sizes' ? 'Sizes' : 'Lifetimes' });
        let active: HTMLElement | null = null;
        for (const row of rows) {
            const bar = `${row.first}-${row.last}`;
            const on = bar === chosen;
            const body = h('span', { class: 'histogram-bar', style: { '--share': `${most ? (row.value / most) * 100 : 0}%` } });
            const link = h('a', { href: state.link('sizes', { ...state.all(), bar: on ? '' : bar }), 'aria-current': on ? 'true' : null },
            h('span', { class: 'histogram-title' }, row.title), body, h('span', { class: 'histogram-value' }, value.format(row.value)), h('span', { class: 'histogram-share' }, format.percent(row.value, all)));
            link.addEventListener('keydown', (event) => this.keyDown(event, table));
            table.append(h('li', null, link));
            active = on ? link : active;
        }
        add(root, table);
        const found = /^(\d+)-(\d+)$/.exec(chosen);
        if (chosen && !active)
            tell('This histogram has no bar like the one that this link names.');
        if (!found || !active)
            return;
        this.list(root, Number(found[1]), Number(found[2]), active.querySelector('.histogram-title')!.textContent!);
        active.focus();
    }

    private keyDown(event: KeyboardEvent, table: HTMLElement): void {
        const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
        if (!step)
            return;
        const links = [...table.querySelectorAll('a')];
        links[links.indexOf(event.currentTarget as HTMLAnchorElement) + step]?.focus();
        event.preventDefault();
    }

    /* The places whose blocks are in the bars from FIRST to LAST, with their numbers there. */
    private list(root: HTMLElement, first: number, last: number, title: string): void {
        const { profile, bars } = this;
        const shown = this.values.filter((each) => each === this.value || ['bytes', 'count', 'peak'].includes(each.key));
        const of = new Map<number, number[]>(); // by context: of the values that are shown
        const pool = profile.column('pool');
        bars.context.forEach((context, i) => {
            const bar = bars.bar[i]!;
            if (bar < first || bar > last || (this.place < 0 ? pool?.[context] : context !== this.place))
                return;
            const sums = of.get(context) ?? shown.map(() => 0);
            shown.forEach((each, at) => (sums[at] = sums[at]! + bars.values.get(each.column)![i]!));
            of.set(context, sums);
        });
        const at = shown.indexOf(this.value);
        const order = [...of.keys()].filter((context) => of.get(context)!.some((value) => value > 0)).sort((a, b) => of.get(b)![at]! - of.get(a)![at]! || a - b);
        const all = order.reduce((sum, context) => sum + of.get(context)![at]!, 0);
        const head = h('div', { class: 'row list-head', role: 'row', 'aria-rowindex': 1 },
            shown.map((each) => h('div', { class: 'cell', role: 'columnheader' }, each.title)), h('div', { class: 'cell name-cell', role: 'columnheader' }, 'Place'));
        const list = new List({
            label: `Places with blocks of ${title}`, rowHeight: 26, columns: shown.length + 1, head,
            fill: (row, index) => {
                const context = order[index]!;
                const callers = profile.callers(context, 4).join(' ‹ ');
                shown.forEach((each, column) => {
                    const value = of.get(context)![column]!;
                    const cell = h('div', { class: value ? 'cell' : 'cell none', role: 'gridcell' }, each.format(value));
                    if (column === at && value) {
                        cell.classList.add('bar');
                        cell.style.setProperty('--share', `${(value / (all || 1)) * 100}%`);
                    }
                    row.append(cell);
                });
                const where = profile.place(context);
                row.append(h('div', { class: 'cell name-cell', role: 'gridcell' }, name(profile.title(context)), where && h('span', { class: 'place' }, h('bdi', null, where)), callers && h('span', { class: 'callers' }, h('bdi', null, `‹ ${callers}`))));
            },
            open: (index) => this.detail(order[index]!),
        });
        list.element.classList.add('contexts');
        list.element.style.setProperty('--columns', String(shown.length));
        add(root, h('h3', { class: 'histogram-heading' }, `${format.plural(order.length, 'place')} with blocks of ${title}`), list.element);
        list.reset(order.length);
    }

    private detail(context: number): HTMLElement {
        const id = this.profile.column('id')![context]!;
        return h('div', { class: 'details' },
            h('p', { class: 'links' },
                h('a', { href: state.link('contexts', { by: 'stack', at: id }) }, 'In the table of places')),
            detail(this.profile.whole, context));
    }
}

export const sizes: View = {
    key: 'sizes',
    title: 'Sizes',
    missing: (page: Page) => (page.profile.table('size_limits.most') ? null : 'Sizes and lifetimes were not recorded as distributions: the profile was made by an older version, or by another program.'),
    show: (page: Page, root: HTMLElement) => void new Histogram(page.profile, root),
};
