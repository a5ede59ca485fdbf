/* contexts.ts - every place that allocates, as a table. */
import { add, h, name, searching } from './dom';
import { asText, copy, detail, tableText } from './detail';
import { filter } from './filter';
import * as format from './format';
import { List } from './list';
import { measure, told, usual, type Measure } from './measures';
import type { Profile } from './model';
import { say } from './shell';
import * as state from './state';
import type { Page, View } from './view';

const copied = 200; // rows that are copied as a table

/* Contexts with a mask, greatest value first (or least), equal ones as they are. */
function sorted(profile: Profile, values: Float64Array, mask: Uint8Array | null, up: boolean): Uint32Array {
    let count = 0;
    const order = new Uint32Array(profile.count);
    for (let i = 0; i < profile.count; i++)
        if (!mask || mask[i])
            order[count++] = i;
    const sign = up ? 1 : -1;
    return order.subarray(0, count).sort((a, b) => sign * (values[a]! - values[b]!) || a - b);
}

function byName(profile: Profile, mask: Uint8Array | null, up: boolean): Uint32Array {
    const ranks = new Float64Array(profile.names.length + 1);
    profile.names
        .map((_, index) => index)
        .sort((a, b) => (profile.names[a]! < profile.names[b]! ? -1 : 1))
        .forEach((index, rank) => (ranks[index] = rank));
    const values = Float64Array.from({ length: profile.count }, (_, i) => (profile.headName(i) < 0 ? -1 : ranks[profile.headName(i)]!));
    return sorted(profile, values, mask, up);
}

/* Contexts that had blocks in a range of time. */
function withinRange(profile: Profile, mask: Uint8Array | null): { mask: Uint8Array | null; text: string } {
    const from = state.getNumber('from', -1);
    const to = state.getNumber('to', -1);
    const first = profile.column('first_ns');
    const last = profile.column('last_free_ns');
    const live = profile.column('live_blocks');
    if (from < 0 || to < from || !first || !live)
        return { mask, text: '' };
    const kept = Uint8Array.from(first, (time, i) =>
        time <= to && (live[i]! > 0 || !last || last[i]! >= from || profile.column('last_alloc_ns')![i]! >= from) && (!mask || mask[i]) ? 1 : 0);
    return { mask: kept, text: `in use between ${format.duration(from)} and ${format.duration(to)}` };
}

