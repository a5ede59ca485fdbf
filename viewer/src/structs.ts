/* structs.ts - fields as they lie in cache lines, how hot they are, which are used together; today's layout beside the
 * suggested one. */
import { add, h, name, replace } from './dom';
import { copy, placeLinks } from './detail';
import { heatColor, heatShare } from './flame_layout';
import * as format from './format';
import type { Profile } from './model';
import type { Field, Struct } from './report';
import { isDark, onTheme, say, tell } from './shell';
import * as state from './state';
import type { Page, View } from './view';

const lineBytes = 64;
const mostLines = 24; // that are drawn

const uses = (field: Field) => (field.reads ?? 0) + (field.writes ?? 0);

function accessText(field: Field): string {
    if (uses(field))
        return `${format.count(field.reads ?? 0)} reads, ${format.count(field.writes ?? 0)} writes`;
    if (field.used_by_uncounted_code)
        return 'not accessed by code that counts';
    return field.possible_reads || field.possible_writes ? 'accessed as a part alone' : 'never accessed directly';
}

/* A piece of a field within one line. */
function piece(field: Field, line: number, most: number): HTMLElement {
    const from = Math.max(field.offset, line * lineBytes);
    const to = Math.min(field.offset + Math.max(1, field.size), (line + 1) * lineBytes);
    const count = uses(field);
    const bits = field.bit_size ? `, ${format.plural(field.bit_size, 'bit')}` : '';
    const box = h('div', { class: count ? 'field' : 'field unused', title: `${field.name ?? '(no name)'}: ${field.type ?? ''} at ${field.offset}, ${format.plural(field.size, 'byte')}${bits}; ${accessText(field)}` },
        h('bdi', null, from === field.offset || from % lineBytes === 0 ? field.name ?? '' : ''));
    box.style.left = `${((from - line * lineBytes) / lineBytes) * 100}%`;
    box.style.width = `${((to - from) / lineBytes) * 100}%`;
    if (count)
        box.style.background = heatColor(heatShare(count, most), isDark());
    return box;
}

/* Lines of a layout; what overlaps (unions, bit fields) shares the height. */
function lines(fields: Field[], size: number, most: number): HTMLElement {
    const count = Math.min(mostLines, Math.ceil(size / lineBytes) || 1);
    const rows: HTMLElement[] = [];
    for (let line = 0; line < count; line++) {
        const within = fields.filter((field) => field.offset < (line + 1) * lineBytes && field.offset + Math.max(1, field.size) > line * lineBytes);
        const row = h('div', { class: 'line' });
        const ends: number[] = [];
        const boxes = within.map((field) => {
            let lane = ends.findIndex((end) => end <= field.offset);
            if (lane < 0)
                lane = ends.length;
            ends[lane] = field.offset + Math.max(1, field.size);
            const box = piece(field, line, most);
            box.dataset.lane = String(lane);
            return box;
        });
        for (const box of boxes) {
            box.style.top = `${(Number(box.dataset.lane) / ends.length) * 100}%`;
            box.style.height = `${100 / ends.length}%`;
        }
        const last = (line + 1) * lineBytes;
        if (last > size) {
            const end = h('div', { class: 'beyond' });
            end.style.left = `${((size - line * lineBytes) / lineBytes) * 100}%`;
            row.append(end);
        }
        add(row, boxes);
        rows.push(h('div', { class: 'line-row' }, h('span', { class: 'offset' }, line * lineBytes), row));
    }
    return h('div', { class: 'lines' }, rows, Math.ceil(size / lineBytes) > count ? h('p', { class: 'summary' }, `… and ${format.plural(Math.ceil(size / lineBytes) - count, 'more line')}`) : null);
}

