// The page.

import { Client } from "../core/client";

const toml = document.querySelector("#toml") as HTMLTextAreaElement;
const answer = document.querySelector("#answer") as HTMLPreElement;
const client = new Client();

toml.value = `title = "A download and a ping"
duration = "60s"
link = [{ name = "line", ends = ["h1", "h2"], rate = "10mbit", delay = "10ms", queue = { qdisc = "pfifo", limit = "256p" } }]
traffic = [
    { name = "bulk", kind = "tcp", from = "h1", to = "h2" },
    { name = "ping", kind = "ping", from = "h1", to = "h2" },
]
`;

function run(): void {
  const lines: string[] = [];
  const show = (line: string): void => {
    lines.push(line);
    answer.textContent = lines.join("\n");
  };
  client.run(
    { toml: toml.value, sets: [], changes: [], seed: 1, watch: ["h1>h2"] },
    {
      opened: (opened) => show(`${opened.title}: ${opened.network.ports.map((port) => port.name).join(", ")}`),
      refused: (refused) => show(refused.message),
      chunk: (chunk) => show(`${chunk.until_ns / 1e9} s: ${chunk.packets["h1>h2"]?.t_ns.length ?? 0} events`),
      done: (done) => show(JSON.stringify(done.summary, null, 2)),
      failed: (failed) => show(failed.message),
    },
  );
}

document.querySelector("#run")?.addEventListener("click", run);
run();
