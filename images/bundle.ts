import { access, chmod, mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { build, type Plugin } from 'esbuild'

const ROOT = join(import.meta.dirname, '..')

/** CommonJS packages in a bundle call require. */
const REQUIRE = "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);"

/** Runs before the packages in the bundle, which fail with a stack trace on an older Node. */
export const checkNode = (program: string): string =>
  `if (process.versions.node.localeCompare('22.19', 'en', { numeric: true }) < 0) { console.error('${program} needs Node 22.19 or newer; this is ' + process.version); process.exit(1); }`

/** Makes the programs report a version other than that of package.json. */
const setVersion = (version: string): Plugin => ({
  name: 'version',
  setup: ({ onLoad }) =>
    onLoad({ filter: /[/\\]package\.json$/ }, async ({ path }) => {
      if (path !== join(ROOT, 'package.json')) return undefined
      const manifest = JSON.parse(await readFile(path, 'utf8')) as object
      return { contents: JSON.stringify({ ...manifest, version }), loader: 'json' }
    }),
})

/**
 * Leaves out undici, a third of the bundle: the Kubernetes client needs it for requests that proxyctl does not send. Node parses the file at every start.
 */
const withoutUndici: Plugin = {
  name: 'without-undici',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^undici$/ }, ({ path }) => ({ path, namespace: 'without-undici' }))
    onLoad({ filter: /.*/, namespace: 'without-undici' }, () => ({
      contents: 'export class Agent {}; export class ProxyAgent {}; export const fetch = globalThis.fetch',
    }))
  },
}

/** Leaves out the translations of zod's messages, half of the package: the management API has English messages only. */
const withoutLocales: Plugin = {
  name: 'without-locales',
  setup: ({ onLoad }) => onLoad({ filter: /[/\\]zod[/\\]v4[/\\]locales[/\\]index\.js$/ }, () => ({ contents: 'export {}' })),
}

/**
 * Puts what `proxyctl plugin` reads from the checkout into the bundle: the package `@proxy/plugin`, and the program that measures plugins.
 */
const withPluginModules: Plugin = {
  name: 'with-plugin-modules',
  setup: ({ onLoad }) => {
    onLoad({ filter: /[/\\]operator[/\\]proxyctl[/\\]plugin[/\\]sources\.ts$/ }, async ({ path }) => {
      const sources: Record<string, string> = {}
      for (const name of ['index', 'testing', 'config']) sources[name] = await readFile(join(ROOT, `api/plugin/${name}.ts`), 'utf8')
      const modules = await bundleModules({
        index: 'api/plugin/index.ts',
        testing: 'api/plugin/testing.ts',
        bench: 'operator/proxyctl/plugin/bench.ts',
        'plugin-worker': programs.dataplane['plugin-worker'],
      })
      const contents = `import { writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import packageJson from '../../../package.json' with { type: 'json' }
export const packageDependencies = { ajv: packageJson.dependencies.ajv, hono: packageJson.dependencies.hono }
const modules = ${JSON.stringify(modules)}
export const readModules = async () => (${JSON.stringify(sources)})
export async function placeModules(directory) {
  const urls = {}
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  for (const [file, code] of Object.entries(modules)) {
    await writeFile(join(directory, file), code)
    urls[file.slice(0, -3)] = pathToFileURL(join(directory, file)).href
  }
  return urls
}`
      return { contents, loader: 'js', resolveDir: dirname(path) }
    })
  },
}

/** Modules that share what they import, by the name of their file. */
async function bundleModules(entries: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const { outputFiles } = await build({
    entryPoints: Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, join(ROOT, source)])),
    outdir: ROOT,
    write: false,
    bundle: true,
    splitting: true,
    minifyWhitespace: true,
    minifySyntax: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    logLevel: 'error',
    banner: { js: REQUIRE },
  })
  return Object.fromEntries(outputFiles.map(({ path, text }) => [basename(path), text]))
}

