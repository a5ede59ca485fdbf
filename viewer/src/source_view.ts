/* source_view.ts - source files with what their lines allocate: the sums of the table by source line. */
import { add, h, name, replace, select } from './dom';
import { placeList } from './detail';
import * as format from './format';
import { groupsBy, valuesOf } from './groups';
import { List } from './list';
import { measure as measureOf, told, usual, wholeOf, type Measure } from './measures';
import { baseName, type Profile } from './model';
import { tell } from './shell';
import { hasSource, sourceOf, type SourceFile } from './source';
import * as state from './state';
import type { Page, View } from './view';

/* A row: a line, or what is left out between two. */
interface Row {
    number: number; // 0: lines are left out
    text: string;
    group: number; // in the groups by line; -1: nothing is allocated there
}

class Source {
    private rows: Row[] = [];
    private whole = 1;
    private cum: Float64Array = new Float64Array(0);
    private self: Float64Array = new Float64Array(0);
    private readonly files: SourceFile[];
    private readonly body = h('div', { class: 'source-body' });

    constructor(
        private readonly profile: Profile,
        root: HTMLElement,
    ) {
        const values = told(profile).filter((each) => each.additive);
        const wanted = state.get('value');
        if (wanted && !values.some((each) => each === measureOf(wanted)))
            tell(`This profile has no value “${wanted}” that adds up: ${this.measure.title.toLowerCase()} is shown.`);
        this.files = this.ordered();
        const file = this.wantedFile();
        add(root, h('div', { class: 'tools' },
            select('File', this.files.map((each) => [each.name, this.files.some((other) => other !== each && baseName(other.name) === baseName(each.name)) ? each.name : baseName(each.name)] as const), file.name, (value) => state.go('source', { file: value, value: state.get('value') })),
            h('span', { class: 'space' }),
            select('Value', values.map((each) => [each.key, each.title] as const), this.measure.key, (value) => { state.note({ value }); this.show(this.wantedFile()); })), this.body);
        this.show(file);
    }

    private get measure(): Measure {
        const wanted = measureOf(state.get('value'));
        return wanted?.additive && wanted.values(this.profile) ? wanted : usual(this.profile);
    }

    /* Those that allocate most first; then those that were not read. */
    private ordered(): SourceFile[] {
        const { profile } = this;
        const groups = groupsBy(profile, 'file');
        const sums = valuesOf(profile, groups, this.measure, null, true)!;
        const byName = new Map<string, number>();
        for (let group = 0; group < groups.count; group++)
            byName.set(groups.where(group), sums[group]!);
        const of = (file: SourceFile) => (file.lines.length ? byName.get(file.name) ?? 0 : -1);
        return [...sourceOf(profile).values()].sort((a, b) => of(b) - of(a));
    }

    /* The file that the address names; that of a function; else the first one. */
    private wantedFile(): SourceFile {
        const { profile } = this;
        const wanted = state.get('file');
        const chosen = state.get('f');
        const first = this.files[0]!;
        if (chosen) {
            const lines = linesOf(profile, chosen);
            const files = new Map<number, number[]>();
            for (const [file, line] of lines)
                if (sourceOf(profile).get(file)?.lines.length)
                    files.set(file, [...(files.get(file) ?? []), line]);
            const best = [...files].sort((a, b) => b[1].length - a[1].length)[0];
            if (best) {
                const file = sourceOf(profile).get(best[0])!;
                state.note({ f: '', file: file.name, line: Math.min(...best[1]) });
                return file;
            }
            tell(profile.names.includes(chosen) ? `This page has no source of “${chosen}”.` : `This profile has no function “${chosen}”.`);
            return first;
        }
        const found = this.files.find((each) => each.name === wanted);
        if (wanted && !found)
            tell(`This page has no source of “${wanted}”.`);
        return found ?? first;
    }

