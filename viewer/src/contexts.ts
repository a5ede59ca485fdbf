/* contexts.ts - every place that allocates, as a table; or functions, files, modules, types, sizes of them. */
import { add, h, name, searching, select } from './dom';
import { asText, copy, detail, placeList } from './detail';
import { filter } from './filter';
import * as format from './format';
import { groupings, groupsBy, hasThreads, keptByThread, sizes, unknownOf, valuesOf, withoutRows, words, type GroupKey, type Groups } from './groups';
import { List } from './list';
import { measure, toldNumbers, usual, type Measure } from './measures';
import type { Profile } from './model';
import { say, tell } from './shell';
import { hasSource, toLine } from './source';
import { ordered } from './order';
import * as state from './state';
import { briefly, inUse } from './time';
import type { Page, View } from './view';

const copied = 200; // rows that are copied as a table

const usualWithCum = ['live-then', 'blocks-then', 'peak', 'bytes', 'count', 'leaked', 'grown', 'shrunk'];
const usualColumns = [...usualWithCum, 'lifetime-or-age', 'accesses', 'accesses-per-byte', 'sampled-accesses'];

/* Computes what the first look at the table of groups takes longest for. */
export function prepareTable(profile: Profile, key: GroupKey): void {
    const groups = groupsBy(profile, key);
    const count = sizes(profile, groups, null);
    for (const each of toldNumbers(profile).filter(({ key }) => (groups.frames ? usualWithCum : usualColumns).includes(key)))
        for (const whole of groups.frames ? [true, false] : [false])
            valuesOf(profile, groups, each, null, whole);
    ordered(valuesOf(profile, groups, usual(profile), null, false)!, count, false);
}

/* A number by group: of what it allocates itself, or with all that it calls. */
interface Column {
    measure: Measure;
    whole: boolean;
    key: string; // "peak", "cum:peak"
}

/* Ranks of the groups' titles, for sorting. */
function nameRanks(profile: Profile, groups: Groups): Float64Array {
    const ranks = new Float64Array(groups.count);
    if (groups.of || groups.rows) {
        const titles = Array.from({ length: groups.count }, (_, i) => groups.title(i));
        titles.map((_, i) => i).sort((a, b) => (titles[a]! < titles[b]! ? -1 : titles[a]! > titles[b]! ? 1 : 0)).forEach((group, rank) => (ranks[group] = rank));
        return ranks;
    }
    const byName = new Float64Array(profile.names.length);
    profile.names.map((_, i) => i).sort((a, b) => (profile.names[a]! < profile.names[b]! ? -1 : 1)).forEach((each, rank) => (byName[each] = rank));
    return ranks.map((_, i) => (profile.headName(i) < 0 ? -1 : byName[profile.headName(i)]!));
}

/* Contexts that can have had blocks at the chosen time. */
function withinRange(profile: Profile, mask: Uint8Array | null): { mask: Uint8Array | null; text: string } {
    const used = inUse(profile);
    return used ? { mask: mask ? used.map((each, i) => each & mask[i]!) : used, text: briefly(profile) } : { mask, text: '' };
}

/* Only contexts that a link names. */
function chosenOnly(profile: Profile, mask: Uint8Array | null): { mask: Uint8Array | null; text: string } {
    const ids = state.get('ids').split('.').filter(Boolean);
    if (!ids.length)
        return { mask, text: '' };
    const found = ids.map((id) => profile.contextOf(Number(id))).filter((context) => context >= 0);
    if (found.length < ids.length)
        tell(`${found.length ? 'Some of the places' : 'The places'} that this link names are not in this profile.`);
    const kept = new Uint8Array(profile.count);
    found.forEach((context) => (kept[context] = mask ? mask[context]! : 1));
    return { mask: kept, text: 'that the link names' };
}

class Table {
    private groups!: Groups;
    private columns: Column[] = [];
    private values: Float64Array[] = []; // of the columns
    private unknown: (Float64Array | null)[] = []; // of the columns: contexts of each group of which it is not recorded
    private wholeOf: number[] = []; // of the columns: the greatest value
    private count: Float64Array = new Float64Array(0); // contexts of each group
    private mask: Uint8Array | null = null;
    private order: Uint32Array = new Uint32Array(0);
    private readonly head = h('div', { class: 'row list-head', role: 'row', 'aria-rowindex': 1 });
    private readonly list: List;
    private readonly summary = h('p', { class: 'summary', role: 'status' });
    private readonly search: HTMLInputElement;
    private readonly problem = h('span', { class: 'problem', role: 'alert' });

