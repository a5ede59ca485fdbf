// speedscope_page.mjs - a file as speedscope itself reads it: its page, opened in Chromium as its command does, and the table of
// its "sandwich" view.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";

const require = createRequire(import.meta.url);
const browsers = [process.env.HEAPWISE_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

// playwright-core comes with the page's packages. NULL without it, or without a browser.
function findBrowser() {
  const executablePath = browsers.find((each) => each && existsSync(each));
  try {
    return executablePath && { ...createRequire(new URL("../../viewer/", import.meta.url))("playwright-core"), executablePath };
  } catch {
    return null;
  }
}

const units = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 };

// "4.00 KB (90%)" in bytes.
function bytes(text) {
  const [, value, unit] = /^([\d.]+) ([KMG]?B)\b/.exec(text);
  return Number(value) * units[unit];
}

// { title, profile: the name of the one shown first, rows: [{ name, total, self }] }, those with the greatest self first;
// null where there is no browser.
export async function readInSpeedscope(file) {
  const found = findBrowser();
  if (!found) return null;
  const index = path.join(path.dirname(require.resolve("speedscope/dist/release/file-format-schema.json")), "index.html");
  const folder = mkdtempSync(path.join(tmpdir(), "speedscope-"));
  const script = path.join(folder, "profile.js");
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  const browser = await found.chromium.launch({ executablePath: found.executablePath, args, timeout: 60000 });
  try {
    const base64 = readFileSync(file).toString("base64");
    writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, "${base64}")`);
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto(`file://${index}#localProfilePath=${script}`);
    await page.waitForFunction(() => document.title.endsWith(" - speedscope"), null, { timeout: 30000 });
    await page.keyboard.press("3");
    // Another table, the list of profiles, is there unseen.
    const readRows = () => [...document.querySelectorAll("table tr")]
      .map((row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText.trim()))
      .filter((cells) => cells.length === 3 && /^[\d.]+ [KMG]?B /.test(cells[0]));
    await page.waitForFunction(`(${readRows})().length > 0`, null, { timeout: 30000 });
    const rows = await page.evaluate(readRows);
    const text = await page.evaluate(() => document.body.innerText);
    if (errors.length) throw new Error(`speedscope: ${errors.join("; ")}`);
    return {
      title: (await page.title()).replace(/ - speedscope$/, ""),
      profile: /^(.*) \(\d+\/\d+\)$/m.exec(text)?.[1],
      rows: rows.map(([total, self, name]) => ({ name, total: bytes(total), self: bytes(self) })),
    };
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true });
  }
}
