import { gunzipSync, gzipSync } from 'node:zlib'
import type { RemoteDocument } from '../model/translation.ts'
import { DocumentError, DocumentSyntaxError, MAX_DOCUMENT_BYTES, parseDocument } from '#api/openapi/document.ts'
import { createGet, type FetchOptions } from './fetch.ts'
import type { Fetch, Memory } from './store.ts'

/** Characters of a stored document, after compression and in base64: what a ConfigMap holds. */
const MAX_STORED_CHARS = 1_000_000
const MAX_VALIDATOR_CHARS = 1024

/** An OpenAPI document with the validators of its response (RFC 9110 §8.8). */
export class FetchedDocument implements RemoteDocument {
  readonly bytes: Buffer
  etag: string | undefined
  lastModified: string | undefined

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }
}

/**
 * Fetches OpenAPI documents: within 5 s to connect and 30 s altogether. A response that is no OpenAPI document is a failure, so that the last document
 * stays in use.
 */
export function createDocumentFetch({
  isLoopbackAllowed,
  times = { dialMs: 5000, totalMs: 30_000 },
  maxBytes = MAX_DOCUMENT_BYTES,
}: FetchOptions): Fetch<FetchedDocument> {
  const get = createGet({ isLoopbackAllowed, times, maxBytes })
  return async (source, attempt, signal, previous) => {
    const { isUnchanged, headers, bytes } = await get(source, attempt, signal, {
      accept: 'application/vnd.oai.openapi+json, application/json, application/yaml;q=0.9, */*;q=0.5',
      ...(previous?.etag !== undefined && { 'if-none-match': previous.etag }),
      ...(previous?.lastModified !== undefined && { 'if-modified-since': previous.lastModified }),
    })
    if (isUnchanged && previous !== undefined) return previous
    const document = previous?.bytes.equals(bytes) === true ? previous : new FetchedDocument(bytes)
    if (document !== previous) checkDocument(bytes)
    document.etag = validator(headers.etag)
    document.lastModified = validator(headers['last-modified'])
    return document
  }
}

const validator = (value: string | undefined): string | undefined => (value !== undefined && value.length <= MAX_VALIDATOR_CHARS ? value : undefined)

/** Throws an Error without text of the response: the URL may be one of another server, whose responses the user must not see. */
function checkDocument(bytes: Buffer): void {
  try {
    parseDocument(bytes)
  } catch (error) {
    if (error instanceof DocumentSyntaxError) throw new Error('the response is neither JSON nor YAML', { cause: error })
    if (error instanceof DocumentError) throw new Error(`the response is not usable: ${error.message}`, { cause: error })
    throw error
  }
}

/** Stores documents in a memory of texts. Those that are too large are fetched again after a restart. */
export function createDocumentMemory(texts: Memory<string>): Memory<FetchedDocument> {
  return {
    recall(source) {
      const text = texts.recall(source)
      if (text === undefined) return undefined
      const bytes = gunzipSync(Buffer.from(text, 'base64'), { maxOutputLength: MAX_DOCUMENT_BYTES })
      checkDocument(bytes)
      return new FetchedDocument(bytes)
    },
    keep(source, { bytes }) {
      const text = gzipSync(bytes).toString('base64')
      if (text.length <= MAX_STORED_CHARS) texts.keep(source, text)
    },
    forget: (source) => texts.forget(source),
  }
}