export interface BundleOptions {
  /** Version that the program reports, such as `0.2.0`. Default: that of package.json. */
  readonly version?: string
  /** More plugins of esbuild, which come first. */
  readonly plugins?: readonly Plugin[]
}
const pluginsOf = ({ version, plugins = [] }: BundleOptions): Plugin[] => [...plugins, ...(version === undefined ? [] : [setVersion(version)])]

/** The entry point of each program and of the processes and threads that it starts. Each becomes a file next to `main.js`. */
const programs = {
  dataplane: {
    main: 'dataplane/main.ts',
    'traffic-worker': 'dataplane/program/traffic-worker.ts',
    'liveness-worker': 'dataplane/management/admin/liveness-worker.ts',
    'file-reader': 'dataplane/config/file/reader.ts',
    'file-editor': 'dataplane/config/edit/editor.ts',
    'password-worker': 'dataplane/policy/basic-authentication/password-worker.ts',
    'plugin-worker': 'dataplane/policy/plugins/guest/plugin-worker.ts',
    'plugin-process': 'dataplane/policy/plugins/guest/plugin-process.ts',
    'token-worker': 'dataplane/backend/llm/usage/token-worker.ts',
    'store-worker': 'dataplane/store/ledger/store-worker.ts',
    'counter-worker': 'dataplane/program/counters/counter-worker.ts',
    'spend-worker': 'dataplane/store/ledger/spend-worker.ts',
  },
  operator: { main: 'operator/main.ts' },
} as const

/** Name of a program that has an image. */
export type ProgramName = keyof typeof programs

/**
 * Writes `proxyctl` as one executable file, which needs Node but neither the checkout nor packages. Node refuses to run TypeScript below node_modules, so an
 * installed package could not hold the source. CommonJS with the syntax of an old Node, so that such a Node reports its version: it would reject imports and
 * syntax that it does not know before it runs the first statement.
 */
export async function bundleProxyctl(file: string, options: BundleOptions = {}): Promise<void> {
  await build({
    entryPoints: [join(ROOT, 'operator/proxyctl/main.ts')],
    outfile: file,
    bundle: true,
    minifyWhitespace: true,
    minifySyntax: true,
    platform: 'node',
    format: 'cjs',
    target: 'node18',
    logLevel: 'error',
    plugins: [...pluginsOf(options), withoutUndici, withPluginModules],
    banner: { js: `#!/usr/bin/env node\n${checkNode('proxyctl')}` },
  })
  await chmod(file, 0o755)
}

/** Bundles the data plane as in its image. Returns the path of its `main.js`. */
export const bundleDataplane = (directory: string): Promise<string> => bundleProgram('dataplane', directory)

/**
 * Writes a program with all its imports to a directory that needs no packages. Returns the path of its `main.js`. To save memory,
 * dynamic imports become separate files, and comments and white space are removed: V8 keeps the source of every loaded file, with two
 * bytes per character if one of them is not Latin-1. Names are kept for stack traces and profiles.
 */
export async function bundleProgram(name: ProgramName, directory: string, options: BundleOptions = {}): Promise<string> {
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
    plugins: [...pluginsOf(options), withoutLocales],
    banner: { js: REQUIRE },
  })
  for (const file of await readdir(directory)) if (file.endsWith('.js')) await checkStartedFiles(directory, file)
  return join(directory, 'main.js')
}

/** Checks that the files which a bundle starts as processes or threads exist. Otherwise the image would fail only when it starts them. */
async function checkStartedFiles(directory: string, file: string): Promise<void> {
  const text = await readFile(join(directory, file), 'utf8')
  for (const [, started = ''] of text.matchAll(/["'`]\.\/([\w-]+\.js)["'`],\s*import\.meta\.url/g))
    await access(join(directory, started)).catch(() => {
      throw new Error(`${file} starts ${started}, which is not bundled; add it to the programs in images/bundle.ts`)
    })
}
