/* overview.ts - what happened: the run in numbers, memory over time, what to do, where the memory went. */
import { placeLinks } from './detail';
import { add, h, name, replace } from './dom';
import * as format from './format';
import { nameOf, partsOf, residentOf, valuesOf, type Part } from './memory';
import { measure, usual, wholeOf } from './measures';
import type { Moment, Profile } from './model';
import { tell } from './shell';
import * as state from './state';
import { atTime, chosen, momentsOf } from './time';
import { regions } from './regions';
import type { Report } from './report';
import { threads } from './threads';
import { ownAt, timeline } from './timeline';
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

/* The process at the chosen moment, or in the range. */
function tilesThen(profile: Profile): HTMLElement[] {
    const what = chosen(profile)!;
    const moments = momentsOf(profile);
    const about = profile.sampled ? 'about ' : '';
    const own = ownAt(profile);
    const resident = (time: number, rss: number | null, note: string) => {
        if (rss === null)
            return null;
        const ours = own?.(time) ?? 0;
        return ours ? tile('Resident, the program’s', `about ${format.bytes(Math.max(0, rss - ours))}`, `${note}; ${format.bytes(rss)} with about ${format.bytes(ours)} of Heapwise’s own`) : tile('Resident', format.bytes(rss), note);
    };
    if ('at' in what) {
        const { at, named } = what;
        const peak = profile.counts.peak_bytes;
        const read = at.rss ?? moments.rss(at.time);
        return [
            tile(named ? `Live at ${named.title.replace(/ \(.*/, '')}` : `Live at ${format.duration(at.time)}`, about + format.bytes(at.live), [named ? `${format.duration(at.time)} into the run` : '', peak && at.live < peak ? `${format.percent(at.live, peak) || '0 %'} of the peak` : ''].filter(Boolean).join(', ')),
            at.allocations === null ? null : tile('Allocated until then', about + format.plural(at.allocations, 'block'), at.frees === null ? '' : `${format.count(at.frees)} of them freed until then`),
            resident(at.time, read, at.rss === null ? 'when it was read latest' : 'heap, code, stacks and the rest'),
        ].filter((each) => each !== null);
    }
    const { from, to } = what;
    const within = moments.between(from.time, to.time);
    const most = within.reduce((best, each) => ((each.rss ?? -1) > (best.rss ?? -1) ? each : best));
    return [
        tile('Range', format.duration(to.time - from.time), `from ${format.duration(from.time)} to ${format.duration(to.time)}`),
        tile('Allocated', about + format.plural(to.allocations! - from.allocations!, 'block'), `${about}${format.count(to.frees! - from.frees!)} freed`),
        tile('Heap', format.change(to.live - from.live, format.bytes), `from ${about}${format.bytes(from.live)} to ${about}${format.bytes(to.live)}`),
        tile('Most live', about + format.bytes(Math.max(...within.map(({ live }) => live))), 'at a point of the timeline within the range'),
        resident(most.time, most.rss, 'at most'),
    ].filter((each) => each !== null);
}

/* What the search for pointers found of the blocks that were not freed. */
function reachable(report: Report): string {
    if (!report.leak_search)
        return 'may still be reachable';
    const lost = (report.leaks ?? []).filter((leak) => leak.class === 'definite' || leak.class === 'indirect');
    const blocks = lost.reduce((sum, leak) => sum + leak.blocks, 0);
    return blocks ? `${format.bytes(lost.reduce((sum, leak) => sum + leak.bytes, 0))} in ${format.plural(blocks, 'block')} lost` : 'none of them lost';
}

