import { resolve, dirname, join } from 'node:path'
import { parseDuration } from '#api/duration.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { alignColumns, CommandError, UsageError } from './output.ts'
import { buildModule, replaceFile } from './plugin/build.ts'
import { createConfigMap, KEY, nameOf, printManifest, quote, ToolError } from './plugin/common.ts'
import { writePlugin } from './plugin/init.ts'
import { writePackage } from './plugin/package.ts'
import { runBench } from './plugin/run-bench.ts'
import { runTests } from './plugin/run-tests.ts'
import { watchPlugin } from './plugin/watch.ts'
import type { Command } from './types.ts'

const withCodes =
  (command: Command): Command =>
  async (invocation) => {
    try {
      return await command(invocation)
    } catch (error) {
      throw error instanceof ToolError ? new CommandError(error.code, error.message, { cause: error }) : error
    }
  }

/** Writes a directory with a plugin, its ConfigMap, and manifests of a gateway that uses it. */
export const runPluginInit: Command = withCodes(async ({ args, output }) => {
  const [directory, ...rest] = args
  if (directory === undefined || rest.length > 0) throw new UsageError('plugin init takes one directory')
  const name = nameOf(resolve(directory))
  const files = await writePlugin(directory, name)
  output.print({ files }, () => [
    ...files,
    `After an edit of ${KEY}: proxyctl plugin build ${quote(join(directory, KEY))} ${name} --out ${quote(join(directory, 'plugin.yaml'))}`,
  ])
  return 0
})

/** Prints or writes the ConfigMap of a plugin, with the modules that it imports, or writes one module. */
export const runPluginBuild: Command = withCodes(async ({ args, options, env, output }) => {
  const { file, name } = readArguments(args, 'plugin build')
  const { code } = await buildModule(file, options.types === true ? env : undefined)
  const { out, namespace } = options
  if (out === undefined) {
    const map = createConfigMap(name, namespace, code)
    output.print(map, () => [printManifest(map).trimEnd()])
    return 0
  }
  await replaceFile(out, render(out, name, namespace)(code))
  const bytes = Buffer.byteLength(code)
  output.print({ file: out, bytes }, () => [`${out}: ${isModule(out) ? '' : `ConfigMap ${name}, `}${bytes} bytes of source`])
  return 0
})

/** Builds a plugin whenever its source changes, until it is interrupted. */
export const runPluginDev: Command = withCodes(async ({ args, options, env, output }) => {
  const { file, name } = readArguments(args, 'plugin dev')
  const out = options.out ?? join(dirname(file), 'plugin.yaml')
  if (resolve(out) === resolve(file)) throw new UsageError(`--out: ${out} is the source`)
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  await watchPlugin({
    file,
    out,
    types: options.types === true ? env : undefined,
    render: render(out, name, options.namespace),
    report: (build) =>
      output.print({ file: out, ...build }, () => ['problem' in build ? build.problem : `${out}: ${build.bytes} bytes of source, in ${build.ms} ms`]),
    signal: controller.signal,
  })
  return 0
})

/** Runs tests of plugins. */
export const runPluginTest: Command = withCodes(async ({ args, env, output }) => runTests(args.length === 0 ? ['.'] : args, output, env))

/** Writes the npm package of types and test helpers. */
export const runPluginPackage: Command = withCodes(async ({ args, output }) => {
  const [directory, ...rest] = args
  if (directory === undefined || rest.length > 0) throw new UsageError('plugin package takes one directory')
  const files = await writePackage(directory, packageJson.version)
  output.print({ files }, () => [...files, `Install it: npm install --save-dev ${quote(/^[./]/.test(directory) ? directory : `./${directory}`)}`])
  return 0
})

/** Prints the time that a plugin adds to a request. */
export const runPluginBench: Command = withCodes(async ({ args, options, env, output }) => {
  const [file, ...rest] = args
  if (file === undefined || rest.length > 0) throw new UsageError('plugin bench takes one file')
  const ms = parseDuration(options.duration ?? '3s')
  if (ms === undefined || ms <= 0) throw new UsageError(`--duration: ${JSON.stringify(options.duration)} is not a duration such as 3s`)
  const config = parseConfig(options.config)
  const headers = (options.header ?? []).flatMap(splitHeader)
  const bench = {
    code: (await buildModule(file)).code,
    file,
    config,
    method: options.method ?? 'GET',
    headers,
    seconds: ms / 1000,
  }
  const rows = await runBench(bench, env)
  output.print(rows, () =>
    alignColumns([
      ['ISOLATION', 'MEDIAN', 'P95', 'REQUESTS', 'STATUS'],
      ...rows.map(({ isolation, micros, p95, requests, status }) => [isolation, `${micros.toFixed(2)} us`, `${p95.toFixed(2)} us`, `${requests}`, `${status}`]),
    ]),
  )
  return 0
})

/** A file of a config file's `source.file`, instead of a ConfigMap. */
const isModule = (out: string): boolean => /\.[cm]?[jt]s$/.test(out)

const render = (out: string, name: string, namespace: string | undefined) => (code: string) =>
  isModule(out) ? code : printManifest(createConfigMap(name, namespace, code))

function parseConfig(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined
  try {
    const value = JSON.parse(text) as unknown
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  } catch {
    // Reported below.
  }
  throw new UsageError(`--config: ${JSON.stringify(text)} is not a JSON object`)
}

function splitHeader(text: string): string[] {
  const [, name, value] = /^([^\s:]+):\s*(.*)$/.exec(text) ?? []
  if (name === undefined || value === undefined) throw new UsageError(`--header: ${JSON.stringify(text)} is not 'NAME: VALUE'`)
  return [name.toLowerCase(), value]
}

function readArguments([file, given, ...rest]: readonly string[], command: string): { readonly file: string; readonly name: string } {
  if (file === undefined || rest.length > 0) throw new UsageError(`${command} takes one file, and the name of the ConfigMap`)
  const name = given ?? nameOf(dirname(resolve(file)))
  if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name))
    throw new UsageError(`${JSON.stringify(name)} is not the name of a ConfigMap; name it after the file`)
  return { file, name }
}
