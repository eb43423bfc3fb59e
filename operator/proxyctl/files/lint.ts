import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ObjectFinding } from '../../program/findings.ts'
import type { Place } from '../../source/reader.ts'
import { UsageError, alignColumns, type Output } from '../output.ts'
import type { Command } from '../types.ts'

/** An error or a note. `where` is the object, or `file:line` or `file:line:column` where none is known. */
interface Finding {
  readonly severity: 'error' | 'note'
  readonly where: string
  readonly message: string
  /** Path of the file as the user would type it. */
  readonly file?: string
  readonly line?: number
  readonly column?: number
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
    ...alignColumns(findings.map((finding) => [output.paint(finding.severity === 'error' ? 'red' : 'gray', finding.severity), ...describe(finding)])),
    errors === 0 ? output.paint('green', `${name}: no error`) : `${name}: ${errors} error${errors === 1 ? '' : 's'}`,
  ])
  return errors === 0 ? 0 : 1
}

async function checkManifests(path: string, text: string | undefined, defaultNamespace: string | undefined): Promise<Finding[]> {
  // Loaded on demand: the translation is large.
  const [
    { readManifests, readManifestsOf },
    { describeUnguardedPaths, findUnguardedPaths },
    { describeUnpricedModels, findUnpricedModels },
    { findUnstableTransformations },
  ] = await Promise.all([
    import('./manifests.ts'),
    import('../../translate/backend/unguarded.ts'),
    import('../../translate/backend/unpriced.ts'),
    import('../../translate/backend/unstable.ts'),
  ])
  const { problems, translation, conditions, strayRoutes, overlaps, refusedHosts, overlays } =
    text === undefined ? await readManifests(path, defaultNamespace) : readManifestsOf(path, text, defaultNamespace)
  // Files are relative to a directory, and the name of a file that is checked alone.
  const isDirectory = text === undefined && (await stat(path)).isDirectory()
  const toPlace = (place: Place): Place => ({ file: isDirectory ? join(path, place.file) : path, line: place.line, column: place.column })
  const toFindings = (severity: Finding['severity'], found: readonly ObjectFinding[]): Finding[] =>
    found.map(({ kind, namespace, name, message, place }) => {
      return { severity, where: `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`, message, ...(place === undefined ? {} : toPlace(place)) }
    })
  // One cause is one line.
  const causes = conditions.filter(({ isConsequence }) => !isConsequence)
  return [
    ...problems.map(({ severity, field, message, ...place }): Finding => {
      const { file, line, column } = toPlace(place)
      return { severity, where: `${place.file}:${line}`, message: field === '' ? message : `${field}: ${message}`, file, line, column }
    }),
    ...toFindings(
      'error',
      causes.map((each) => ({ ...each, message: `${each.type}: ${each.reason}: ${each.message}` })),
    ),
    ...toFindings('error', overlays),
    ...[...describeUnguardedPaths([...translation.gateways.values()].map(findUnguardedPaths))].map(([key, message]) => {
      return { severity: 'note' as const, where: `ProxyBackend ${key}`, message }
    }),
    ...toNotes(describeUnpricedModels([...translation.gateways.values()].map(findUnpricedModels)), 'ProxyBackend '),
    ...toNotes(findUnstableTransformations([...translation.gateways.values()].flat())),
    // Its Gateway may be among other manifests.
    ...toFindings('note', [...strayRoutes, ...overlaps, ...refusedHosts]),
  ]
}

/** A note for each message about an object. */
const toNotes = (found: ReadonlyMap<string, readonly string[]>, kind = ''): Finding[] =>
  [...found].flatMap(([where, texts]) => texts.map((message) => ({ severity: 'note' as const, where: `${kind}${where}`, message })))

/** The columns of a finding: `file:line:column`, then the object and the message. */
function describe({ where, message, file, line, column }: Finding): readonly [place: string, text: string] {
  if (file === undefined) return [where, message]
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  return [place, where.includes(' ') ? `${where}: ${message}` : message]
}

/** Whether a text has one of the top-level fields of a config file and no apiVersion. */
const isConfigFile = (text: string): boolean =>
  /^\s{0,2}"?(?:config|binds|backends|services|secrets|policies|llm|mcp|models|listen|https|keys|guardrails|log|ledger)"?\s*:/m.test(text) &&
  !/^\s{0,2}"?apiVersion"?\s*:/m.test(text)

/** Valid, because the listeners may come from an operator. */
const NOTHING_LISTENS = 'no port to listen on; add models, mcp or binds, unless an operator adds listeners'

async function checkConfigFile(path: string, text: string | undefined): Promise<Finding[]> {
  // Loaded on demand: the schema of the config is large.
  const { loadConfigFile } = await import('../../../dataplane/config/file/file.ts')
  const { ConfigFileError } = await import('../../../dataplane/config/file/problem.ts')
  const { describeUnpricedModels, findUnpricedModels } = await import('../../translate/backend/unpriced.ts')
  const { findUnstableTransformations } = await import('../../translate/backend/unstable.ts')
  try {
    const { messages, warnings, notes } = await loadConfigFile(path, text === undefined ? {} : { text })
    const isUseless = !messages.some(({ kind }) => kind === 'bind')
    return [
      ...warnings.map((warning) => toFinding('error', warning)),
      ...notes.map((note) => toFinding('note', note)),
      ...toNotes(describeUnpricedModels([findUnpricedModels(messages)]), 'ProxyBackend '),
      ...toNotes(findUnstableTransformations(messages)),
      ...(isUseless ? [{ severity: 'note' as const, where: path, message: NOTHING_LISTENS }] : []),
    ]
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    return error.problems.map((problem) => toFinding('error', problem))
  }
}

/** Prints a config file in the long form, or its errors. */
export const runConfigExpand: Command = async ({ args, output, readInput }) => {
  const [path, ...rest] = args
  if (path === undefined || rest.length > 0) throw new UsageError('config expand takes one config file, or - for standard input')
  const text = path === '-' ? await readInput() : undefined
  const { ConfigFileError } = await import('../../../dataplane/config/file/problem.ts')
  try {
    return await printExpansion(text === undefined ? path : STDIN, text, output)
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    for (const problem of error.problems) output.note(`${problem}\n`)
    return 1
  }
}

async function printExpansion(path: string, text: string | undefined, output: Output): Promise<number> {
  const [{ expandConfigFile }, { stringify }] = await Promise.all([import('../../../dataplane/config/file/expand.ts'), import('yaml')])
  const file = await expandConfigFile(path, text === undefined ? {} : { text })
  output.print(file, () => [stringify(file, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd()])
  return 0
}

/** Splits `file:line:column: path: problem`. */
function toFinding(severity: Finding['severity'], text: string): Finding {
  const [, where = '', message = text] = /^(.*?:\d+): ([^]*)$/.exec(text) ?? []
  return { severity, where, message }
}
