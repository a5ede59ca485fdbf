/* overview.ts - what happened: the run in numbers, memory over time, what to do, where the memory went. */
import { add, h, name, replace } from './dom';
import * as format from './format';
import { measure, usual } from './measures';
import type { Profile } from './model';
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
    if (totals.peak_rss_bytes)
        found.push(tile('Resident', format.bytes(totals.peak_rss_bytes), 'at most: heap, code, stacks and the rest'));
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
    const known = (finding.contexts ?? []).filter((id) => profile.contextOf(id) >= 0).slice(0, 3);
    return h(
        'li',
        null,
        h('h4', null, finding.title),
        finding.expected_gain ? h('p', { class: 'gain' }, finding.expected_gain) : null,
        finding.why ? h('p', null, finding.why) : null,
        finding.what_to_do ? h('p', { class: 'todo' }, finding.what_to_do) : null,
        known.length || finding.struct
            ? h('p', { class: 'links' },
                finding.struct ? h('a', { href: state.link('structs', { struct: finding.struct }) }, 'its layout') : null,
                known.map((id) => h('a', { href: state.link('contexts', { at: id }) }, profile.title(profile.contextOf(id)))))
            : null,
    );
}

function findings(profile: Profile): HTMLElement | null {
    const all = profile.report.findings ?? [];
    if (!all.length)
        return null;
    const shown = 5;
    const list = h('ol', { class: 'findings' }, all.slice(0, shown).map((each) => findingItem(profile, each)));
    const more = h('button', { type: 'button', onclick: () => {
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
            h('td', null, h('a', { href: state.link('contexts', { q: `"${profile.names[index]!.replaceAll('"', '')}"` }) }, name(profile.names[index]!))));
    };
    return h('section', null,
        h('h3', null, `Where it goes: ${by.title.toLowerCase()}, by function`),
        h('table', { class: 'functions' },
            h('thead', null, h('tr', null, h('th', { scope: 'col' }, by.short), h('th', { scope: 'col' }, 'share'), h('th', { scope: 'col' }, 'allocations'), h('td', { class: 'share' }), h('th', { scope: 'col' }, 'function'))),
            h('tbody', null, order.slice(0, 12).map(row))),
        order.length > 12 ? h('p', { class: 'summary' }, `… and ${format.plural(order.length - 12, 'more function')}: `, h('a', { href: state.link('contexts') }, 'all places')) : null);
}

/* The parts of resident memory, at each moment they were read. */
function memory(profile: Profile): HTMLElement | null {
    const moments = profile.report.memory ?? [];
    const parts = [['heap_bytes', 'heap'], ['file_bytes', 'code and files'], ['stack_bytes', 'stacks'], ['other_bytes', 'other'], ['runtime_bytes', 'Heapwise itself']] as const;
    if (!moments.length)
        return null;
    const words: Record<string, string> = { peak: 'at the peak', end: 'at the end', dump: 'when it was dumped' };
    /* RSS is read at intervals: the moment may be before the peak. */
    const when = (moment: Record<string, number | string>) => {
        const live = Number(moment['live_bytes'] ?? NaN);
        const peak = profile.counts.peak_bytes ?? 0;
        return moment['moment'] === 'peak' && live < 0.98 * peak
            ? `near the peak (at ${format.duration(Number(moment['time_ns'] ?? 0))}, ${format.bytes(live)} of ${format.bytes(peak)} live)`
            : words[String(moment['moment'])] ?? String(moment['moment']);
    };
    return h('section', null, h('h3', null, 'Parts of resident memory'), moments.map((moment) => {
        const all = Number(moment['rss_bytes']) || 1;
        const strip = h('div', { class: 'strip', 'aria-hidden': 'true' }, parts.map(([key], index) => {
            const piece = h('div', { class: `part${index}` });
            piece.style.width = `${(Number(moment[key] ?? 0) / all) * 100}%`;
            return piece;
        }));
        return h('div', { class: 'moment' },
            h('p', null, `${when(moment)}: ${format.bytes(all)}`),
            strip,
            h('ul', { class: 'legend' }, parts.filter(([key]) => Number(moment[key] ?? 0)).map(([key, text]) => h('li', null, h('i', { class: `part${parts.findIndex((each) => each[0] === key)}` }), `${text} ${format.bytes(Number(moment[key]))}`))));
    }));
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
        const plot = h('section', { class: 'wide' });
        const undo = timeline(page, plot);
        replace(root, h('h2', { class: 'offscreen' }, 'Overview'), story(page.profile), tiles(page), plot,
            h('div', { class: 'columns' }, h('div', null, findings(page.profile), functions(page)), h('div', null, memory(page.profile), gaps(page.profile))));
        return undo;
    },
};
