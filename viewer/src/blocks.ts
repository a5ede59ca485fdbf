/* blocks.ts - which words of blocks and variables are used: a strip each, a column for every word. */
import { add, fitCanvas, h, name, replace, select } from './dom';
import { heatColor, heatShare } from './flame_layout';
import * as format from './format';
import { List } from './list';
import type { Profile } from './model';
import { isDark, onTheme } from './shell';
import * as state from './state';
import type { Page, View } from './view';

interface Strip {
    title: string;
    note: string;
    context: number; // -1: a variable
    wordBytes: number;
    size: number; // bytes
    rows: { title: string; words: (number | null)[] }[]; // null: not distinguished from a neighbour
    total: number;
    sampled?: boolean; // counts are samples: what has none may still be used
}

const mostWords = 1 << 16;

function stripOf(profile: Profile, context: number, wordBytes: number, titles: string[]): Strip {
    const size = profile.column('size_max')?.[context] ?? 0;
    const note = [profile.type(context), profile.place(context)].filter(Boolean).join(' · ');
    return { title: profile.title(context), note, context, wordBytes, size, rows: titles.map((title) => ({ title, words: [] })), total: 0 };
}

/* Runs of words by context, put together. */
function ofBlocks(profile: Profile): Strip[] {
    const strips = new Map<number, Strip>();
    const strip = (context: number, wordBytes: number, titles: string[]): Strip => {
        const found = strips.get(context) ?? stripOf(profile, context, wordBytes, titles);
        strips.set(context, found);
        return found;
    };
    const gather = (prefix: string, wordBytes: number, columns: [string, string][]) => {
        const contexts = profile.table(`${prefix}.context`);
        const first = profile.table(`${prefix}.first`);
        const values = columns.map(([column]) => profile.table(`${prefix}.${column}`));
        if (!contexts || !first || values.some((each) => !each))
            return;
        const run = values[0]!.length / contexts.length;
        for (let i = 0; i < contexts.length; i++) {
            const to = strip(contexts[i]!, wordBytes, columns.map(([, title]) => title));
            values.forEach((column, row) => {
                const words = to.rows[row]!.words;
                for (let k = 0; k < run; k++) {
                    const value = column![i * run + k]!;
                    if (!value)
                        continue;
                    const at = first[i]! + k;
                    if (at >= mostWords)
                        break;
                    while (words.length <= at)
                        words.push(0);
                    words[at]! += value;
                    to.total += value;
                }
            });
        }
    };
    gather('words8', 8, [['accesses', 'accesses']]);
    gather('words4', 4, [['reads', 'periods in which it was read'], ['writes', 'periods in which it was written']]);
    return [...strips.values()].filter((each) => each.total);
}

/* Sampled words: of 8 bytes, or of as many as the coarsest of a place, and as the longest strip takes. */
function ofSamples(profile: Profile): Strip[] {
    const [contexts, offsets, sizes, reads, writes] = ['context', 'offset', 'bytes', 'reads', 'writes'].map((column) => profile.table(`samples.${column}`));
    if (!contexts || !offsets || !sizes || !reads || !writes)
        return [];
    const strips: Strip[] = [];
    for (let first = 0, end = 0; first < contexts.length; first = end) {
        let wordBytes = 8;
        for (end = first; contexts[end] === contexts[first]; end++) {
            wordBytes = Math.max(wordBytes, sizes[end]!);
            while ((offsets[end]! + 1) / wordBytes > mostWords)
                wordBytes *= 2;
        }
        const strip = stripOf(profile, contexts[first]!, wordBytes, ['sampled reads', 'sampled writes']);
        for (let i = first; i < end; i++)
            [reads[i]!, writes[i]!].forEach((count, row) => {
                const { words } = strip.rows[row]!;
                const at = Math.floor(offsets[i]! / wordBytes);
                while (words.length <= at)
                    words.push(0);
                words[at]! += count;
                strip.total += count;
            });
        strips.push({ ...strip, sampled: true });
    }
    return strips.filter((each) => each.total);
}

