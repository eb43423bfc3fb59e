import { isObject, printJson } from './json.ts'
import { define, listOf, textOf } from './read.ts'
import { parseArguments } from './tools.ts'
import type { JsonObject, SegmentScope, TextSegment } from './types.ts'

type Path = readonly (string | number)[]

/** The texts of a message: its string, or one segment per run of adjacent text parts (llm.md §13.1). `path` leads to `content`. */
export function findSegments(scope: SegmentScope, role: string, content: unknown, path: Path, joiner: string): TextSegment[] {
  if (typeof content === 'string') return content === '' ? [] : [{ scope, role, text: content, isJson: false, paths: [path] }]
  const segments: TextSegment[] = []
  let texts: string[] = []
  let paths: Path[] = []
  const close = (): void => {
    if (texts.some((text) => text !== '')) segments.push({ scope, role, text: texts.join(joiner), isJson: false, paths })
    texts = []
    paths = []
  }
  listOf(content).forEach((part, at) => {
    const key = isObject(part) ? ['text', 'refusal'].find((name) => typeof part[name] === 'string') : undefined
    if (key === undefined || !isObject(part)) return close()
    texts.push(textOf(part[key]) ?? '')
    paths.push([...path, at, key])
    return undefined
  })
  close()
  return segments
}

/** The arguments of a tool call as a segment; an object is printed as JSON. */
export function findInput(role: string, value: unknown, path: Path): TextSegment[] {
  if (value === undefined || value === null || value === '') return []
  return [{ scope: 'toolInput', role, text: typeof value === 'string' ? value : printJson(value), isJson: true, paths: [path] }]
}

interface Edit {
  readonly inner: Map<string | number, Edit>
  text?: string
  isRemoved?: boolean
}

/**
 * Returns a copy of a body with the texts of some segments replaced. The last part of a run receives the text, the parts before it
 * are removed. Everything else is shared with the original.
 */
export function replaceTexts(body: JsonObject, texts: ReadonlyMap<TextSegment, string>): JsonObject {
  const root: Edit = { inner: new Map() }
  for (const [segment, text] of texts) {
    segment.paths.forEach((path, at) => {
      if (at === segment.paths.length - 1) reach(root, path).text = text
      else reach(root, path.slice(0, -1)).isRemoved = true
    })
  }
  return root.inner.size === 0 ? body : (apply(body, root) as JsonObject)
}

function reach(root: Edit, path: Path): Edit {
  let edit = root
  for (const key of path) {
    const next: Edit = edit.inner.get(key) ?? { inner: new Map() }
    edit.inner.set(key, next)
    edit = next
  }
  return edit
}

function apply(value: unknown, edit: Edit): unknown {
  if (edit.text !== undefined) return typeof value === 'string' ? edit.text : parseArguments(edit.text)
  if (Array.isArray(value)) {
    return (value as unknown[]).flatMap((item, at) => {
      const inner = edit.inner.get(at)
      return inner === undefined ? [item] : inner.isRemoved === true ? [] : [apply(item, inner)]
    })
  }
  if (!isObject(value)) return value
  const out: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const inner = edit.inner.get(key)
    define(out, key, inner === undefined ? value[key] : apply(value[key], inner))
  }
  // Annotations refer to offsets of the old text.
  if (edit.inner.has('text') && listOf(value['annotations']).length > 0) out['annotations'] = []
  return out
}
