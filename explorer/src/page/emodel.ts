// How good a call is: the E-model of ITU-T G.107 (06/2015) at its defaults, with G.711 and its loss concealment
// (G.113, table I.4). The same as bufferscope.metrics.emodel and bufferscope.metrics.voip, which tests compare.

const SLR = 8, RLR = 2, STMR = 15, LSTR = 18;
const DS = 3, TELR = 65, WEPL = 110, QDU = 1;
const NC = -70, NFOR = -64, PS = 35, PR = 35;
const BPL = 25.1;

const NO = noise();
const BASIC = 15 - 1.5 * (SLR + NO);
const SIMULTANEOUS = simultaneous();

function noise(): number {
  const olr = SLR + RLR;
  const nos = PS - SLR - DS - 100 + 0.004 * (PS - olr - DS - 14) ** 2;
  const pre = PR + 10 * Math.log10(1 + 10 ** ((10 - LSTR) / 10));
  const nor = RLR - 121 + pre + 0.008 * (pre - 35) ** 2;
  return 10 * Math.log10([NC, nos, nor, NFOR + RLR].reduce((sum, each) => sum + 10 ** (each / 10), 0));
}

function simultaneous(): number {
  const xolr = SLR + RLR + 0.2 * (64 + NO - RLR);
  const iolr = 20 * ((1 + (xolr / 8) ** 8) ** (1 / 8) - xolr / 8);
  const ist =
    12 * (1 + ((STMR - 13) / 6) ** 8) ** (1 / 8) -
    28 * (1 + ((STMR + 1) / 19.4) ** 35) ** (1 / 35) -
    13 * (1 + ((STMR - 3) / 33) ** 13) ** (1 / 13) +
    29;
  const q = 37 - 15 * Math.log10(QDU);
  const g = 1.07 + 0.258 * q + 0.0602 * q * q;
  const y = (BASIC - 100) / 15 + 46 / 8.4 - g / 9;
  const z = 46 / 30 - g / 40;
  return iolr + ist + 15 * Math.log10(1 + 10 ** y + 10 ** z);
}

function talkerEcho(delay: number): number {
  const terv = TELR - 40 * Math.log10((1 + delay / 10) / (1 + delay / 150)) + 6 * Math.exp(-0.3 * delay ** 2);
  const roe = -1.5 * (NO - RLR);
  const re = 80 + 2.5 * (terv - 14);
  return ((roe - re) / 2 + Math.sqrt((roe - re) ** 2 / 4 + 100) - 1) * (1 - Math.exp(-delay));
}

function listenerEcho(roundTrip: number): number {
  const rle = 10.5 * (WEPL + 7) * (roundTrip + 1) ** -0.25;
  return (BASIC - rle) / 2 + Math.sqrt((BASIC - rle) ** 2 / 4 + 169);
}

function longDelay(delay: number): number {
  const x = Math.log2(Math.max(delay, 100) / 100);
  return 25 * ((1 + x ** 6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2);
}

/** The rating R for a mouth-to-ear delay in ms and a loss in per cent. */
export function rating(delay: number, loss: number): number {
  const impairment = talkerEcho(delay) + listenerEcho(2 * delay) + longDelay(delay);
  return BASIC - SIMULTANEOUS - impairment - (95 * loss) / (loss + BPL);
}

/** The mean opinion score of a rating. */
export function opinionOf(r: number): number {
  if (r <= 0) return 1;
  if (r >= 100) return 4.5;
  return Math.max(1, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6);
}

const PACKET_MS = 20;
const PERIOD_NS = 10e9;

/** The mean opinion score of a stream: over periods of 10 s, each with the best fixed jitter buffer. Delays in ms; Infinity: lost. */
export function opinion(sent_ns: number[], delays: number[]): number {
  const periods = new Map<number, number[]>();
  for (const [at, sent] of sent_ns.entries()) {
    const period = Math.floor(sent / PERIOD_NS);
    const found = periods.get(period);
    if (found) found.push(delays[at]!);
    else periods.set(period, [delays[at]!]);
  }
  let sum = 0;
  for (const period of periods.values()) {
    period.sort((a, b) => a - b);
    let best = -Infinity;
    for (const [at, delay] of period.entries()) {
      if (!Number.isFinite(delay)) break;
      best = Math.max(best, rating(delay + PACKET_MS, 100 * (1 - (at + 1) / period.length)));
    }
    sum += opinionOf(Number.isFinite(best) ? best : 0);
  }
  return periods.size ? sum / periods.size : NaN;
}