function ofVariables(profile: Profile): Strip[] {
    const strips: Strip[] = [];
    for (const each of profile.report.globals ?? []) {
        const base = { title: each.symbol ?? '(no symbol)', note: each.module?.split('/').pop() ?? '', context: -1, size: each.size };
        if (each.histogram)
            strips.push({ ...base, wordBytes: 8, rows: [{ title: 'accesses', words: each.histogram.map((value) => value ?? null) }], total: each.accesses ?? 0 });
        else if (each.word_histogram)
            strips.push({ ...base, wordBytes: each.word_histogram.word_bytes, rows: [{ title: 'periods in which it was read', words: each.word_histogram.reads }, { title: 'periods in which it was written', words: each.word_histogram.writes }], total: each.accesses ?? (each.reads ?? 0) + (each.writes ?? 0) });
    }
    return strips.filter((each) => each.total);
}

/* Up to the last used one, and beyond it to the end of the largest block unless that is far. */
function wordCount(strip: Strip): number {
    const used = Math.max(...strip.rows.map((row) => row.words.length));
    return Math.min(Math.max(used, Math.ceil(strip.size / strip.wordBytes)), Math.max(used, 4096));
}

function paint(canvas: HTMLCanvasElement, strip: Strip, width: number, height: number): void {
    const context = fitCanvas(canvas, width, height);
    const dark = isDark();
    const words = wordCount(strip);
    const rowHeight = height / strip.rows.length;
    let most = 1;
    for (const row of strip.rows)
        for (const value of row.words)
            most = Math.max(most, value ?? 0);
    const columns = Math.min(words, Math.floor(width));
    const wide = Math.min(26, width / columns);
    strip.rows.forEach((row, index) => {
        for (let column = 0; column < columns; column++) {
            const from = Math.floor((column * words) / columns);
            const to = Math.max(from + 1, Math.floor(((column + 1) * words) / columns));
            let value: number | null = 0;
            for (let word = from; word < to; word++)
                value = Math.max(value ?? 0, row.words[word] ?? 0);
            if (to === from + 1 && row.words[from] === null)
                value = null;
            context.fillStyle = value === null ? (dark ? '#555' : '#bbb') : value ? heatColor(heatShare(value, most), dark) : dark ? '#22262b' : '#eef0f2';
            context.fillRect(column * wide, index * rowHeight, wide - (wide > 3 ? 1 : 0), rowHeight - 1);
        }
        /* Cache lines, for the eye. */
        const perLine = 64 / strip.wordBytes;
        if (perLine > 1 && wide > 3 && columns === words) {
            context.fillStyle = dark ? '#8b95a1' : '#59626e';
            for (let word = perLine; word < words; word += perLine)
                context.fillRect(word * wide - 1, index * rowHeight, 1, rowHeight - 1);
        }
    });
}

/* "bytes 16 to 23: 1,200 accesses" for the most used words, then what is never used. */
function words(strip: Strip): HTMLElement {
    const found: { at: number; values: (number | null)[]; sum: number }[] = [];
    const unused: [number, number][] = [];
    const end = Math.max(1, Math.min(wordCount(strip), Math.ceil(strip.size / strip.wordBytes) || Infinity));
    for (let at = 0; at < end; at++) {
        const values = strip.rows.map((row): number | null => (at < row.words.length ? row.words[at]! : 0));
        const sum = values.reduce<number>((a, b) => a + (b ?? 0), 0);
        if (sum)
            found.push({ at, values, sum });
        else if (!values.includes(null)) {
            const last = unused[unused.length - 1];
            if (last && last[1] === at - 1)
                last[1] = at;
            else
                unused.push([at, at]);
        }
    }
    found.sort((a, b) => b.sum - a.sum || a.at - b.at);
    const bytes = (from: number, to = from) => `${format.count(from * strip.wordBytes)}–${format.count((to + 1) * strip.wordBytes - 1)}`;
    return h('div', { class: 'detail words' },
        h('table', null,
            h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'bytes'), strip.rows.map((row) => h('th', { scope: 'col' }, row.title)), h('td'))),
            h('tbody', null, found.slice(0, 16).map(({ at, values }) => h('tr', null, h('td', { class: 'number' }, bytes(at)), values.map((value) => h('td', { class: 'number' }, value === null ? 'shared' : format.count(value))), h('td'))))),
        h('div', null,
            strip.sampled ? h('p', null, 'From a sample of the accesses: bytes without samples may have been accessed, too.') : null,
            h('p', null, unused.length ? `${strip.sampled ? 'No sample' : 'Never used'}: bytes ${unused.slice(0, 12).map(([from, to]) => bytes(from, to)).join(', ')}${unused.length > 12 ? ', …' : ''}` : `Every ${strip.wordBytes > 8 ? 'part' : 'word'} is used.`),
            strip.context >= 0 ? h('p', null, h('a', { href: state.link('contexts', { at: String(strip.context) }) , class: 'to-place' }, 'This place')) : null));
}

