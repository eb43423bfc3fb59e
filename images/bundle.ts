import { access, mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '..')

/** A program and the files that it starts as processes or threads of their own: each becomes a file beside `main.js`. */
const programs = {
  dataplane: {
    main: 'dataplane/main.ts',
    'file-reader': 'dataplane/config/file/reader.ts',
    'password-worker': 'dataplane/policy/basic-authentication/password-worker.ts',
    'token-worker': 'dataplane/llm/usage/token-worker.ts',
  },
  operator: { main: 'operator/main.ts' },
} as const

export type ProgramName = keyof typeof programs

/** The data plane as images run it. Returns the path of its `main.js`. */
export const bundleDataplane = (directory: string): Promise<string> => bundleProgram('dataplane', directory)

/**
 * Writes a program and everything that it imports into a folder that needs no packages. Returns the path of its `main.js`. What is
 * imported on demand only is a file of its own, and comments and white space are left out: V8 keeps the source of all that was loaded,
 * at two bytes a character when one character of it is not Latin-1. Names stay, for stack traces and profiles.
 */
export async function bundleProgram(name: ProgramName, directory: string): Promise<string> {
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }\n')
  const entries = Object.entries(programs[name])
  await build({
    entryPoints: Object.fromEntries(entries.map(([output, source]) => [output, join(ROOT, source)])),
    outdir: directory,
    bundle: true,
    splitting: true,
    chunkNames: '[name]-[hash]',
    minifyWhitespace: true,
    minifySyntax: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    logLevel: 'error',
    // CommonJS packages in an ESM bundle call require.
    banner: { js: "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);" },
  })
  for (const file of await readdir(directory)) if (file.endsWith('.js')) await checkNeighbours(directory, file)
  return join(directory, 'main.js')
}

/** What a bundle starts from beside it must be there: the image would fail only when it is asked for. */
async function checkNeighbours(directory: string, file: string): Promise<void> {
  const text = await readFile(join(directory, file), 'utf8')
  for (const [, neighbour = ''] of text.matchAll(/["'`]\.\/([\w-]+\.js)["'`],\s*import\.meta\.url/g))
    await access(join(directory, neighbour)).catch(() => {
      throw new Error(`${file} starts ${neighbour}, which is not bundled; add it to the programs in images/bundle.ts`)
    })
}
