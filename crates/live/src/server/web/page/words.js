// The result in words. The server's sentences are English; in other languages the same is said from its numbers.

const MS = 1e6;
const RANKS = ["clean", "managed", "not_filled", "cannot_tell", "path_changed", "other_traffic", "queue"];
// ITU-T G.114: up to 150 ms from mouth to ear most calls are not affected, and above 400 ms hardly any is acceptable.
const CALL_MS = { good: 150, fair: 400 };
// What Netflix recommends for one stream of each quality.
const VIDEO_MBIT = { hd: 5, best: 15 };
const PLACES = {
  clean: "place_clean",
  managed: "place_managed",
  not_filled: "place_not_filled",
  cannot_tell: "place_cannot_tell",
  path_changed: "place_path_changed",
  other_traffic: "place_other_traffic",
  queue: "place_queue",
};
const CURES = {
  clean: "cure_nothing",
  managed: "cure_nothing",
  not_filled: "cure_repeat",
  cannot_tell: "cure_repeat",
  path_changed: "cure_repeat",
  other_traffic: "cure_alone",
};
// What a queue is called, and what to do about it, by its place; those of hops depend on the direction, too.
const QUEUES = {
  client_send_buffer: ["queue_client_send_buffer", "cure_client"],
  client_qdisc: ["queue_client_qdisc", "cure_client"],
  client_driver: ["queue_client_driver", "cure_link"],
  router_uplink: ["queue_router_uplink", "cure_shaper"],
  router_downlink: ["queue_router_downlink", "cure_link"],
  access_downlink: ["queue_access_downlink", "cure_shaper"],
  hop_up: ["queue_hop_up", "cure_provider"],
  hop_down: ["queue_hop_down", "cure_provider"],
  last_hop: ["queue_last_hop", "cure_provider"],
  server_driver: ["queue_server_driver", "cure_server"],
  server_qdisc: ["queue_server_qdisc", "cure_server"],
  server_send_buffer: ["queue_server_send_buffer", "cure_server"],
};
const WAITS = { down: "wait_down", up: "wait_up" };
const BROWSER = { late: "browser_late", slow: "browser_slow", reading: "browser_reading", unknown: "browser_unknown" };
const OUTCOMES = {
  clean: "outcome_clean",
  managed: "outcome_managed",
  not_filled: "outcome_not_filled",
  cannot_tell: "outcome_cannot_tell",
  path_changed: "outcome_path_changed",
  other_traffic: "outcome_other_traffic",
  queue: "outcome_queue",
};

const queueAt = ({ place, direction }) => QUEUES[place === "hop" ? `hop_${direction}` : place];

export class Words {
  constructor(language, texts) {
    this.language = language;
    this.texts = texts;
  }

