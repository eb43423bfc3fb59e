import { readFile } from 'node:fs/promises'
import { text as readText } from 'node:stream/consumers'
import { parseDocument } from 'yaml'
import { readApiKeyEntry } from '#api/credentials/api-key.ts'
import { loadConfigFile } from '../file/file.ts'
import { maskPlaceholders } from '../file/placeholders.ts'
import { ConfigFileError, digestOf } from '../file/problem.ts'
import { concealText, credentialsOf, withoutComments } from './conceal.ts'
import { diffLines, type DiffLine } from './diff.ts'
import { listEditable, sectionOf } from './fields.ts'
import { EditError, editText, fieldText, valueAt, type Path, type TextChange } from './text.ts'
import type { EditChange, EditorInput, EditorOutput, FieldText, KeyChange, KeyList } from './types.ts'

/** Program that reads and changes a config file for `file-edits.ts`: JSON in, JSON out. It writes nothing. */
const { path, options, changes } = JSON.parse(await readText(process.stdin)) as EditorInput

const bytes = await readFile(path)
const revision = digestOf(bytes)
const written = bytes.toString()
// A masked text is YAML, and no value of a placeholder is in it.
const masked = maskPlaceholders(written)
const text = masked?.text ?? written
const unmask = (masking: string): string => masked?.restore(masking) ?? masking

const problemsOf = (error: unknown): readonly string[] => {
  if (error instanceof ConfigFileError) return error.problems
  if (error instanceof EditError) return [error.message]
  throw error
}

/** Problems and warnings of a text in place of the file, as `proxyctl lint` reports them. */
async function lint(content: string): Promise<Pick<EditorOutput, 'problems' | 'warnings'>> {
  try {
    const { warnings } = await loadConfigFile(path, { ...options, text: content })
    return { problems: [], warnings }
  } catch (error) {
    return { problems: problemsOf(error), warnings: [] }
  }
}

async function readFields(): Promise<EditorOutput> {
  const found = await lint(written)
  if (found.problems.length > 0) return { revision, ...found }
  const root: unknown = parseDocument(text).toJS({ maxAliasCount: 1000 })
  const credentials = credentialsOf(text)
  const fields = listEditable(root).map(({ section, path: at }): FieldText => {
    const source = fieldText(text, at)
    return { section, path: at, text: source === undefined ? null : unmask(concealWords(source, credentials)) }
  })
  return { revision, fields, keys: listKeys(root), problems: [], warnings: found.warnings }
}

const concealWords = (source: string, credentials: ReadonlySet<string>): string =>
  [...credentials].filter((secret) => secret.length > 3 && source.includes(secret)).reduce((shown, secret) => shown.replaceAll(secret, '<redacted>'), source)

/** The Secrets that policies of API keys refer to. */
function listKeys(root: unknown): KeyList[] {
  const used = new Set<unknown>()
  const walk = (at: unknown): void => {
    if (typeof at !== 'object' || at === null) return
    for (const [name, value] of Object.entries(at)) {
      if (name === 'apiKeyAuthentication') {
        used.add(valueAt(value, ['secretRef', 'secret']))
        for (const key of (valueAt(value, ['secretSelector', 'secrets']) as readonly unknown[] | undefined) ?? []) used.add(key)
      }
      walk(value)
    }
  }
  walk(root)
  const secrets = (valueAt(root, ['secrets']) as readonly { readonly key: string; readonly data?: Readonly<Record<string, unknown>> }[] | undefined) ?? []
  return secrets.flatMap(({ key, data = {} }, secret) =>
    used.has(key) ? [{ secret, name: key, entries: Object.entries(data).map(([name, value]) => describeKey(name, value)) }] : [],
  )
}

function describeKey(name: string, value: unknown): KeyList['entries'][number] {
  const entry = readApiKeyEntry(typeof value === 'string' ? value : '')
  if ('problem' in entry) return { name, state: 'invalid', expires: null, metadata: {} }
  const { expiresMs, metadata } = entry
  return {
    name,
    state: expiresMs !== undefined && expiresMs <= Date.now() ? 'expired' : 'valid',
    expires: expiresMs === undefined ? null : new Date(expiresMs).toISOString(),
    metadata,
  }
}

const isKeyChange = (change: EditChange): change is KeyChange => 'key' in change

function toTextChange(change: EditChange): TextChange {
  if (!isKeyChange(change)) {
    const section = sectionOf(change.path)
    if (section === undefined || section === 'keys') throw new EditError(`${change.path.join('.')}: is not a field that the console changes; edit the file`)
    return change
  }
  const { secret, name, action, keyHash, expires, metadata } = change.key
  const at: Path = ['secrets', secret, 'data', name]
  const root: unknown = parseDocument(text).toJS({ maxAliasCount: 1000 })
  if (sectionOf(at) !== 'keys' || !listKeys(root).some((list) => list.secret === secret)) throw new EditError(`secrets.${secret}: is not a Secret of API keys`)
  const before = valueAt(root, at)
  if (action === 'create' && before !== undefined) throw new EditError(`key ${name}: exists already; rotate it, or choose another name`)
  if (action !== 'create' && before === undefined) throw new EditError(`key ${name}: does not exist`)
  if (action === 'revoke') return { path: at, text: null }
  const old = typeof before === 'string' ? readApiKeyEntry(before) : { problem: '' }
  const kept =
    'problem' in old
      ? {}
      : {
          ...(old.expiresMs !== undefined && { expires: new Date(old.expiresMs).toISOString() }),
          ...(Object.keys(old.metadata).length > 0 && { metadata: old.metadata }),
        }
  const entry = { keyHash, ...kept, ...(expires !== undefined && { expires }), ...(metadata !== undefined && { metadata }) }
  const read = readApiKeyEntry(JSON.stringify(entry))
  if ('problem' in read) throw new EditError(`key ${name}: ${read.problem}`)
  return { path: at, text: `'${JSON.stringify(entry).replaceAll("'", "''")}'` }
}

async function edit(list: readonly EditChange[]): Promise<EditorOutput> {
  let after: string
  try {
    after = editText(text, list.map(toTextChange))
  } catch (error) {
    return { revision, problems: problemsOf(error), warnings: [] }
  }
  const content = unmask(after)
  const [found, before] = [await lint(content), await lint(written)]
  const old = new Set(before.warnings.map(withoutPlace))
  const warnings = found.warnings.filter((warning) => !old.has(withoutPlace(warning)))
  return { revision, text: content, diff: difference(after), problems: found.problems, warnings }
}

const withoutPlace = (warning: string): string => warning.replace(/^.*?:\d+:\d+: /, '')

function difference(after: string): DiffLine[] {
  const [one, other] = [concealText(text), concealText(after, credentialsOf(text))]
  const lines = [withoutComments(one), withoutComments(other, (comment) => !one.includes(comment))].map((shown) => unmask(shown).split('\n'))
  return diffLines(lines[0] ?? [], lines[1] ?? [])
}

process.stdout.write(JSON.stringify(changes === undefined ? await readFields() : await edit(changes)))