    private show(file: SourceFile): void {
        const { profile, measure } = this;
        const groups = groupsBy(profile, 'line');
        this.cum = valuesOf(profile, groups, measure, null, true)!;
        this.self = valuesOf(profile, groups, measure, null, false)!;
        this.whole = wholeOf(profile, measure) || 1;
        const group = (line: number) => groups.frames!.line(file.number, line);
        this.rows = [];
        let last = 0;
        for (const line of file.lines) {
            if (line.number > last + 1)
                this.rows.push({ number: 0, text: '', group: -1 });
            this.rows.push({ ...line, group: group(line.number) });
            last = line.number;
        }
        const digits = String(last).length;
        const head = h('div', { class: 'row list-head', role: 'row', 'aria-rowindex': 1 },
            h('div', { class: 'cell', role: 'columnheader', title: `${measure.title}; with all that is called from there` }, `cum ${measure.short}`),
            h('div', { class: 'cell', role: 'columnheader', title: `${measure.title}; allocated by the line itself` }, `self ${measure.short}`),
            h('div', { class: 'cell line-number', role: 'columnheader' }, 'line'), h('div', { class: 'cell name-cell', role: 'columnheader' }, 'source'));
        const list = new List({ label: 'Lines of source', rowHeight: 20, columns: 4, head, fill: (row, index) => this.fill(row, this.rows[index]!), open: (index) => this.places(this.rows[index]!) });
        list.element.style.setProperty('--digits', String(digits));
        list.reset(this.rows.length);
        replace(this.body,
            h('p', { class: 'summary' }, name(file.path || file.name, 'name whole'), `: ${measure.title.toLowerCase()}`, file.path && file.path !== file.name ? [' (built as ', name(file.name, 'name whole'), ')'] : null),
            file.problem ? h('p', { class: 'warning', role: 'note' }, file.problem) : null,
            file.lines.length ? list.element : null);
        const wanted = state.getNumber('line', 0);
        const index = this.rows.findIndex((row) => row.number === wanted);
        if (wanted && index < 0)
            tell(`Line ${wanted} of ${baseName(file.name)} is not in this page.`);
        if (index >= 0)
            requestAnimationFrame(() => {
                list.moveTo(Math.min(this.rows.length - 1, index + 12));
                list.moveTo(index);
            });
    }

    private fill(row: HTMLElement, line: Row): void {
        const { measure } = this;
        if (!line.number) {
            row.append(h('div', { class: 'cell skipped', role: 'gridcell' }, '⋯'));
            return;
        }
        const values = line.group < 0 ? [0, 0] : [this.cum[line.group]!, this.self[line.group]!];
        values.forEach((value, at) => {
            const cell = h('div', { class: value ? 'cell' : 'cell none', role: 'gridcell' }, line.group < 0 ? '' : measure.format(value));
            if (value && !at) {
                cell.classList.add('bar');
                cell.style.setProperty('--share', `${Math.min(100, (value / this.whole) * 100)}%`);
            }
            row.append(cell);
        });
        row.classList.toggle('counted', line.group >= 0);
        row.classList.toggle('wanted', line.number === state.getNumber('line', 0));
        row.append(h('div', { class: 'cell line-number', role: 'gridcell' }, String(line.number)), h('div', { class: 'cell name-cell code', role: 'gridcell' }, h('bdi', null, line.text)));
    }

    /* What is allocated at a line. */
    private places(line: Row): HTMLElement {
        const { profile } = this;
        const contexts = line.group < 0 ? [] : groupsBy(profile, 'line').contexts(line.group);
        const text = line.group < 0 ? 'Nothing is allocated here.'
            : contexts.length ? `${format.plural(contexts.length, 'call stack')} allocate${contexts.length === 1 ? 's' : ''} here`
                : 'Nothing is allocated here itself, only by what is called from here';
        return h('div', { class: 'detail' }, h('div', { class: 'stacks' }, h('p', { class: 'caption' }, text), placeList(profile, contexts)));
    }
}

/* File and line of each frame of a function, once. */
function linesOf(profile: Profile, chosen: string): [number, number][] {
    const number = profile.names.indexOf(chosen);
    const found = new Map<number, [number, number]>();
    profile.frameName.forEach((each, frame) => {
        if (each === number && number >= 0)
            found.set(profile.fileNumber(frame) * 2 ** 24 + profile.lineOf(frame), [profile.fileNumber(frame), profile.lineOf(frame)]);
    });
    return [...found.values()];
}

export const source: View = {
    key: 'source',
    title: 'Source',
    timed: true,
    missing: (page: Page) => (!hasSource(page.profile) ? 'This page was written without source lines: heapwise view --source puts them in, where the files can be read.'
        : sourceOf(page.profile).size ? null : 'No source lines of this program are known: they need its debug information (-g).'),
    show: (page: Page, root: HTMLElement) => void new Source(page.profile, root),
};
