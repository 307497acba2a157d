declare module "*.toml" {
  const text: string;
  export default text;
}

/** The package's catalogue of experiments, in its teaching order; read when the page is built. */
declare module "catalogue:" {
  const experiments: readonly { name: string; text: string }[];
  export default experiments;
}
