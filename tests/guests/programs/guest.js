// Workers, zlib and crypto in the pool of threads, a child process with a channel, a shared buffer.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { createHash, pbkdf2 } = require('crypto');
const { fork, execFile } = require('child_process');
const { gzip, gunzip, brotliCompressSync } = require('zlib');
const { promisify } = require('util');

function work(n) {
    const words = new Map();
    for (let i = 0; i < 50000; i++) {
        const word = (i * 7919 * n % 4099).toString(16);
        words.set(word, (words.get(word) || 0) + 1);
    }
    return createHash('sha256').update(JSON.stringify([...words].sort())).digest('hex');
}

if (process.argv[2] === 'child') {
    process.on('message', (n) => process.send(work(n), () => process.exit(n)));
} else if (!isMainThread) {
    const cells = new Int32Array(workerData.shared);
    for (let i = 0; i < 10000; i++) Atomics.add(cells, i % cells.length, 1);
    parentPort.postMessage(work(workerData.n));
} else {
    (async () => {
        const shared = new SharedArrayBuffer(64);
        const workers = [1, 2, 3, 4].map((n) => new Promise((done, failed) => {
            const worker = new Worker(__filename, { workerData: { n, shared } });
            let answer;
            worker.on('message', (message) => { answer = message; });
            worker.on('error', failed);
            worker.on('exit', (code) => done([n, code, answer]));
        }));
        for (const result of await Promise.all(workers)) console.log(...result);
        console.log(new Int32Array(shared).reduce((a, b) => a + b));
        const text = Buffer.from('a line of text\n'.repeat(20000));
        const packed = await Promise.all(Array.from({ length: 12 }, () => promisify(gzip)(text)));
        const again = await Promise.all(packed.map((p) => promisify(gunzip)(p)));
        console.log(again.every((a) => a.equals(text)), brotliCompressSync(text).length > 0);
        console.log((await promisify(pbkdf2)('password', 'salt', 10000, 32, 'sha512')).toString('hex'));
        const child = fork(__filename, ['child']);
        child.send(5);
        console.log(await new Promise((done) => child.on('message', done)));
        console.log(await new Promise((done) => child.on('exit', done)));
        console.log((await promisify(execFile)('seq', ['3'])).stdout);
        process.exitCode = 8;
    })();
}