    constructor(
        private readonly profile: Profile,
        root: HTMLElement,
    ) {
        this.search = h('input', {
            type: 'search', id: 'search', value: state.get('q'), placeholder: 'parse bytes>1M lifetime-or-age<10ms -json',
            'aria-label': 'Filter by functions, files and values', spellcheck: 'false', autocomplete: 'off',
            ...searching(() => { state.note({ q: this.search.value }); this.update(); }),
        });
        this.list = new List({
            label: 'Places that allocate', rowHeight: 26, columns: 2, head: this.head,
            fill: (row, index) => this.fill(row, index),
            open: (index) => this.detail(this.order[index]!),
            activated: (index) => state.note({ at: this.list.isOpen(index) || this.groups.frames || this.groups.rows ? '' : profile.column('id')![this.groups.first(this.order[index]!)]! }),
            key: (event, index) => {
                if (event.key === 'c')
                    void copy(this.text(this.order[index]!)).then((done) => say(done ? 'Copied the place at the cursor' : 'The browser does not let this page copy'));
                return event.key === 'c';
            },
        });
        this.list.element.classList.add('contexts');
        this.group();
        const tools = h(
            'div',
            { class: 'tools' },
            this.search, this.problem, h('span', { class: 'space' }),
            select('By', groupings.filter(([key]) => (key !== 'type' || profile.column('type')?.some((type) => type > 0)) && (key !== 'thread' || hasThreads(profile))).map(([key, title]) => [key, title] as const), this.groups.key, (value) => {
                state.note({ by: value === 'place' ? '' : value, at: '', sort: '', order: '' });
                this.group();
                this.update();
            }),
            this.columnMenu(),
            h('button', { type: 'button', onclick: () => this.copyTable(), title: `the first ${copied} rows, with tabs between` }, 'Copy table'),
        );
        add(root, tools, this.summary, this.list.element);
        const sort = state.get('sort');
        if (sort && sort !== 'name' && !this.column(sort))
            tell(`This table has no column “${sort}”: it is sorted by ${this.columns[0]!.measure.title.toLowerCase()}.`);
        this.update();
        this.openWanted();
    }

    /* ---- groups and columns ---- */

    private group(): void {
        const wanted = state.get('by', 'place');
        const known = groupings.find(([key]) => key === wanted && (key !== 'thread' || hasThreads(this.profile)));
        if (wanted === 'thread' && !known)
            tell(this.profile.unknown ? 'Which thread allocated is not recorded by time: places are shown.' : 'This profile does not have places by thread: there was one thread, or it is merged, or of an older version.');
        else if (!known)
            tell(`Places cannot be grouped by “${wanted}”.`);
        this.groups = groupsBy(this.profile, (known?.[0] ?? 'place') as GroupKey);
        this.chooseColumns();
    }

    private chooseColumns(): void {
        const all = this.numbers();
        const usualKeys = this.groups.frames ? usualWithCum : usualColumns;
        const written = state.get('columns');
        const had = all.filter(({ key }) => usualKeys.includes(key)).map(({ key }) => key);
        const room = innerWidth < 700 ? 1 : innerWidth < 900 ? (this.groups.frames ? 2 : 4) : had.length;
        const wanted = written ? written.split(' ') : had.slice(0, room);
        const unknown = written ? wanted.filter((key) => !measure(key)) : [];
        if (unknown.length)
            tell(`Unknown columns: ${unknown.join(', ')}.`);
        let chosen = all.filter((each) => wanted.some((key) => measure(key) === each));
        if (!chosen.length)
            chosen = all.slice(0, 4);
        this.columns = chosen.flatMap((each) => [
            ...(this.groups.frames && !each.together ? [{ measure: each, whole: true, key: `cum:${each.key}` }] : []),
            { measure: each, whole: false, key: each.key },
        ]);
    }

