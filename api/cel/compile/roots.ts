import { getField } from '../map.ts'
import { Special } from '../special.ts'
import type { Stored } from '../values.ts'
import type { Frame } from './code.ts'

interface Roots {
  readonly apiKey?: Stored
  readonly backend?: Stored
  readonly extauthz?: Stored
  readonly jwt?: Stored
  readonly llm?: Stored
  readonly llmRequest?: Stored
  readonly mcp?: Stored
  readonly metadata?: Stored
  readonly request?: Stored
  readonly response?: Stored
  readonly source?: Stored
}

const prototype: Roots = Object.prototype

/**
 * Readers of the most common variables: a static property access costs a tenth of a dynamic one. If Object.prototype has
 * such a property, `getField` decides, so that an inherited property is not mistaken for a variable.
 */
const readers: Readonly<Record<keyof Roots, (roots: Roots) => Stored>> = {
  apiKey: (roots) => (prototype.apiKey === undefined ? roots.apiKey : getField(roots, 'apiKey')),
  backend: (roots) => (prototype.backend === undefined ? roots.backend : getField(roots, 'backend')),
  extauthz: (roots) => (prototype.extauthz === undefined ? roots.extauthz : getField(roots, 'extauthz')),
  jwt: (roots) => (prototype.jwt === undefined ? roots.jwt : getField(roots, 'jwt')),
  llm: (roots) => (prototype.llm === undefined ? roots.llm : getField(roots, 'llm')),
  llmRequest: (roots) => (prototype.llmRequest === undefined ? roots.llmRequest : getField(roots, 'llmRequest')),
  mcp: (roots) => (prototype.mcp === undefined ? roots.mcp : getField(roots, 'mcp')),
  metadata: (roots) => (prototype.metadata === undefined ? roots.metadata : getField(roots, 'metadata')),
  request: (roots) => (prototype.request === undefined ? roots.request : getField(roots, 'request')),
  response: (roots) => (prototype.response === undefined ? roots.response : getField(roots, 'response')),
  source: (roots) => (prototype.source === undefined ? roots.source : getField(roots, 'source')),
}

/** Returns a closure that reads a variable of the host; undefined if it is not set. */
export function readRoot(name: string): (frame: Frame) => Stored {
  const read = Object.hasOwn(readers, name) ? readers[name as keyof Roots] : undefined
  if (read === undefined) return ({ root }) => getField(root, name)
  return ({ root }) => (root instanceof Special || root instanceof Map ? getField(root, name) : read(root))
}
