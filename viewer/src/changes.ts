/* changes.ts - what has changed since the baseline, by the functions on the stack: moved lines and addresses are the
 * same place. */
import { add, h, name, searching, select } from './dom';
import { treeOf } from './flame';
import * as format from './format';
import { List } from './list';
import { measure, told, usual } from './measures';
import * as state from './state';
import type { CallTree } from './tree';
import type { Page, View } from './view';

interface Change {
    node: number;
    before: number;
    after: number;
}

function changes(page: Page, tree: CallTree, key: string, word: string): Change[] {
    const of = measure(key)!;
    const after = tree.own(0, of.values(page.profile)!);
    const old = of.values(page.baseline!);
    const before = old ? tree.own(1, old) : new Float64Array(tree.size);
    const hit = Uint8Array.from(tree.names, (text) => (text.toLowerCase().includes(word) ? 1 : 0));
    const within = new Uint8Array(tree.size);
    const found: Change[] = [];
    for (let node = 1; node < tree.size; node++) {
        within[node] = within[tree.parent[node]!]! | hit[tree.name[node]!]!;
        if (within[node] && after[node] !== before[node])
            found.push({ node, before: before[node]!, after: after[node]! });
    }
    return found.sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before) || a.node - b.node);
}

class Changes {
    private found: Change[] = [];
    private readonly tree: CallTree;
    private readonly list: List;
    private readonly summary = h('p', { class: 'summary', role: 'status' });
    private readonly search: HTMLInputElement;

    constructor(
        private readonly page: Page,
        root: HTMLElement,
    ) {
        this.tree = treeOf(page, false);
        this.search = h('input', { type: 'search', id: 'search', value: state.get('q'), placeholder: 'Filter functions', 'aria-label': 'Filter functions', spellcheck: 'false', autocomplete: 'off',
            ...searching(() => { state.note({ q: this.search.value }); this.update(); }) });
        const head = h('div', { class: 'row list-head', role: 'row', 'aria-rowindex': 1 }, ['change', 'before', 'after', ''].map((text) => h('div', { class: 'cell', role: 'columnheader' }, text)), h('div', { class: 'cell name-cell', role: 'columnheader' }, 'stack, innermost function first'));
        this.list = new List({ label: 'Changes', rowHeight: 26, columns: 5, head, fill: (row, index) => this.fill(row, this.found[index]!), open: (index) => this.open(this.found[index]!) });
        const values = told(page.profile).filter((each) => each.additive);
        add(root, h('div', { class: 'tools' }, this.search, h('span', { class: 'space' }), select('Value', values.map((each) => [each.key, each.title] as const), this.key, (value) => { state.note({ value }); this.update(); })), this.summary, this.list.element);
        this.update();
    }

    private get key(): string {
        const wanted = measure(state.get('value'));
        return wanted?.additive && wanted.values(this.page.profile) ? wanted.key : usual(this.page.profile).key;
    }

    private update(): void {
        const of = measure(this.key)!;
        this.found = changes(this.page, this.tree, this.key, this.search.value.trim().toLowerCase());
        const more = this.found.reduce((sum, each) => sum + Math.max(0, each.after - each.before), 0);
        const less = this.found.reduce((sum, each) => sum + Math.max(0, each.before - each.after), 0);
        this.summary.textContent = `${format.plural(this.found.length, 'stack')} changed; ${of.title.toLowerCase()}: ${of.format(more)} more, ${of.format(less)} less`;
        this.list.reset(this.found.length);
    }

    private fill(row: HTMLElement, change: Change): void {
        const of = measure(this.key)!;
        const by = change.after - change.before;
        const path = this.tree.path(change.node).reverse();
        const word = !change.before ? 'new' : !change.after ? 'gone' : `${by > 0 ? '+' : '−'}${Math.abs((by / change.before) * 100).toFixed(0)} %`;
        add(row, h('div', { class: by > 0 ? 'cell more' : 'cell less', role: 'gridcell' }, format.change(by, of.format)),
            [change.before, change.after].map((value) => h('div', { class: value ? 'cell' : 'cell none', role: 'gridcell' }, of.format(value))),
            h('div', { class: 'cell', role: 'gridcell' }, word),
            h('div', { class: 'cell name-cell', role: 'gridcell' }, name(path[0] ?? ''), h('span', { class: 'callers' }, h('bdi', null, path.slice(1, 5).map((each) => `‹ ${each}`).join(' ')))));
    }

    private open(change: Change): { element: HTMLElement; height: number } {
        const path = this.tree.path(change.node).reverse();
        const lines = Math.min(30, path.length + 1);
        return {
            element: h('div', { class: 'detail', tabindex: 0, role: 'group', 'aria-label': 'Call stack' }, h('div', null, h('p', { class: 'caption' }, 'Allocated by'), h('ol', { class: 'stack' }, path.map((each) => h('li', null, name(each)))))),
            height: lines * 20 + 24,
        };
    }
}

export const comparison: View = {
    key: 'changes',
    title: 'Changes',
    missing: (page: Page) => (page.baseline ? null : '“heapwise view --baseline OLD NEW” shows what has changed.'),
    show: (page: Page, root: HTMLElement) => void new Changes(page, root),
};