class Table {
    private columns: Measure[] = [];
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
            label: 'Places that allocate', rowHeight: 26, columns: told(profile).length + 1, head: this.head,
            fill: (row, index) => this.fill(row, index),
            open: (index) => detail(profile, this.order[index]!),
            activated: (index) => state.note({ at: this.list.isOpen(index) ? '' : profile.column('id')![this.order[index]!]! }),
            key: (event, index) => {
                if (event.key === 'c')
                    void copy(asText(profile, this.order[index]!)).then((done) => say(done ? 'Copied the place at the cursor' : 'The browser does not let this page copy'));
                return event.key === 'c';
            },
        });
        this.list.element.classList.add('contexts');
        const tools = h(
            'div',
            { class: 'tools' },
            this.search, this.problem, h('span', { class: 'space' }), this.columnMenu(),
            h('button', { type: 'button', onclick: () => this.copyTable(), title: `the first ${copied} rows, with tabs between` }, 'Copy table'),
        );
        add(root, tools, this.summary, this.list.element);
        this.chooseColumns();
        this.update();
        this.openWanted();
    }

    private chooseColumns(): void {
        const all = told(this.profile);
        const usualKeys = ['peak', 'bytes', 'count', 'leaked', 'lifetime-or-age', 'accesses', 'accesses-per-byte', 'sampled-accesses'];
        const wanted = state.get('columns', (innerWidth < 700 ? [usual(this.profile).key] : usualKeys).join(' ')).split(' ');
        this.columns = all.filter((each) => wanted.includes(each.key));
        if (!this.columns.length)
            this.columns = all.slice(0, 4);
    }

    private columnMenu(): HTMLElement {
        const all = told(this.profile);
        const menu = h('details', { class: 'menu' }, h('summary', null, 'Columns'));
        const changed = () => {
            const keys = [...menu.querySelectorAll('input')].filter((box) => box.checked).map((box) => box.name);
            state.note({ columns: keys.join(' ') });
            this.chooseColumns();
            this.update();
        };
        this.chooseColumns();
        add(menu, h('div', { class: 'menu-body' }, all.map((each) =>
            h('label', { title: each.hint }, h('input', { type: 'checkbox', name: each.key, checked: this.columns.includes(each), onchange: changed }), each.title))));
        return menu;
    }

    private copyTable(): void {
        const text = tableText(this.profile, this.order.subarray(0, copied), this.columns.map((each) => each.key));
        void copy(text).then((done) => say(done ? `Copied ${format.plural(Math.min(copied, this.order.length), 'row')}` : 'The browser does not let this page copy'));
    }

    private sortKey(): string {
        return state.get('sort', (this.columns[0] ?? usual(this.profile)).key);
    }

    private heading(key: string, title: string, hint: string): HTMLElement {
        const on = this.sortKey() === key;
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

    private update(): void {
        const { profile } = this;
        const found = filter(profile, this.search.value);
        const { mask, text } = withinRange(profile, found.mask);
        const key = this.sortKey();
        const values = measure(key)?.values(profile);
        const up = state.get('order') === 'up';
        this.problem.textContent = found.problem;
        this.order = key === 'name' ? byName(profile, mask, up) : sorted(profile, values ?? profile.column('bytes')!, mask, up);
        this.head.replaceChildren();
        add(this.head, this.columns.map((each) => this.heading(each.key, each.short, each.hint)), this.heading('name', 'function', 'the innermost frame in your own code'));
        this.list.element.style.setProperty('--columns', String(this.columns.length));
        this.list.element.setAttribute('aria-colcount', String(this.columns.length + 1));
        this.list.reset(this.order.length);
        this.summarize(text);
    }

    private summarize(range: string): void {
        const { profile } = this;
        const key = (measure(this.sortKey())?.additive ? measure(this.sortKey())! : usual(profile));
        const values = key.values(profile);
        let sum = 0;
        let all = 0;
        values?.forEach((value) => (all += value));
        for (const context of this.order)
            sum += values?.[context] ?? 0;
        const share = this.order.length < profile.count ? ` of ${format.count(profile.count)}` : '';
        this.summary.replaceChildren();
        add(this.summary, `${format.count(this.order.length)}${share} ${profile.count === 1 ? 'place' : 'places'}${range ? ` ${range}` : ''}; ${key.title.toLowerCase()}: ${key.format(sum)}${share ? ` (${format.percent(sum, all)})` : ''}`);
        if (range)
            add(this.summary, ' ', h('button', { type: 'button', onclick: () => { state.note({ from: '', to: '' }); this.update(); } }, 'All times'));
    }

    private fill(row: HTMLElement, index: number): void {
        const { profile } = this;
        const context = this.order[index]!;
        for (const each of this.columns) {
            const value = each.values(profile)![context]!;
            const share = each.key === 'peak' && value ? value / profile.total.peak : 0;
            const cell = h('div', { class: value ? 'cell' : 'cell none', role: 'gridcell' }, each.format(value));
            if (share) {
                cell.classList.add('bar');
                cell.style.setProperty('--share', `${Math.min(100, share * 100)}%`);
            }
            row.append(cell);
        }
        const where = profile.place(context);
        const callers = profile.callers(context, 4).join(' ‹ ');
        row.append(h('div', { class: 'cell name-cell', role: 'gridcell' }, name(profile.title(context)), where && h('span', { class: 'place' }, h('bdi', null, where)), callers && h('span', { class: 'callers' }, h('bdi', null, `‹ ${callers}`))));
    }

    /* A link to a context shows it open. */
    private openWanted(): void {
        const wanted = state.get('at');
        const context = wanted ? this.profile.contextOf(Number(wanted)) : -1;
        const index = this.order.indexOf(context);
        if (index < 0)
            return;
        this.list.toggle(index, true);
        requestAnimationFrame(() => this.list.moveTo(index));
    }
}

export const contexts: View = {
    key: 'contexts',
    title: 'Places',
    missing: (page: Page) => (page.profile.count ? null : 'This profile has no places that allocate: nothing was allocated, or the allocations were lost.'),
    show: (page: Page, root: HTMLElement) => void new Table(page.profile, root),
};
