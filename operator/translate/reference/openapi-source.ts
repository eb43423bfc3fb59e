import type { McpOpenApi } from '#gen/v1alpha1/types.ts'
import { compileOpenApi, type CompiledOpenApi } from '#api/openapi/compile.ts'
import { DocumentError, parseDocument } from '#api/openapi/document.ts'
import type { RemoteDocument } from '../../model/translation.ts'
import type { ConfigMap } from '../../source/objects.ts'

/** The tools of a document, or why it is unusable. */
export type OpenApiSource = CompiledOpenApi | { readonly broken: string }

type Settings = Omit<McpOpenApi, 'configMapRef' | 'url' | 'refreshInterval' | 'backendRef' | 'response'>

const known = new WeakMap<ConfigMap | RemoteDocument, Map<string, OpenApiSource>>()

/** Compiles the document in a key of a ConfigMap, once per object and settings. Undefined if the ConfigMap does not have the key. */
export function readOpenApi(map: ConfigMap, key: string, settings: Settings): OpenApiSource | undefined {
  const bytes = bytesOf(map, key)
  return bytes && compileOnce(map, key, bytes, settings)
}

/** Compiles a document that was fetched, once per object and settings. */
export function readFetched(document: RemoteDocument, settings: Settings): OpenApiSource {
  return compileOnce(document, '', document.bytes, settings)
}

function compileOnce(owner: ConfigMap | RemoteDocument, key: string, bytes: Buffer, settings: Settings): OpenApiSource {
  let sources = known.get(owner)
  if (sources === undefined) known.set(owner, (sources = new Map()))
  const id = JSON.stringify([key, settings])
  let source = sources.get(id)
  if (source === undefined) sources.set(id, (source = compile(bytes, settings)))
  return source
}

/** The bytes of a key of `data` or `binaryData`; undefined if there is no such key. */
export function bytesOf({ data = {}, binaryData = {} }: ConfigMap, key: string): Buffer | undefined {
  const text = Object.hasOwn(data, key) ? data[key] : undefined
  if (text !== undefined) return Buffer.from(text)
  const encoded = Object.hasOwn(binaryData, key) ? binaryData[key] : undefined
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64')
}

function compile(bytes: Buffer, settings: Settings): OpenApiSource {
  try {
    return compileOpenApi(parseDocument(bytes), settings)
  } catch (error) {
    if (error instanceof DocumentError) return { broken: error.message }
    throw error
  }
}
