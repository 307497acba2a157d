// The colours of the report's figures (bufferscope.figures.style), by the scheme of the page.

const LIGHT = ["#095aa6", "#c25616", "#07a568", "#bf699c", "#9a7400", "#2f9bd8", "#5b6470", "#7b3f00"];
const DARK = ["#3b8cf5", "#f37d2d", "#41db98", "#db85c4", "#e8c13f", "#8fd0ff", "#aab2bd", "#d9a679"];

export interface Colours {
  flows: string[];
  paper: string;
  raised: string;
  ink: string;
  muted: string;
  line: string;
  bad: string;
  aware: string;
  good: string;
  link: string;
}

const schemes = matchMedia("(prefers-color-scheme: dark)");

export function isDark(): boolean {
  const chosen = document.documentElement.dataset["scheme"];
  return chosen ? chosen === "dark" : schemes.matches;
}

export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const named = ["paper", "raised", "ink", "muted", "line", "bad", "aware", "good", "link"] as const;
  const values = Object.fromEntries(named.map((name) => [name, of(name)])) as unknown as Omit<Colours, "flows">;
  return { ...values, flows: isDark() ? DARK : LIGHT };
}

export function onScheme(changed: () => void): void {
  schemes.addEventListener("change", changed);
}
