import { withCode } from '#api/messages/code.ts'
import type { Stats } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { CONTROLLER_NAME, GATEWAY_CLASS } from '#api/names.ts'
import { readChunk, type Chunk, type Position } from './document.ts'
import { apiVersionOf, type GatewayClass, type KubeObject } from './objects.ts'
import { createSnapshot, type Snapshot } from './snapshot.ts'

/** A position in a file of the directory. */
export interface Place extends Position {
  /** Relative to the directory. */
  readonly file: string
}

/** A message to the user about a directory. `text` is `file:line:column: field: message`. */
interface Problem extends Place {
  readonly severity: 'error' | 'note'
  readonly field: string
  readonly message: string
  readonly text: string
}

/** The objects and problems of a directory. */
export interface Load {
  readonly snapshot: Snapshot
  readonly objects: readonly KubeObject[]
  /** Sorted by file and line. */
  readonly problems: readonly Problem[]
  /** Position of a field of an object, or of the last part of its path that exists; undefined for objects that no file holds. */
  locate(kind: string, namespace: string, name: string, path: readonly (string | number)[]): Place | undefined
  /** Files that were there before and are gone or empty now: they still count until a second look, since editors replace files in two steps. */
  readonly pending: readonly string[]
}

interface FileState {
  readonly stamp: string
  /** Parsed documents by their text, so that an edit parses one document again. */
  readonly chunks: ReadonlyMap<string, Chunk>
  readonly parts: readonly { readonly line: number; readonly chunk: Chunk }[]
  /** Last good version of each object that the file holds. */
  readonly good: ReadonlyMap<string, KubeObject>
  readonly failure?: string
}

/** Reads a directory tree repeatedly; unchanged objects keep their identity. */
export interface DirectoryReader {
  /** Throws when the directory itself cannot be read. */
  load(options?: { isSecondLook?: boolean }): Promise<Load>
  /** Changes when any file does. */
  fingerprint(): Promise<string>
}

const EXTENSION = /\.(ya?ml|json)$/i
const MAX_DEPTH = 16

interface FoundFile {
  /** As shown to the user. */
  readonly file: string
  readonly path: string
  readonly stamp: string
  readonly size: number
}

/** Manifest files below `root` with a stamp that changes when they do; hidden files are left out. Links are followed, as ConfigMap volumes need. */
async function findFiles(root: string): Promise<FoundFile[]> {
  const found: FoundFile[] = []
  const add = (file: string, path: string, info: Stats): void =>
    void found.push({ file, path, stamp: `${info.mtimeMs} ${info.size} ${info.ino}`, size: info.size })
  /** @param above the directories that lead here, so that a link to one of them is not followed round and round */
  const visit = async (path: string, depth: number, above: readonly string[]): Promise<void> => {
    const names = await readdir(path).catch((error: unknown) => {
      if (depth === 0) throw error
      return []
    })
    for (const name of names) {
      if (name.startsWith('.') || depth > MAX_DEPTH) continue
      const inner = join(path, name)
      const info = await stat(inner).catch(() => undefined)
      if (info?.isDirectory()) {
        const id = `${info.dev} ${info.ino}`
        if (!above.includes(id)) await visit(inner, depth + 1, [...above, id])
      } else if (info?.isFile() && EXTENSION.test(name)) add(relative(root, inner).replaceAll(sep, '/'), inner, info)
    }
  }
  const info = await stat(root)
  if (info.isFile()) add(basename(root), root, info)
  else await visit(root, 0, [`${info.dev} ${info.ino}`])
  return found.toSorted((a, b) => (a.file < b.file ? -1 : 1))
}

/**
 * Splits at document markers, so that an edit re-reads one document. A `---` at the start of a line can be nothing else.
 * Text before it that is not a document, such as a %YAML directive, is left out.
 */
