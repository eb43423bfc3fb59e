import { createHash } from 'node:crypto'
import MiniSearch from 'minisearch'
import { isObject, type JsonObject } from '../message/json.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'

/** Tools of one user that are searched. Later ones of longer lists are not found. */
export const MAX_INDEXED = 10_000
/** Tools in one part of an index: a search of a part for a word must not block the event loop. */
const PART = 1000
/** Tools in all indexes of a backend. */
const MAX_KEPT = 10_000
/** Characters of a description, and of the texts in a schema, that are searched. */
const MAX_TEXT = 4000
/** Values of a schema that are read for its texts. */
const MAX_NODES = 1000
const MAX_TERMS = 16
const MAX_QUERY = 400

interface SearchedTool {
  readonly id: number
  readonly name: string
  readonly title: string
  readonly description: string
  /** Names and descriptions of arguments. */
  readonly schema: string
}

/** Ranks tools by BM25 over name, title, description and arguments. */
interface ToolIndex {
  readonly count: number
  /** Tools are dealt out in turns, so that words are about as frequent in each part. */
  readonly parts: readonly MiniSearch<SearchedTool>[]
}

const FIELDS = ['name', 'title', 'description', 'schema']
const BOOST = { name: 4, title: 3, description: 2 }

/** Indexes of the tools that users may see (mcp.md §4.7). Users with the same tools share one. The most recently used last. */
export class ToolIndexes {
  readonly #byDigest = new Map<string, ToolIndex>()
  #kept = 0

  #keep(digest: string, built: ToolIndex): ToolIndex {
    if (!this.#byDigest.has(digest)) this.#kept += built.count
    this.#byDigest.set(digest, built)
    for (const [oldest, { count }] of this.#byDigest) {
      if (this.#kept <= MAX_KEPT || oldest === digest) break
      this.#byDigest.delete(oldest)
      this.#kept -= count
    }
    return built
  }

  /** Positions of the tools that match the query, best first. */
  *search(tools: readonly JsonObject[], query: string): Cooperative<number[]> {
    const { parts } = yield* this.#indexOf(tools.slice(0, MAX_INDEXED))
    const scores = new Map<number, number>()
    for (const term of termsOf(query))
      for (const part of parts) {
        for (const { id, score } of part.search(term)) scores.set(id as number, (scores.get(id as number) ?? 0) + score)
        yield
      }
    return [...scores].toSorted(([a, scoreA], [b, scoreB]) => scoreB - scoreA || a - b).map(([id]) => id)
  }

  *#indexOf(tools: readonly JsonObject[]): Cooperative<ToolIndex> {
    const documents: SearchedTool[] = []
    const hash = createHash('sha256')
    for (const [id, tool] of tools.entries()) {
      const document = { id, ...textsOf(tool) }
      documents.push(document)
      hash.update(JSON.stringify(document))
      yield
    }
    const digest = hash.digest('base64')
    const known = this.#byDigest.get(digest)
    if (known !== undefined) {
      this.#byDigest.delete(digest)
      this.#byDigest.set(digest, known)
      return known
    }
    const count = documents.length
    const parts = Array.from({ length: Math.ceil(count / PART) }, newPart)
    for (const [at, document] of documents.entries()) {
      parts[at % parts.length]?.add(document)
      yield
    }
    return this.#keep(digest, { parts, count })
  }
}

const newPart = (): MiniSearch<SearchedTool> =>
  new MiniSearch<SearchedTool>({ fields: FIELDS, tokenize, processTerm: stem, searchOptions: { boost: BOOST, prefix: (term) => term.length > 2 } })

function textsOf({ name, title, description, inputSchema }: JsonObject): Omit<SearchedTool, 'id'> {
  const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, MAX_TEXT) : '')
  return { name: text(name), title: text(title), description: text(description), schema: schemaText(inputSchema) }
}

/** Names, titles and descriptions of the properties in a schema, at all levels. */
function schemaText(schema: unknown): string {
  const texts: string[] = []
  let length = 0
  let nodes = 0
  const add = (text: unknown): void => {
    if (typeof text !== 'string' || length >= MAX_TEXT) return
    texts.push(text.slice(0, MAX_TEXT - length))
    length += text.length
  }
  const open: unknown[] = [schema]
  while (open.length > 0 && nodes++ < MAX_NODES && length < MAX_TEXT) {
    const value = open.pop()
    if (Array.isArray(value)) open.push(...value.slice(0, MAX_NODES))
    else if (isObject(value)) {
      add(value['title'])
      add(value['description'])
      const { properties, items, anyOf, oneOf, allOf } = value
      open.push(items, anyOf, oneOf, allOf)
      if (isObject(properties))
        for (const [name, property] of Object.entries(properties).slice(0, MAX_NODES)) {
          add(name)
          open.push(property)
        }
    }
  }
  return texts.join(' ')
}

/** Words of a text; those of `camelCase` and `snake_case` names are separate. */
const tokenize = (text: string): string[] => text.replaceAll(/(\p{Ll}|\d)(?=\p{Lu})/gu, '$1 ').split(/[^\p{L}\p{N}]+/u)

/** Words of a query that say nothing about a tool. */
const FILLERS = new Set(['a', 'an', 'and', 'for', 'from', 'i', 'in', 'is', 'me', 'my', 'of', 'on', 'or', 'that', 'the', 'to', 'with'])

function termsOf(query: string): ReadonlySet<string> {
  const terms = tokenize(query.slice(0, MAX_QUERY)).flatMap((token) => stem(token) ?? [])
  return new Set(terms.filter((term) => !FILLERS.has(term)).slice(0, MAX_TERMS))
}

/** The form in which a word is compared: in lower case, without the ending of an English plural. */
function stem(word: string): string | undefined {
  const lower = word.toLowerCase().slice(0, 64)
  if (lower === '') return undefined
  if (lower.length > 4 && lower.endsWith('ies')) return `${lower.slice(0, -3)}y`
  return lower.length > 3 && lower.endsWith('s') && !lower.endsWith('ss') ? lower.slice(0, -1) : lower
}
