import { readFile } from 'node:fs/promises'
import { UsageError, alignColumns } from './output.ts'
import type { Command } from './types.ts'

/** An error or a note. `where` is `file:line`, or the object. */
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
  const findings = isConfigFile(text ?? (await readFile(path, 'utf8').catch(() => '')))
    ? await checkConfigFile(name, text)
    : await checkManifests(name, text, options.namespace)
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

async function checkConfigFile(path: string, text: string | undefined): Promise<Finding[]> {
  // Loaded on demand: the schema of the config is large.
  const { loadConfigFile } = await import('../../dataplane/config/file/file.ts')
  const { ConfigFileError } = await import('../../dataplane/config/file/problem.ts')
  try {
    const { warnings } = await loadConfigFile(path, text === undefined ? {} : { text })
    return warnings.map((warning) => toFinding('error', warning))
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    return error.problems.map((problem) => toFinding('error', problem))
  }
}

/** Splits `file:line: path: problem`. */
function toFinding(severity: Finding['severity'], text: string): Finding {
  const [, where = '', message = text] = /^(.*?:\d+): ([^]*)$/.exec(text) ?? []
  return { severity, where, message }
}