    /* The numbers that the groups have. */
    private numbers(): Measure[] {
        return toldNumbers(this.profile).filter(({ key }) => !this.groups.rows || keptByThread(key));
    }

    private columnMenu(): HTMLElement {
        const menu = h('details', { class: 'menu' }, h('summary', null, 'Columns'));
        const changed = () => {
            const keys = [...menu.querySelectorAll('input')].filter((box) => box.checked).map((box) => box.name);
            state.note({ columns: keys.join(' ') });
            this.chooseColumns();
            this.update();
        };
        add(menu, h('div', { class: 'menu-body' }, toldNumbers(this.profile).map((each) =>
            h('label', { title: each.hint }, h('input', { type: 'checkbox', name: each.key, checked: this.columns.some((column) => column.measure === each), onchange: changed }), each.title))));
        return menu;
    }

    /* The column that a key of the address means, also one that is not shown. */
    private column(key: string): Column | undefined {
        const whole = key.startsWith('cum:');
        const found = measure(whole ? key.slice(4) : key);
        return found?.values(this.profile) && (!this.groups.rows || keptByThread(found.key)) && (!whole || (this.groups.frames && !found.together)) ? { measure: found, whole, key } : undefined;
    }

    private get sortKey(): string {
        const wanted = state.get('sort');
        return wanted === 'name' || (wanted && this.column(wanted)) ? wanted : this.columns.find((each) => !each.whole)!.key;
    }

    private heading(key: string, title: string, hint: string): HTMLElement {
        const on = this.sortKey === key;
        const up = state.get('order') === 'up';
        const turn = () => {
            state.note({ sort: key, order: on && !up ? 'up' : '' });
            this.update();
            this.head.querySelector<HTMLElement>(`[data-key="${key}"]`)?.focus();
        };
        return h(
            'div',
            { class: key === 'name' ? 'cell name-cell' : 'cell', role: 'columnheader', 'aria-sort': on ? (up ? 'ascending' : 'descending') : null },
            h('button', { type: 'button', onclick: turn, title: hint, 'data-key': key }, title, on ? h('span', { class: 'arrow', 'aria-hidden': 'true' }, up ? '▴' : '▾') : null),
        );
    }

    private headings(): HTMLElement[] {
        const framed = Boolean(this.groups.frames);
        return this.columns.map((each) => {
            const kind = !framed || each.measure.together ? '' : each.whole ? 'cum ' : 'self ';
            const hint = !framed ? each.measure.hint : each.whole ? `${each.measure.hint}; with all that is called from there` : `${each.measure.hint}; allocated there itself`;
            return this.heading(each.key, `${kind}${each.measure.short}`, hint);
        });
    }

    private update(): void {
        const { profile } = this;
        const found = filter(profile, this.search.value);
        const range = withinRange(profile, found.mask);
        const named = chosenOnly(profile, range.mask);
        this.mask = named.mask;
        this.problem.textContent = found.problem;
        this.values = this.columns.map((each) => valuesOf(profile, this.groups, each.measure, this.mask, each.whole)!);
        this.wholeOf = this.columns.map((each, at) => (each.measure.key === 'live-then' ? this.values[at]!.reduce((most, value) => Math.max(most, value), 0) : 0));
        this.unknown = this.columns.map((each) => unknownOf(profile, this.groups, each.measure, this.mask, each.whole));
        this.count = sizes(profile, this.groups, this.mask);
        const key = this.sortKey;
        const by = this.columns.findIndex((each) => each.key === key);
        const other = this.column(key);
        const values = by >= 0 ? this.values[by]! : other ? valuesOf(profile, this.groups, other.measure, this.mask, other.whole)! : nameRanks(profile, this.groups);
        this.order = ordered(values, this.count, state.get('order') === 'up');
        this.head.replaceChildren();
        add(this.head, this.headings(), this.heading('name', words[this.groups.key], this.groups.key === 'place' || this.groups.key === 'stack' ? 'the innermost frame in your own code' : groupings.find(([each]) => each === this.groups.key)![2]));
        this.list.element.style.setProperty('--columns', String(this.columns.length));
        this.list.element.setAttribute('aria-colcount', String(this.columns.length + 1));
        this.list.reset(this.order.length);
        this.summarize([range.text, named.text].filter(Boolean).join(', '));
    }

