// What the stages show, made anew only when something of it has changed.

import { disciplineName } from "./controls";
import type { Reading } from "./lab";
import { segmentAt } from "./session";
import { fullest, type Scene } from "./stage";
import { current, t } from "./texts";
import { rateWords } from "./units";

/** Packets that a queue's box has room for at least. */
const LEAST_ROOM = 24;

export class Scenes {
  private inputs: unknown[] = [];
  private scenes: Scene[] = [];

  /** The scenes of the shown run and of the one that it is compared with, at a time. The same array as before if nothing has changed. */
  at(shown: Reading | null, before: Reading | null, time: number): Scene[] {
    const readings = [shown, before].filter((each) => each !== null);
    const views = readings.map(({ result, flows }) => {
      const at = Math.min(time, result.run.duration_ns);
      return { result, flows, segment: segmentAt(result, at), rate: result.run.rateAt(result.port, at), until: result.run.until_ns };
    });
    const inputs = [current(), ...views.flatMap(({ result, segment, rate, until }) => [result, segment, rate, until])];
    if (inputs.length === this.inputs.length && inputs.every((each, at) => Object.is(each, this.inputs[at]))) return this.scenes;
    this.inputs = inputs;
    const room = Math.max(LEAST_ROOM, ...views.map(({ result }) => fullest(result.run, result.port)));
    const names = views.length > 1 ? [`${t("now")}: `, `${t("before")}: `] : [""];
    this.scenes = views.map(({ result, flows, segment, rate }, at): Scene => {
      const { network } = segment;
      const port = network.ports.get(result.port) ?? result.segments[0]!.network.ports.get(result.port)!;
      const [sender, receiver] = network.endsOf(result.port);
      const queue = port.queue_of === null
        ? t("stage.queue", { node: sender, discipline: port.radio ? t("stage.radio") : disciplineName(port.qdisc ?? "") })
        : t("stage.elsewhere", { port: port.queue_of });
      const texts = {
        queue: names[at]! + queue,
        ring: t(port.radio ? "stage.driver" : "stage.ring"),
        wire: rate === null ? "" : rateWords(rate),
        sender,
        receiver,
        truncated: t("stage.truncated"),
      };
      return { run: result.run, port, flows, room, texts };
    });
    return this.scenes;
  }
}