function tiles(page: Page): HTMLElement {
    if (page.profile.unknown)
        return h('dl', { class: 'tiles' }, tilesThen(page.profile));
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
        found.push(tile('Not freed', about('live_bytes') + format.bytes(counts.live_bytes), counts.live_allocations ? `${format.plural(counts.live_allocations, 'block')} at the end; ${reachable(report)}` : counts.allocations ? 'every block was freed' : '', against(page, 'live_bytes', format.bytes)));
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
    const end = exit?.signal ? `killed by signal ${exit.signal}` : exit?.exec ? 'replaced by another program' : exit?.detached ? 'recorded until heapwise detach,' : exit?.code !== undefined ? `ended with exit code ${exit.code}` : process.state ?? '';
    const took = process.duration_ns ? format.duration(process.duration_ns) : '';
    const parts = [
        process.runs ? `a sum of ${format.plural(process.runs, 'run')}${took && `, the longest of ${took}`}` : end && took ? `${end} after ${took}` : end,
        totals.threads ? format.plural(totals.threads, 'thread') : '',
        process.allocator ?? '',
        process.mode ? `mode ${process.mode}` : '',
        process.started_ns ? new Date(process.started_ns / 1e6).toISOString().replace('T', ' ').slice(0, 19) + ' UTC' : '',
    ].filter(Boolean);
    return h('p', { class: 'story' }, h('code', null, h('bdi', null, (process.command && format.command(process.command)) || process.file || '')), h('br'), parts.join(' · '));
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
    const wanted = measure(state.get('by'));
    const by = wanted?.values(profile) ? wanted : usual(profile);
    const values = by.values(profile);
    if (!values)
        return null;
    const allocations = profile.column('allocations');
    const sums = new Float64Array(profile.names.length);
    const counts = new Float64Array(profile.names.length);
    let all = 0;
    for (let i = 0; i < profile.count; i++) {
        const head = profile.headName(i);
        all += values[i]!;
        if (head >= 0) {
            sums[head]! += values[i]!;
            counts[head]! += allocations?.[i] ?? 0;
        }
    }
    const order = [...sums.keys()].filter((index) => sums[index]! > 0).sort((a, b) => sums[b]! - sums[a]!);
    if (!order.length)
        return null;
    const whole = by.additive ? Math.max(all, wholeOf(profile, by)) : all;
    const row = (index: number) => {
        const bar = h('div', { class: 'fill' });
        bar.style.width = `${(sums[index]! / sums[order[0]!]!) * 100}%`;
        return h('tr', null,
            h('td', { class: 'number' }, by.format(sums[index]!)),
            h('td', { class: 'number' }, format.percent(sums[index]!, whole)),
            allocations ? h('td', { class: 'number' }, format.count(counts[index]!)) : null,
            h('td', { class: 'share', 'aria-hidden': 'true' }, bar),
            h('td', null, h('a', { class: 'to-sandwich', href: state.link('sandwich', { f: profile.names[index]! }), title: 'callers and callees', 'aria-label': `Callers and callees of ${profile.names[index]!}` }, '⇅'), h('a', { href: state.link('contexts', { q: `"${profile.names[index]!.replaceAll('"', '')}"` }) }, name(profile.names[index]!))));
    };
    return h('section', null,
        h('h3', null, `Where it goes: ${by.title.toLowerCase()}, by function`),
        h('table', { class: 'functions' },
            h('thead', null, h('tr', null, h('th', { scope: 'col' }, by.short), h('th', { scope: 'col' }, 'share'), allocations ? h('th', { scope: 'col' }, 'allocations') : null, h('td', { class: 'share' }), h('th', { scope: 'col' }, 'function'))),
            h('tbody', null, order.slice(0, 12).map(row))),
        order.length > 12 ? h('p', { class: 'summary' }, `… and ${format.plural(order.length - 12, 'more function')}: `, h('a', { href: state.link('contexts', { by: 'function' }) }, 'all functions, with cum and self')) : null);
}

