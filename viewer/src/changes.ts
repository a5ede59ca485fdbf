/* changes.ts - what has changed since the baseline, by place: the list of heapwise diff. */
import { add, h, name, searching, select } from './dom';
import { copy, detail } from './detail';
import type { Compared, Comparison } from './comparison';
import * as format from './format';
import { List } from './list';
import { say } from './shell';
import { namesWith, within } from './stacks';
import * as state from './state';
import type { Page, View } from './view';

/* Places that changed, greatest change first, as heapwise diff has them. */
function changed(comparison: Comparison, key: string, word: string): Uint32Array {
    const before = comparison.before(key);
    const after = comparison.after(key);
    const found = word ? within(comparison.stacks, namesWith(comparison.stacks.names, word)) : null;
    const size = (place: number) => Math.abs(after[place]! - before[place]!);
    return Uint32Array.from({ length: comparison.count }, (_, place) => place)
        .filter((place) => after[place] !== before[place] && (!found || found[comparison.leaf(place)]))
        .sort((a, b) => size(b) - size(a) || a - b);
}

class Changes {
    private order: Uint32Array = new Uint32Array(0);
    private readonly list: List;
    private readonly summary = h('p', { class: 'summary', role: 'status' });
    private readonly search: HTMLInputElement;

    constructor(
        private readonly page: Page,
        private readonly comparison: Comparison,
        root: HTMLElement,
    ) {
        this.search = h('input', { type: 'search', id: 'search', value: state.get('q'), placeholder: 'Filter functions', 'aria-label': 'Filter functions', spellcheck: 'false', autocomplete: 'off',
            ...searching(() => { state.note({ q: this.search.value }); this.update(); }) });
        const head = h('div', { class: 'row list-head', role: 'row', 'aria-rowindex': 1 }, ['change', 'before', 'after', ''].map((text) => h('div', { class: 'cell', role: 'columnheader' }, text)), h('div', { class: 'cell name-cell', role: 'columnheader' }, 'function'));
        this.list = new List({
            label: 'Changes', rowHeight: 26, columns: 5, head,
            fill: (row, index) => this.fill(row, this.order[index]!),
            open: (index) => this.open(this.order[index]!),
            key: (event, index) => {
                if (event.key === 'c')
                    void copy(this.text(this.order[index]!)).then((done) => say(done ? 'Copied the place at the cursor' : 'The browser does not let this page copy'));
                return event.key === 'c';
            },
        });
        const chosen = (value: string) => { state.note({ value }); this.update(); };
        add(root, h('div', { class: 'tools' }, this.search, h('span', { class: 'space' }), select('Value', comparison.measures.map((each) => [each.key, each.title] as const), this.measure.key, chosen)),
            comparison.notes.length ? h('ul', { class: 'notes' }, comparison.notes.map((text) => h('li', null, text))) : null,
            this.summary, this.list.element);
        this.update();
    }

    private get measure(): Compared {
        const { measures, usual } = this.comparison;
        return measures.find((each) => each.key === state.get('value')) ?? measures.find((each) => each.key === usual) ?? measures[0]!;
    }

    private update(): void {
        const of = this.measure;
        this.order = changed(this.comparison, of.key, this.search.value.trim().toLowerCase());
        let more = 0;
        let less = 0;
        for (const place of this.order) {
            const by = this.change(place);
            more += Math.max(0, by);
            less += Math.max(0, -by);
        }
        this.summary.textContent = `${of.title[0]!.toUpperCase()}${of.title.slice(1)}: ${of.format(of.after)}, before ${of.format(of.before)} (${format.change(of.after - of.before, of.format)}). ` +
            `${format.plural(this.order.length, 'place')} changed: ${of.format(more)} more, ${of.format(less)} less.`;
        this.list.reset(this.order.length);
    }

    private change(place: number): number {
        const { key } = this.measure;
        return this.comparison.after(key)[place]! - this.comparison.before(key)[place]!;
    }

    /* The profile and the context that show a place. */
    private shown(place: number): [Page['profile'], number] {
        const now = this.comparison.contextNow(place);
        return now >= 0 ? [this.page.profile, now] : [this.page.baseline!, this.comparison.contextBefore(place)];
    }

    private fill(row: HTMLElement, place: number): void {
        const { key, format: said } = this.measure;
        const { comparison } = this;
        const [profile, context] = this.shown(place);
        const by = this.change(place);
        const was = comparison.before(key)[place]!;
        const word = comparison.contextBefore(place) < 0 ? 'new' : comparison.contextNow(place) < 0 ? 'gone' : was ? `${by > 0 ? '+' : '−'}${Math.abs((by / was) * 100).toFixed(0)} %` : '';
        const where = profile.place(context);
        const callers = profile.callers(context, 4).join(' ‹ ');
        add(row,
            h('div', { class: `cell ${by > 0 ? 'more' : 'less'}`, role: 'gridcell' }, format.change(by, said)),
            [was, comparison.after(key)[place]!].map((value) => h('div', { class: value ? 'cell' : 'cell none', role: 'gridcell' }, said(value))),
            h('div', { class: 'cell', role: 'gridcell' }, word),
            h('div', { class: 'cell name-cell', role: 'gridcell' }, name(profile.title(context)), where && h('span', { class: 'place' }, h('bdi', null, where)), callers && h('span', { class: 'callers' }, h('bdi', null, `‹ ${callers}`))));
    }

    private text(place: number): string {
        const [profile, context] = this.shown(place);
        const values = this.comparison.measures.map((each) => `  ${each.title}: ${each.format(this.comparison.before(each.key)[place]!)} → ${each.format(this.comparison.after(each.key)[place]!)}`);
        return [profile.title(context), ...values, ...profile.stack(context).map((frame) => `    ${frame.name}`)].join('\n') + '\n';
    }

    /* All values before and after, above what is known of the context that shows the place. */
    private open(place: number): HTMLElement {
        const { comparison } = this;
        const [profile, context] = this.shown(place);
        const rows = comparison.measures.filter((each) => comparison.before(each.key)[place] || comparison.after(each.key)[place]);
        const stacks = [[comparison.contextsBefore(place), 'before'], [comparison.contextsNow(place), 'after']] as const;
        const several = stacks.filter(([count]) => count > 1).map(([count, when]) => `${format.plural(count, 'call stack')} ${when}`);
        const table = h('table', { class: 'compared' },
            h('thead', null, h('tr', null, h('th', { scope: 'col', class: 'text' }, 'value'), ['before', 'after', 'change'].map((text) => h('th', { scope: 'col', class: 'number' }, text)))),
            h('tbody', null, rows.map((each) => {
                const before = comparison.before(each.key)[place]!;
                const after = comparison.after(each.key)[place]!;
                return h('tr', null, h('td', null, each.title), [each.format(before), each.format(after), format.change(after - before, each.format)].map((text) => h('td', { class: 'number' }, text)));
            })));
        return h('div', { class: 'details' },
            h('div', { class: 'detail' }, table, h('p', { class: 'caption' }, `Below: ${profile === this.page.profile ? 'the place in this profile' : 'the place in the baseline'}${several.length ? `, of ${several.join(' and ')} the one with most bytes` : ''}.`)),
            detail(profile, context));
    }
}

export const comparison: View = {
    key: 'changes',
    title: 'Changes',
    missing: (page: Page) => (page.comparison ? null : '“heapwise view --baseline OLD NEW” shows what has changed.'),
    show: (page: Page, root: HTMLElement) => void new Changes(page, page.comparison!, root),
};