    private summarize(limits: string): void {
        const { profile, mask, groups } = this;
        const sort = measure(this.sortKey.replace('cum:', ''));
        const key = sort?.additive ? sort : usual(profile);
        const values = key.values(profile);
        let sum = 0;
        let all = 0;
        let contexts = 0;
        for (let context = 0; values && context < values.length; context++) {
            const shown = !mask || mask[context] ? 1 : 0;
            all += values[context]!;
            sum += shown ? values[context]! : 0;
            contexts += shown;
        }
        const some = contexts < profile.count;
        const { order } = this;
        const total = some && (groups.key === 'stack' || groups.key === 'place') ? ` of ${format.count(groups.count)}` : '';
        const rows = `${format.count(order.length)}${total} ${(total ? groups.count : order.length) === 1 ? words[groups.key] : `${words[groups.key]}${groups.key === 'size' ? 'es' : 's'}`}`;
        const stacks = (groups.of || groups.rows) && contexts !== order.length ? ` (${format.plural(contexts, 'call stack')})` : '';
        const missing = withoutRows(groups, mask, profile.column('pool'), profile.count);
        this.summary.replaceChildren();
        add(this.summary, `${rows}${limits ? ` ${limits}` : ''}${stacks}; ${key.title.toLowerCase()}: ${key.format(sum)}${some ? ` (${format.percent(sum, all)})` : ''}${missing ? `; ${format.plural(missing, 'call stack')} of it not known by thread` : ''}`);
        if (state.get('ids'))
            add(this.summary, ' ', h('button', { type: 'button', onclick: () => { state.note({ ids: '' }); this.update(); } }, 'All places'));
    }

    /* ---- rows ---- */

    private get single(): boolean {
        return this.groups.key === 'place' || this.groups.key === 'stack';
    }

    private fill(row: HTMLElement, index: number): void {
        const { profile, groups } = this;
        const group = this.order[index]!;
        this.columns.forEach((each, at) => {
            const value = this.values[at]![group]!;
            const share = each.measure.key === 'peak' && value ? value / profile.total.peak : each.measure.key === 'live-then' ? value / (this.wholeOf[at] || 1) : 0;
            const unknown = this.unknown[at]?.[group] ?? 0;
            const more = (groups.of && each.measure.key === 'threads' && this.count[group]! > 1) || unknown ? '≥ ' : '';
            const cell = h('div', { class: value ? 'cell' : 'cell none', role: 'gridcell', title: unknown ? (groups.rows ? 'not known by thread where other threads freed blocks of a place' : 'not recorded for this time') : null }, unknown && !value ? '?' : more + each.measure.format(value));
            if (share) {
                cell.classList.add('bar');
                cell.style.setProperty('--share', `${Math.min(100, share * 100)}%`);
            }
            row.append(cell);
        });
        const where = groups.where(group);
        const title = groups.title(group);
        const callers = this.single ? profile.callers(this.groups.first(group), 4).join(' ‹ ') : '';
        const several = groups.key === 'place' && this.count[group]! > 1 ? h('span', { class: 'place' }, `${format.count(this.count[group]!)} call stacks`) : null;
        const link = groups.key === 'function' ? h('a', { class: 'to-sandwich', href: state.link('sandwich', { f: title }), title: 'callers and callees', tabindex: -1 }, '⇅') : null;
        row.append(h('div', { class: 'cell name-cell', role: 'gridcell' }, link, name(title), where && h('span', { class: 'place' }, h('bdi', null, where)), several, callers && h('span', { class: 'callers' }, h('bdi', null, `‹ ${callers}`))));
    }

