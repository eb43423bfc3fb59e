import { readFile } from 'node:fs/promises'
import { parse, stringify } from 'yaml'
import { importAgentgateway } from './import/agentgateway.ts'
import { importLiteLlm } from './import/litellm.ts'
import type { Imported } from './import/source.ts'
import { CommandError, UsageError } from './output.ts'
import type { Command } from './types.ts'

interface Importer {
  readonly fields: readonly string[]
  /** The version of YAML that the gateway reads: in 1.1, `off` is false, and `1_000` a number. */
  readonly yaml: '1.1' | '1.2'
  run(config: unknown): Imported
}

const importers: Readonly<Record<string, Importer>> = {
  litellm: { fields: ['model_list', 'litellm_settings', 'general_settings', 'router_settings', 'mcp_servers', 'include'], yaml: '1.1', run: importLiteLlm },
  agentgateway: {
    fields: ['binds', 'llm', 'mcp', 'config', 'backends', 'services', 'workloads', 'gateways', 'routes', 'frontendPolicies'],
    yaml: '1.2',
    run: importAgentgateway,
  },
}

/** Prints a config file with the settings of another gateway, and a list of those that it does not have. Fails if nothing can be imported. */
export const runImport: Command = async ({ args, options, output, readInput }) => {
  const [path, ...rest] = args
  if (path === undefined || rest.length > 0) throw new UsageError('import takes one file, or - for standard input')
  const text = path === '-' ? await readInput() : await readFile(path, 'utf8').catch((error: Error) => fail(`${path}: ${error.message}`))
  const config = parseConfig(path, text)
  const format = options.from ?? Object.keys(importers).find((name) => importers[name]?.fields.some((field) => Object.hasOwn(config, field)))
  if (format === undefined) fail(`${path}: neither the config of LiteLLM nor that of agentgateway: it has none of their top-level fields`)
  const importer = Object.hasOwn(importers, format) ? importers[format] : undefined
  if (importer === undefined) throw new UsageError(`--from: ${JSON.stringify(format)} is not one of ${Object.keys(importers).join(', ')}`)
  const imported = importer.run(importer.yaml === '1.2' ? config : parseConfig(path, text, importer.yaml))
  if (Object.keys(imported.config).length === 0) fail(`${path}: nothing can be carried over${explain(imported)}`)
  output.print({ config: imported.config, notCarriedOver: imported.losses }, () => describe(imported, format))
  return 0
}

/** The first causes of an import without a result. */
function explain({ losses }: Imported): string {
  const causes = losses.slice(0, 3).map(({ path, reason }) => `${path} ${reason}`)
  return causes.length === 0 ? ': it has no models, servers or routes' : `: ${causes.join('; ')}${losses.length > 3 ? '; ...' : ''}`
}

function fail(message: string): never {
  throw new CommandError('PX6009', message)
}

function parseConfig(path: string, text: string, version: '1.1' | '1.2' = '1.2'): object {
  try {
    const config: unknown = parse(text, { merge: true, version })
    if (typeof config === 'object' && config !== null && !Array.isArray(config)) return config
  } catch (error) {
    fail(`${path}: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`)
  }
  return fail(`${path}: is not a config file`)
}

/** The list precedes the config as comments, so that the output is one file. */
function describe({ config, losses }: Imported, format: string): string[] {
  const list = losses.map(({ path, reason }) => `#   ${path}: ${reason}`)
  return [
    `# Imported from ${format}. Set the variables that it names, and check it with proxyctl lint.`,
    ...(losses.length === 0 ? ['# All settings were carried over.'] : ['# Not carried over, or changed:', ...list]),
    stringify(config, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd(),
  ]
}
