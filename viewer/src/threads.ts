/* threads.ts - the table of threads: what each allocated, held at the peak and left to others; its places open below. */
import { placeLinks } from './detail';
import { add, h, name } from './dom';
import * as format from './format';
import { baseName, type Profile } from './model';
import type { Thread, ThreadCounts, ThreadStart } from './report';

const shown = 12;
const startsMost = 3; // places at which the threads of a row were started

interface Row {
    title: string;
    place: string; // of the start function
    threads: number;
    counts: ThreadCounts;
    estimated: boolean;
    starts: Set<string>;
}

const kinds: Record<string, string> = { main: 'main thread', handlers: 'signal handlers and ends of threads', inherited: 'inherited from the parent process' };

/* As in the text report: a name that was never set, or that of the function, says nothing. */
export function titleOf(thread: Thread, main: string | undefined): string {
    const start = thread.start?.function ?? '';
    const kind = kinds[thread.kind ?? ''];
    const own = thread.name && !thread.names_differ && (kind || !start || (thread.name !== start && thread.name !== main)) ? thread.name : '';
    return [own, kind ?? start].filter(Boolean).join(', ') || (thread.names_differ ? 'of various names' : '(not known)');
}

const fileOf = ({ file, line }: { file?: string | null; line?: number | null }): string => (file ? `${baseName(file)}${line ? `:${line}` : ''}` : '');

/* Where its start function is: "pool.c:17", or "". */
export const placeOf = ({ start }: Thread): string => fileOf(start ?? {});

/* "the main thread at start_pool (pool.c:33)"; empty where neither is known. */
function startOf(thread: Thread, threads: Thread[], starts: Map<number, ThreadStart>, main: string | undefined): string {
    const by = threads[thread.started_by?.thread ?? -1];
    const start = starts.get(thread.started_by?.context ?? -1);
    const frame = start?.stack[start.headline];
    const file = frame ? fileOf(frame) : '';
    const at = frame ? `${by ? ' ' : ''}at ${frame.function ?? 'code without a name'}${file ? ` (${file})` : ''}` : '';
    return `${by ? (by.kind === 'main' ? 'the main thread' : titleOf(by, main)) : ''}${at}`;
}

/* Threads of one title are one row; if these are many, also those whose titles differ in numbers. */
function rowsOf(threads: Thread[], known: ThreadStart[]): Row[] {
    const main = threads.find((each) => each.kind === 'main')?.name ?? undefined;
    const rows = new Map<string, Row>();
    const starts = new Map(known.map((each) => [each.context, each]));
    const titles = threads.map((each) => titleOf(each, main));
    const numbered = new Set(titles).size > shown;
    for (const [index, thread] of threads.entries()) {
        const title = numbered && thread.name ? titles[index]!.replace(thread.name, thread.name.replace(/[0-9]+/g, '*')) : titles[index]!;
        const start = startOf(thread, threads, starts, main);
        const counts: ThreadCounts = thread.sampled ?? thread;
        const old = rows.get(title);
        if (!old) {
            rows.set(title, { title, place: placeOf(thread), threads: thread.threads ?? 1, counts: { ...counts }, estimated: Boolean(thread.sampled), starts: new Set(start ? [start] : []) });
            continue;
        }
        old.threads += thread.threads ?? 1;
        if (start)
            old.starts.add(start);
        for (const key of ['allocations', 'bytes', 'peak_bytes', 'live_bytes', 'freed_by_others', 'freed_of_others'] as const)
            old.counts[key] = (old.counts[key] ?? 0) + (counts[key] ?? 0);
        old.counts.places = [...(old.counts.places ?? []), ...(counts.places ?? [])];
    }
    return [...rows.values()].sort((a, b) => (b.counts.peak_bytes ?? 0) - (a.counts.peak_bytes ?? 0) || (b.counts.bytes ?? 0) - (a.counts.bytes ?? 0));
}

function rowOf(profile: Profile, row: Row): HTMLElement {
    const bytes = (value: number | null | undefined) => h('td', { class: 'number' }, format.bytes(Math.max(0, value ?? 0)));
    const count = (value: number | null | undefined) => h('td', { class: 'number' }, format.count(value ?? 0));
    const places = [...(row.counts.places ?? [])].sort((a, b) => b.bytes - a.bytes);
    const links = placeLinks(profile, places.map((each) => each.context), 6);
    const title = [h('bdi', null, name(row.title)), row.threads > 1 ? ` (${format.plural(row.threads, 'thread')})` : '', row.place ? h('span', { class: 'place' }, ` ${row.place}`) : null];
    return h('tr', null, bytes(row.counts.peak_bytes), bytes(row.counts.live_bytes), bytes(row.counts.bytes), count(row.counts.allocations), count(row.counts.freed_by_others), count(row.counts.freed_of_others),
        h('td', null, links.length || row.starts.size ? h('details', null, h('summary', null, title),
            [...row.starts].slice(0, startsMost).map((each) => h('p', { class: 'started' }, each.startsWith('at ') ? 'Started ' : 'Started by ', name(each))),
            row.starts.size > startsMost ? h('p', { class: 'started' }, `and at ${format.plural(row.starts.size - startsMost, 'other place')}`) : null,
            links.length ? h('p', { class: 'links' }, 'Allocated most at: ', links) : null) : title));
}

/* Nothing where there is one thread, or none is known. */
export function threads(profile: Profile): HTMLElement | null {
    const all = profile.report.threads ?? [];
    if (all.length < 2)
        return null;
    const rows = rowsOf(all, profile.report.thread_starts ?? []);
    const body = h('tbody', null, rows.slice(0, shown).map((each) => rowOf(profile, each)));
    const more = h('button', { type: 'button', class: 'more-threads', onclick: () => {
        add(body, rows.slice(shown).map((each) => rowOf(profile, each)));
        more.remove();
    } }, `${rows.length - shown} more`);
    const column = (title: string, hint: string) => h('th', { scope: 'col', title: hint }, title);
    return h('section', { class: 'threads' }, h('h3', null, rows.some((each) => each.estimated) ? 'Threads (estimated)' : 'Threads'),
        h('div', { class: 'wide' }, h('table', { class: 'functions' },
            h('thead', null, h('tr', null, column('at peak', 'Bytes of its blocks at the peak of the process'), column('not freed', 'Bytes of its blocks at the end'), column('allocated', 'Bytes over the whole run'), column('allocations', 'Blocks over the whole run'),
                column('by others', 'Its blocks, freed by other threads'), column('of others', 'Blocks of other threads, freed by it'), column('thread', 'Its name and the function it was started with'))),
            body)),
        rows.length > shown ? more : null);
}