    private detail(group: number): HTMLElement {
        const { profile, groups } = this;
        const contexts = groups.contexts(group).filter((context) => !this.mask || this.mask[context]);
        if (this.single && contexts.length === 1)
            return this.details(contexts[0]!);
        const shown = usual(profile);
        const places = placeList(profile, contexts);
        const title = groups.title(group);
        const links = groups.key === 'function' ? h('p', { class: 'links' },
            h('a', { href: state.link('sandwich', { f: title }) }, 'Callers and callees'),
            h('a', { href: state.link('contexts', { q: `"${title.replaceAll('"', '')}"` }) }, 'Places with it on the stack'),
            h('a', { href: state.link('flame', { focus: title }) }, 'Flame graph'),
            hasSource(profile) ? h('a', { href: state.link('source', { f: title }) }, 'Source') : null) : this.sourceLink(group);
        if (this.single)
            return h('div', { class: 'details' },
                h('div', { class: 'detail' }, h('div', null, h('p', { class: 'caption' }, `${format.count(contexts.length)} call stacks that differ only in recursion; by ${shown.title.toLowerCase()}. Below, the one with most bytes.`), places)),
                this.details(contexts[0]!));
        return h('div', { class: 'detail' }, h('div', { class: 'stacks' },
            h('p', { class: 'caption' }, groups.rows ? `${format.plural(contexts.length, 'call stack')}; their numbers are those of all threads` : contexts.length ? `${format.plural(contexts.length, 'call stack')} allocate${contexts.length === 1 ? 's' : ''} here` : 'Nothing is allocated here itself, only by what is called from here'), places, links));
    }

    /* Of a group that is a file or a line of one. */
    private sourceLink(group: number): HTMLElement | null {
        const { profile, groups } = this;
        if (groups.key !== 'file' && groups.key !== 'line')
            return null;
        const to = toLine(profile, groups.where(group), groups.key === 'line' ? Number(groups.title(group).split(':').pop()) : 0);
        return to ? h('p', { class: 'links' }, h('a', { href: to }, 'Source')) : null;
    }

    /* All that is known of a context: of the whole run, which a heading says where something else is shown. */
    private details(context: number): HTMLElement {
        const { profile } = this;
        const known = detail(profile.whole, context);
        return profile.unknown ? h('div', { class: 'details' }, h('p', { class: 'caption' }, 'Of the whole run'), known) : known;
    }

    /* ---- copies, links ---- */

    private text(group: number): string {
        const { groups, profile } = this;
        if (this.single && groups.contexts(group).length === 1)
            return asText(profile, this.groups.first(group));
        const lines = this.columns.map((each, at) => `  ${each.whole ? 'cum ' : ''}${each.measure.title}: ${each.measure.format(this.values[at]![group]!)}`);
        return [groups.title(group), ...lines, ...(this.single ? profile.stack(this.groups.first(group)).map((frame) => `    ${frame.name}`) : [])].join('\n') + '\n';
    }

    private copyTable(): void {
        const clean = (text: string) => text.replace(/[\t\n]/g, ' ');
        const word = words[this.groups.key];
        const titles = [...this.columns.map((each) => `${each.whole ? 'cum ' : ''}${each.measure.title}`), this.single ? 'Function' : word[0]!.toUpperCase() + word.slice(1), 'Where'];
        const rows = [...this.order.subarray(0, copied)].map((group) => [...this.columns.map((each, at) => each.measure.format(this.values[at]![group]!)), clean(this.groups.title(group)), clean(this.groups.where(group))]);
        void copy([titles, ...rows].map((row) => row.join('\t')).join('\n') + '\n').then((done) => say(done ? `Copied ${format.plural(rows.length, 'row')}` : 'The browser does not let this page copy'));
    }

    /* A link to a context shows it open. */
    private openWanted(): void {
        const wanted = state.get('at');
        if (!wanted)
            return;
        const context = this.profile.contextOf(Number(wanted));
        const index = context < 0 ? -1 : this.order.indexOf(this.groups.of ? this.groups.of[context]! : context);
        if (context < 0)
            tell(`This profile has no place ${wanted}.`);
        else if (index < 0)
            tell(`Place ${wanted} is not among those that are shown: the filter leaves it out.`);
        if (index < 0)
            return;
        this.list.toggle(index, true);
        requestAnimationFrame(() => this.list.moveTo(index));
    }
}

export const contexts: View = {
    key: 'contexts',
    title: 'Places',
    timed: true,
    missing: (page: Page) => (page.profile.count ? null : 'This profile has no places that allocate: nothing was allocated, or the allocations were lost.'),
    show: (page: Page, root: HTMLElement) => void new Table(page.profile, root),
};
