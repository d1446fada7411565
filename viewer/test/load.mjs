/** Loads a module of `src/` into Node, so that its functions are tested as the page has them. */
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

export async function load(name) {
  const result = await esbuild.build({
    entryPoints: [fileURLToPath(new URL(`../src/${name}.ts`, import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    logLevel: "error",
  });
  const code = Buffer.from(result.outputFiles[0].text).toString("base64");
  return import(`data:text/javascript;base64,${code}`);
}
