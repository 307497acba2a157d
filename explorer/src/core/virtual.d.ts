// What build.mjs makes.

/** The simulator: gzip, then base64. */
declare module "virtual:wasm" {
  const base64: string;
  export default base64;
}

/** The worker's script. */
declare module "virtual:worker" {
  const source: string;
  export default source;
}
