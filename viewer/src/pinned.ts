/* pinned.ts - what keeps pages resident: what the heap's resident memory is made of, how full its pages are, and the
 * places that pin them. */
import { add, h, name, replace } from './dom';
import * as format from './format';
import type { Profile } from './model';
import type { HeapPages, Pin } from './report';
import * as state from './state';
import type { Page, View } from './view';

const shown = 40; // places at once

const column = (title: string, hint: string): HTMLElement => h('th', { scope: 'col', class: 'number', title: hint }, title);
const bar = (): HTMLElement => h('td', { class: 'share', 'aria-hidden': 'true' });

/* A cell with a bar that is SHARE of the column. */
function barOf(share: number): HTMLElement {
    const fill = h('div', { class: 'fill' });
    fill.style.width = `${Math.min(100, 100 * share)}%`;
    return h('td', { class: 'share', 'aria-hidden': 'true' }, fill);
}

/* ---- what resident memory of the heap is ---- */

const parts: [keyof HeapPages, string, string, string][] = [
    ['requested_bytes', '', 'Blocks, as requested', ''],
    ['rounding_bytes', '+', 'Rounding', 'sizes that are rounded up'],
    ['header_bytes', '+', 'Headers', 'of the allocator, beside the blocks'],
    ['absent_bytes', '−', 'Not in memory', 'of these: never touched, returned, or in swap'],
    ['free_bytes', '+', 'Pinned', 'free, in pages with a live block'],
    ['kept_bytes', '+', 'Kept by the allocator', 'free, in pages without one'],
    ['resident_bytes', '=', 'Resident', 'in mappings with live blocks'],
];

function sums(pages: HeapPages): HTMLElement {
    const rows = parts.filter(([key]) => pages[key]).map(([key, sign, title, hint]) => {
        const value = Number(pages[key]);
        return h('tr', { class: sign === '=' ? 'sum' : null }, h('td', null, title), h('td', { class: 'number' }, `${sign} ${format.bytes(value)}`.trim()),
            barOf(value / (pages.resident_bytes || 1)), h('td', { class: 'faint' }, hint));
    });
    return h('section', null, h('h3', null, 'Resident memory of the heap'),
        h('p', { class: 'summary' }, `${format.plural(pages.blocks, 'block')} in ${format.plural(pages.live_pages, 'resident page')} of 4 KiB.`),
        h('div', { class: 'wide' }, h('table', { class: 'parts' }, h('tbody', null, rows))));
}

/* ---- how full pages are ---- */

const units: [string, string][] = [['page', 'pages of 4 KiB'], ['huge_page', 'pages of 2 MiB'], ['glibc_heap', 'glibc’s heaps of threads'], ['mimalloc_segment', 'mimalloc’s segments']];

function occupancy(pages: HeapPages): HTMLElement | null {
    const all = (pages.occupancy ?? []).filter(({ resident_bytes }) => resident_bytes);
    const known = units.filter(([key]) => all.some(({ unit }) => unit === key));
    if (!known.length)
        return null;
    const bytesOf = (unit: string, percent: number) => all.filter((each) => each.unit === unit && each.percent_at_most === percent).reduce((sum, each) => sum + each.resident_bytes, 0);
    const rows = [...new Set(all.map(({ percent_at_most }) => percent_at_most))].sort((a, b) => a - b);
    const most = Math.max(...rows.map((percent) => bytesOf(known[0]![0], percent)), 1);
    return h('section', null, h('h3', null, 'How full they are'),
        h('p', { class: 'summary' }, 'Resident bytes by the share of their page, or larger piece, that live blocks fill.'),
        h('div', { class: 'wide' }, h('table', { class: 'parts' },
            h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'full'), known.map(([, title], index) => [column(title, `Resident bytes in ${title}`), index ? null : bar()]).flat())),
            h('tbody', null, rows.map((percent) => h('tr', null, h('td', null, percent ? `up to ${percent} %` : 'no block'),
                known.map(([unit], index) => [h('td', { class: 'number' }, bytesOf(unit, percent) ? format.bytes(bytesOf(unit, percent)) : ''), index ? null : barOf(bytesOf(unit, percent) / most)]).flat()))))));
}

/* ---- who pins them ---- */

function placeOf(profile: Profile, pin: Pin): (HTMLElement | string)[] {
    const context = profile.contextOf(pin.context);
    if (context < 0)
        return ['(not in this page)'];
    const callers = profile.callers(context, 3).map((each) => ` ‹ ${each}`).join('');
    return [h('a', { href: state.link('contexts', { by: 'stack', at: pin.context }) }, name(profile.title(context))), h('span', { class: 'place' }, ` ${profile.place(context)}`),
        h('span', { class: 'callers' }, h('bdi', null, callers))];
}

function places(profile: Profile, pins: Pin[]): HTMLElement {
    const all = pins.filter(({ bytes_pinned }) => bytes_pinned), most = all[0]?.bytes_pinned ?? 1;
    const rowOf = (pin: Pin): HTMLElement => h('tr', null, h('td', { class: 'number' }, format.bytes(pin.bytes_pinned)), barOf(pin.bytes_pinned / most),
        h('td', { class: 'number' }, format.bytes(pin.own_bytes)), h('td', { class: 'number' }, format.count(pin.blocks)), h('td', { class: 'number' }, format.count(pin.pages)),
        h('td', { class: 'number' }, format.percent(pin.occupancy_percent, 100) || '0 %'), h('td', { class: 'number' }, format.count(pin.sole_pages)), h('td', null, placeOf(profile, pin)));
    const body = h('tbody');
    replace(body, all.slice(0, shown).map(rowOf));
    const more = h('button', { type: 'button', class: 'more-rows', onclick: () => {
        add(body, all.slice(shown).map(rowOf));
        more.remove();
    } }, `${format.count(all.length - shown)} more`);
    return h('section', { class: 'owners' }, h('h3', null, 'Places by what they pin'),
        h('p', { class: 'summary' }, all.length ? 'The free bytes of a page are divided equally among the places with a live block on it.' : 'No place pins free memory: all pages with live blocks are full.'),
        all.length ? h('div', { class: 'wide' }, h('table', { class: 'functions' },
            h('thead', null, h('tr', null, column('pins', 'Its share of the free bytes of pages with its blocks'), bar(), column('own', 'Bytes of its blocks in resident pages, with rounding and headers'), column('blocks', 'Its live blocks'), column('pages', 'Resident pages of 4 KiB with its blocks'),
                column('full', 'How full these pages are, with blocks of all places'), column('alone', 'Pages on which no other place has a block'), h('th', { scope: 'col' }, 'place'))), body)) : null,
        all.length > shown ? more : null);
}

export const pinned: View = {
    key: 'pinned',
    title: 'Pinned',
    missing: (page: Page) => (page.profile.whole.report.heap_pages ? null : 'What keeps pages resident was not examined: heapwise record --pinned does that.'),
    show: (page: Page, root: HTMLElement) => {
        const profile = page.profile.whole, pages = profile.report.heap_pages!;
        const advice = profile.report.findings?.some(({ kind }) => kind === 'pinned-pages');
        add(root, advice ? h('p', { class: 'links' }, h('a', { href: state.link('overview') }, 'What an arena of their own would free')) : null,
            sums(pages), occupancy(pages), places(profile, profile.report.pinned ?? []));
    },
};
