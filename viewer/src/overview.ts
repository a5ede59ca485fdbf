/* overview.ts - what happened: the run in numbers, memory over time, what to do, where the memory went. */
import { placeLinks } from './detail';
import { add, h, name, replace } from './dom';
import * as format from './format';
import { measure, usual } from './measures';
import type { Moment, Profile } from './model';
import { tell } from './shell';
import * as state from './state';
import { timeline } from './timeline';
import type { Page, View } from './view';

function tile(label: string, value: string, note: string, was?: string): HTMLElement {
    return h('div', { class: 'tile' }, h('dt', null, label), h('dd', null, h('strong', null, value), was ? h('em', null, was) : null, h('span', null, note)));
}

/* "+12 % (3 MiB)" against the baseline. */
function against(page: Page, key: 'peak_bytes' | 'bytes_allocated' | 'allocations' | 'live_bytes', text: (value: number) => string): string | undefined {
    const old = page.baseline?.counts[key];
    const value = page.profile.counts[key];
    return typeof old === 'number' && typeof value === 'number' ? `${format.change(value - old, text)} since the baseline` : undefined;
}

function tiles(page: Page): HTMLElement {
    const { report, counts, sampled } = page.profile;
    const { totals, process } = report;
    const found: HTMLElement[] = [];
    /* Some totals are exact where places are estimates. */
    const about = (key: 'peak_bytes' | 'bytes_allocated' | 'live_bytes') => (sampled && typeof report.totals[key] !== 'number' ? 'about ' : '');
    if (counts.peak_bytes)
        found.push(tile('Peak', about('peak_bytes') + format.bytes(counts.peak_bytes), totals.peak_time_ns && process.duration_ns ? `after ${format.duration(totals.peak_time_ns)} (${format.percent(totals.peak_time_ns, process.duration_ns)} into the run)` : '', against(page, 'peak_bytes', format.bytes)));
    if (typeof counts.bytes_allocated === 'number')
        found.push(tile('Allocated', counts.bytes_allocated ? about('bytes_allocated') + format.bytes(counts.bytes_allocated) : 'nothing', counts.allocations ? `in ${format.plural(counts.allocations, 'block')}` : '', against(page, 'bytes_allocated', format.bytes)));
    if (counts.live_bytes !== null && counts.live_bytes !== undefined)
        found.push(tile('Not freed', about('live_bytes') + format.bytes(counts.live_bytes), counts.live_allocations ? `${format.plural(counts.live_allocations, 'block')} at the end; may still be reachable` : counts.allocations ? 'every block was freed' : '', against(page, 'live_bytes', format.bytes)));
    if (counts.temporary_allocations !== null && counts.temporary_allocations !== undefined && counts.allocations)
        found.push(tile('Temporary', format.percent(counts.temporary_allocations, counts.allocations) || '0 %', `${format.count(counts.temporary_allocations)} blocks freed before their thread allocated again`));
    const own = ownMemory(page.profile);
    if (totals.peak_rss_bytes)
        found.push(own
            ? tile('Resident, the program’s', `about ${format.bytes(Math.max(0, totals.peak_rss_bytes - own))}`, `at most: heap, code, stacks and the rest; ${format.bytes(totals.peak_rss_bytes)} with ${format.bytes(own)} of Heapwise’s own`)
            : tile('Resident', format.bytes(totals.peak_rss_bytes), 'at most: heap, code, stacks and the rest'));
    if (counts.reallocations)
        found.push(tile('Reallocations', format.count(counts.reallocations), totals.threads ? `by ${format.plural(totals.threads, 'thread')}` : ''));
    return h('dl', { class: 'tiles' }, found);
}

/* "/usr/bin/perl x.pl, process 17: ended with exit code 0 after 289 ms" */
function story(profile: Profile): HTMLElement {
    const { process, totals } = profile.report;
    const exit = process.exit;
    const end = exit?.signal ? `killed by signal ${exit.signal}` : exit?.exec ? 'replaced by another program' : exit?.code !== undefined ? `ended with exit code ${exit.code}` : process.state ?? '';
    const took = process.duration_ns ? format.duration(process.duration_ns) : '';
    const parts = [
        process.runs ? `a sum of ${format.plural(process.runs, 'run')}${took && `, the longest of ${took}`}` : end && took ? `${end} after ${took}` : end,
        totals.threads ? format.plural(totals.threads, 'thread') : '',
        process.allocator ?? '',
        process.mode ? `mode ${process.mode}` : '',
        process.started_ns ? new Date(process.started_ns / 1e6).toISOString().replace('T', ' ').slice(0, 19) + ' UTC' : '',
    ].filter(Boolean);
    return h('p', { class: 'story' }, h('code', null, h('bdi', null, process.command?.join(' ') || process.file || '')), h('br'), parts.join(' · '));
}