function layouts(structure: Struct): HTMLElement {
    const most = Math.max(1, ...structure.fields.map(uses));
    const suggestion = structure.suggestion;
    const today = h('div', null, h('h4', null, `Today: ${format.bytes(structure.size)}${structure.lines_per_use ? `, ${structure.lines_per_use.toFixed(2)} lines per use${structure.objects?.starts_assumed ? ', on average over all places in a line where blocks can begin (not counted)' : ''}` : ''}`), lines(structure.fields, structure.size, most));
    if (!suggestion)
        return h('div', { class: 'layouts' }, today, structure.order_stays_because ? h('p', { class: 'summary' }, `No other order is suggested: ${structure.order_stays_because}`) : null);
    const known = new Map(structure.fields.map((field) => [`${field.name}/${field.size}`, field]));
    const filled = suggestion.layout.map((field) => ({ ...known.get(`${field.name}/${field.size}`), ...field }) as Field);
    const part = (title: string, fields: Field[], size: number) => [h('h4', null, title), lines(fields, size, most)];
    const after = suggestion.lines_after ? `, ${suggestion.lines_after.toFixed(2)} lines per use` : '';
    const split = suggestion.kind === 'split';
    return h('div', { class: 'layouts two' }, today,
        h('div', null,
            part(`Suggested: ${format.bytes(suggestion.size_after ?? structure.size)}${after}`, split ? filled.filter((field) => field.part !== 'cold') : filled, suggestion.size_after ?? structure.size),
            split ? part(`The cold part, apart: ${format.bytes(suggestion.cold_size ?? 0)}`, filled.filter((field) => field.part === 'cold'), suggestion.cold_size ?? 0) : null));
}

function fieldTable(structure: Struct): HTMLElement {
    const most = Math.max(1, ...structure.fields.map(uses));
    return h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Fields' }, h('table', { class: 'fields' },
        h('caption', { class: 'offscreen' }, 'Fields'),
        h('thead', null, h('tr', null, ['offset', 'bytes', 'reads', 'writes'].map((text) => h('th', { scope: 'col' }, text)), h('td', { class: 'share' }), h('th', { scope: 'col' }, 'field'))),
        h('tbody', null, structure.fields.map((field) => {
            const bar = h('div', { class: 'fill' });
            bar.style.width = `${(uses(field) / most) * 100}%`;
            return h('tr', null,
                h('td', { class: 'number' }, field.offset), h('td', { class: 'number' }, field.size),
                h('td', { class: 'number' }, field.reads ? format.count(field.reads) : '–'), h('td', { class: 'number' }, field.writes ? format.count(field.writes) : '–'),
                h('td', { class: 'share', 'aria-hidden': 'true' }, uses(field) ? bar : null),
                h('td', null, name(field.name ?? '(no name)'), field.type ? h('span', { class: 'place' }, h('bdi', null, field.type)) : null));
        }))));
}

/* Which fields are used together: a square for each two. */
function affinity(structure: Struct): HTMLElement | null {
    const pairs = (structure.affinity ?? []).map((pair) => ({ a: pair.a ?? '', b: pair.b ?? '', value: pair.together || pair.weight || 0 })).filter((pair) => pair.value);
    if (!pairs.length)
        return null;
    const weight = new Map<string, number>();
    for (const { a, b, value } of pairs)
        for (const each of [a, b])
            weight.set(each, (weight.get(each) ?? 0) + value);
    const fields = [...weight.keys()].sort((a, b) => weight.get(b)! - weight.get(a)!).slice(0, 12);
    const most = Math.max(...pairs.map((pair) => pair.value));
    const between = (a: string, b: string) => pairs.find((pair) => (pair.a === a && pair.b === b) || (pair.a === b && pair.b === a))?.value ?? 0;
    const cell = (a: string, b: string) => {
        const value = a === b ? 0 : between(a, b);
        const box = h('td', { class: 'square', title: a === b ? '' : `${a} and ${b}: ${format.count(value)}` }, value ? format.short(value) : '');
        if (value)
            box.style.background = heatColor(heatShare(value, most), isDark());
        return box;
    };
    return h('section', null, h('h4', null, 'Used together'),
        h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Fields used together' }, h('table', { class: 'affinity' },
            h('thead', null, h('tr', null, h('td'), fields.slice(1).map((text) => h('th', { scope: 'col' }, name(text))))),
            h('tbody', null, fields.slice(0, -1).map((row, index) => h('tr', null, h('th', { scope: 'row' }, name(row)), fields.slice(1).map((column, at) => (at >= index ? cell(row, column) : h('td')))))))));
}

