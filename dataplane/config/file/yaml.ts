import { isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseAllDocuments, type Node } from 'yaml'

/** A YAML document with the positions of its values. */
export interface YamlDocument {
  readonly value: unknown
  /** Line, from 1, of the value at a path, or of the nearest existing ancestor. For an unknown field, the line of its key. */
  lineOf(path: readonly (string | number)[]): number
}

export interface YamlProblem {
  readonly line: number
  readonly text: string
}

/** Parses one YAML 1.2 or JSON document. An empty document is an empty object. */
export function parseYaml(text: string): YamlDocument | { readonly problems: readonly YamlProblem[] } {
  const json = parseJson(text)
  if (json === undefined) return parseWithLines(text)
  // Lines are needed for errors only, and finding them takes fifty times as long as parsing JSON.
  let document: ReturnType<typeof parseWithLines> | undefined
  return {
    value: json,
    lineOf(path) {
      document ??= parseWithLines(text)
      return 'problems' in document ? 1 : document.lineOf(path)
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

function parseWithLines(text: string): YamlDocument | { readonly problems: readonly YamlProblem[] } {
  const lines = new LineCounter()
  const parsed = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })
  const documents = 'empty' in parsed ? [] : parsed
  const [document] = documents
  if (document === undefined) return { value: {}, lineOf: () => 1 }
  const problems = documents.flatMap(({ errors }) => errors.map((error) => ({ line: lines.linePos(error.pos[0]).line, text: error.message })))
  const second = documents[1]
  if (second !== undefined) problems.push({ line: lines.linePos(second.range[0]).line, text: 'a second document; write one' })
  if (problems.length > 0) return { problems }
  let value: unknown
  try {
    // Limits aliases, so that a file of a few lines cannot expand to gigabytes.
    value = document.toJS({ maxAliasCount: 1000 })
  } catch (error) {
    return { problems: [{ line: 1, text: error instanceof Error ? error.message : String(error) }] }
  }
  const lineAt = (node: Node): number => lines.linePos(node.range?.[0] ?? 0).line
  return {
    value: value ?? {},
    lineOf(path) {
      let node: unknown = document.contents
      let line = isNode(node) ? lineAt(node) : 1
      for (const part of path) {
        if (isSeq(node)) node = node.items[Number(part)]
        else if (isMap(node)) {
          const pair: unknown = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
          if (!isPair(pair)) return line
          if (isNode(pair.key)) line = lineAt(pair.key)
          node = pair.value
          continue
        } else return line
        if (!isNode(node)) return line
        line = lineAt(node)
      }
      return line
    },
  }
}
