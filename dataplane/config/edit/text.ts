import { isDeepStrictEqual } from 'node:util'
import { describeYamlError } from '#api/secret-fields.ts'
import { Document, isAlias, isCollection, isMap, isNode, isPair, isScalar, isSeq, parseAllDocuments, type Node, YAMLMap, type Pair } from 'yaml'

export type Path = readonly (string | number)[]

/** A change of one value of a config file. */
export interface TextChange {
  readonly path: Path
  /** The value as YAML; null removes it. */
  readonly text: string | null
}

/** A change that cannot be made. */
export class EditError extends Error {}

/** Longest text of a value, characters. */
const MAX_VALUE = 65_536
/** Aliases are counted, so that a text of a few lines cannot expand to gigabytes. */
const MAX_ALIASES = 1000
/** Objects that exist only for what is in them: they are removed with their last field. */
const wrappers: ReadonlySet<string | number | undefined> = new Set(['policies', 'ai', 'mcp', 'traffic', 'backend'])

const print = { lineWidth: 0 } as const

/**
 * Changes values of a YAML or JSON document. Everything else stays as it is written: comments, order, quotes and spaces. A change inside a collection in braces
 * rewrites the value of the innermost key outside of braces.
 * @throws EditError
 */
export function editText(text: string, changes: readonly TextChange[]): string {
  return changes.reduce(editOne, text)
}