function show(profile: Profile, structure: Struct, root: HTMLElement): void {
    const objects = structure.objects;
    const facts = [
        `${format.plural(structure.reads ?? 0, 'read')}, ${format.plural(structure.writes ?? 0, 'write')}`,
        objects ? `${format.count(objects.at_once)} objects at once (${format.bytes(objects.bytes_at_once)})${objects.placement === 'arrays' ? ', in arrays' : ''}` : '',
        structure.fragmentation ? `${(structure.fragmentation * 100).toFixed(0)} % of the bytes loaded into the cache are not used` : '',
        structure.padding ? `${format.plural(structure.padding, 'byte')} of padding` : '',
    ].filter(Boolean);
    const places = placeLinks(profile, structure.contexts ?? [], 5);
    const definition = structure.suggestion?.definition;
    const dark = isDark();
    replace(root,
        h('h3', null, name(structure.struct ?? '(no name)'), structure.file ? h('span', { class: 'place', title: structure.file }, h('bdi', null, `${structure.file.split('/').pop()}:${structure.line ?? ''}`)) : null),
        h('p', { class: 'summary' }, facts.join(' · ')),
        h('p', { class: 'scale' }, 'not accessed ', h('i', { class: 'field unused' }), '  accesses: few ', [0.1, 0.4, 0.7, 1].map((at) => { const box = h('i'); box.style.background = heatColor(at, dark); return box; }), ' many; a row is a cache line of 64 bytes'),
        layouts(structure),
        h('div', { class: 'columns' }, h('div', null, h('h4', null, 'Fields'), fieldTable(structure)), h('div', null, affinity(structure),
            definition ? h('section', null, h('h4', null, 'As C'), h('pre', { tabindex: 0 }, h('bdi', null, definition)), h('button', { type: 'button', onclick: () => void copy(definition).then((done) => say(done ? 'Copied the definition' : 'The browser does not let this page copy')) }, 'Copy')) : null,
            places.length ? h('section', null, h('h4', null, 'Allocated by'), h('ul', { class: 'plain' }, places.map((link) => h('li', null, link)))) : null)));
}

/* What the accesses to a struct cost: the cache lines that its uses bring in; its accesses where that is not known. */
const linesOf = (structure: Struct) => structure.lines_brought_in ?? ((structure.lines_per_use ?? 0) * (structure.uses ?? 0) || null);
const cost = (structure: Struct) => linesOf(structure) ?? (structure.reads ?? 0) + (structure.writes ?? 0);
const costText = (structure: Struct) => `${format.short(cost(structure))} ${linesOf(structure) === null ? 'accesses' : 'cache lines brought in'}`;

export const structs: View = {
    key: 'structs',
    title: 'Structs',
    missing: ({ profile }: Page) => (profile.report.fields?.length ? null : 'Accesses to the fields of structs were not counted: build the program with “heapwise cc --fields”.'),
    show: ({ profile }: Page, root: HTMLElement) => {
        const all = [...profile.report.fields!].sort((a, b) => cost(b) - cost(a));
        const panel = h('div', { class: 'struct' });
        const wanted = state.get('struct');
        if (wanted && !all.some((each) => each.struct === wanted))
            tell(`This profile has no struct “${wanted}”.`);
        let chosen = Math.max(0, all.findIndex((each) => each.struct === wanted));
        const buttons = all.map((each, index) => h('button', { type: 'button', role: 'option', tabindex: -1, onclick: () => choose(index), title: `${each.struct ?? ''}: ${costText(each)}` },
            h('span', null, h('bdi', null, each.struct ?? '(no name)')), h('small', null, format.short(cost(each)))));
        const choose = (index: number) => {
            chosen = Math.max(0, Math.min(all.length - 1, index));
            state.note({ struct: all[chosen]!.struct ?? '' });
            mark();
        };
        const mark = () => {
            buttons.forEach((button, index) => {
                button.setAttribute('aria-selected', String(index === chosen));
                button.tabIndex = index === chosen ? 0 : -1;
            });
            show(profile, all[chosen]!, panel);
        };
        const list = h('div', { class: 'struct-list', role: 'listbox', 'aria-label': 'Structs, those that cost most first', onkeydown: (event: KeyboardEvent) => {
            const moves: Record<string, number> = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, Home: 0, End: all.length - 1 };
            if (!(event.key in moves))
                return;
            event.preventDefault();
            choose(moves[event.key]!);
            buttons[chosen]!.focus();
        } }, buttons);
        add(root, h('div', { class: 'struct-page' }, h('div', null, h('p', { class: 'summary' }, all.every((each) => linesOf(each) !== null) ? 'by cache lines brought in' : 'by cache lines or accesses'), list), panel));
        mark();
        return onTheme(mark);
    },
};