function findingItem(profile: Profile, finding: NonNullable<Profile['report']['findings']>[number]): HTMLElement {
    const links = placeLinks(profile, finding.contexts ?? [], 3);
    return h(
        'li',
        null,
        h('h4', null, finding.title),
        finding.expected_gain ? h('p', { class: 'gain' }, finding.expected_gain) : null,
        finding.why ? h('p', null, finding.why) : null,
        finding.what_to_do ? h('p', { class: 'todo' }, finding.what_to_do) : null,
        links.length || finding.struct
            ? h('p', { class: 'links' },
                finding.struct ? h('a', { href: state.link('structs', { struct: finding.struct }) }, 'its layout') : null,
                links)
            : null,
    );
}

function findings(profile: Profile): HTMLElement | null {
    const all = profile.report.findings ?? [];
    if (!all.length)
        return null;
    const shown = 5;
    const list = h('ol', { class: 'findings' }, all.slice(0, shown).map((each) => findingItem(profile, each)));
    const more = h('button', { type: 'button', class: 'more-findings', onclick: () => {
        add(list, all.slice(shown).map((each) => findingItem(profile, each)));
        more.remove();
    } }, `${all.length - shown} more`);
    return h('section', null, h('h3', null, 'What to do'), list, all.length > shown ? more : null);
}

/* Sums by the function that names a context, greatest first. */
function functions(page: Page): HTMLElement | null {
    const { profile } = page;
    const by = measure(state.get('by')) ?? usual(profile);
    const values = by.values(profile);
    if (!values)
        return null;
    const sums = new Float64Array(profile.names.length);
    const counts = new Float64Array(profile.names.length);
    let all = 0;
    for (let i = 0; i < profile.count; i++) {
        const head = profile.headName(i);
        all += values[i]!;
        if (head >= 0) {
            sums[head]! += values[i]!;
            counts[head]! += profile.column('allocations')?.[i] ?? 0;
        }
    }
    const order = [...sums.keys()].filter((index) => sums[index]! > 0).sort((a, b) => sums[b]! - sums[a]!);
    if (!order.length)
        return null;
    const row = (index: number) => {
        const bar = h('div', { class: 'fill' });
        bar.style.width = `${(sums[index]! / sums[order[0]!]!) * 100}%`;
        return h('tr', null,
            h('td', { class: 'number' }, by.format(sums[index]!)),
            h('td', { class: 'number' }, format.percent(sums[index]!, all)),
            h('td', { class: 'number' }, format.count(counts[index]!)),
            h('td', { class: 'share', 'aria-hidden': 'true' }, bar),
            h('td', null, h('a', { class: 'to-sandwich', href: state.link('sandwich', { f: profile.names[index]! }), title: 'callers and callees', 'aria-label': `Callers and callees of ${profile.names[index]!}` }, '⇅'), h('a', { href: state.link('contexts', { q: `"${profile.names[index]!.replaceAll('"', '')}"` }) }, name(profile.names[index]!))));
    };
    return h('section', null,
        h('h3', null, `Where it goes: ${by.title.toLowerCase()}, by function`),
        h('table', { class: 'functions' },
            h('thead', null, h('tr', null, h('th', { scope: 'col' }, by.short), h('th', { scope: 'col' }, 'share'), h('th', { scope: 'col' }, 'allocations'), h('td', { class: 'share' }), h('th', { scope: 'col' }, 'function'))),
            h('tbody', null, order.slice(0, 12).map(row))),
        order.length > 12 ? h('p', { class: 'summary' }, `… and ${format.plural(order.length - 12, 'more function')}: `, h('a', { href: state.link('contexts', { by: 'function' }) }, 'all functions, with cum and self')) : null);
}

/* Parts of resident memory, in the order of the terminal (text_memory.c). PART is their colour. */
interface Part {
    part: string;
    text: string;
    bytes: number;
}

