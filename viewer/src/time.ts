/* time.ts - the moment or the range that was chosen in the timeline, for all views: it is in the address, and views get a
 * profile of that time, with what is known of it by place. */
import { h, type Child } from './dom';
import * as format from './format';
import { Moments, type Named, type Sighting } from './moments';
import type { Profile } from './model';
import * as state from './state';
import type { Page } from './view';

export type Chosen = { at: Sighting; named: Named | null } | { from: Sighting; to: Sighting } | null;

const known = new WeakMap<Profile, Moments>();

export function momentsOf(profile: Profile): Moments {
    const moments = known.get(profile.whole) ?? new Moments(profile.whole, profile.whole.dumps);
    known.set(profile.whole, moments);
    return moments;
}

/* The part of the run that the plot shows. */
export function range(profile: Profile): { from: number; to: number; whole: boolean } {
    const { end } = momentsOf(profile);
    const from = Math.max(0, state.getNumber('from', 0));
    const to = Math.min(end, state.getNumber('to', end));
    return to > from ? { from, to, whole: from <= 0 && to >= end } : { from: 0, to: end, whole: true };
}

/* What the address asks for; a time between sightings is the nearest one. */
export function chosen(profile: Profile): Chosen {
    const moments = momentsOf(profile);
    if (!moments.known)
        return null;
    const wanted = state.getNumber('moment', -1);
    if (wanted >= 0) {
        const at = moments.nearest(Math.min(wanted, moments.end));
        return { at, named: moments.named.find(({ time }) => Math.abs(time - at.time) < 1) ?? null };
    }
    const { from, to, whole } = range(profile);
    if (whole)
        return null;
    const near = [moments.nearest(from, true), moments.nearest(to, true)] as const;
    const [first, last] = near[1].time > near[0].time ? near : moments.around(from, to);
    return last.time > first.time ? { from: first, to: last } : null;
}

const listeners = new Set<() => void>();

