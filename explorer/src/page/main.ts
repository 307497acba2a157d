// The page: its state and runs (lab), what a reader does (actions), and what it shows (view).

import { FIRST, presetText } from "../presets/index";
import { Actions } from "./actions";
import { Lab } from "./lab";
import type { Meaning } from "./meaning";
import type { Stage } from "./stage";
import { fresh, History, type State } from "./state";

const quiet = matchMedia("(prefers-reduced-motion: reduce)");
const lab = new Lab(new History(fresh(FIRST, presetText(FIRST)!)), () => quiet.matches);
const actions = new Actions(lab);
const { view } = actions;
lab.watcher = view;

/** For tests: what the picture holds, without reading its pixels. */
declare global {
  interface Window {
    explorer: { counts: () => Stage["counts"]; state: () => State; meaning: () => Meaning | null; time: () => number; port: () => string; seek: (t_ns: number) => void };
  }
}
window.explorer = {
  counts: () => view.stage.counts,
  state: () => lab.history.now,
  meaning: () => lab.measured?.meaning ?? null,
  time: () => lab.player.t,
  port: () => view.port,
  seek: (at) => actions.seek(at),
};

view.fill();
actions.listen();
void actions.openLink().then((opened) => {
  if (!opened) lab.refresh();
});
view.frame(performance.now());
