/* state.ts - what is being shown, kept in the address of the page: a link restores it.
 *
 *     #/contexts?sort=peak&q=parse
 *
 * Every view has its own keys, and all share those of the time that is looked at; what has its usual value is not in the
 * address. */

const listeners = new Set<() => void>();

function parse(): { view: string; values: URLSearchParams } {
    const [path, query] = location.hash.replace(/^#\/?/, '').split('?', 2);
    return { view: path ?? '', values: new URLSearchParams(query ?? '') };
}

export function view(): string {
    return parse().view;
}

export function get(key: string, usual = ''): string {
    return parse().values.get(key) ?? usual;
}

export function getNumber(key: string, usual: number): number {
    const value = Number(parse().values.get(key) ?? NaN);
    return Number.isFinite(value) ? value : usual;
}

/* All values of this view. */
export function all(): Record<string, string> {
    return Object.fromEntries(parse().values);
}

/* What all views share: the moment or the range of time that is looked at. */
const shared = ['moment', 'from', 'to'];

/* The address of a view. What views share goes with it, unless VALUES say otherwise ('' drops it). */
export function link(view: string, values: Record<string, string | number> = {}): string {
    return address(view, { ...Object.fromEntries(shared.map((key) => [key, get(key)])), ...values });
}

function address(view: string, values: Record<string, string | number>): string {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(values))
        if (value !== '')
            query.set(key, String(value));
    const text = query.toString();
    return `#/${view}${text ? `?${text}` : ''}`;
}

/* Goes somewhere else: a step that the Back key takes back. */
export function go(view: string, values: Record<string, string | number> = {}): void {
    location.hash = link(view, values);
}

/* Changes values of this view ('' drops one) without a step of its own, and without drawing the view anew. */
export function note(changes: Record<string, string | number>): void {
    const { view, values } = parse();
    for (const [key, value] of Object.entries(changes))
        if (value === '')
            values.delete(key);
        else
            values.set(key, String(value));
    history.replaceState(null, '', address(view, Object.fromEntries(values)));
}

/* The same, as a step that the Back key takes back. */
export function step(changes: Record<string, string | number>): void {
    history.pushState(null, '', location.hash || '#/');
    note(changes);
}

export function onChange(listener: () => void): void {
    if (!listeners.size)
        addEventListener('hashchange', () => listeners.forEach((each) => each()));
    listeners.add(listener);
}
