import { parse } from 'yaml'
import { PriceCatalogError, readPriceCatalog, type PriceCatalog } from '#api/price-catalog.ts'
import type { ConfigMap } from '../../source/objects.ts'

/** The largest document in characters: the parser of YAML takes about a second per megabyte. */
const MAX_CHARS = 1024 * 1024

/** A catalog, or why it is unusable. */
type CatalogSource = PriceCatalog | { readonly broken: string }

const known = new WeakMap<ConfigMap, Map<string, CatalogSource>>()

/** Reads a key of a ConfigMap as a price catalog, once per object. Undefined if the ConfigMap does not have the key. */
export function readCatalogSource(map: ConfigMap, key: string): CatalogSource | undefined {
  const text = Object.hasOwn(map.data ?? {}, key) ? map.data?.[key] : undefined
  if (text === undefined) return undefined
  let sources = known.get(map)
  if (sources === undefined) known.set(map, (sources = new Map()))
  let source = sources.get(key)
  if (source === undefined) sources.set(key, (source = read(text)))
  return source
}

function read(text: string): CatalogSource {
  if (text.length > MAX_CHARS) return { broken: `it has ${text.length} characters; at most ${MAX_CHARS} are read` }
  let document: unknown
  try {
    // JSON is read by its own parser, which is a hundred times faster.
    document = text.trimStart().startsWith('{') ? JSON.parse(text) : parse(text, { maxAliasCount: 0 })
  } catch (error) {
    return { broken: `it is neither JSON nor YAML: ${(error as Error).message.split('\n')[0] ?? ''}` }
  }
  try {
    return readPriceCatalog(document)
  } catch (error) {
    if (error instanceof PriceCatalogError) return { broken: error.message }
    throw error
  }
}