export function onTime(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/* Another moment or range, in the same view. QUIET: no step for the Back key. */
export function choose(values: { moment?: number | ''; from?: number | ''; to?: number | '' }, quiet = false): void {
    (quiet ? state.note : state.step)(values as Record<string, string | number>);
    listeners.forEach((each) => each());
}

/* Everything again. False: it was so. */
export function reset(): boolean {
    if (!state.get('moment') && !state.get('from') && !state.get('to'))
        return false;
    choose({ moment: '', from: '', to: '' });
    return true;
}

const slices = new WeakMap<Profile, { key: string; slice: Profile }>();

/* PROFILE as far as it is known of what was chosen; itself when nothing was. */
export function sliced(profile: Profile): Profile {
    const { whole } = profile;
    const what = chosen(whole);
    if (!what)
        return whole;
    const key = 'at' in what ? `${what.at.time}` : `${what.from.time}-${what.to.time}`;
    const latest = slices.get(whole);
    if (latest?.key === key)
        return latest.slice;
    const moments = momentsOf(whole);
    const columns = new Map<string, Float64Array>();
    let unknown: Uint8Array;
    if ('at' in what) {
        const then = moments.then(what.at.time);
        columns.set('then_bytes', then.live).set('then_blocks', then.blocks);
        unknown = then.unknown;
    } else {
        const [before, after] = [moments.until(what.from.time), moments.until(what.to.time)];
        const [old, now] = [moments.then(what.from.time), moments.then(what.to.time)];
        unknown = before.unknown.map((each, i) => each | after.unknown[i]!);
        const less = (one: Float64Array, other: Float64Array) => one.map((value, i) => (unknown[i] ? 0 : Math.max(0, value - other[i]!)));
        columns.set('bytes', less(after.bytes, before.bytes)).set('allocations', less(after.allocations, before.allocations)).set('frees', less(after.frees, before.frees))
            .set('grown', less(now.live, old.live)).set('shrunk', less(old.live, now.live));
    }
    const slice = whole.slice(columns, unknown);
    slices.set(whole, { key, slice });
    return slice;
}

/* The page at what was chosen; comparisons are of whole runs. */
export function atTime(page: Page): Page {
    const profile = sliced(page.profile);
    return profile === page.profile ? page : { profile, baseline: null, comparison: null, rest: page.rest };
}

/* Contexts that can have had blocks then. */
export function inUse(slice: Profile): Uint8Array | null {
    const { whole, unknown } = slice;
    if (!unknown)
        return null;
    const then = slice.column('then_bytes');
    const blocks = slice.column('then_blocks');
    if (then)
        return Uint8Array.from(then, (bytes, i) => (bytes > 0 || blocks![i]! > 0 || unknown[i] ? 1 : 0));
    const what = chosen(whole) as { from: Sighting; to: Sighting };
    const moments = momentsOf(whole);
    const [old, first] = [moments.then(what.from.time), whole.column('first_ns')];
    const [last, free, live] = ['last_alloc_ns', 'last_free_ns', 'live_blocks'].map((name) => whole.column(name));
    return Uint8Array.from(unknown, (each, i) => {
        const events = (slice.column('allocations')![i] ?? 0) + (slice.column('frees')![i] ?? 0);
        const may = (first?.[i] ?? 0) <= what.to.time && ((live?.[i] ?? 1) > 0 || (last?.[i] ?? Infinity) >= what.from.time || (free?.[i] ?? 0) >= what.from.time);
        return (each ? may : events > 0 || old.blocks[i]! > 0) ? 1 : 0;
    });
}

/* "the peak, 126 ms into the run" */
function titleOf(at: Sighting, named: Named | null): string {
    const when = `${format.duration(at.time)} into the run`;
    return named ? `${named.title[0]!.toUpperCase()}${named.title.slice(1)}, ${when}` : `${when[0]!.toUpperCase()}${when.slice(1)}`;
}

/* A short name of what was chosen, behind a number of rows. */
export function briefly(profile: Profile): string {
    const what = chosen(profile);
    if (!what)
        return '';
    return 'at' in what ? `live at ${what.named?.title ?? format.duration(what.at.time)}` : `in use between ${format.duration(what.from.time)} and ${format.duration(what.to.time)}`;
}

const record = 'HEAPWISE_OPTIONS=dump-interval=SECONDS heapwise record … writes dumps (heapwise dump PID writes one), and heapwise view FILE DUMP… shows them.';

/* How much of WHOLE is known by place, and what would show the rest. */
function coverage(profile: Profile, column: string, whole: number, said: (value: number) => string): string {
    const slice = sliced(profile);
    const pool = profile.whole.column('pool');
    const sum = slice.column(column)!.reduce((all, value, i) => (pool?.[i] ? all : all + value), 0);
    const open = slice.unknown!.reduce((count, each) => count + each, 0);
    if (!open)
        return 'Every place is known.';
    const why = momentsOf(profile).dumps ? 'More dumps would show more.' : record;
    return `By place, ${said(sum)} of ${said(whole)} are known: places that did not change before the next recorded moment. What ${format.plural(open, 'other place')} had then is not recorded. ${why}`;
}

/* What was chosen, what is known of it, and ways on. Empty: nothing was chosen. LINKED: with a link to the places. */
export function describe(profile: Profile, linked: boolean): Child[] {
    const what = chosen(profile);
    const moments = momentsOf(profile);
    if (!what)
        return [];
    const ways = moments.named.filter((each) => !('at' in what) || Math.abs(each.time - what.at.time) >= 1).slice(0, 8);
    const recorded = h('span', { class: 'recorded' }, ways.length ? 'Recorded by place: ' : null, ways.flatMap((each, i) => [
        i ? ' · ' : null, h('a', { href: state.link(state.view() || 'overview', { ...state.all(), moment: Math.floor(each.time) }), title: format.duration(each.time) }, each.short)]));
    const places = linked ? h('a', { href: state.link('contexts') }, 'at' in what ? 'The places then' : 'The places in use then') : null;
    if ('at' in what) {
        const rss = what.at.rss ?? moments.rss(what.at.time);
        return [`${titleOf(what.at, what.named)}: ${format.bytes(what.at.live)} live${rss ? `, ${format.bytes(rss)} resident with Heapwise’s own memory` : ''}. `,
            coverage(profile, 'then_bytes', what.at.live, format.bytes), ' ', places, places ? ' ' : null, recorded];
    }
    const { from, to } = what;
    const within = moments.between(from.time, to.time);
    const allocations = to.allocations! - from.allocations!;
    return [`${format.duration(from.time)} to ${format.duration(to.time)}: ${format.count(allocations)} allocations, ${format.count(to.frees! - from.frees!)} frees, ` +
        `heap ${format.change(to.live - from.live, format.bytes)}, at most ${format.bytes(Math.max(...within.map(({ live }) => live)))}. `,
    coverage(profile, 'allocations', allocations, (value) => `${format.count(value)}`).replace(/ are known/, ' allocations are known'), ' ', places, places ? ' ' : null, recorded];
}