function editOne(text: string, { path, text: given }: TextChange): string {
  const before = valueOf(parse(text))
  if (given === null && valueAt(before, path) === undefined) throw new EditError(`${format(path)}: the file has no such field`)
  const at = given === null ? pruned(before, path) : path
  const value = given === null ? undefined : parseValue(given, path)
  const expected = withValue(before, at, value && valueOf(value))
  if (/^\s*\{/.test(text) && isJson(text)) return `${JSON.stringify(expected, null, /\n([ \t]+)/.exec(text)?.[1])}${text.endsWith('\n') ? '\n' : ''}`
  for (const attempt of [splice, reprint]) {
    const result = attempt(text, at, value?.contents ?? undefined)
    if (result !== undefined && hasValue(result, expected)) return result
  }
  throw new EditError(`${format(path)}: cannot be changed without a change of other parts of the file, such as an alias; edit the file`)
}

function hasValue(text: string, expected: unknown): boolean {
  try {
    return isDeepStrictEqual(valueOf(parse(text)), expected)
  } catch {
    return false
  }
}

function valueOf(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch (error) {
    throw new EditError(describeYamlError(error instanceof Error ? error.message : String(error)))
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const format = (path: Path): string => path.join('.')

function parse(text: string): Document.Parsed {
  const [document, ...others] = parseAllDocuments(text, { prettyErrors: false, logLevel: 'error' }) as Document.Parsed[]
  const [error] = document?.errors ?? []
  if (document === undefined || others.length > 0) throw new EditError('the file is not one YAML document')
  if (error !== undefined) throw new EditError(describeYamlError(error.message))
  return document
}

/** The document of a value. Its aliases, tags and placeholders could reach what the user of the console does not see. */
function parseValue(text: string, path: Path): Document.Parsed {
  const fail = (problem: string): never => {
    throw new EditError(`${format(path)}: ${problem}`)
  }
  if (text.length > MAX_VALUE) fail(`is longer than ${MAX_VALUE} characters`)
  if (text.includes('${')) fail('contains ${, which begins a placeholder; the console writes no placeholders, edit the file')
  if (text.includes('<redacted>')) fail('contains <redacted>, which stands for a credential that the console does not know; edit the file')
  const [document, ...others] = parseAllDocuments(text, { prettyErrors: false, logLevel: 'error' }) as Document.Parsed[]
  if (document === undefined || others.length > 0) return fail('is not one YAML value')
  const [error] = [...document.errors, ...document.warnings]
  if (error !== undefined) fail(describeYamlError(error.message))
  const { contents } = document
  if (contents === null || (isScalar(contents) && contents.value === null)) return fail('is empty; remove the field instead')
  checkPlain(contents, fail)
  contents.spaceBefore = false
  return document
}

/** An alias or an anchor could stand for other parts of the file. */
function checkPlain(node: unknown, fail: (problem: string) => never): void {
  if (isAlias(node)) fail('contains an alias; write the value')
  if (isNode(node) && !isAlias(node) && (node.anchor !== undefined || node.tag?.startsWith('!') === true)) fail('contains an anchor or a tag; write the value')
  if (isCollection(node)) for (const item of node.items) checkPlain(item, fail)
  else if (isPair(node)) for (const part of [node.key, node.value]) checkPlain(part, fail)
}

/** The path to remove: that of the outermost wrapper that would be empty. */
function pruned(root: unknown, path: Path): Path {
  const parent = valueAt(root, path.slice(0, -1))
  const isLast = typeof parent === 'object' && parent !== null && Object.keys(parent).length === 1
  return path.length > 2 && isLast && wrappers.has(path.at(-2)) ? pruned(root, path.slice(0, -1)) : path
}

export function valueAt(root: unknown, path: Path): unknown {
  let at = root
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined
    at = (at as Readonly<Record<string | number, unknown>>)[part]
  }
  return at
}

/** A copy of `root` with another value at a path; undefined removes it. */
function withValue(root: unknown, [part, ...rest]: Path, value: unknown): unknown {
  if (part === undefined) return value
  if (Array.isArray(root)) {
    if (typeof part !== 'number' || part >= root.length) throw new EditError(`${part}: the list has no such entry`)
    return root.map((item: unknown, index) => (index === part ? withValue(item, rest, value) : item))
  }
  if (typeof part === 'number' || (typeof root !== 'object' && root !== undefined)) throw new EditError(`${part}: the file has no such field`)
  const fields = Object.entries(root ?? {})
  const inner = withValue(fields.find(([name]) => name === part)?.[1], rest, value)
  const isThere = fields.some(([name]) => name === part)
  if (inner === undefined) return Object.fromEntries(fields.filter(([name]) => name !== part))
  return Object.fromEntries(isThere ? fields.map(([name, old]) => [name, name === part ? inner : old]) : [...fields, [part, inner]])
}

/** A key of a map that is not in braces, and its pair if the map has it. */
interface Place {
  readonly map: YAMLMap<Node, Node | null>
  readonly pair: Pair<Node, Node | null> | undefined
  readonly depth: number
}

/** The innermost key of a path that is not inside braces. */
function findPlace(document: Document, path: Path): Place | undefined {
  let node: unknown = document.contents
  let place: Place | undefined
  for (const [depth, part] of path.entries()) {
    if (!isCollection(node) || node.flow === true) return place
    if (isSeq(node)) node = node.items[Number(part)]
    else if (isMap<Node, Node | null>(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
      place = { map: node, pair, depth }
      if (pair === undefined) return place
      node = pair.value
    }
  }
  return place
}

/** Replaces the text of one pair. Undefined if the text has no place for it. */
function splice(text: string, path: Path, value: Node | undefined): string | undefined {
  const document = parse(text)
  const place = findPlace(document, path)
  if (place === undefined) return undefined
  const { map, pair, depth } = place
  const first = map.items[0]?.key.range?.[0]
  if (first === undefined) return undefined
  const column = first - lineStart(text, first)
  if (pair === undefined) return value && insert(text, map, column, printPair(path.slice(depth), value))
  if (value === undefined && depth === path.length - 1 && map.items.length > 1) return removeLines(text, pair)
  setIn(document, path, value, depth)
  const start = pair.key.range?.[0] ?? 0
  pair.key.commentBefore = null
  const printed = printNode(pair.key, pair.value)
  return text.slice(0, start) + indent(printed, column) + text.slice(endOf(text, parse(text), path.slice(0, depth + 1)))
}

/** Changes the document. Collections in braces on the way to a new value are written without them. */
function setIn(document: Document, path: Path, value: Node | undefined, depth: number): void {
  if (value === undefined) return void document.deleteIn(path)
  for (let end = depth + 1; end < path.length; end++) {
    const node: unknown = document.getIn(path.slice(0, end), true)
    if (isCollection(node)) {
      node.flow = false
      node.comment = null
    } else {
      // A key without a value.
      document.setIn(path.slice(0, end), document.createNode({}))
    }
  }
  document.setIn(path, value)
}

function reprint(text: string, path: Path, value: Node | undefined): string {
  const document = parse(text)
  if (value === undefined) document.deleteIn(path)
  else document.setIn(path, value)
  return document.toString(print)
}

const lineStart = (text: string, offset: number): number => text.lastIndexOf('\n', offset - 1) + 1

const lineEnd = (text: string, offset: number): number => {
  const end = text.indexOf('\n', offset)
  return end === -1 ? text.length : end
}

/** The end of the pair at a path: of its value, or of its key if it has none. */
function endOf(text: string, document: Document, path: Path): number {
  const pair = findPlace(document, path)?.pair
  return pair === undefined ? text.length : endOfPair(text, pair)
}

function endOfPair(text: string, { key, value }: Pair<Node, Node | null>): number {
  const [start = 0, end = 0] = value?.range ?? key.range ?? []
  if (end > start) return start + text.slice(start, end).trimEnd().length
  return text.indexOf(':', key.range?.[1] ?? 0) + 1
}

function insert(text: string, map: YAMLMap<Node, Node | null>, column: number, printed: string): string | undefined {
  const last = map.items.at(-1)
  if (last === undefined) return undefined
  const at = lineEnd(text, endOfPair(text, last))
  return `${text.slice(0, at)}\n${' '.repeat(column)}${indent(printed, column)}${text.slice(at)}`
}

function removeLines(text: string, pair: Pair<Node, Node | null>): string | undefined {
  const key = pair.key.range?.[0] ?? 0
  const start = lineStart(text, key)
  if (text.slice(start, key).trim() !== '') return undefined
  return text.slice(0, start) + text.slice(lineEnd(text, endOfPair(text, pair)) + 1)
}

const indent = (text: string, column: number): string => text.replaceAll(/\n(?=[^\n])/g, `\n${' '.repeat(column)}`)

function printPair([name, ...rest]: Path, value: Node): string {
  const document = new Document()
  const inner = rest.toReversed().reduce<Node>((node, part) => {
    const map = new YAMLMap()
    map.set(part, node)
    return map
  }, value)
  return printNode(document.createNode(name), inner)
}

function printNode(key: unknown, value: unknown): string {
  const document = new Document()
  const map = new YAMLMap()
  if (typeof value === 'object' && value !== null && 'comment' in value && !(isCollection(value) && value.flow !== true)) value.comment = null
  map.set(key, value)
  document.contents = map
  return document.toString(print).trimEnd()
}

/** The text of the value at a path as it is written; undefined if there is none. */
export function fieldText(text: string, path: Path): string | undefined {
  const document = parse(text)
  const node: unknown = document.getIn(path, true)
  if (!isNode(node) || !node.range) return undefined
  if (isJson(text)) return JSON.stringify(node.toJS(document), null, 2)
  const [start, end] = node.range
  const column = start - lineStart(text, start)
  const source = text
    .slice(start, end)
    .trimEnd()
    .replaceAll(new RegExp(`\n {0,${column}}`, 'g'), '\n')
  return hasValue(source, node.toJS(document)) ? source : new Document(node).toString(print).trimEnd()
}
