// Key numbers, and what they mean for a call, a game, a page and a video.

import type { Grade, Meaning } from "./meaning";
import { t } from "./texts";
import { brief, rateWords, timeWords } from "./units";
import { lostShare } from "./words";

interface Effect {
  key: "call" | "game" | "page" | "video";
  grade: Grade | null;
  text: string;
}

function effectsOf(found: Meaning): Effect[] {
  const { call, game, page, video } = found;
  const percent = (share: number): string => brief(100 * share, 2);
  return [
    {
      key: "call",
      grade: call?.grade ?? null,
      text: call ? t(call.measured ? "effect.call.measured" : "effect.call", { score: brief(call.score), quality: t(`quality.${call.quality}` as "quality.satisfied") }) : t("effect.unknown"),
    },
    {
      key: "game",
      grade: game?.grade ?? null,
      text: game ? t(game.above30 < 0.01 ? "effect.game.good" : "effect.game.bad", { above30: percent(game.above30), above50: percent(game.above50) }) : t("effect.unknown"),
    },
    {
      key: "page",
      grade: page?.grade ?? null,
      text: page
        ? page.measured
          ? t("effect.page.measured", { time: timeWords(page.loaded) })
          : t("effect.page", { trips: page.trips, idle: timeWords(page.idle), loaded: timeWords(page.loaded) })
        : t("effect.unknown"),
    },
    {
      key: "video",
      grade: video?.grade ?? null,
      text: video ? t(video.fits.length ? "effect.video.good" : "effect.video.bad", { rate: rateWords(video.bps), fits: video.fits.join(", ") }) : t("effect.unknown"),
    },
  ];
}

/** A quantile of all pings; if it is among the lost ones, it is infinite, and their share says more. */
const delay = (ns: number, rtt: NonNullable<Meaning["rtt"]>): string => (ns === Infinity ? t("number.gone", { share: lostShare(rtt) }) : timeWords(ns));

function numbersOf(found: Meaning): [string, string][] {
  const { rtt } = found;
  const share = found.rate ? ` (${Math.round((100 * found.goodput) / found.rate)}\u00a0%)` : "";
  return [
    [t("number.idle"), rtt ? timeWords(rtt.idle) : "–"],
    [t("number.p50"), rtt ? delay(rtt.p50, rtt) : "–"],
    [t("number.p95"), rtt ? delay(rtt.p95, rtt) : "–"],
    [t("number.goodput"), `${rateWords(found.goodput)}${share}`],
    [t("number.dropped"), brief(found.dropped, 7)],
    [t("number.marked"), brief(found.marked, 7)],
    [t("number.lost"), rtt?.count ? `${lostShare(rtt)}\u00a0%` : "–"],
  ];
}

export function showMeaning(numbers: HTMLElement, effects: HTMLElement, found: Meaning, before: Meaning | null, verdict: string): void {
  const others = before ? numbersOf(before) : null;
  numbers.replaceChildren(
    ...numbersOf(found).map(([name, value], at) => {
      const pair = document.createElement("div");
      const title = document.createElement("dt");
      title.textContent = name;
      const text = document.createElement("dd");
      text.textContent = value;
      pair.append(title, text);
      if (others) {
        const then = document.createElement("dd");
        then.className = "then";
        then.textContent = t("number.before", { value: others[at]![1] });
        pair.append(then);
      }
      return pair;
    }),
  );
  const then = before ? effectsOf(before) : null;
  const summary = document.createElement("p");
  summary.className = "verdict";
  summary.textContent = verdict;
  const list = document.createElement("ul");
  list.className = "effects";
  list.append(
    ...effectsOf(found).map((effect, at) => {
      const item = document.createElement("li");
      item.className = effect.grade ?? "idle";
      const title = document.createElement("h3");
      title.textContent = t(`effect.${effect.key}.title`);
      const badge = document.createElement("span");
      badge.className = "badge";
      badge.textContent = t(`grade.${effect.grade ?? "unknown"}`);
      title.append(" ", badge);
      const text = document.createElement("p");
      text.textContent = effect.text;
      item.append(title, text);
      if (then) {
        const earlier = document.createElement("p");
        earlier.className = "then";
        earlier.textContent = t("number.before", { value: t(`grade.${then[at]!.grade ?? "unknown"}`) });
        item.append(earlier);
      }
      return item;
    }),
  );
  effects.replaceChildren(summary, list);
}
