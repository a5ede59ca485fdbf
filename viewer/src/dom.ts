/* dom.ts - elements. Text only ever becomes text: there is no way here to make markup of a string. */

export type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, unknown>;

function apply(element: Element, attributes: Attributes): void {
    for (const [name, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false)
            continue;
        if (name.startsWith('on') && typeof value === 'function')
            element.addEventListener(name.slice(2), value as EventListener);
        else if (name === 'style') // through the object model: the policy of the page forbids style attributes
            for (const [key, text] of Object.entries(value as Record<string, string>))
                (element as HTMLElement).style.setProperty(key, text);
        else if (name === 'value' || name === 'checked' || name === 'selected' || name === 'disabled')
            (element as unknown as Attributes)[name] = value;
        else
            element.setAttribute(name, value === true ? '' : String(value));
    }
}

export function add(parent: Element, ...children: (Child | Child[])[]): void {
    for (const child of children.flat())
        if (child !== null && child !== undefined && child !== false)
            parent.append(typeof child === 'number' ? String(child) : child);
}

export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Attributes | null = null,
    ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    if (attributes)
        apply(element, attributes);
    add(element, ...children);
    return element;
}

export function svg(tag: string, attributes: Attributes, ...children: (Child | Child[])[]): SVGElement {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    apply(element, attributes);
    add(element, ...children);
    return element;
}

/* A name of the program: set apart, so that its writing direction stays its own. */
export function name(text: string, className = 'name'): HTMLElement {
    return h('bdi', { class: className, title: text.length > 40 ? text : null }, text);
}

export function replace(parent: Element, ...children: (Child | Child[])[]): void {
    parent.replaceChildren();
    add(parent, ...children);
}

/* A choice of one of several. */
export function select(
    label: string,
    entries: readonly (readonly [string, string])[],
    chosen: string,
    changed: (value: string) => void,
): HTMLElement {
    const list = h(
        'select',
        { onchange: () => changed(list.value) },
        entries.map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
    );
    return h('label', { class: 'choice' }, h('span', null, label), list);
}

/* Handlers of a field that is searched by: ACTION soon after the last letter, and at once when the field is left. */
export function searching(action: () => void): { oninput: () => void; onblur: () => void } {
    let timer = 0;
    const now = (): void => {
        clearTimeout(timer);
        timer = 0;
        action();
    };
    return {
        oninput: () => {
            clearTimeout(timer);
            timer = window.setTimeout(now, 120);
        },
        onblur: () => {
            if (timer)
                now();
        },
    };
}

/* Gives FILE to the user, as a download. */
export function save(file: Blob, fileName: string): void {
    const url = URL.createObjectURL(file);
    h('a', { href: url, download: fileName }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* The canvas in device pixels, so that it is sharp; its context draws in CSS pixels. Empty afterwards. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
    const scale = window.devicePixelRatio || 1;
    const wide = Math.max(1, Math.round(width * scale));
    const high = Math.max(1, Math.round(height * scale));
    const context = canvas.getContext('2d')!;
    if (canvas.width !== wide || canvas.height !== high) {
        canvas.width = wide;
        canvas.height = high;
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
}

/* A colour of the theme. */
export function themed(variable: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}
