declare module "*.toml" {
  const text: string;
  export default text;
}

/** The package's catalogue of experiments, in its teaching order; read when the page is built. */
declare module "catalogue:" {
  const experiments: readonly { name: string; text: string }[];
  export default experiments;
}

declare module "gifenc" {
  type Palette = number[][];
  interface Encoder {
    /** A frame of indices into the palette; the first frame's palette is that of all. Repeats for ever if `repeat` is 0. */
    writeFrame(index: Uint8Array, width: number, height: number, options: { palette?: Palette; delay?: number; repeat?: number }): void;
    finish(): void;
    bytes(): Uint8Array;
  }
  export function GIFEncoder(): Encoder;
  export function quantize(rgba: Uint8Array | Uint8ClampedArray, colours: number): Palette;
  export function applyPalette(rgba: Uint8Array | Uint8ClampedArray, palette: Palette): Uint8Array;
}
