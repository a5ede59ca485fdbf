/* format.ts - numbers as people read them; the same as in the text report. */

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

function digits(value: number): string {
    return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(value ? 2 : 0);
}

export function bytes(value: number): string {
    const sign = value < 0 ? '-' : '';
    let size = Math.abs(value);
    let unit = 0;
    while (size >= 1023.95 && unit + 1 < units.length) {
        size /= 1024;
        unit++;
    }
    return `${sign}${unit ? size.toFixed(1) : grouped.format(Math.round(size))} ${units[unit]}`;
}

export function count(value: number): string {
    return grouped.format(value);
}

/* 12.3 M: for axes and narrow places. */
export function short(value: number): string {
    const size = Math.abs(value);
    for (const [limit, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']] as const)
        if (size >= limit)
            return `${digits(value / (letter === 'k' ? 1e3 : limit))} ${letter}`;
    return size >= 100 || Number.isInteger(value) ? grouped.format(value) : digits(value);
}

export function duration(ns: number): string {
    const size = Math.abs(ns);
    if (size < 1000)
        return `${Math.round(ns)} ns`;
    if (size < 1e6)
        return `${digits(ns / 1e3)} µs`;
    if (size < 1e9)
        return `${digits(ns / 1e6)} ms`;
    if (size < 600e9)
        return `${digits(ns / 1e9)} s`;
    return size < 36e12 ? `${digits(ns / 60e9)} min` : `${digits(ns / 3600e9)} h`;
}

/* Distances of the lines of an axis of bytes. */
export const byteSteps = [0, 10, 20, 30, 40, 50].flatMap((power) => [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map((step) => step * 2 ** power));

/* Round numbers, as on an axis, without the zeros that say how exact they are. */
export function axis(text: string): string {
    return text.replace(/\.0+ /, ' ').replace(/^0 ns$/, '0');
}

export function percent(part: number, whole: number): string {
    if (!whole)
        return '';
    const share = (part / whole) * 100;
    return share && Math.abs(share) < 0.1 ? `${share < 0 ? '-' : ''}<0.1 %` : `${share.toFixed(1)} %`;
}

export function ratio(value: number): string {
    if (!value)
        return '0';
    return value < 0.01 ? '<0.01' : value >= 1e4 ? short(value) : digits(value);
}

export function change(value: number, format: (value: number) => string): string {
    return value > 0 ? `+${format(value)}` : value < 0 ? `−${format(-value)}` : '±0';
}

export function plural(number: number, word: string): string {
    return `${count(number)} ${word}${number === 1 ? '' : /(s|x|ch)$/.test(word) ? 'es' : 's'}`;
}