type Kind = [key: string, title: string, strips: Strip[]];

const known = new WeakMap<Profile, Kind[]>();

/* The kinds of blocks in PROFILE. */
function kindsOf(profile: Profile): Kind[] {
    let found = known.get(profile);
    if (!found) {
        const kinds: Kind[] = [['blocks', 'Blocks by place', ofBlocks(profile)], ['samples', 'Blocks by place, sampled', ofSamples(profile)], ['variables', 'Global variables', ofVariables(profile)]];
        found = kinds.filter(([, , strips]) => strips.length);
        known.set(profile, found);
    }
    return found;
}

export const blocks: View = {
    key: 'blocks',
    title: 'Blocks',
    missing: ({ profile }: Page) => {
        if (kindsOf(profile).length)
            return null;
        return profile.report.process.access
            ? 'Accesses were counted by cache line. A program built with “heapwise cc --granule=8” counts each word, and with “--granule=4” records when words are used.'
            : 'Which words of blocks are used was not observed: build the program with “heapwise cc --granule=8”, or record a sample with “heapwise record --sample-accesses -- PROGRAM”.';
    },
    show: ({ profile }: Page, root: HTMLElement) => {
        const there = kindsOf(profile);
        const kind = there.find(([key]) => key === state.get('of')) ?? there[0]!;
        const strips = kind[2].sort((a, b) => b.total - a.total);
        const sampled = strips.some((each) => each.sampled);
        const list = new List({
            label: kind[1], rowHeight: 46, columns: 2,
            fill: (row, index) => {
                const strip = strips[index]!;
                const canvas = h('canvas', { 'aria-hidden': 'true' });
                canvas.addEventListener('mousemove', (event) => {
                    const count = wordCount(strip);
                    const columns = Math.min(count, Math.floor(canvas.clientWidth));
                    const column = Math.floor(event.offsetX / Math.min(26, canvas.clientWidth / columns));
                    const at = Math.floor((column * count) / columns);
                    canvas.title = at < count ? `bytes ${at * strip.wordBytes}–${(at + 1) * strip.wordBytes - 1}: ${strip.rows.map((each) => `${format.count(each.words[at] ?? 0)} ${each.title}`).join(', ')}` : '';
                });
                add(row, h('div', { class: 'strip-title', role: 'gridcell' }, name(strip.title), h('span', { class: 'note' }, h('bdi', null, `${strip.sampled ? `${format.plural(strip.total, 'sample')}` : format.count(strip.total)} · ${format.bytes(strip.size)}${strip.note ? ` · ${strip.note}` : ''}`))),
                    h('div', { class: 'strip-cell', role: 'gridcell', 'aria-label': `${format.plural(wordCount(strip), 'word')} of ${format.bytes(strip.wordBytes)}` }, canvas));
                requestAnimationFrame(() => paint(canvas, strip, Math.max(100, (canvas.parentElement?.clientWidth ?? 400) - 16), 26));
            },
            open: (index) => {
                const strip = strips[index]!;
                const element = words(strip);
                for (const link of element.querySelectorAll<HTMLAnchorElement>('.to-place'))
                    link.href = state.link('contexts', { at: profile.column('id')![strip.context]! });
                return element;
            },
        });
        const scale = h('span', { class: 'scale' });
        const fillScale = () => {
            const swatch = (at: number) => h('i', { style: { background: at < 0 ? (isDark() ? '#22262b' : '#eef0f2') : heatColor(at, isDark()) } });
            replace(scale, sampled ? 'no sample ' : 'never ', [-1, 0.12, 0.35, 0.6, 0.8, 1].map(swatch), ` most of this strip (logarithmic)${strips.some((each) => each.rows.length > 1) ? '; above: read, below: written' : ''}`);
        };
        fillScale();
        add(root, h('div', { class: 'tools' },
            select('Of', there.map(([key, title, all]) => [key, `${title} (${format.count(all.length)})`] as const), kind[0], (value) => { state.go('blocks', { of: value }); }),
            h('span', { class: 'space' }), scale), list.element);
        list.element.classList.add('strips');
        list.reset(strips.length);
        return onTheme(() => {
            fillScale();
            list.refresh();
        });
    },
};