function splitDocuments(text: string): { line: number; text: string }[] {
  const parts: { line: number; text: string }[] = []
  let current: string[] = []
  let start = 1
  for (const [index, line] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    if (/^---(\s|$)/.test(line)) {
      if (!current.every((each) => /^(%|\s*(#|$))/.test(each))) parts.push({ line: start, text: current.join('\n') })
      current = [line.replace(/^---/, '   ')]
      start = index + 1
    } else current.push(line)
  }
  parts.push({ line: start, text: current.join('\n') })
  return parts.filter((part) => part.text.trim() !== '')
}

/** Seconds that a file's documents have before the next file's begin. */
const FILE_SPAN = 100_000
const EPOCH_MS = Date.UTC(2000, 0, 1)

/** Objects are ordered by file name, then by position in the file; the first counts as the oldest. */
const timestampOf = (fileIndex: number, position: number): string =>
  new Date(EPOCH_MS + (fileIndex * FILE_SPAN + Math.min(position, FILE_SPAN - 1)) * 1000).toISOString().replace('.000Z', 'Z')

const impliedClass: GatewayClass = {
  apiVersion: apiVersionOf('GatewayClass'),
  kind: 'GatewayClass',
  metadata: { name: GATEWAY_CLASS, namespace: '', generation: 1, creationTimestamp: new Date(EPOCH_MS).toISOString().replace('.000Z', 'Z') },
  spec: { controllerName: CONTROLLER_NAME },
}

/** Reads the documents of one text, such as standard input. `file` is its name in problems. */
export function readManifestText(file: string, text: string, defaultNamespace?: string): Omit<Load, 'pending'> {
  const parts = splitDocuments(text).map((part) => ({ line: part.line, chunk: readChunk(part.text, defaultNamespace) }))
  return assemble(new Map([[file, { stamp: '', chunks: new Map(), parts, good: keepGood(parts, undefined) }]]), dateByOrder())
}

/** Sets the creation time of objects without one, by their position. Unchanged objects keep their identity. */
function dateByOrder(): (object: KubeObject, fileIndex: number, position: number) => KubeObject {
  const dated = new WeakMap<KubeObject, KubeObject>()
  return (object, fileIndex, position) => {
    if (object.metadata.creationTimestamp !== '') return object
    const creationTimestamp = timestampOf(fileIndex, position)
    const known = dated.get(object)
    if (known?.metadata.creationTimestamp === creationTimestamp) return known
    const result = { ...object, metadata: { ...object.metadata, creationTimestamp } }
    dated.set(object, result)
    return result
  }
}

/** Reads a directory or a file. Objects without namespace are in `defaultNamespace`. */
export function createReader(root: string, defaultNamespace?: string): DirectoryReader {
  let files = new Map<string, FileState>()
  const date = dateByOrder()

  const readOne = async ({ file, path, stamp }: FoundFile): Promise<FileState> => {
    const previous = files.get(file)
    const chunks = new Map<string, Chunk>()
    let text: string
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      return {
        stamp,
        chunks,
        parts: [],
        good: previous?.good ?? new Map(),
        failure: `cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      }
    }
    const parts = splitDocuments(text).map((part) => {
      const chunk = previous?.chunks.get(part.text) ?? chunks.get(part.text) ?? readChunk(part.text, defaultNamespace)
      chunks.set(part.text, chunk)
      return { line: part.line, chunk }
    })
    return { stamp, chunks, parts, good: keepGood(parts, previous?.good) }
  }

  return {
    async load({ isSecondLook = false } = {}) {
      const found = await findFiles(root)
      const next = new Map<string, FileState>()
      const pending: string[] = []
      const isGone = new Set(files.keys())
      for (const each of found) {
        const { file, stamp } = each
        const previous = files.get(file)
        if (previous && each.size === 0 && previous.good.size > 0 && !isSecondLook) continue
        isGone.delete(file)
        const state = previous?.stamp === stamp ? previous : await readOne(each)
        next.set(file, state)
      }
      for (const file of isGone) {
        const previous = files.get(file)
        if (!previous || previous.good.size === 0 || isSecondLook) continue
        pending.push(file)
        next.set(file, previous)
      }
      files = new Map([...next].toSorted(([a], [b]) => (a < b ? -1 : 1)))
      return { ...assemble(files, date), pending }
    },
    async fingerprint() {
      return (await findFiles(root)).map(({ file, stamp }) => `${file} ${stamp}`).join('\n')
    },
  }
}

/** Good objects of a file: those that read well now, and the last good version of those that do not. */
function keepGood(parts: FileState['parts'], previous: ReadonlyMap<string, KubeObject> | undefined): Map<string, KubeObject> {
  const good = new Map<string, KubeObject>()
  for (const { chunk } of parts) {
    for (const { id, object } of chunk.items) {
      const kept = object ?? previous?.get(id)
      if (kept && !good.has(id)) good.set(id, kept)
    }
  }
  // The content of an unreadable document is unknown: any object that is missing from the file may be in it.
  if (parts.some(({ chunk }) => chunk.isUnreadable)) for (const [id, object] of previous ?? []) if (!good.has(id)) good.set(id, object)
  return good
}

const NAME = ['metadata', 'name']

/** `Service default/web` for `Service/default/web`, `Namespace web` for `Namespace//web`. */
const nameOf = (id: string): string => id.replace(/\/+/, ' ')

function assemble(files: ReadonlyMap<string, FileState>, date: (object: KubeObject, fileIndex: number, position: number) => KubeObject): Omit<Load, 'pending'> {
  const problems: Problem[] = []
  const objects = new Map<string, KubeObject>()
  const places = new Map<string, (path: readonly (string | number)[]) => Place>()
  let fileIndex = 0
  for (const [file, { parts, good, failure }] of files) {
    const report = (severity: Problem['severity'], { line, column }: Position, field: string, message: string): void => {
      problems.push({ severity, file, line, column, field, message, text: `${file}:${line}:${column}: ${field === '' ? '' : `${field}: `}${message}` })
    }
    if (failure !== undefined) report('error', { line: 1, column: 1 }, '', withCode(failure, 'PX2012'))
    const own = new Map<string, (path: readonly (string | number)[]) => Place>()
    for (const { line, chunk } of parts) {
      for (const finding of chunk.findings) report(finding.severity, { ...finding, line: line + finding.line - 1 }, finding.field, finding.message)
      for (const item of chunk.items) {
        const placeOf = (path: readonly (string | number)[]): Place => {
          const position = item.positionOf(path)
          return { file, line: line + position.line - 1, column: position.column }
        }
        const first = (own.get(item.id) ?? places.get(item.id))?.(NAME)
        if (first === undefined) own.set(item.id, placeOf)
        else
          report(
            'error',
            placeOf(NAME),
            'metadata.name',
            withCode(`${nameOf(item.id)} is already defined at ${first.file}:${first.line}; that one counts`, 'PX2011'),
          )
      }
    }
    let position = 0
    for (const [id, object] of good) {
      if (!objects.has(id)) {
        objects.set(id, date(object, fileIndex, position))
        places.set(id, own.get(id) ?? (() => ({ file, line: 1, column: 1 })))
      }
      position++
    }
    fileIndex++
  }
  const list = [...objects.values(), ...(objects.has(`GatewayClass//${GATEWAY_CLASS}`) ? [] : [impliedClass])]
  problems.sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1))
  const locate: Load['locate'] = (kind, namespace, name, path) => places.get(`${kind}/${namespace}/${name}`)?.(path)
  return { snapshot: createSnapshot(list), objects: list, problems, locate }
}
