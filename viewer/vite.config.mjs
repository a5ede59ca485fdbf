/* The page as one file: scripts and styles stand in the HTML, and its content security policy names their hashes, so
 * that nothing else can ever run in it or be fetched by it. */
import { createHash } from 'node:crypto';
import { defineConfig } from 'vite';

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

function inlineEverything() {
    return {
        name: 'inline-everything',
        enforce: 'post',
        generateBundle(options, bundle) {
            const files = Object.values(bundle);
            const html = files.find((file) => file.fileName.endsWith('.html'));
            const scripts = files.filter((file) => file.type === 'chunk');
            const styles = files.filter((file) => file.fileName.endsWith('.css'));
            if (scripts.length !== 1 || files.length !== 2 + styles.length)
                this.error(`one script and one style sheet expected, not ${files.map((file) => file.fileName)}`);
            const script = `\n${scripts[0].code.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--')}`;
            const style = styles.map((file) => file.source).join('\n');
            const policy =
                `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
                `base-uri 'none'; form-action 'none'`;
            html.source = html.source
                .replace(/<script type="module"[^>]*><\/script>\s*/g, '')
                .replace(/<link rel="stylesheet"[^>]*>\s*/g, '')
                .replace('<title>', () => `<meta http-equiv="Content-Security-Policy" content="${policy}">\n<title>`)
                .replace('</head>', () => `<style>${style}</style>\n</head>`)
                .replace('<script type="application/octet-stream" id="rests">', (rests) => `<script type="module" async>${script}</script>\n${rests}`); // runs before the rest is read
            for (const file of [...scripts, ...styles])
                delete bundle[file.fileName];
        },
    };
}

/* The rows of measures.def that concern the page, as a module. */
function measuresOfTheTable() {
    const rows = (text, pattern) => [...text.matchAll(pattern)].map(([row]) => [...row.matchAll(/"([^"]*)"|\b([A-Z]+)\b/g)].map((found) => found[1] ?? found[2]));
    return {
        name: 'measures-of-the-table',
        enforce: 'pre',
        transform(text, file) {
            if (!file.endsWith('measures.def'))
                return null;
            const sentences = new Map(rows(text, /^HW_(BOTH|LIST|VALUE)\(.*?"\)$/gms).map((row) => [row.find((word) => !/^[A-Z]/.test(word)), row.at(-1)]));
            const shown = rows(text, /^HW_PAGE\(.*\)$/gm).map(([key, title, short, unit, sum, by, hint]) =>
                ({ key, title, short, unit, sum, by, hint: hint === 'NULL' ? sentences.get(key).replaceAll('`', '') : hint }));
            return `export const rows = ${JSON.stringify(shown)};\nexport const old = new Map(${JSON.stringify(rows(text, /^HW_OLD_PAGE\(.*\)$/gm))});`;
        },
    };
}

/* The rows of numbers.def that are columns of the page, as a module: how two of them become one decides what a group shows. */
function numbersOfTheTable() {
    const cells = (row) => [...row.matchAll(/\s*("[^"]*"|[^,]*?)\s*(?:,|$)/g)].map(([, cell]) => cell.replaceAll('"', ''));
    return {
        name: 'numbers-of-the-table',
        enforce: 'pre',
        transform(text, file) {
            if (!file.endsWith('numbers.def'))
                return null;
            const rows = [...text.matchAll(/^HW_(NUMBER|ACCESS|MADE)\(([\s\S]*?"[^"]*")\)$/gm)].map(([, kind, row]) => {
                const [member, adds, of, unit, column, sentence] = kind === 'MADE' ? [cells(row)[0], 'SUM', '', ...[1, 5, 9].map((at) => cells(row)[at])] : [1, 2, 3, 6, 10, 14].map((at) => cells(row)[at]);
                return { column, unit, of, sentence: sentence.replace(/; JSON.*/, '').replaceAll('`', ''), adds: adds !== 'CODE' ? adds : member.startsWith('last_') ? 'MOST' : 'SUM' };
            });
            return `export const rows = ${JSON.stringify(rows.filter((row) => row.column !== 'NULL'))};`;
        },
    };
}

export default defineConfig({
    build: {
        target: ['chrome103', 'firefox113', 'safari16.4'],
        modulePreload: false,
        cssCodeSplit: false,
        assetsInlineLimit: 1 << 20,
        emptyOutDir: true,
        reportCompressedSize: false,
        rollupOptions: { input: 'page.html' },
    },
    plugins: [measuresOfTheTable(), numbersOfTheTable(), inlineEverything()],
});
