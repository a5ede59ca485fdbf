/* format.ts - numbers as people read them; the same as in the text report. */

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/* As printf rounds: what lies exactly between two numbers becomes the even one. */
function fixed(value: number, places: number): string {
    const shifted = value * 10 ** places;
    const between = Number.isInteger(value * 2 ** (places + 1)) && shifted % 1 === 0.5;
    const below = Math.floor(shifted);
    return (between ? (below + (below % 2)) / 10 ** places : value).toFixed(places);
}

function digits(value: number): string {
    return fixed(value, !value || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

export function bytes(value: number): string {
    const sign = value < 0 ? '-' : '';
    let size = Math.abs(value);
    let unit = 0;
    while (size >= 1023.95 && unit + 1 < units.length) {
        size /= 1024;
        unit++;
    }
    return `${sign}${unit ? fixed(size, 1) : Math.round(size)} ${units[unit]}`;
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
    if (ns < 0)
        return `-${duration(-ns)}`;
    const size = Math.round(ns);
    if (size < 1000)
        return `${size} ns`;
    if (size < 999500)
        return `${digits(size / 1e3)} µs`;
    if (size < 999500000)
        return `${digits(size / 1e6)} ms`;
    if (size / 1e9 < 59.95)
        return `${digits(size / 1e9)} s`;
    const seconds = Math.floor(size / 1e9 + 0.5), two = (value: number) => String(value).padStart(2, '0');
    return seconds < 3600 ? `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`
        : `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
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
    const ratio = Math.abs(part / whole), share = 100 * ratio, sign = part / whole < 0 ? '-' : '';
    if (share >= 99.95)
        return ratio < 1 ? `${sign}>99.9 %` : `${sign}${fixed(share, 0)} %`;
    return share && share < 0.05 ? `${sign}<0.1 %` : `${sign}${fixed(share, 1)} %`;
}

/* A command, with words in quotes that a shell would not read as one. */
export function command(words: string[]): string {
    return words.map((word) => (word && !/[\s"'\\$`*?|&;<>(){}[\]#~!]/.test(word) ? word : `'${word}'`)).join(' ');
}

export function ratio(value: number): string {
    if (!value)
        return '0';
    return value < 0.005 ? '<0.01' : value >= 1e4 ? short(value) : digits(value);
}

export function change(value: number, format: (value: number) => string): string {
    return value > 0 ? `+${format(value)}` : value < 0 ? `−${format(-value)}` : '±0';
}

export function plural(number: number, word: string): string {
    return `${count(number)} ${word}${number === 1 ? '' : /(s|x|ch)$/.test(word) ? 'es' : 's'}`;
}
