// Builds the page: one HTML file with its script, the worker, the styles and the simulator in it. The same sources give the
// same bytes.
//
// node build.mjs WASM PAGE [BUILT]: WASM is the simulator, PAGE is written, and the directory BUILT gets what tests and
// measurements use: run.mjs for node, browser.html for browsers, and the simulator.

import { gzipSync } from "node:zlib";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [wasm, page, built] = process.argv.slice(2);
if (wasm === undefined || page === undefined) throw new Error("usage: node build.mjs WASM PAGE [BUILT]");

const shared = {
  absWorkingDir: here,
  bundle: true,
  charset: "utf8",
  format: "iife",
  legalComments: "none",
  logLevel: "warning",
  minify: true,
  target: ["chrome105", "firefox113", "safari16.4"],
  write: false,
};

/** The text of a bundle. */
async function bundle(options) {
  const { outputFiles } = await build({ ...shared, ...options });
  return outputFiles[0].text;
}

/** Modules whose content is made here. */
function virtual(contents) {
  return {
    name: "virtual",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^virtual:/ }, ({ path }) => ({ path, namespace: "virtual" }));
      onLoad({ filter: /.*/, namespace: "virtual" }, ({ path }) => ({
        contents: contents[path.slice("virtual:".length)],
        loader: "text",
      }));
    },
  };
}

/** The package's catalogue of experiments as a module, in its teaching order. */
function catalogue() {
  const model = join(here, "../python/bufferscope/model");
  return {
    name: "catalogue",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^catalogue:$/ }, ({ path }) => ({ path, namespace: "catalogue" }));
      onLoad({ filter: /.*/, namespace: "catalogue" }, () => {
        const order = /^TEACHING_ORDER = \(([^)]*)\)/m.exec(readFileSync(join(model, "experiment.py"), "utf8"));
        if (order === null) throw new Error("experiment.py has no TEACHING_ORDER");
        const names = [...order[1].matchAll(/"([^"]+)"/g)].map(([, name]) => name);
        const experiments = names.map((name) => ({ name, text: readFileSync(join(model, "catalogue", `${name}.toml`), "utf8") }));
        return { contents: JSON.stringify(experiments), loader: "json" };
      });
    },
  };
}

/** Code in a script element must not end it. */
const inScript = (code) => code.replace(/<(?=!--|\/?script)/gi, "\\x3C");
/** Replaces what must be there exactly once. */
function replaced(text, pattern, replacement) {
  if ([...text.matchAll(new RegExp(pattern, "g"))].length !== 1) throw new Error(`index.html needs one ${pattern}`);
  return text.replace(pattern, () => replacement);
}

/** A WebAssembly module without its custom sections: names of functions, which only debuggers read. */
function stripped(module) {
  const kept = [module.subarray(0, 8)];
  for (let begins = 8; begins < module.length; ) {
    let [at, size] = [begins + 1, 0];
    for (let shift = 0; ; shift += 7) {
      const byte = module[at++];
      size += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    if (module[begins] !== 0) kept.push(module.subarray(begins, at + size));
    begins = at + size;
  }
  return Buffer.concat(kept);
}

const simulator = stripped(readFileSync(wasm));
const compressed = gzipSync(simulator, { level: 9 });
// The byte that names the operating system.
compressed[9] = 0xff;
const worker = await bundle({ entryPoints: ["src/core/worker.ts"] });
const contents = { wasm: compressed.toString("base64"), worker };
const script = await bundle({ entryPoints: ["src/page/main.ts"], plugins: [virtual(contents), catalogue()], loader: { ".toml": "text", ".svg": "text" } });
const styles = await bundle({ entryPoints: ["src/styles.css"], loader: { ".svg": "dataurl" } });

let html = readFileSync(join(here, "src/index.html"), "utf8");
html = replaced(html, /<link rel="stylesheet" href="styles.css" ?\/?>/, `<style>${styles.trim()}</style>`);
html = replaced(html, /<script type="module" src="page\/main.ts"><\/script>/, `<script type="module">${inScript(script.trim())}</script>`);
mkdirSync(dirname(page), { recursive: true });
writeFileSync(page, html);

if (built !== undefined) {
  const inNode = await bundle({ entryPoints: ["tools/run.mjs"], format: "esm", platform: "node" });
  const inBrowser = await bundle({ entryPoints: ["tools/browser.ts"], plugins: [virtual(contents)] });
  mkdirSync(built, { recursive: true });
  writeFileSync(join(built, "run.mjs"), inNode);
  writeFileSync(join(built, "browser.html"), `<!doctype html><meta charset="utf-8"><script type="module">${inScript(inBrowser)}</script>\n`);
  writeFileSync(join(built, "simulator.wasm"), simulator);
}