/* The parts of resident memory, at each moment they were read: its time, and what was live then. */
function memory(profile: Profile): HTMLElement | null {
    const moments = profile.moments();
    if (!moments.length)
        return null;
    const parts = partsOf(profile, moments);
    const peak = profile.counts.peak_bytes ?? 0;
    const when = (moment: Moment) => {
        const title = nameOf(profile, moment.moment);
        const said = moment.live === null ? [] : [moment.moment === 'peak' && peak ? `${format.bytes(moment.live)} of ${format.bytes(peak)} live` : `${format.bytes(moment.live)} live`];
        return `${title.charAt(0).toUpperCase()}${title.slice(1)} (${[`${format.duration(moment.time)} into the run`, ...said].join(', ')})`;
    };
    return h('section', { class: 'memory' }, h('h3', null, 'Why RSS differs from the heap'), h('p', { class: 'links' }, h('a', { href: state.link('memory') }, 'Over time, and by who mapped it')), moments.map((moment) => {
        const resident = residentOf(moment, parts), values = valuesOf(moment) ?? {};
        const classOf = ({ key, color }: Part) => (key === 'heapwise' ? `${color} own` : color);
        const strip = h('div', { class: 'strip', 'aria-hidden': 'true' }, parts.map((part, index) => {
            const piece = h('div', { class: classOf(part) });
            piece.style.width = `${(resident[index]! / (moment.rss || 1)) * 100}%`;
            return piece;
        }));
        return h('div', { class: 'moment' },
            h('p', null, `${when(moment)}: `, h('strong', null, `${format.bytes(Math.max(0, moment.rss - moment.own))} resident`), moment.own ? `, ${format.bytes(moment.rss)} with Heapwise’s own memory` : ''),
            strip,
            h('ul', { class: 'legend' }, parts.filter(({ key }) => values[key]).map((part) => h('li', null, values[part.key]! > 0 ? h('i', { class: classOf(part) }) : null, `${part.title} ${format.bytes(Math.abs(values[part.key]!))}`)),
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

const namedWrappers = 6;

/* What of the profile is shown, where that is not all of it. */
function selection(profile: Profile): HTMLElement | null {
    const counts = new Map<number, number>();
    profile.table('frame.wrapper')?.forEach((each, frame) => { if (each) counts.set(profile.frameName[frame]!, (counts.get(profile.frameName[frame]!) ?? 0) + 1); });
    const wrappers = [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => profile.names[name]!);
    const folded = wrappers.length ? h('li', null, 'Allocation wrappers are folded: places are named by their callers. Wrappers here: ', wrappers.slice(0, namedWrappers).map((each, index) => [index ? ', ' : '', name(each)]).flat(),
        wrappers.length > namedWrappers ? ` and ${format.count(wrappers.length - namedWrappers)} more` : '', '. Opened places and the flame graph unfold them; a page of ', h('code', null, 'heapwise view --no-fold'), ' shows them like all other functions.') : null;
    if (!profile.selection.length && !folded)
        return null;
    return h('section', { class: 'selection' }, h('h3', null, 'What is shown'), h('ul', { class: 'said' }, profile.selection.map((text) => h('li', null, text)), folded));
}

export const overview: View = {
    key: 'overview',
    title: 'Overview',
    missing: () => null,
    show: (page: Page, root: HTMLElement) => {
        const by = state.get('by');
        if (by && !measure(by)?.values(page.profile))
            tell(`This profile has no value “${by}”.`);
        const plot = h('section', { class: 'wide', inert: page.rest !== null }); // what is known of a moment is in the rest
        void page.rest?.then(() => (plot.inert = false));
        let top = tiles(atTime(page));
        let sums = functions(atTime(page)) ?? h('section');
        /* Another moment or range: what depends on it, anew. */
        const undo = timeline(page, plot, () => {
            const next = [tiles(atTime(page)), functions(atTime(page)) ?? h('section')] as const;
            top.replaceWith(next[0]);
            sums.replaceWith(next[1]);
            [top, sums] = next;
        });
        replace(root, h('h2', { class: 'offscreen' }, 'Overview'), story(page.profile), top, plot,
            h('div', { class: 'columns' }, h('div', null, findings(page.profile), sums, regions(page.profile), threads(page.profile)), h('div', null, memory(page.profile), selection(page.profile), gaps(page.profile))));
        const whole = () => root.querySelectorAll<HTMLElement>('.more-findings, .more-threads').forEach((each) => each.click()); // paper has room
        addEventListener('beforeprint', whole);
        return () => {
            removeEventListener('beforeprint', whole);
            undo();
        };
    },
};
