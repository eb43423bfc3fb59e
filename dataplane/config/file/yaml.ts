import { describeYamlError } from '#api/secret-fields.ts'
import { isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseAllDocuments, visit, type Document, type Node } from 'yaml'

/** Line and column, both from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** A YAML document with the positions of its values. */
export interface YamlDocument {
  readonly value: unknown
  /** Position of the value at a path, or of the nearest existing ancestor. For an unknown or empty field, the position of its key. */
  positionOf(path: readonly (string | number)[]): Position
}

export interface YamlProblem extends Position {
  readonly text: string
}

const START: Position = { line: 1, column: 1 }

/** Position of an offset in a text. */
export function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}

/** Parses one YAML 1.2 or JSON document. An empty document is an empty object. */
export function parseYaml(text: string): YamlDocument | { readonly problems: readonly YamlProblem[] } {
  const json = parseJson(text)
  if (json === undefined) return parseWithPositions(text)
  // Positions are needed for errors only, and finding them takes fifty times as long as parsing JSON.
  let document: ReturnType<typeof parseWithPositions> | undefined
  return {
    value: json,
    positionOf(path) {
      document ??= parseWithPositions(text)
      return 'problems' in document ? START : document.positionOf(path)
    },
  }
}

function parseJson(text: string): unknown {
  if (!/^\s*\{/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function parseWithPositions(text: string): YamlDocument | { readonly problems: readonly YamlProblem[] } {
  const lines = new LineCounter()
  const positionOfOffset = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const parsed = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' })
  const documents = 'empty' in parsed ? [] : parsed
  const [document] = documents
  if (document === undefined) return { value: {}, positionOf: () => START }
  const problems = documents.flatMap(({ errors }) => errors.map((error) => ({ ...positionOfOffset(error.pos[0]), text: describeYamlError(error.message) })))
  const second = documents[1]
  if (second !== undefined) problems.push({ ...positionOfOffset(second.range[0]), text: 'a second document; write one' })
  if (problems.length > 0) return { problems }
  let value: unknown
  try {
    // Limits aliases, so that a file of a few lines cannot expand to gigabytes.
    value = document.toJS({ maxAliasCount: 1000 })
  } catch (error) {
    const position = positionOfOffset(findUnresolved(document) ?? 0)
    return { problems: [{ ...position, text: describeYamlError(error instanceof Error ? error.message : String(error)) }] }
  }
  const positionOfNode = (node: Node): Position => positionOfOffset(node.range?.[0] ?? 0)
  return {
    value: value ?? {},
    positionOf(path) {
      let node: unknown = document.contents
      let position = isNode(node) ? positionOfNode(node) : START
      for (const part of path) {
        if (isSeq(node)) node = node.items[Number(part)]
        else if (isMap(node)) {
          const pair: unknown = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
          if (!isPair(pair)) return position
          if (isNode(pair.key)) position = positionOfNode(pair.key)
          node = pair.value
          continue
        } else return position
        if (!isNode(node)) return position
        position = positionOfNode(node)
      }
      return position
    },
  }
}

/** Offset of the first alias without an anchor before it. */
function findUnresolved(document: Document): number | undefined {
  let found: number | undefined
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return undefined
      found = alias.range?.[0]
      return visit.BREAK
    },
  })
  return found
}