  text = (key, values = {}) => (this.texts[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

  number(value, digits) {
    return new Intl.NumberFormat(this.language, { maximumFractionDigits: digits, minimumFractionDigits: 0 }).format(value);
  }

  delay(ns) {
    const ms = ns / MS;
    if (Math.abs(ms) >= 10000) return this.text("seconds", { value: this.number(ms / 1000, 1) });
    return this.text("milliseconds", { value: this.number(ms, Math.abs(ms) < 10 ? 1 : 0) });
  }

  rate(bps) {
    const mbit = bps / 1e6;
    return this.text("megabits", { value: this.number(mbit, mbit < 1 ? 2 : mbit < 100 ? 1 : 0) });
  }

  percent(share) {
    const value = share * 100;
    return this.text("percent", { value: this.number(value, value > 0 && value < 10 ? 1 : 0) });
  }

  // The sentences, and whether the browser was the bottleneck of a phase.
  sentences(judged) {
    const { verdict } = judged.events.at(-1);
    const stopped = judged.browser.filter((each) => each.bottleneck && each.bottleneck !== "unknown");
    const worst = this.worst(verdict);
    if (this.language === "en" && !stopped.length && worst && worst.outcome.kind !== "cannot_tell") return verdict.sentences;
    // A phase that the browser limited says nothing about the path; the others do.
    const measured = verdict.phases.filter(({ kind }) => !stopped.some(({ phase }) => phase === kind));
    const rest = { ...verdict, phases: measured };
    const own = [this.speed(verdict), this.delays(verdict), this.place(rest, stopped), this.certainty(worst), this.cure(rest, stopped)];
    return own.filter((sentence) => sentence);
  }

  worst(verdict) {
    const rank = (phase) => RANKS.indexOf(phase.outcome.kind) * 1e15 + this.added(phase);
    return verdict.phases.reduce((worst, phase) => (!worst || rank(phase) >= rank(worst) ? phase : worst), null);
  }

  added(phase) {
    return phase.numbers.added.p95_ns ?? phase.numbers.added.max_ns ?? 0;
  }

  best(verdict, direction) {
    const found = verdict.phases.flatMap((phase) => phase.numbers.directions);
    const rates = found.filter((each) => each.direction === direction && each.goodput).map((each) => each.goodput.mean_bps);
    return rates.length ? Math.max(...rates) : null;
  }

  speed(verdict) {
    const [down, up] = ["down", "up"].map((direction) => this.best(verdict, direction));
    const values = { down: down === null ? "" : this.rate(down), up: up === null ? "" : this.rate(up) };
    if (down !== null && up !== null) return this.text("speed_both", values);
    if (down !== null) return this.text("speed_down", values);
    return this.text(up !== null ? "speed_up" : "speed_none", values);
  }

  delays(verdict) {
    const idle = verdict.idle.rtt.p50_ns;
    if (idle === null) return this.text("delay_unknown");
    const slowest = verdict.phases.reduce((most, phase) => (!most || this.added(phase) > this.added(most) ? phase : most), null);
    const loaded = slowest && (slowest.numbers.loaded.p95_ns ?? slowest.numbers.loaded.max_ns);
    if (!loaded) return this.text("delay_idle", { idle: this.delay(idle) });
    const all = slowest.numbers.loaded;
    const sentence = this.text(all.p95_ns === null ? "delay_lost" : "delay_loaded", {
      idle: this.delay(idle),
      loaded: this.delay(loaded),
      phase: this.text(slowest.kind),
      lost: this.percent(all.lost / Math.max(all.count, 1)),
    });
    return slowest.grade ? `${sentence} ${this.text("delay_grade", { grade: slowest.grade })}` : sentence;
  }

  // Which phases the browser limited, and where the others found a queue; without either, what they found instead.
  place(verdict, stopped) {
    const worst = this.worst(verdict);
    const limited = stopped.map((each) => this.browser(each));
    if (worst?.outcome.kind === "queue") {
      const known = this.queues(verdict).map(({ direction, answer }) => this.text(WAITS[direction], { place: this.located(answer.locations) }));
      return [...limited, ...(known.length ? known : [this.text(PLACES.queue)])].join(" ");
    }
    if (limited.length) return limited.join(" ");
    return this.text(worst ? PLACES[worst.outcome.kind] : "place_none", worst ? { phase: this.text(worst.kind) } : {});
  }

  // For each direction its queue, if its place is known: in the phase that loaded only this direction, or else in any.
  queues(verdict) {
    const found = (direction) => {
      const all = verdict.phases.flatMap((phase) => phase.where.map((queue) => ({ ...queue, alone: phase.kind !== "both" })));
      const own = all.filter((queue) => queue.direction === direction);
      return own.find((queue) => queue.alone) ?? own[0];
    };
    return ["down", "up"].map(found).filter((queue) => queue && !queue.answer.text.startsWith("cannot tell"));
  }

  located(locations) {
    const name = ({ place, link, direction, address }) => {
      const hop = direction === "up" ? link - 1 : link;
      return this.text(queueAt({ place, direction })[0], { hop: address ? `${hop} (${address})` : hop });
    };
    const [first, last] = [name(locations[0]), name(locations.at(-1))];
    if (locations.length === 1) return first;
    return this.text(locations.length === 2 ? "queue_either" : "queue_between", { first, last });
  }

  browser({ phase, bottleneck }) {
    return this.text(BROWSER[bottleneck], { phase: this.text(phase) });
  }

  certainty(worst) {
    return worst ? this.text("certainty", { count: this.number(worst.numbers.loaded.count, 0) }) : "";
  }

  cure(verdict, stopped) {
    const worst = this.worst(verdict);
    const isShort = worst?.grade === "A" || worst?.grade === "A+";
    if (stopped.length && (worst?.outcome.kind !== "queue" || isShort)) return this.text("cure_browser");
    if (!worst) return this.text("cure_load");
    if (worst.outcome.kind !== "queue") return this.text(CURES[worst.outcome.kind]);
    if (isShort) return this.text("cure_short");
    const cures = new Set(this.queues(verdict).flatMap(({ answer }) => answer.locations.map((location) => queueAt(location)[1])));
    const found = this.text(cures.size === 1 ? [...cures][0] : "cure_wired");
    return stopped.length ? `${found} ${this.text("cure_browser")}` : found;
  }

  // What the result means for what people do.
  means(judged) {
    const { verdict } = judged.events.at(-1);
    const worst = (key) => judged.effects.reduce((most, each) => (!most || (each[key] ?? Infinity) > (most[key] ?? Infinity) ? each : most), null);
    const found = [];
    const call = worst("call_ms");
    if (call) {
      const values = { phase: this.text(call.phase), delay: call.call_ms === null ? "" : this.delay(call.call_ms * MS) };
      const key = call.call_ms === null ? "call_lost" : call.call_ms <= CALL_MS.good ? "call_good" : call.call_ms <= CALL_MS.fair ? "call_fair" : "call_bad";
      found.push(this.text(key, values));
    }
    const game = worst("above_30_ms");
    if (game) {
      const values = { phase: this.text(game.phase), some: this.percent(game.above_30_ms), more: this.percent(game.above_50_ms) };
      found.push(this.text(game.above_30_ms >= 0.01 ? "game_bad" : "game_good", values));
    }
    const page = worst("page_ms");
    if (page && page.page_ms !== null) {
      const idle = verdict.idle.rtt.p50_ns * 4;
      found.push(this.text("page_time", { phase: this.text(page.phase), idle: this.delay(idle), loaded: this.delay(page.page_ms * MS) }));
    }
    const down = verdict.phases.find((phase) => phase.kind === "download")?.numbers.directions.find((each) => each.direction === "down");
    if (down?.goodput) {
      const bps = down.goodput.p10_bps ?? down.goodput.mean_bps;
      const key = bps >= VIDEO_MBIT.best * 1e6 ? "video_best" : bps >= VIDEO_MBIT.hd * 1e6 ? "video_hd" : "video_none";
      found.push(this.text(key, { rate: this.rate(bps) }));
    }
    return found;
  }

  heads = () => ["part", "outcome", "download", "upload", "median", "p95", "added", "head_grade"].map((key) => this.text(key));

  rows(verdict) {
    const idle = verdict.idle.rtt;
    const value = (ns) => (ns === null || ns === undefined ? "–" : this.delay(ns));
    const rate = (phase, direction) => {
      const goodput = phase.numbers.directions.find((each) => each.direction === direction)?.goodput;
      return goodput ? this.rate(goodput.mean_bps) : "–";
    };
    const row = (phase) => [
      this.text(phase.kind),
      this.text(OUTCOMES[phase.outcome.kind]),
      rate(phase, "down"),
      rate(phase, "up"),
      value(phase.numbers.loaded.p50_ns),
      value(phase.numbers.loaded.p95_ns),
      value(phase.numbers.added.p95_ns),
      phase.grade ?? "–",
    ];
    return [[this.text("idle"), "–", "–", "–", value(idle.p50_ns), value(idle.p95_ns), "–", "–"], ...verdict.phases.map(row)];
  }

  grades(verdict) {
    let from = null;
    return verdict.grade_table.steps.map(({ grade, below_ns }) => {
      const text = below_ns === null ? this.text("grade_above", { delay: this.delay(from) }) : this.text("grade_below", { delay: this.delay(below_ns) });
      from = below_ns;
      return { grade, text, given: grade === verdict.grade };
    });
  }

  // What carried the pings.
  isUdp = (judged) => judged.events[0].parameters.pings === "webrtc";

  way = (judged) => this.text(this.isUdp(judged) ? "way_webrtc" : "way_websocket");

  beyond(judged) {
    const keys = this.isUdp(judged) ? ["beyond_hops", "beyond_device", "beyond_stamps"] : ["beyond_place", "beyond_device", "beyond_udp"];
    return [...keys, "beyond_fast"].map((key) => this.text(key));
  }

  notes(judged) {
    const { verdict } = judged.events.at(-1);
    const unknown = judged.browser.filter((each) => each.bottleneck === "unknown").map((each) => this.browser(each));
    return [...unknown, ...verdict.warnings];
  }
}