function partsOf(moment: Moment): { parts: Part[]; untouched: number } {
    const value = (key: string) => Number(moment[key] ?? 0);
    const { live } = moment;
    const heap = value('heap_bytes');
    const rest: Part[] = [
        { part: 'part1', text: 'code, static data and files', bytes: value('file_bytes') },
        { part: 'part2', text: 'stacks of threads', bytes: value('stack_bytes') },
        { part: 'part3', text: 'other (shared memory, vDSO)', bytes: value('other_bytes') },
        { part: 'part4 own', text: 'Heapwise’s own memory', bytes: value('runtime_bytes') },
    ];
    if (live === null)
        return { parts: [{ part: 'part0', text: 'heap', bytes: heap }, ...rest], untouched: 0 };
    return {
        parts: [
            { part: 'part0', text: live > heap ? 'heap blocks, the part that was touched' : 'heap blocks, as requested', bytes: Math.min(live, heap) },
            { part: 'part5', text: 'heap around them: headers, rounding, freed blocks', bytes: Math.max(0, heap - live) },
            ...rest,
        ],
        untouched: Math.max(0, live - heap),
    };
}

/* The parts of resident memory, at each moment they were read: its time, and what was live then. */
function memory(profile: Profile): HTMLElement | null {
    const moments = profile.moments();
    if (!moments.length)
        return null;
    const peak = profile.counts.peak_bytes ?? 0;
    /* RSS is read at intervals: the moment may be before the peak. */
    const when = (moment: Moment) => {
        const names: Record<string, string> = { peak: moment.live !== null && moment.live < 0.98 * peak ? 'Near the peak' : 'At the peak', end: 'At the end', dump: 'At the dump' };
        const said = moment.live === null ? [] : [moment.moment === 'peak' && peak ? `${format.bytes(moment.live)} of ${format.bytes(peak)} live` : `${format.bytes(moment.live)} live`];
        return `${names[moment.moment] ?? moment.moment} (${[`${format.duration(moment.time)} into the run`, ...said].join(', ')})`;
    };
    return h('section', { class: 'memory' }, h('h3', null, 'Why RSS differs from the heap'), moments.map((moment) => {
        const { parts, untouched } = partsOf(moment);
        const all = moment.rss || 1;
        const strip = h('div', { class: 'strip', 'aria-hidden': 'true' }, parts.map(({ part, bytes }) => {
            const piece = h('div', { class: part });
            piece.style.width = `${(bytes / all) * 100}%`;
            return piece;
        }));
        return h('div', { class: 'moment' },
            h('p', null, `${when(moment)}: `, h('strong', null, `${format.bytes(Math.max(0, moment.rss - moment.own))} resident`), moment.own ? `, ${format.bytes(moment.rss)} with Heapwise’s own memory` : ''),
            strip,
            h('ul', { class: 'legend' }, parts.filter(({ bytes }) => bytes).map(({ part, text, bytes }) => h('li', null, h('i', { class: part }), `${text} ${format.bytes(bytes)}`)),
                untouched ? h('li', null, `requested but never touched, so not resident ${format.bytes(untouched)}`) : null,
                Number(moment['swap_bytes'] ?? 0) ? h('li', null, `swapped out, so not resident ${format.bytes(Number(moment['swap_bytes']))}`) : null));
    }));
}

/* Heapwise's own memory at the moment with most resident memory; 0: it was not read. */
function ownMemory(profile: Profile): number {
    return profile.moments().reduce((most, each) => (each.rss > most.rss ? each : most), { rss: 0, own: 0 }).own;
}

function gaps(profile: Profile): HTMLElement | null {
    const sentences = profile.report.not_observed ?? [];
    return sentences.length ? h('section', null, h('h3', null, 'What was not observed'), h('ul', { class: 'gaps' }, sentences.map((text) => h('li', null, text)))) : null;
}

export const overview: View = {
    key: 'overview',
    title: 'Overview',
    missing: () => null,
    show: (page: Page, root: HTMLElement) => {
        const by = state.get('by');
        if (by && !measure(by)?.values(page.profile))
            tell(`This profile has no value “${by}”.`);
        const plot = h('section', { class: 'wide' });
        const undo = timeline(page, plot);
        replace(root, h('h2', { class: 'offscreen' }, 'Overview'), story(page.profile), tiles(page), plot,
            h('div', { class: 'columns' }, h('div', null, findings(page.profile), functions(page)), h('div', null, memory(page.profile), gaps(page.profile))));
        const whole = () => root.querySelector<HTMLElement>('.more-findings')?.click(); // paper has room
        addEventListener('beforeprint', whole);
        return () => {
            removeEventListener('beforeprint', whole);
            undo();
        };
    },
};
