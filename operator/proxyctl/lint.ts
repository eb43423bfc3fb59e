import { readFile } from 'node:fs/promises'
import { UsageError, alignColumns, type Output } from './output.ts'
import type { Command } from './types.ts'

/** An error or a note. `where` is `file:line`, `file:line:column`, or the object. */
interface Finding {
  readonly severity: 'error' | 'note'
  readonly where: string
  readonly message: string
}

/** Name of standard input in findings. */
const STDIN = 'stdin'

/**
 * Checks a directory or file of manifests as the API server and the operator would, or a config file as the data plane would; `-` is standard input.
 * Exit status 1 if something is wrong.
 */
export const runLint: Command = async ({ args, options, output, readInput }) => {
  const [path, ...rest] = args
  if (path === undefined || rest.length > 0) throw new UsageError('lint takes one directory or file, or - for standard input')
  const text = path === '-' ? await readInput() : undefined
  const name = text === undefined ? path : STDIN
  const isConfig = isConfigFile(text ?? (await readFile(path, 'utf8').catch(() => '')))
  if (options.expand === true && !isConfig) throw new UsageError(`--expand: ${name} is not a config file`)
  const findings = isConfig ? await checkConfigFile(name, text) : await checkManifests(name, text, options.namespace)
  if (options.expand === true && findings.every(({ severity }) => severity !== 'error')) return printExpansion(name, text, output)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  output.print({ errors, findings }, () => [
    ...alignColumns(findings.map(({ severity, where, message }) => [output.paint(severity === 'error' ? 'red' : 'gray', severity), where, message])),
    errors === 0 ? output.paint('green', `${name}: no error`) : `${name}: ${errors} error${errors === 1 ? '' : 's'}`,
  ])
  return errors === 0 ? 0 : 1
}

async function checkManifests(path: string, text: string | undefined, defaultNamespace: string | undefined): Promise<Finding[]> {
  // Loaded on demand: the translation is large.
  const [{ readManifests, readManifestsOf }, { findTroubles }, { findUnguardedPaths }] = await Promise.all([
    import('./manifests.ts'),
    import('../program/report.ts'),
    import('../translate/backend/unguarded.ts'),
  ])
  const { problems, translation, strayRoutes, overlays } =
    text === undefined ? await readManifests(path, defaultNamespace) : readManifestsOf(path, text, defaultNamespace)
  return [
    ...problems.map(({ severity, file, line, field, message }) => ({
      severity,
      where: `${file}:${line}`,
      message: field === '' ? message : `${field}: ${message}`,
    })),
    ...findTroubles(translation.statuses).map(({ kind, namespace, name, type, reason, message }) => ({
      severity: 'error' as const,
      where: `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`,
      message: `${type}: ${reason}: ${message}`,
    })),
    ...overlays.map(({ namespace, name, message }) => ({ severity: 'error' as const, where: `ProxyParameters ${namespace}/${name}`, message })),
    ...[...findUnguardedPaths(translation.gateways.values())].flatMap(([key, lines]) =>
      lines.map((message) => ({ severity: 'note' as const, where: `ProxyBackend ${key}`, message })),
    ),
    // Its Gateway may be among other manifests.
    ...strayRoutes.map(({ kind, namespace, name, message }) => ({ severity: 'note' as const, where: `${kind} ${namespace}/${name}`, message })),
  ]
}

/** Whether a text has one of the top-level fields of a config file and no apiVersion. */
const isConfigFile = (text: string): boolean =>
  /^\s{0,2}"?(?:config|binds|backends|services|secrets|policies|llm|mcp)"?\s*:/m.test(text) && !/^\s{0,2}"?apiVersion"?\s*:/m.test(text)

/** Valid, because the listeners may come from an operator. */
const NOTHING_LISTENS = 'no port to listen on; add llm, mcp or binds, unless an operator adds listeners'

async function checkConfigFile(path: string, text: string | undefined): Promise<Finding[]> {
  // Loaded on demand: the schema of the config is large.
  const { loadConfigFile } = await import('../../dataplane/config/file/file.ts')
  const { ConfigFileError } = await import('../../dataplane/config/file/problem.ts')
  try {
    const { messages, warnings } = await loadConfigFile(path, text === undefined ? {} : { text })
    const isUseless = !messages.some(({ kind }) => kind === 'bind')
    return [
      ...warnings.map((warning) => toFinding('error', warning)),
      ...(isUseless ? [{ severity: 'note' as const, where: path, message: NOTHING_LISTENS }] : []),
    ]
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    return error.problems.map((problem) => toFinding('error', problem))
  }
}

async function printExpansion(path: string, text: string | undefined, output: Output): Promise<number> {
  const [{ expandConfigFile }, { stringify }] = await Promise.all([import('../../dataplane/config/file/expand.ts'), import('yaml')])
  const file = await expandConfigFile(path, text === undefined ? {} : { text })
  output.print(file, () => [stringify(file, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd()])
  return 0
}

/** Splits `file:line:column: path: problem`. */
function toFinding(severity: Finding['severity'], text: string): Finding {
  const [, where = '', message = text] = /^(.*?:\d+): ([^]*)$/.exec(text) ?? []
  return { severity, where, message }
}
